//! Steps of a program on one connection, in words.

use crate::experiment::{nearest_beginning, units};
use core::str::FromStr;
use core::time::Duration;

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Opens the connection and waits. First bytes go on the SYN if Fast Open allows it.
    Connect {
        /** how many first bytes; `None`: plain */
        first: Option<usize>,
    },
    /// Writes this many bytes.
    Write(usize),
    /// Reads this many bytes.
    Read(usize),
    /// Reads until the peer closes.
    ReadToEnd,
    /// Sleeps for this long.
    Sleep(Duration),
    /// Notes the time under this name.
    Mark(String),
    /// Closes the sending direction.
    Shutdown,
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Abort,
}

impl Step {
    /// Returns the number of bytes that the step sends.
    pub fn text_len(&self) -> usize {
        match self {
            Step::Write(len) | Step::Connect { first: Some(len) } => *len,
            _ => 0,
        }
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bytes = |text: &str| units::bytes(text).map(|len| len as usize);
        let sent = |text: &str| match bytes(text)? {
            len if len > WRITE_MAX => Err(format!("`{text}`: a step writes at most 1GB; repeat the step")),
            len => Ok(len),
        };
        Ok(match words.as_slice() {
            ["connect"] => Step::Connect { first: None },
            ["connect", "with", len] => Step::Connect { first: Some(sent(len)?) },
            ["write", len] => Step::Write(sent(len)?),
            ["read", "to", "end"] => Step::ReadToEnd,
            ["read", len] => Step::Read(bytes(len)?),
            ["sleep", time] => Step::Sleep(units::duration(time)?),
            ["mark", name] => Step::Mark((*name).to_owned()),
            ["shutdown"] => Step::Shutdown,
            ["close"] => Step::Close,
            ["abort"] => Step::Abort,
            _ => {
                let near = nearest_beginning(text, STEPS);
                return Err(format!("unknown step `{text}`{near}; steps are: {STEPS}"));
            }
        })
    }
}

/// Maximum bytes of one write step: all of it is in memory.
const WRITE_MAX: usize = 1_000_000_000;

const STEPS: &str = "connect, connect with LENGTH, write LENGTH, read LENGTH, read to end, sleep TIME, mark NAME, shutdown, close, abort";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_from_words() {
        assert_eq!("connect with 200".parse(), Ok(Step::Connect { first: Some(200) }));
        assert_eq!("read to end".parse(), Ok(Step::ReadToEnd));
        assert_eq!("sleep 1.5s".parse(), Ok(Step::Sleep(Duration::from_millis(1500))));
        assert!("write 99999999999GB".parse::<Step>().is_err_and(|error| error.contains("at most 1GB")));
        assert!("sleep well".parse::<Step>().is_err_and(|error| error.contains("not a time")));
    }
}
