//! Lines on their way to standard output and standard error: a bounded queue, and a thread that writes.
//!
//! A terminal that was stopped, or a pipe that nobody reads, blocks the thread alone. Lines that find no room are dropped and counted, and
//! the count takes their place once there is room again.
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    written: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<(To, String)>,
    /// The length of all lines.
    len: usize,
    /// Lines that found no room, and whose number is not written yet.
    unreported: u64,
    /// All lines that found no room.
    dropped: u64,
    /// The thread is writing lines that are not in the queue any more.
    is_writing: bool,
    /// No more lines come.
    is_closed: bool,
}

impl Outlet {
    /// Starts the thread, which writes by `write`. `notice` is the line that tells of so many lost lines.
    pub(crate) fn start(
        mut write: impl FnMut(To, &str) + Send + 'static,
        notice: fn(u64) -> String,
    ) -> io::Result<Outlet> {
        let shared = Arc::new(Shared::default());
        let reader = shared.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            while let Some((lines, dropped)) = reader.take() {
                lines.iter().for_each(|(to, line)| write(*to, line));
                if dropped > 0 {
                    write(To::Output, &notice(dropped));
                }
            }
        })?;
        Ok(Outlet { shared })
    }

    /// Queues a line, or drops it if there is no room.
    pub(crate) fn put(&self, to: To, line: String) {
        let mut waiting = self.shared.lock();
        if waiting.unreported > 0 || waiting.len + line.len() > WAITING_MAX {
            // Until the count has been written, which keeps its place in the order.
            waiting.unreported += 1;
            waiting.dropped += 1;
            return;
        }
        waiting.len += line.len();
        waiting.lines.push_back((to, line));
        self.shared.filled.notify_one();
    }

    /// The number of lines that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// Waits until all is written, but no longer than `at_most`.
    pub(crate) fn finish(&self, at_most: Duration) {
        let waiting = self.shared.lock();
        let is_pending = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        drop(self.shared.written.wait_timeout_while(waiting, at_most, is_pending));
    }
}

/// The thread ends once it has written what waits.
impl Drop for Outlet {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.filled.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines, and takes them all, with the number of lines that were dropped behind them; `None` at the end.
    fn take(&self) -> Option<(VecDeque<(To, String)>, u64)> {
        let mut waiting = self.lock();
        waiting.is_writing = false;
        self.written.notify_all();
        while waiting.lines.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.is_writing = true;
        waiting.len = 0;
        Some((std::mem::take(&mut waiting.lines), std::mem::take(&mut waiting.unreported)))
    }
}

/// Writes a line where it belongs. A reader that has gone is no reason to stop.
pub(crate) fn write_line(to: To, line: &str) {
    let _ = match to {
        To::Output => writeln!(io::stdout(), "{line}"),
        To::Error => writeln!(io::stderr(), "{line}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn lines_that_find_no_room_are_dropped_and_their_count_takes_their_place() {
        let (written, reader) = channel();
        let (open, gate) = channel::<()>();
        let write = move |_, line: &str| {
            let _ = gate.recv();
            written.send(line.chars().take(9).collect::<String>()).unwrap();
        };
        let outlet = Outlet::start(write, |lines| format!("{lines} lost")).unwrap();
        outlet.put(To::Output, "first".to_owned());
        while !outlet.shared.lock().is_writing {
            std::thread::yield_now();
        }
        for name in ["a", "b", "c", "d"] {
            outlet.put(To::Output, name.repeat(WAITING_MAX / 2));
        }
        assert_eq!(outlet.dropped(), 2);
        drop(open);
        outlet.finish(Duration::from_secs(60));
        outlet.put(To::Error, "last".to_owned());
        drop(outlet);
        let lines: Vec<String> = reader.iter().collect();
        assert_eq!(lines, ["first", "aaaaaaaaa", "bbbbbbbbb", "2 lost", "last"]);
    }
}
