//! Second and fourth check: RST and SYN (RFC 9293 §3.10.7.4, RFC 5961 §3 and §4).

use super::{Reply, Segment, Stop};
use crate::CloseReason;
use crate::tcp::connection::{Connection, Context};
use wire::Flags;

impl Connection {
    /// A reset counts only with exactly the number we expect next; elsewhere in the window it is challenged.
    pub(super) fn check_reset(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Result<(), Stop> {
        if !segment.has(Flags::RST) {
            return Ok(());
        }
        if segment.seq() != self.rcv.nxt {
            self.challenge(cx);
            return Err(Reply::Nothing);
        }
        cx.counters.estab_resets += u64::from(self.handshake.is_none());
        self.terminate(CloseReason::Reset);
        Err(Reply::Nothing)
    }

    /// "If the SYN bit is set … MUST send a challenge ACK" (RFC 5961 §4.2).
    pub(super) fn check_syn(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Result<(), Stop> {
        if !segment.has(Flags::SYN) {
            return Ok(());
        }
        // Simultaneous open: the peer's SYN-ACK repeats the SYN that put us into SYN-RECEIVED.
        if self.handshake.is_some() && segment.has(Flags::ACK) && segment.seq() == self.rcv.irs {
            return Ok(());
        }
        self.challenge(cx);
        Err(Reply::Nothing)
    }
}
