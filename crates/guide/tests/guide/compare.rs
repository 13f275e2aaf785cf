//! Compares output with what a page expects, after masking what changes from run to run.

use regex_lite::Regex;
use std::sync::LazyLock;

/// Stands for any number of lines, or for any text within a line.
const ELISION: &str = "…";

/// Commands that run in virtual time or compute: their output is compared exactly.
const EXACT: [&str; 6] = [
    "firstbyte lab",
    "firstbyte bdp",
    "firstbyte script",
    "firstbyte pcap",
    "firstbyte help",
    "firstbyte completions",
];

/// Patterns of values that change, each with a name. Longer patterns come first.
static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let masks = [
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z)?", "DATE"),
        (r"\b\d\d:\d\d:\d\d(\.\d+)?", "TIME"),
        (r"\b\d+\.\d+\.\d+\.\d+(/\d+)?(:\d+)?", "ADDRESS"),
        (r"\[[0-9a-f:]*:[0-9a-f:]*\](:\d+)?", "ADDRESS"),
        (r"\b[0-9a-f]{1,4}(:[0-9a-f]{0,4}){2,7}\b(/\d+)?", "ADDRESS"),
        (r"\bv?\d+\.\d+\.\d+[-+.\w]*", "VERSION"),
        (r"\b[0-9a-f]{8,}(-[0-9a-f]{8})*\b", "HEX"),
        (r"\bpid[=: ]+\d+", "PID"),
        (r"[-+]?\d+([.,]\d+)?(ns|us|µs|ms|s|min|h|d)\b", "TIME"),
        (r"[-+]?\d+([.,]\d+)? (ns|us|µs|ms|s|min|h|d|seconds?|minutes?|hours?|days?)\b", "TIME"),
        (r"\d+([.,]\d+)? ?[kKMG]?i?(bit|bits|B|bytes|bps)(/s)?\b", "AMOUNT"),
        (r"\d+([.,]\d+)?[kKMG](i?B)?\b", "AMOUNT"),
        (r"─{2,}", "─"),
        (r"-{4,}", "----"),
        (r"[ \t]+", " "),
    ];
    masks.into_iter().map(|(pattern, name)| (Regex::new(pattern).expect(pattern), name)).collect()
});

/// Whether the output of a command is the same in each run.
pub(crate) fn is_exact(command: &str) -> bool {
    EXACT.iter().any(|exact| command.starts_with(exact)) && !command.contains("--host")
}

/// One line, its changing values masked.
fn masked(line: &str) -> String {
    let mut line = line.trim_end().to_owned();
    for (pattern, name) in MASKS.iter() {
        line = pattern.replace_all(&line, *name).into_owned();
    }
    line.trim().to_owned()
}

