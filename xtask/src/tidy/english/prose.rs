//! Finds the passages of prose in a file: comments, messages, pages.

use super::rust::{self, Kind, Token};
use std::fmt;

/// Lines that belong together, such as one comment.
pub(super) struct Passage {
    pub(super) scope: Scope,
    /// A doc comment, whose beginning counts.
    pub(super) is_doc: bool,
    /// The width of its lines counts: not that of messages, which are code.
    pub(super) has_width: bool,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Line {
    pub(super) number: usize,
    /// Columns of the whole line in the file.
    pub(super) width: usize,
    pub(super) text: String,
}

/// Readers of a passage: each scope of a crate has a count of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Documentation of public items, and help texts.
    Public,
    /// Every other comment.
    Internal,
    /// Messages and reports in string literals.
    Texts,
    /// Pages, scenarios, scripts, C.
    Pages,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Public => "public",
            Scope::Internal => "internal",
            Scope::Texts => "texts",
            Scope::Pages => "pages",
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Markdown,
    /// Scenarios: comments begin with `#`, and strings are prose, too.
    Toml,
    Hash,
    /// Comments begin with `//` or `/*`.
    Slash,
}

impl Language {
    /// The language of a file by its name; none where it has no prose.
    pub(super) fn of(name: &str) -> Option<Language> {
        if name.ends_with("Cargo.toml") {
            return Some(Language::Hash);
        }
        match name.rsplit_once('.')?.1 {
            "rs" => Some(Language::Rust),
            "md" => Some(Language::Markdown),
            "toml" => Some(Language::Toml),
            "py" | "sh" | "yml" | "yaml" => Some(Language::Hash),
            "c" | "h" | "pkt" => Some(Language::Slash),
            _ => None,
        }
    }
}

/// Crates whose string literals people read.
const TEXT_CRATES: &[&str] =
    &["cli", "doctor", "lab", "capture", "probe", "fleet", "device", "host", "firstbyte"];

/// Returns the passages of a file.
pub(super) fn passages(name: &str, language: Language, text: &str) -> Vec<Passage> {
    match language {
        Language::Rust => of_rust(name, text),
        Language::Markdown => vec![page(text.lines().enumerate().map(|(at, line)| (at + 1, line, line)))],
        Language::Toml => vec![page(commented(text, "#", Some('"')))],
        Language::Hash => vec![page(commented(text, "#", None))],
        Language::Slash => vec![page(commented(text, "//", None)), page(block_comments(text))],
    }
}

fn page<'a>(lines: impl Iterator<Item = (usize, &'a str, &'a str)>) -> Passage {
    let line = |(number, whole, text): (usize, &str, &str)| Line {
        number,
        width: whole.chars().count(),
        text: text.to_owned(),
    };
    Passage { scope: Scope::Pages, is_doc: false, has_width: true, lines: lines.map(line).collect() }
}

/// Lines with a comment, and lines with a sign that begins a text.
fn commented<'a>(
    text: &'a str,
    mark: &'static str,
    quote: Option<char>,
) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
    let mut in_text = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        if quote.is_some() {
            let was_in_text = in_text;
            in_text ^= line.matches("\"\"\"").count() % 2 == 1;
            if was_in_text || in_text {
                return Some((at + 1, line, line.trim_start()));
            }
        }
        let comment = line.trim_start().strip_prefix(mark);
        let comment = comment.or_else(|| line.split_once(&format!(" {mark} ")).map(|(_, comment)| comment));
        let string = quote.and_then(|quote| line.split_once(quote)).map(|(_, text)| text);
        comment.or(string).map(|text| (at + 1, line, text.trim_start()))
    })
}

/// Lines of `/* … */` in C.
fn block_comments(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut in_comment = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let start = if in_comment { Some(line.trim_start().trim_start_matches('*')) } else { None };
        let opened = line.split_once("/*").map(|(_, text)| text);
        let comment = start.or(opened)?;
        in_comment = !comment.contains("*/");
        Some((at + 1, line, comment.trim_end_matches("*/").trim_start()))
    })
}

