//! The rules that one passage of prose must follow.

use super::prose::{Line, Passage};

/// Columns of a line of prose.
const WIDTH: usize = 100;
/// Characters of a cell of a Markdown table.
const CELL: usize = 200;

/// Words and phrases with a plainer replacement. Each is wrong in nearly every sentence.
const BANNED: &[(&str, &str)] = &[
    ("lest", "so that … not"),
    ("whom", "which, that"),
    ("whoever", "the peer, the caller, …"),
    ("for who", "for a client that …"),
    ("of who", "name the thing"),
    ("but for", "except"),
    ("save for", "except"),
    ("none but", "only"),
    ("in vain", "without success"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("amid", "among, within"),
    ("thereof", "its"),
    ("whereof", "which"),
    ("needless", "unnecessary"),
    ("for ever", "forever, indefinitely"),
    ("held to be", "considered, marked"),
    ("so that nothing", "say what happens"),
    ("what lies", "name the thing"),
    ("of which", "name the thing, or whose"),
    ("let go of", "disconnected, timed out"),
    ("lets go of", "disconnects, drops"),
    ("give way", "yield, drop"),
    ("gives way", "yields, drops"),
    ("put up with", "tolerate"),
    ("puts up with", "tolerates"),
    ("tell of", "report, advertise"),
    ("tells of", "reports, advertises"),
    ("told of", "reported, advertised"),
    ("goes again", "is retransmitted, is repeated"),
    ("go again", "are retransmitted, are repeated"),
    ("sent again", "retransmitted"),
    ("anew", "again"),
    ("afresh", "again"),
    ("lone", "single"),
    ("naught", "nothing"),
    ("every now and then", "sometimes"),
    ("so long as", "while, as long as"),
    ("the way of all others", "slow path"),
    ("short way", "fast path"),
];

/// Beginnings of doc comments that do not name the thing.
const BEGINNINGS: &[&str] =
    &["What", "How", "Who", "Whom", "Of", "That", "Whether it", "The same", "As", "When it", "If"];

/// Returns the line and a message for each violation.
pub(super) fn check(passage: &Passage) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    if passage.is_doc
        && let Some(first) = passage.lines.first()
    {
        found.extend(beginning(&first.text).map(|words| {
            (first.number, format!("doc comment starts with `{words}`: name the thing, or start with a verb"))
        }));
    }
    let prose = Prose::new(&passage.lines);
    found.extend(prose.banned());
    if passage.has_width {
        found.extend(passage.lines.iter().zip(&prose.parts).filter_map(|(line, part)| too_wide(line, *part)));
    }
    found.sort();
    found
}

fn beginning(text: &str) -> Option<&'static str> {
    let text = text.trim_start();
    BEGINNINGS.iter().copied().find(|words| {
        let rest = text.strip_prefix(words);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || "_-'’".contains(next))
        })
    })
}

fn too_wide(line: &Line, part: Part) -> Option<(usize, String)> {
    match part {
        Part::Skipped => None,
        Part::Table => {
            let longest = line.text.split('|').map(|cell| cell.trim().chars().count()).max().unwrap_or(0);
            (longest > CELL)
                .then(|| (line.number, format!("table cell of {longest} characters, at most {CELL}")))
        }
        Part::Prose => {
            let without_url = line.text.split_whitespace().filter(|word| !word.contains("://"));
            let shortened: usize = without_url.map(|word| word.chars().count() + 1).sum();
            let has_url = line.text.contains("://") && shortened < WIDTH;
            (line.width > WIDTH && !has_url)
                .then(|| (line.number, format!("{} columns, at most {WIDTH}", line.width)))
        }
    }
}

/// Kind of a line within Markdown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Prose,
    Table,
    /// A line of code, or quoted from elsewhere.
    Skipped,
}

/// The words of a passage without code, in one text, so that phrases are found across lines.
struct Prose {
    parts: Vec<Part>,
    text: String,
    /// Where each line begins in `text`, and its number.
    starts: Vec<(usize, usize)>,
}

impl Prose {
    fn new(lines: &[Line]) -> Prose {
        let parts = parts(lines);
        let (mut text, mut starts) = (String::new(), Vec::new());
        let mut in_code = false;
        for (line, part) in lines.iter().zip(&parts) {
            starts.push((text.len(), line.number));
            if line.text.trim().is_empty() {
                in_code = false;
            }
            match part {
                Part::Skipped => text.push('\n'),
                // Cells are texts of their own, and code does not reach beyond the row.
                Part::Table => push_prose(&mut text, &line.text.replace('|', ". "), &mut false),
                Part::Prose => push_prose(&mut text, &line.text, &mut in_code),
            }
            text.push(' ');
        }
        Prose { parts, text: text.to_lowercase(), starts }
    }

    fn banned(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (words, better) in BANNED {
            for at in phrases(&self.text, words) {
                let line = self.starts.iter().rev().find(|(start, _)| *start <= at).map_or(0, |line| line.1);
                found.push((line, format!("`{words}`: {better}")));
            }
        }
        found
    }
}

/// Adds the words of a line with one space between them, without code spans and targets of links.
fn push_prose(text: &mut String, line: &str, in_code: &mut bool) {
    let mut prose = String::new();
    for (index, piece) in line.split('`').enumerate() {
        if index > 0 {
            *in_code = !*in_code;
            prose.push('`');
        }
        if !*in_code {
            prose.push_str(piece);
        }
    }
    let words: Vec<&str> = prose.split_whitespace().filter(|word| !word.contains("](")).collect();
    text.push_str(&words.join(" "));
}

/// Where a phrase stands as words of their own: not within a name, a path, an option or a longer
/// word.
fn phrases(text: &str, words: &str) -> Vec<usize> {
    let is_alone = |at: &usize| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        let after = text.get(at + words.len()..).unwrap_or_default();
        let mut after = after.chars();
        let (next, second) = (after.next(), after.next());
        let joined = |sign: char| sign.is_alphanumeric() || "_-/`:=<>".contains(sign);
        let before_is_word = before.is_some_and(|sign| joined(sign) && sign != ':' || sign == '.');
        let after_is_word = next.is_some_and(|sign| joined(sign) && sign != ':')
            || (next == Some('.') || next == Some(':')) && second.is_some_and(|sign| !sign.is_whitespace());
        !before_is_word && !after_is_word
    };
    text.match_indices(words).map(|(at, _)| at).filter(is_alone).collect()
}

fn parts(lines: &[Line]) -> Vec<Part> {
    let mut in_fence = false;
    let mut before_is_blank = true;
    lines
        .iter()
        .map(|line| {
            let text = line.text.trim();
            let is_fence = text.starts_with("```") || text.starts_with("~~~");
            in_fence ^= is_fence;
            let is_indented = line.text.starts_with("    ") && before_is_blank;
            before_is_blank = text.is_empty() || is_indented;
            let is_target = text.starts_with('[') && text.contains("]: ");
            if is_fence || in_fence || is_indented || text.starts_with("> ") || is_target {
                Part::Skipped
            } else if text.starts_with('|') {
                Part::Table
            } else {
                Part::Prose
            }
        })
        .collect()
}
