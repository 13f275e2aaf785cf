//! Text inside HTML and SVG.

/// The text with what would be markup written out; control characters, which neither format allows, become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_name_cannot_break_out_of_its_place() {
        assert_eq!(super::escape("<a b=\"c\">&\u{7}"), "&lt;a b=&quot;c&quot;&gt;&amp; ");
    }
}
