//! A Fast Open child whose SYN-ACK is not acknowledged, where it is held for a half-open request (`half_open_rules`; Linux's
//! `tcp_check_req`): what does not complete the handshake is judged by the numbers of the SYN alone, and does not harm it.

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::rare::special::Special;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::recv::receiver::Receiver;
use wire::Flags;

impl Connection {
    /// Does it wait for its first acknowledgement, and is it held for a request?
    #[inline]
    pub(super) fn is_embryo(&self, cx: &Context) -> bool {
        let fast_open =
            || matches!(self.handshake.as_deref(), Some(Handshake::Passive(passive)) if passive.fast_open);
        self.handshake.is_some() && cx.config.half_open_rules.child_is_request() && fast_open()
    }

    /// Lets through what may complete the handshake.
    pub(super) fn check_embryo(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        let stale = self.is_of_earlier_connection(segment);
        let flags = segment.header.flags & (Flags::SYN | Flags::ACK | Flags::RST);
        if flags == Flags::SYN && segment.seq() == self.rcv.irs && !stale {
            return Err(self.answer_duplicate_syn(cx));
        }
        if stale || !self.rcv.is_in_synack_window(segment) {
            cx.counters.paws_estab_rejected += u64::from(stale);
            if segment.has(Flags::RST) {
                return Err(Reply::Nothing);
            }
            let text = segment.len() > 0 && !segment.has(Flags::SYN);
            if text || Special::may_answer(&mut self.special, cx) {
                self.rcv.ack_owed = AckOwed::Now;
                // The request's, and no segment of the connection's (Linux's `tcp_v4_reqsk_send_ack`).
                self.tally.segs_out = self.tally.segs_out.wrapping_sub(1);
            } else {
                cx.counters.ack_skipped_syn_recv += 1;
            }
            return Err(Reply::Nothing);
        }
        match () {
            () if segment.has(Flags::RST) && segment.seq() != self.rcv.nxt => self.challenge(cx),
            () if segment.has(Flags::RST) => {
                cx.counters.attempt_fails += 1;
                self.reset_by_peer(cx);
            }
            // Whoever sent it gets an answer; that it was our peer is not certain.
            () if segment.has(Flags::SYN) && segment.seq() != self.rcv.irs => {
                cx.counters.attempt_fails += 1;
                return Err(Reply::Reset);
            }
            () if segment.has(Flags::ACK) => return Ok(()),
            () => {}
        }
        Err(Reply::Nothing)
    }

    fn is_of_earlier_connection(&self, segment: &Segment) -> bool {
        let timestamps = segment.header.options.timestamps.filter(|_| self.agreed.timestamps);
        timestamps.is_some_and(|timestamps| {
            self.ts_recent != 0 && (self.ts_recent.wrapping_sub(timestamps.tsval) as i32) > 0
        })
    }
}

impl Receiver {
    /// RFC 9293 §3.10.7.4's first check, against the window that the SYN-ACK advertised: nothing has come since that was taken.
    fn is_in_synack_window(&self, segment: &Segment) -> bool {
        let (seq, end) = (segment.seq(), segment.end());
        let (start, edge) = (self.nxt, self.adv);
        seq == start || end.after(start) && seq.before(edge) || seq == edge && end == edge
    }
}
