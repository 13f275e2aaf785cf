//! Standard output: width and colour of the terminal.
use crate::color::may_color;
use crate::failure::Failure;
use ::lab::report::PageStyle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Writes to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// True if the reader of standard output is gone. For a pipe this is known without writing to it.
pub(crate) fn is_unread() -> bool {
    let stdout = io::stdout();
    // No events are requested: errors are always reported.
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    let told = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    told.is_ok() && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// True if the terminal does not support escape sequences (terminfo's entry `dumb`).
#[cfg(feature = "watch")]
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// True if the locale's encoding is UTF-8, by the variables of locale(7): the first that is set
/// decides.
#[cfg(feature = "watch")]
pub(crate) fn is_utf8() -> bool {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(value).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8")
}

/// Returns the page style for standard output.
pub(crate) fn page_style() -> PageStyle {
    let stdout = io::stdout();
    let default = PageStyle::default();
    let color = stdout.is_terminal() && may_color(&stdout);
    PageStyle { width: terminal_width().unwrap_or(default.width), color }
}

/// Returns the width of standard output in columns, if it is a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}
