//! Text inside HTML and SVG.

/// Escapes markup; replaces control characters, which neither format allows, with spaces.
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

/// Formats text for a page: text between backticks becomes code.
pub(crate) fn prose(text: &str) -> String {
    let escaped = escape(text);
    let pieces: Vec<&str> = escaped.split('`').collect();
    // An unpaired backtick stays a backtick.
    if pieces.len().is_multiple_of(2) {
        return escaped;
    }
    let piece = |(n, piece): (usize, &&str)| match n % 2 {
        0 => (*piece).to_owned(),
        _ => format!("<code>{piece}</code>"),
    };
    pieces.iter().enumerate().map(piece).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(super::prose("`tc -s` & `ip`"), "<code>tc -s</code> &amp; <code>ip</code>");
        assert_eq!(super::prose("one ` alone"), "one ` alone");
    }

    #[test]
    fn a_name_cannot_break_out_of_its_place() {
        assert_eq!(super::escape("<a b=\"c\">&\u{7}"), "&lt;a b=&quot;c&quot;&gt;&amp; ");
    }
}
