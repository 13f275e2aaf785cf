//! Texts cut into lines.

/// Lines of whole words, each so many columns wide at most unless a word is longer.
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
