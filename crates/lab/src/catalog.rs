//! The catalog: every built-in scenario, in chapters, and the matching of words against it.

use crate::experiment::{Experiment, SHELF};
use crate::scenario::CATALOGUE;

/// A built-in scenario, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The name on the command line.
    pub name: &'static str,
    /// The catalog id, such as `L-TFO-4`; empty if it has none.
    pub id: String,
    /// The chapter that groups it with others.
    pub chapter: String,
    /// The question that it answers.
    pub question: String,
    text: String,
}

impl Listing {
    /// Returns everything that a search looks at: name, id, texts, and the file if there is one.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns all built-in scenarios. Chapters and the scenarios in them are in the order worth
/// reading.
pub fn catalog() -> Vec<Listing> {
    let files: Vec<Listing> = SHELF
        .iter()
        .filter_map(|shelved| {
            let experiment = Experiment::parse(shelved.text).ok()?;
            Some(Listing {
                name: shelved.name,
                id: experiment.id().to_owned(),
                chapter: experiment.chapter().to_owned(),
                question: experiment.question().to_owned(),
                text: format!("{} {}", shelved.name, shelved.text),
            })
        })
        .collect();
    let programs = CATALOGUE.iter().map(|entry| Listing {
        name: entry.name,
        id: entry.id.to_owned(),
        chapter: entry.chapter.to_owned(),
        question: entry.question.to_owned(),
        text: [entry.name, entry.id, entry.summary, entry.question, entry.lesson].join(" "),
    });
    let mut chapters: Vec<String> = Vec::new();
    for listing in &files {
        if !chapters.contains(&listing.chapter) {
            chapters.push(listing.chapter.clone());
        }
    }
    let mut all: Vec<Listing> = programs.chain(files).collect();
    all.sort_by_key(|listing| chapters.iter().position(|chapter| *chapter == listing.chapter));
    all
}

/// Tests whether a text contains a word. Case, `_` and `-` do not matter, and Linux's short names
/// of states match the RFC's.
pub fn contains(text: &str, word: &str) -> bool {
    normalized(text).contains(&normalized(word))
}

fn normalized(text: &str) -> String {
    let text: String = text.to_lowercase().chars().filter(|c| !['_', '-'].contains(c)).collect();
    SHORT_STATES.iter().fold(text, |text, (short, full)| text.replace(short, full))
}

/// States as ss(8) and netstat(8) abbreviate them, and as RFC 9293 spells them.
const SHORT_STATES: [(&str, &str); 2] = [("synrecv", "synreceived"), ("synrcvd", "synreceived")];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(word: &str) -> Vec<&'static str> {
        catalog()
            .into_iter()
            .filter(|listing| contains(listing.text(), word))
            .map(|listing| listing.name)
            .collect()
    }

    #[test]
    fn states_are_found_in_every_spelling() {
        for (spellings, name) in [
            (&["TIME_WAIT", "TIME-WAIT", "time-wait", "TimeWait"][..], "time-wait"),
            (&["SYN_RECV", "SYN-RECV", "SYN-RECEIVED", "SYN_RCVD"], "syn-ack-retries"),
            (&["CLOSE_WAIT", "close-wait"], "close-wait"),
            (&["FIN_WAIT2", "FIN-WAIT-2"], "waiting-for-fin"),
        ] {
            let first = found(spellings[0]);
            assert!(first.contains(&name), "{}: {first:?}", spellings[0]);
            for spelling in spellings {
                assert_eq!(found(spelling), first, "{spelling}");
            }
        }
    }

    #[test]
    fn ids_and_words_are_found() {
        assert_eq!(found("L-TFO-4"), ["flags"]);
        assert_eq!(found("l-cc-9"), ["fast-retransmit"]);
        assert!(found("L-TFO-3").len() >= 4, "{:?}", found("L-TFO-3"));
        assert!(found("nginx").contains(&"qlen"), "{:?}", found("nginx"));
        assert_eq!(found("no such word"), [""; 0]);
    }

    #[test]
    fn chapters_are_whole_and_every_scenario_is_listed() {
        let all = catalog();
        assert_eq!(all.len(), CATALOGUE.len() + SHELF.len());
        let mut chapters: Vec<&str> = all.iter().map(|listing| listing.chapter.as_str()).collect();
        chapters.dedup();
        let mut once = chapters.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), chapters.len(), "{chapters:?}");
        assert!(chapters.len() >= 8);
    }
}
