//! Makes foreign text safe to print. A terminal acts on control characters, including C1 (U+0080 to
//! U+009F), and bidirectional controls can make a line look different from what it is.
pub(crate) use doctor::escape::line;
use doctor::escape::{escaped, is_unsafe};
use serde_json::Value;

/// Escapes a message that may quote foreign text. Keeps its line breaks.
pub(crate) fn message(text: &str) -> String {
    escaped(text, |c| c != '\n' && is_unsafe(c))
}

/// Formats JSON on one line or indented. Escapes control characters, which occur only in strings.
pub(crate) fn json(value: &Value, indent: bool) -> String {
    let text = if indent { format!("{value:#}") } else { value.to_string() };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c != '\n' && is_unsafe(c) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "/é\u{9b}2J\u{7f}\u{1b}[m\r\u{202e}\u{2066}\u{61c}\u{200f}\u{2028}";

    #[test]
    fn controls_are_shown_not_obeyed() {
        let shown = r"/é\u{9b}2J\u{7f}\u{1b}[m\u{d}\u{202e}\u{2066}\u{61c}\u{200f}\u{2028}";
        assert_eq!(line(HOSTILE), shown);
        assert_eq!(message(&format!("{HOSTILE}\nmore")), format!("{shown}\nmore"));
        assert_eq!(line("a\nb"), r"a\u{a}b");
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "path": HOSTILE });
        for indent in [false, true] {
            let text = json(&value, indent);
            assert!(!text.chars().any(|c| c != '\n' && is_unsafe(c)), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