/// Lines as they are compared; empty ones at the end do not count.
pub(crate) fn lines<'a>(text: impl Iterator<Item = &'a str>, is_exact: bool) -> Vec<String> {
    let mut lines: Vec<String> =
        text.map(|line| if is_exact { line.trim_end().to_owned() } else { masked(line) }).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Whether the lines match, where `…` stands for any lines or any text of a line.
pub(crate) fn matches(expected: &[String], actual: &[String]) -> bool {
    let is_any = |line: &String| line.trim() == ELISION;
    wild(expected, actual, &is_any, &|expected, actual| line_matches(expected, actual))
}

fn line_matches(expected: &str, actual: &str) -> bool {
    if !expected.contains(ELISION) {
        return expected == actual;
    }
    let expected: Vec<char> = expected.chars().collect();
    let actual: Vec<char> = actual.chars().collect();
    wild(&expected, &actual, &|sign| ELISION.starts_with(*sign), &|one, other| one == other)
}

/// Matches a sequence with wildcards. On a mismatch the last wildcard takes one more.
fn wild<T>(
    pattern: &[T],
    text: &[T],
    is_any: &dyn Fn(&T) -> bool,
    is_equal: &dyn Fn(&T, &T) -> bool,
) -> bool {
    let (mut at, mut in_text) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some(part) if is_any(part) => {
                last = Some((at, in_text));
                at += 1;
            }
            Some(part) if is_equal(part, &text[in_text]) => (at, in_text) = (at + 1, in_text + 1),
            _ => match &mut last {
                Some((wildcard, taken)) => {
                    *taken += 1;
                    (at, in_text) = (*wildcard + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(is_any)
}

/// The lines beside each other: ` ` for equal, `-` expected only, `+` printed only.
pub(crate) fn diff(expected: &[String], actual: &[String]) -> String {
    let same = |one: &String, other: &String| line_matches(one, other);
    // Length of the longest common subsequence from here on.
    let mut common = vec![vec![0_usize; actual.len() + 1]; expected.len() + 1];
    for at in (0..expected.len()).rev() {
        for to in (0..actual.len()).rev() {
            common[at][to] = match same(&expected[at], &actual[to]) {
                true => common[at + 1][to + 1] + 1,
                false => common[at + 1][to].max(common[at][to + 1]),
            };
        }
    }
    let (mut at, mut to, mut text) = (0, 0, String::new());
    while at < expected.len() || to < actual.len() {
        let (sign, line) = match (expected.get(at), actual.get(to)) {
            (Some(one), Some(other)) if same(one, other) => {
                (at, to) = (at + 1, to + 1);
                (' ', one)
            }
            (Some(one), _) if to == actual.len() || common[at + 1][to] >= common[at][to + 1] => {
                at += 1;
                ('-', one)
            }
            (_, other) => {
                to += 1;
                ('+', other.expect("one side has a line left"))
            }
        };
        text += &format!("      {sign} {line}\n");
    }
    text
}

/// New expected lines: the printed ones, without those that the page left out.
/// `None` if it is not clear which these are.
pub(crate) fn blessed(expected: &[String], actual: &[String]) -> Option<Vec<String>> {
    let parts: Vec<&[String]> = expected.split(|line| line.trim() == ELISION).collect();
    let [first, middle @ .., last] = &parts[..] else { return Some(actual.to_vec()) };
    let mut lines: Vec<String> = actual.get(..first.len())?.to_vec();
    let mut from = first.len();
    for part in middle {
        let begin = part.first()?;
        let begin = masked(begin);
        let found = actual.iter().skip(from).position(|line| line_matches(&begin, &masked(line)))? + from;
        lines.push(ELISION.to_owned());
        lines.extend_from_slice(actual.get(found..found + part.len())?);
        from = found + part.len();
    }
    lines.push(ELISION.to_owned());
    let tail = actual.len().checked_sub(last.len()).filter(|tail| *tail >= from)?;
    lines.extend_from_slice(&actual[tail..]);
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, is_exact: bool) -> Vec<String> {
        lines(text.lines(), is_exact)
    }

    #[test]
    fn values_that_change_are_masked_and_others_are_not() {
        let expected = of("took 12.5 ms to 10.0.0.1:80, pid 17, 34.5 Mbit/s, cookie 0123456789abcdef", false);
        let actual = of("took 3 s to  [::1]:8080, pid 1,  1 B/s, cookie aaaaaaaabbbbbbbb", false);
        assert!(matches(&expected, &actual), "{expected:?} {actual:?}");
        assert!(!matches(&of("3 findings", false), &of("4 findings", false)));
        assert!(!matches(&of("12 ms", true), &of("13 ms", true)));
    }

    #[test]
    fn an_elision_stands_for_any_lines_or_text() {
        let actual = of("a\nb\nc\nd 17 e\n", true);
        for (expected, is_match) in [
            ("a\n…\nd 17 e", true),
            ("…", true),
            ("a\n…\nc\nd … e", true),
            ("a\nb\nc\nd 17 e\n…", true),
            ("a\n…\nb", false),
            ("a\nc\n…", false),
            ("…\nd … f", false),
        ] {
            assert_eq!(matches(&of(expected, true), &actual), is_match, "{expected}");
        }
    }

    #[test]
    fn a_blessed_block_leaves_out_what_it_left_out() {
        let actual = of("a 2\nb\nc\nd\ne", true);
        let blessed = |expected: &str| blessed(&of(expected, true), &actual).map(|lines| lines.join("|"));
        assert_eq!(blessed("a 1"), Some("a 2|b|c|d|e".to_owned()));
        assert_eq!(blessed("a 1\n…\nc\n…\nf"), Some("a 2|…|c|…|e".to_owned()));
        assert_eq!(blessed("a 1\n…\nx\n…"), None);
    }

    #[test]
    fn a_diff_shows_both_sides() {
        let text = diff(&of("a\nb\nc", true), &of("a\nx\nc", true));
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["a", "-", "b", "+", "x", "c"]);
    }
}
