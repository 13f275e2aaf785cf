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

fn question(word: &str) -> String {
    format!(" (did you mean `{word}`?)")
}

/// The word of a list that was probably meant: so few letters of it are inserted, deleted or changed, case apart; `None` if none is near.
pub fn nearest_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |known: &str| levenshtein(&word, &known.to_lowercase());
    let near = known.iter().map(|known| (distance(known), *known)).min()?;
    (near.0 <= 1 + word.chars().count() / 3).then_some(near.1)
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
