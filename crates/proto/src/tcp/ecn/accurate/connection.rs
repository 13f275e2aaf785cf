//! A connection with Accurate ECN: what goes along with its segments, and what comes with the peer's.

use super::AccurateEcn;
use crate::Instant;
use crate::tcp::connection::Connection;
use crate::tcp::rare::special::Special;
use alloc::boxed::Box;
use wire::Ecn;

impl Connection {
    /// There is one exactly where that was agreed.
    pub(super) fn accurate_ecn(&mut self) -> Option<&mut AccurateEcn> {
        self.special.as_mut()?.accurate_ecn.as_deref_mut()
    }

    /// It has been agreed; `last`: the codepoint before the first that counts.
    pub(super) fn count_marks(&mut self, now: Instant, last: Ecn, demand: u8) -> &mut AccurateEcn {
        let place = &mut Special::of(&mut self.special, now).accurate_ecn;
        place.insert(Box::new(AccurateEcn::new(last, demand)))
    }
}
