//! Suggestions for misspelled words.

use strsim::levenshtein;

/// Returns ` (did you mean …?)` with the nearest word of a list; empty if none is near.
pub(super) fn nearest(word: &str, known: &[&str]) -> String {
    nearest_word(word, known).map_or(String::new(), question)
}

/// Returns the suggestion for a setting, as [`nearest`] does for words.
pub(super) fn nearest_of_settings(name: &str, known: &[&str]) -> String {
    nearest_setting(name, known).map_or(String::new(), question)
}

/// Adds a suggestion to a message of the form `… is not one of: …`. `others` are valid words that
/// the message does not list.
pub(super) fn not_one_of(message: &str, others: &[&str]) -> String {
    let said = message.split_once("` is not one of: ");
    let near = said.map(|(word, known)| {
        let known: Vec<&str> = known.split(", ").chain(others.iter().copied()).collect();
        nearest(word.rsplit('`').next().unwrap_or_default(), &known)
    });
    format!("{message}{}", near.unwrap_or_default())
}

/// Suggests a first word for a phrase, out of phrases separated by commas; empty if the phrase's
/// own is valid.
pub(crate) fn nearest_beginning(phrase: &str, phrases: &str) -> String {
    let known: Vec<&str> =
        phrases.split(", ").filter_map(|phrase| phrase.split_whitespace().next()).collect();
    match phrase.split_whitespace().next() {
        Some(word) if !known.contains(&word) => nearest(word, &known),
        _ => String::new(),
    }
}

fn question(word: &str) -> String {
    format!(" (did you mean `{word}`?)")
}

/// Returns the nearest word of a list, or `None` if none is near.
///
/// A word is near if few letters are inserted, deleted or changed, in any case. Otherwise it must
/// be the only one that contains `word` as a part between hyphens or spaces.
pub fn nearest_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |known: &str| levenshtein(&word, &known.to_lowercase());
    let near = known.iter().map(|known| (distance(known), *known)).min()?;
    if near.0 <= 1 + word.chars().count() / 3 {
        return Some(near.1);
    }
    let mut whole = known.iter().copied().filter(|known| known.split(['-', ' ']).any(|part| part == word));
    whole.next().filter(|_| whole.next().is_none())
}

/// Returns the nearest setting, by its whole name or by its last part.
pub fn nearest_setting<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let last = |name: &'a str| name.rsplit('.').next().unwrap_or(name);
    let words: Vec<&str> = known.iter().map(|known| last(known)).collect();
    let by_word = || {
        let word = nearest_word(name.rsplit(['.', '/']).next()?, &words)?;
        known.iter().copied().find(|known| last(known) == word)
    };
    nearest_word(name, known).or_else(by_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_single_word_is_near_to_it() {
        let known = ["alternating-nat", "syn-proxy", "drop-syn-data"];
        assert_eq!(nearest_word("nat", &known), Some("alternating-nat"));
        assert_eq!(nearest_word("syn", &known), None);
    }

    #[test]
    fn a_setting_is_found_by_its_name_or_its_last_word() {
        let known = ["net.core.somaxconn", "net.ipv4.tcp_fastopen", "net.ipv4.tcp_syn_retries"];
        for (name, meant) in [
            ("net.ipv4.tcp_fastopn", Some(known[1])),
            ("tcp_fastopen", Some(known[1])),
            ("ipv4/tcp_synretries", Some(known[2])),
            ("SOMAXCON", Some(known[0])),
            ("colour", None),
        ] {
            assert_eq!(nearest_setting(name, &known), meant, "{name}");
        }
    }
}
