//! Errors of commands: a message that says what to do, and an exit code.
use crate::{color, escape};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// An error that ends the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit_code: u8,
    message: String,
}

impl Failure {
    /// Creates an error for a failed job: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure { exit_code: 1, message: message.into() }
    }

    /// Creates an error for wrong arguments: exit code 2, like clap's own errors.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { exit_code: 2, message: message.into() }
    }

    /// Replaces the exit code.
    pub(crate) fn with_exit_code(self, exit_code: u8) -> Failure {
        Failure { exit_code, ..self }
    }

    /// Creates an error for a failed operation on a file.
    pub(crate) fn file(action: &str, path: &std::path::Path, error: &io::Error) -> Failure {
        // The standard library's message for invalid UTF-8 mentions a stream. An error with an
        // inner cause has its own message.
        if error.kind() == io::ErrorKind::InvalidData && error.get_ref().is_none() {
            return Failure::failed(format!(
                "cannot {action} {}: it is not a text file in UTF-8",
                path.display()
            ));
        }
        Failure::failed(format!("cannot {action} {}: {error}", path.display()))
    }

    /// Creates the error for signal handlers that cannot be installed.
    pub(crate) fn no_signals(error: io::Error) -> Failure {
        Failure::failed(format!("cannot wait for signals: {error}"))
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the message to stderr and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        say(&labelled("error:", "31", &self.message));
        ExitCode::from(self.exit_code)
    }
}

/// Prints a warning to stderr.
pub(crate) fn warn(message: impl Display) {
    say(&warning(&message.to_string()));
}

/// Returns the line that [`warn`] writes, for callers that write it themselves.
pub(crate) fn warning(message: &str) -> String {
    labelled("warning:", "33", message)
}

fn labelled(label: &str, colour: &str, message: &str) -> String {
    format!("{} {}", color::stderr_label(label, colour), escape::message(message))
}

/// Writes a line to stderr. Ignores errors: the exit code still reports the failure.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_file_that_is_no_text_is_said_to_be_none() {
        let mut text = String::new();
        let error = io::Read::read_to_string(&mut &b"\xd4\xc3\xb2\xa1"[..], &mut text).unwrap_err();
        let failure = Failure::file("read", Path::new("web.pcap"), &error);
        assert_eq!(failure.message(), "cannot read web.pcap: it is not a text file in UTF-8");
        let other = io::Error::new(io::ErrorKind::InvalidData, "a word of its own");
        let failure = Failure::file("read", Path::new("a"), &other);
        assert_eq!(failure.message(), "cannot read a: a word of its own");
    }
}
