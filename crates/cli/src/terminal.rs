//! Standard output, and what it may look like: colour only on a terminal and without `NO_COLOR`, and the terminal's width.
use crate::failure::Failure;
use ::lab::report::PageStyle;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Writes to standard output. A reader that has gone (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The page that fits standard output.
pub(crate) fn page_style() -> PageStyle {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return PageStyle::default();
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|size| size.ws_col > 0);
    PageStyle {
        width: size.map_or(PageStyle::default().width, |size| usize::from(size.ws_col)),
        color: may_color(&stdout),
    }
}

/// May escape sequences be written there?
pub(crate) fn may_color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A word for stderr, bold and coloured (an SGR code) where that may be.
pub(crate) fn stderr_label(word: &str, color: &str) -> String {
    match may_color(&io::stderr()) {
        true => format!("\x1b[1;{color}m{word}\x1b[0m"),
        false => word.to_owned(),
    }
}
