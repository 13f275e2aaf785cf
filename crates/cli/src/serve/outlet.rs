//! Writes lines to standard output and standard error.
//!
//! A stopped terminal, or a pipe that is not read, blocks only the writing thread. Lines that find
//! no room are dropped. When there is room again, a line with their number takes their place.
use crate::backlog::Backlog;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

/// Most bytes of text that wait to be written.
const WAITING_MAX: usize = 1 << 20;

/// The stream that a line goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Writes lines in order, and never waits for a reader.
pub(crate) struct Outlet {
    backlog: Backlog<(To, String)>,
}

impl Outlet {
    /// Starts the thread. `notice` makes the line that reports a number of dropped lines.
    pub(crate) fn start(notice: fn(u64) -> String) -> io::Result<Outlet> {
        let backlog = Backlog::start("log", WAITING_MAX, move |lines: VecDeque<(To, String)>, dropped| {
            lines.iter().for_each(|(to, line)| write_line(*to, line));
            if dropped > 0 {
                write_line(To::Output, &notice(dropped));
            }
        })?;
        Ok(Outlet { backlog })
    }

    /// Queues a line, or drops it if there is no room.
    pub(crate) fn put(&self, to: To, line: String) {
        let len = line.len();
        self.backlog.put((to, line), len);
    }

    /// Returns the number of lines that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.backlog.dropped()
    }

    /// Waits at most `at_most` until the last lines are written.
    pub(crate) fn finish(&self, at_most: Duration) {
        self.backlog.finish(at_most);
    }
}

/// Writes a line. Ignores errors, because the server continues if the output is closed.
fn write_line(to: To, line: &str) {
    let _ = match to {
        To::Output => writeln!(io::stdout(), "{line}"),
        To::Error => writeln!(io::stderr(), "{line}"),
    };
}
