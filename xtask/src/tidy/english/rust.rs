//! Splits Rust source into comments and string literals.

/// A comment or a string literal, from its first line on.
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// Number of the first line, from 1.
    pub(super) line: usize,
    /// Text without the marks around it.
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `//`, and block comments.
    Comment,
    /// `///`
    OuterDoc,
    /// `//!`
    InnerDoc,
    String,
}

/// Finds the comments and string literals of a source file.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let previous = source.get(..at).and_then(|before| before.chars().next_back());
        let (length, token) = next(rest, previous);
        if let Some((kind, text)) = token {
            found.push(Token { kind, line, text });
        }
        line += rest.get(..length).unwrap_or_default().matches('\n').count();
        at += length;
    }
    found
}

/// Length of what stands first, and the token if it is one.
fn next(rest: &str, previous: Option<char>) -> (usize, Option<(Kind, &str)>) {
    if rest.starts_with("//") {
        let comment = rest.lines().next().unwrap_or_default();
        return (comment.len(), Some(comment_of(comment)));
    }
    if rest.starts_with("/*") {
        let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
        return (end, Some((Kind::Comment, rest.get(2..end).unwrap_or_default().trim_end_matches("*/"))));
    }
    if rest.starts_with('"') {
        let end = end_of_string(rest);
        return (end, Some((Kind::String, rest.get(1..end - 1).unwrap_or_default())));
    }
    let in_word = previous.is_some_and(|last| last.is_alphanumeric() || last == '_');
    if !in_word && let Some((length, text)) = raw_string(rest) {
        return (length, Some((Kind::String, text)));
    }
    if rest.starts_with('\'') {
        return (length_of_char(rest), None);
    }
    let first = rest.chars().next().map_or(1, char::len_utf8);
    let skipped = rest.get(first..).and_then(|rest| rest.find(['/', '"', '\'', 'r', 'b', 'c']));
    (skipped.map_or(rest.len(), |skipped| first + skipped), None)
}

fn comment_of(comment: &str) -> (Kind, &str) {
    match comment.strip_prefix("///") {
        Some(text) if !text.starts_with('/') => (Kind::OuterDoc, text),
        _ => match comment.strip_prefix("//!") {
            Some(text) => (Kind::InnerDoc, text),
            None => (Kind::Comment, comment.get(2..).unwrap_or_default()),
        },
    }
}

/// Length of the string literal, its quotes included.
fn end_of_string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, sign) in rest.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Length and text of a literal like `r#"…"#`.
fn raw_string(rest: &str) -> Option<(usize, &str)> {
    let after = rest.strip_prefix("br").or(rest.strip_prefix("cr")).or(rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let text = after.get(hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text.find(&close)?;
    let start = rest.len() - text.len();
    Some((start + end + close.len(), text.get(..end)?))
}

/// Length of a character literal, or 1 where the quote begins a lifetime.
fn length_of_char(rest: &str) -> usize {
    let after = rest.get(1..).unwrap_or_default();
    if let Some(escaped) = after.strip_prefix('\\') {
        let end = escaped.char_indices().skip(1).find(|(_, sign)| *sign == '\'');
        return end.map_or(rest.len(), |(at, _)| at + 3);
    }
    let mut signs = after.chars();
    match (signs.next(), signs.next()) {
        (Some(sign), Some('\'')) => sign.len_utf8() + 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_told_from_code() {
        let source = "/// A doc.\nfn a<'a>(x: char) -> &'a str {\n    // Why.\n    let b = '\"'; let c = '\\'';\n    \
                      r#\"raw \"text\" // here\"#; \"a \\\" b\" // behind\n}\n";
        let found: Vec<_> = tokens(source).iter().map(|token| (token.kind, token.line, token.text)).collect();
        assert_eq!(
            found,
            [
                (Kind::OuterDoc, 1, " A doc."),
                (Kind::Comment, 3, " Why."),
                (Kind::String, 5, "raw \"text\" // here"),
                (Kind::String, 5, "a \\\" b"),
                (Kind::Comment, 5, " behind"),
            ]
        );
    }
}