fn of_rust(name: &str, source: &str) -> Vec<Passage> {
    let lines: Vec<&str> = source.lines().collect();
    let tests = test_lines(name, source);
    let in_cli = name.starts_with("crates/cli/src/");
    let has_texts =
        TEXT_CRATES.iter().any(|crate_name| name.starts_with(&format!("crates/{crate_name}/src/")));
    let mut passages: Vec<Passage> = Vec::new();
    let mut before: Option<(Kind, usize)> = None;
    for token in rust::tokens(source) {
        if token.kind == Kind::String {
            if has_texts && token.line < tests && token.text.contains(' ') {
                passages.push(message(&token, &lines));
                before = None;
            }
            continue;
        }
        // What duvet reads: an RFC's words.
        if token.text.starts_with('#') || token.text.starts_with('=') {
            continue;
        }
        let is_alone = lines.get(token.line - 1).is_some_and(|line| line.trim_start().starts_with('/'));
        let continues = is_alone && before == Some((token.kind, token.line - 1));
        let texts = token.text.lines().enumerate();
        let texts = texts.map(|(at, text)| (at, text.strip_prefix(' ').unwrap_or(text)));
        let added = texts.map(|(at, text)| line(&lines, token.line + at, text)).collect::<Vec<_>>();
        before = is_alone.then_some((token.kind, token.line));
        match passages.last_mut() {
            Some(last) if continues => last.lines.extend(added),
            _ => {
                let scope = match token.kind {
                    Kind::OuterDoc if in_cli || is_public(&lines, token.line) => Scope::Public,
                    Kind::InnerDoc if is_main_module(name) => Scope::Public,
                    _ => Scope::Internal,
                };
                let is_doc = token.kind != Kind::Comment;
                passages.push(Passage { scope, is_doc, has_width: true, lines: added });
            }
        }
    }
    passages
}

fn line(lines: &[&str], number: usize, text: &str) -> Line {
    let width = lines.get(number - 1).map_or(0, |line| line.chars().count());
    Line { number, width, text: text.to_owned() }
}

fn message(token: &Token<'_>, lines: &[&str]) -> Passage {
    let text = token.text.lines().enumerate();
    let text = text.map(|(at, text)| line(lines, token.line + at, text.trim_end_matches('\\')));
    let spaced = |mut line: Line| {
        line.text = line.text.replace("\\n", " ").replace("\\\"", "\"");
        line
    };
    Passage { scope: Scope::Texts, is_doc: false, has_width: false, lines: text.map(spaced).collect() }
}

/// The first line of a file's tests, which stand at its end.
fn test_lines(name: &str, source: &str) -> usize {
    if name.ends_with("tests.rs") || name.contains("/tests/") {
        return 0;
    }
    crate::circles::before_tests(source).lines().count() + 1
}

/// True for `lib.rs`, `main.rs` and the modules beside them.
fn is_main_module(name: &str) -> bool {
    let file = name.split_once("/src/").map_or("", |(_, file)| file);
    !file.is_empty() && !file.contains('/') && !file.ends_with("tests.rs")
}

/// True if the item below a doc comment is public, or part of a public enum or trait.
fn is_public(lines: &[&str], number: usize) -> bool {
    let mut depth = 0_i32;
    let item = lines.iter().enumerate().skip(number).find(|(_, line)| {
        let line = line.trim();
        let is_attribute = depth > 0 || line.starts_with("#[");
        if is_attribute {
            depth += i32::try_from(line.matches('[').count()).unwrap_or(0);
            depth -= i32::try_from(line.matches(']').count()).unwrap_or(0);
        }
        !is_attribute && !line.is_empty() && !line.starts_with("//")
    });
    let Some((at, item)) = item else { return false };
    let code = item.trim_start();
    if code.starts_with("pub ") {
        return true;
    }
    if ["fn ", "pub(", "impl", "mod ", "struct ", "enum ", "trait ", "use ", "macro_rules", "static "]
        .iter()
        .any(|word| code.starts_with(word))
        && item.len() == code.len()
    {
        return false;
    }
    is_inside_public(lines.get(..at).unwrap_or_default(), item.len() - code.len())
}

/// True if the nearest line with less indentation opens a public enum or trait.
fn is_inside_public(before: &[&str], indent: usize) -> bool {
    let outer = before.iter().rev().find(|line| {
        let code = line.trim_start();
        !code.is_empty() && !code.starts_with("//") && line.len() - code.len() < indent
    });
    let Some(outer) = outer.map(|line| line.trim_start()) else { return false };
    ["pub enum ", "pub trait "].iter().any(|start| outer.starts_with(start))
}
