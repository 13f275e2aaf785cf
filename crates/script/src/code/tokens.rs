//! From a snippet's text to lines of tokens.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Int(i128),
    Float(f64),
    Name(String),
    Text(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Int(value) => write!(f, "{value}"),
            Token::Float(value) => write!(f, "{value:?}"),
            Token::Name(name) => f.write_str(name),
            Token::Text(text) => write!(f, "'{text}'"),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 35] = [
    "//=", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "%=", "|=", "&=", "//", "+", "-", "*", "/",
    "%", "&", "|", "^", "~", "<", ">", "=", "(", ")", "[", "]", ".", ",", ";", "\n", ":",
];

/// A statement, or the head of one, and where it stands: what `if` governs is told by how far lines are indented.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Blanks before its line.
    pub(super) indent: usize,
    /// The first of its line; others follow a `;`.
    pub(super) begins_line: bool,
    pub(super) tokens: Vec<Token>,
}

impl Line {
    pub(super) fn begins_with(&self, wanted: &str) -> bool {
        matches!(self.tokens.first(), Some(Token::Name(word)) if word == wanted)
    }
}

/// Statements end at `;` and at the end of a line, unless a parenthesis is open or a backslash ends the line.
pub(super) fn lines(code: &str) -> Result<Vec<Line>, String> {
    let empty = |indent, begins_line| Line { indent, begins_line, tokens: Vec::new() };
    let mut lines = vec![empty(indent_of(code), true)];
    let mut depth = 0_i32;
    for (token, indent) in tokens(code)? {
        match token {
            Token::Sign("(" | "[") => depth += 1,
            Token::Sign(")" | "]") => depth -= 1,
            Token::Sign("\n") if depth > 0 => continue,
            Token::Sign("\n") => {
                lines.push(empty(indent, true));
                continue;
            }
            Token::Sign(";") => {
                let indent = lines.last().map_or(0, |line| line.indent);
                lines.push(empty(indent, false));
                continue;
            }
            _ => {}
        }
        if let Some(line) = lines.last_mut() {
            line.tokens.push(token);
        }
    }
    lines.retain(|line| !line.tokens.is_empty());
    levels(&lines)?;
    Ok(lines)
}

/// Lines go further in only behind `:`, and come back only to where lines before them stood.
fn levels(lines: &[Line]) -> Result<(), String> {
    let mut open: Vec<usize> = Vec::new();
    let mut begins_block = true;
    for line in lines {
        if line.begins_line {
            let indent = line.indent;
            let back = open.iter().rev().take_while(|level| **level > indent).count();
            open.truncate(open.len() - back);
            let shown = shown(&line.tokens);
            if open.last() != Some(&indent) {
                if back > 0 {
                    return Err(format!(
                        "`{shown}` is indented by {indent}, as no line before it: indent it as its block"
                    ));
                }
                if !begins_block {
                    return Err(format!(
                        "`{shown}` is indented further than the line above, which does not end in `:`"
                    ));
                }
                open.push(indent);
            }
        }
        begins_block = line.tokens.last() == Some(&Token::Sign(":"));
    }
    Ok(())
}

/// Tokens as a person would write them, nearly.
pub(super) fn shown(tokens: &[Token]) -> String {
    let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    words.join(" ")
}

fn indent_of(line: &str) -> usize {
    line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// With each end of a line, how far the next is indented.
fn tokens(code: &str) -> Result<Vec<(Token, usize)>, String> {
    let mut tokens = Vec::new();
    let mut rest = code;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r']);
        if let Some(more) = rest.strip_prefix("\\\n") {
            rest = more;
            continue;
        }
        // The line that a backslash goes on to may be the empty one before `}%`.
        let Some(first) = rest.chars().next().filter(|_| rest != "\\") else { return Ok(tokens) };
        if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if first == '\'' || first == '"' {
            let inside = &rest[1..];
            let end = inside.find(first).ok_or("a text never ends")?;
            tokens.push((Token::Text(inside[..end].to_owned()), 0));
            rest = &inside[end + 1..];
        } else if first.is_ascii_alphanumeric() || first == '_' || begins_float(rest, tokens.last()) {
            let len = float_len(rest).unwrap_or_else(|| {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            });
            tokens.push((word(&rest[..len])?, 0));
            rest = &rest[len..];
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("`{first}` is not understood in snippets"))?;
            rest = &rest[sign.len()..];
            tokens.push((Token::Sign(sign), indent_of(rest)));
        }
    }
}

/// `.5`, but not `a.5`.
fn begins_float(text: &str, before: Option<&(Token, usize)>) -> bool {
    let behind_value = matches!(before, Some((Token::Name(_) | Token::Text(_) | Token::Sign(")" | "]"), _)));
    text.starts_with('.') && text[1..].starts_with(|c: char| c.is_ascii_digit()) && !behind_value
}

/// How long a number with a point or an exponent is that stands in front: `1.5`, `2.`, `1e-3`.
fn float_len(text: &str) -> Option<usize> {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut len = digits(0);
    if len == 0 && !text.starts_with('.') {
        return None;
    }
    let whole = len;
    if text[len..].starts_with('.') {
        len += 1 + digits(len + 1);
    }
    if text[len..].starts_with(['e', 'E']) {
        let sign = usize::from(text[len + 1..].starts_with(['+', '-']));
        let exponent = digits(len + 1 + sign);
        len += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    (len > whole).then_some(len)
}

fn word(text: &str) -> Result<Token, String> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Ok(Token::Name(text.to_owned()));
    }
    if !text.starts_with("0x") && text.contains(['.', 'e', 'E']) {
        return text.parse().map(Token::Float).map_err(|_| format!("`{text}` is no number"));
    }
    let value = match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.map(Token::Int).map_err(|_| format!("`{text}` is no number"))
}
