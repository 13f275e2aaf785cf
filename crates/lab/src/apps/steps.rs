//! What a program does on a connection, step by step, in words.

use crate::experiment::{nearest_beginning, units};
use core::str::FromStr;
use core::time::Duration;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Opens the connection and waits until it is; with first bytes for the SYN, if Fast Open lets them ride there.
    Connect {
        /** how many first bytes; `None`: plain */
        first: Option<usize>,
    },
    /// Writes so many bytes.
    Write(usize),
    /// Waits for so many bytes.
    Read(usize),
    /// Reads until the peer has ended.
    ReadToEnd,
    /// Does nothing for so long.
    Sleep(Duration),
    /// Notes the moment.
    Mark(String),
    /// Ends the sending direction.
    Shutdown,
    /// Lets go.
    Close,
    /// Resets.
    Abort,
}

impl Step {
    /// How many bytes it sends.
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
            len if len > WRITE_MAX => {
                Err(format!("`{text}`: a step writes at most 1GB; say it several times"))
            }
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
                return Err(format!("`{text}` is no step{near}; steps are: {STEPS}"));
            }
        })
    }
}

/// Of one step: all of it is in memory.
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
        assert!("sleep well".parse::<Step>().is_err_and(|error| error.contains("no time")));
    }
}
