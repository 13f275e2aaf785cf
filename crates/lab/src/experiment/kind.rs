//! Errors about the kind of a discipline: tc's message and the nearest known kind.

use super::nearest::nearest;
use qdisc::{KINDS, TcError};

/// Formats the error of a discipline in tc's words, with the nearest known kind.
pub(super) fn wrong(words: &str, error: &TcError) -> String {
    let unknown = words.split(';').filter_map(kind_of).find(|kind| !KINDS.contains(kind));
    let told = format!("qdisc: {}", error.to_string().trim_end());
    match unknown {
        Some(kind) => {
            let near = nearest(kind, KINDS);
            format!(
                "{}; unknown kind `{kind}`, expected {}{near}",
                told.trim_end_matches('.'),
                KINDS.join(", ")
            )
        }
        None => told,
    }
}

/// Returns the kind that a command creates.
fn kind_of(command: &str) -> Option<&str> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "class" | "filter" => return None,
            "handle" | "parent" | "dev" => _ = words.next(),
            "qdisc" | "add" | "replace" | "change" | "root" => {}
            kind => return Some(kind),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_kind_behind_where_it_stands() {
        for (command, kind) in [
            ("fq_codel target 5ms", Some("fq_codel")),
            ("handle 1: htb default 10", Some("htb")),
            (" class add dev link parent 1: classid 1:10 htb rate 5mbit", None),
            (" qdisc add dev link parent 1:10 handle 10: sfq", Some("sfq")),
        ] {
            assert_eq!(kind_of(command), kind, "{command}");
        }
    }
}
