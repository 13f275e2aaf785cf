//! Lines on their way to standard output and standard error.
//!
//! A terminal that was stopped, or a pipe that nobody reads, blocks a thread of their own alone. Lines that find no room are dropped, and
//! their number takes their place once there is room again.
use crate::backlog::Backlog;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

/// The most text that waits to be written, bytes.
const WAITING_MAX: usize = 1 << 20;

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Writes lines in their order, without ever waiting for a reader.
pub(crate) struct Outlet {
    backlog: Backlog<(To, String)>,
}

impl Outlet {
    /// Starts the thread. `notice` is the line that tells of so many lost lines.
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

    /// The number of lines that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.backlog.dropped()
    }

    /// Gives the last lines so much time to be written.
    pub(crate) fn finish(&self, at_most: Duration) {
        self.backlog.finish(at_most);
    }
}

/// A reader that has gone is no reason to stop.
fn write_line(to: To, line: &str) {
    let _ = match to {
        To::Output => writeln!(io::stdout(), "{line}"),
        To::Error => writeln!(io::stderr(), "{line}"),
    };
}
