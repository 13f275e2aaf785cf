//! What must hold after every step, and when everything is closed.

use super::{CLIENT, Failure, SERVER, World};
use proto::State;

/// What a connection may hold beside its buffers, bytes: a packet that came in counts with all of
/// its memory, a write takes whole blocks.
const SLACK: u64 = 1024 * 1024;
/// No world has more timers due at once than these calls end.
const CALLS_MAX: usize = 64;
/// What a segment that waits, or is in flight, takes beside its payload. An application that writes
/// byte by byte makes one of each byte, and the send buffer counts only what
/// `firstbyte.sndbuf_overhead` says for it.
const SEGMENT: u64 = 96;
/// A packet's memory may be so many times its payload.
const TRUESIZE: u64 = 8;

impl World<'_> {
    /// Whatever is due is done, in as many calls as that takes (`Stack::EXPIRED_AT_ONCE`).
    pub(super) fn handle_timeouts(&mut self, side: usize) -> Result<(), Failure> {
        let stack = &mut self.stacks[side];
        for _ in 0..CALLS_MAX {
            stack.handle_timeout(self.now);
            if stack.poll_timeout().is_none_or(|at| at > self.now) {
                break;
            }
        }
        self.check_deadline(side)
    }

    fn check_deadline(&mut self, side: usize) -> Result<(), Failure> {
        match self.stacks[side].poll_timeout() {
            Some(at) if at <= self.now => {
                let late = self.now.since(at);
                Err(Failure::new("a deadline does not advance", format_args!("side {side}: {late:?} ago")))
            }
            _ => Ok(()),
        }
    }

    /// The engine's own rules, where it is built with them, and both stacks of a host, where it has
    /// two.
    pub(super) fn hear_complaints(&mut self) -> Result<(), Failure> {
        let now = self.now;
        self.stacks.iter_mut().try_for_each(|host| host.compare(now))?;
        #[cfg(debug_assertions)]
        for side in [CLIENT, SERVER] {
            if let Some(complaint) = self.stacks[side].complaint(self.now) {
                let which = self.by_id[side].get(&complaint.connection);
                let seen = format!("side {side}, connection {which:?}: {}", complaint.seen);
                return Err(Failure::new(complaint.rule, seen));
            }
        }
        Ok(())
    }

    pub(super) fn check_connections(&mut self) -> Result<(), Failure> {
        for side in [CLIENT, SERVER] {
            for (id, which) in &self.by_id[side] {
                let Some(info) = self.stacks[side].info(*id) else { continue };
                if matches!(info.state, State::Closed | State::TimeWait) {
                    continue;
                }
                let overhead = self.stacks[side].config().sndbuf_overhead;
                let segments = SEGMENT * info.send_queue as u64 / (1 + u64::from(overhead));
                let buffers = u64::from(info.recv_buffer) + u64::from(info.send_buffer);
                let bound = TRUESIZE * buffers + segments + SLACK;
                if u64::from(info.memory) > bound {
                    let seen = format!("{side}/{which} holds {} bytes, of {bound}", info.memory);
                    return Err(Failure::new("memory beyond the buffers", seen));
                }
                if u64::from(info.flight_size) > info.send_queue as u64 + 2 {
                    let seen = format!(
                        "{side}/{which}: {} in flight, {} in the queue",
                        info.flight_size, info.send_queue
                    );
                    return Err(Failure::new("more in flight than in the queue", seen));
                }
            }
        }
        Ok(())
    }

    /// Both stacks are as they began.
    pub(super) fn check_nothing_is_left(&mut self) -> Result<(), Failure> {
        for (side, stack) in self.stacks.iter_mut().enumerate() {
            let sizes = stack.table_sizes();
            let left = (sizes.connections, sizes.requests, sizes.time_wait, stack.orphans(), stack.memory());
            if left != (0, 0, 0, 0, 0) {
                let seen =
                    format!("side {side}: connections, requests, TIME-WAIT, orphans, memory: {left:?}");
                return Err(Failure::new("something is left when everything is closed", seen));
            }
            if let Some(at) = stack.poll_timeout() {
                let seen = format!("side {side}: a deadline at {at:?}");
                return Err(Failure::new("a timer is left when everything is closed", seen));
            }
        }
        Ok(())
    }
}
