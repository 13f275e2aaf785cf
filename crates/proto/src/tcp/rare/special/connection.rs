//! A connection asks for what few have.

use super::Special;
use crate::Instant;
use crate::tcp::connection::{Connection, Context};
use alloc::boxed::Box;

impl Connection {
    /// The headers of the SYN that began it, if they are kept.
    pub(crate) fn keep_syn(&mut self, now: Instant, headers: Option<Box<[u8]>>) {
        if headers.is_some() {
            Special::of(&mut self.special, now).saved_syn = headers;
        }
    }

    /// The application has shut its reading direction.
    pub(crate) fn read_no_more(&mut self, now: Instant) {
        self.leave_fast_paths();
        Special::of(&mut self.special, now).reads_no_more = true;
    }
}

impl Special {
    /// May a segment that was not taken be answered? Not sooner than `tcp_invalid_ratelimit` after the last.
    pub(in crate::tcp) fn may_answer(special: &mut Option<Box<Special>>, cx: &Context) -> bool {
        Special::of(special, cx.now).last_answer.may_answer(cx.now, cx.config.invalid_ratelimit())
    }
}
