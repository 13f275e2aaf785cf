//! Makes text from other programs safe to print.
//!
//! Terminals act on control characters, including C1 (U+0080 to U+009F). Bidirectional controls
//! make a line show another text than it contains.
use std::borrow::Cow;

/// Returns one line, with every unsafe character as `\u{…}`. Line breaks count as unsafe.
pub fn line(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// Writes every character that the test calls unsafe as `\u{…}`.
pub fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unsafe(c) {
            true => safe.extend(c.escape_unicode()),
            false => safe.push(c),
        }
    }
    safe
}

/// Returns whether a character is unsafe to print: C0, DEL, C1, the line and paragraph separators,
/// and Unicode's Bidi_Control. All are in the first plane.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text as one shell word, quoted if necessary.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-+./:@%,=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")).into(),
    }
}

/// Returns the text as one shell word, always quoted.
pub(crate) fn value(text: &str) -> String {
    match text.contains(['$', '`', '"', '\\', '!']) {
        true => word(text).into_owned(),
        false => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_acts_on_is_quoted() {
        assert_eq!(word("eth0.5"), "eth0.5");
        assert_eq!(word("eth0;reboot"), "'eth0;reboot'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!((value("1 2").as_str(), value("$(reboot)").as_str()), ("\"1 2\"", "'$(reboot)'"));
    }
}
