//! Text that others wrote, made safe to print: a terminal acts on control characters, C1 (U+0080 to U+009F) included, and
//! bidirectional controls let a line show other than it is.
use std::borrow::Cow;

/// One line: every such character, a line's end too, as `\u{…}`.
pub fn line(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// What is unsafe by this test as `\u{…}`.
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

/// C0, DEL, C1; the line and paragraph separators; Unicode's Bidi_Control. All lie in the first plane.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One word of a shell's command, in quotes where it would be more than that.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-+./:@%,=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")).into(),
    }
}

/// A value of several words as one of a shell's command, always in quotes.
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
