//! The word that was probably meant.

use strsim::levenshtein;

/// The word of a list that was probably meant, as a question; empty if none is near.
pub(super) fn nearest(word: &str, known: &[&str]) -> String {
    nearest_word(word, known).map_or(String::new(), question)
}

/// As [`nearest`], of settings.
pub(super) fn nearest_of_settings(name: &str, known: &[&str]) -> String {
    nearest_setting(name, known).map_or(String::new(), question)
}

/// What a message says is not one of a list, with the word of it that was probably meant, or another one that may stand there.
pub(super) fn not_one_of(message: &str, others: &[&str]) -> String {
    let said = message.split_once("` is not one of: ");
    let near = said.map(|(word, known)| {
        let known: Vec<&str> = known.split(", ").chain(others.iter().copied()).collect();
        nearest(word.rsplit('`').next().unwrap_or_default(), &known)
    });
    format!("{message}{}", near.unwrap_or_default())
}

/// As [`nearest`], of the first words of phrases with commas between them; empty if that is right.
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

/// The word of a list that was probably meant: so few letters of it are inserted, deleted or changed, case apart, or else it is the only one of
/// which the word is a part, between hyphens or spaces; `None` if none is near.
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

/// The setting that was probably meant: by its whole name, or else by its last word.
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
