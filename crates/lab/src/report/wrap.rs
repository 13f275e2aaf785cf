//! Wrapping of text.

/// Wraps a text into lines of at most `room` columns; a longer word has its own line.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut taken = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        match lines.last_mut() {
            Some(line) if taken + 1 + len <= room => {
                line.push(' ');
                line.push_str(word);
                taken += 1 + len;
            }
            _ => {
                lines.push(word.to_owned());
                taken = len;
            }
        }
    }
    lines
}
