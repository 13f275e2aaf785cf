//! What arrives: packets and bytes by codepoint, and what is to be reported soon for them (RFC 9768 §3.2.2.5.1; Linux's `tcp_ecn_received_counters`).

use super::AccurateEcn;
use crate::State;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::input::Segment;
use crate::tcp::recv::receiver::AckOwed;
use wire::Ecn;

/// Bytes of one codepoint after which an option is due: a quarter of what its counter holds.
const BYTES_PER_OPTION: u32 = 1 << 22;
const UNREPORTED_MOST: u32 = 15;

impl AccurateEcn {
    /// One packet, or `packets` merged into one. True: it could have been marked.
    pub(super) fn count(&mut self, codepoint: Ecn, bytes: u32, packets: u32) -> bool {
        let marked = codepoint == Ecn::Ce;
        if marked {
            self.received_ce = self.received_ce.wrapping_add(packets);
            self.unreported_ce = (u32::from(self.unreported_ce) + packets).min(UNREPORTED_MOST) as u8;
        }
        if bytes > 0
            && let Some(count) = self.received.of(codepoint)
        {
            let before = *count;
            *count = before.wrapping_add(bytes);
            let due = before / BYTES_PER_OPTION != *count / BYTES_PER_OPTION;
            self.least_fields = self.least_fields.max(fields_up_to(codepoint));
            self.demand = self.demand.max(due.into());
        }
        let changed = self.last != codepoint;
        if changed || marked {
            self.last = codepoint;
            self.ack_next |= changed;
            // The second says which codepoint it changed to.
            self.demand = 2;
        }
        codepoint != Ecn::NotEct
    }
}

/// Counters of an option that tells of it, in the order we use: ECT(1), CE, ECT(0).
fn fields_up_to(codepoint: Ecn) -> u8 {
    match codepoint {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ce => 2,
        Ecn::Ect0 => 3,
    }
}

impl Connection {
    /// An acceptable segment has come.
    pub(super) fn count_arrived(&mut self, cx: &Context, segment: &Segment) {
        let synchronized = self.state == State::Established && self.handshake.is_none();
        if !synchronized && !cx.config.accurate_ecn_rules.counts_always() {
            return;
        }
        let len = segment.payload.len();
        let packets = match segment.payload.gso_size() {
            0 => 1,
            each => len.div_ceil(each.into()).max(1),
        };
        let Some(marks) = self.accurate_ecn() else { return };
        if marks.count(segment.ecn, len as u32, packets as u32) {
            self.ecn.note_ect();
        }
    }

    /// Text of a Fast Open SYN.
    pub(crate) fn count_syn_data(&mut self, segment: &Segment) {
        let (codepoint, len) = (segment.ecn, segment.payload.len() as u32);
        if self.agreed.ecn.is_accurate()
            && let Some(marks) = self.accurate_ecn()
            && marks.count(codepoint, len, 1)
        {
            self.ecn.note_ect();
        }
    }

    /// The segment has been worked through: whoever sent it is to hear soon that its codepoint was another.
    #[inline(never)]
    pub(in crate::tcp) fn acknowledge_change(&mut self) {
        if self.rcv.ack_owed == AckOwed::Delayed
            && let Some(marks) = self.accurate_ecn()
            && marks.ack_next
        {
            self.rcv.ack_owed = AckOwed::Now;
        }
    }
}
