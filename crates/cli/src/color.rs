//! Colour: only on a terminal, and only without `NO_COLOR`.
use std::io::{self, IsTerminal};

/// True if escape sequences may be written to this stream.
pub(crate) fn may_color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Formats a word for stderr: bold and coloured (an SGR code) if the terminal allows it.
pub(crate) fn stderr_label(word: &str, color: &str) -> String {
    match may_color(&io::stderr()) {
        true => format!("\x1b[1;{color}m{word}\x1b[0m"),
        false => word.to_owned(),
    }
}
