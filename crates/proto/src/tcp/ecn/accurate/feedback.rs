//! What the peer tells of our packets: how many of them arrived marked (RFC 9768 §3.2.2.5.2 and appendix A; Linux's `tcp_accecn_process`).
//!
//! ACE says it modulo 8. An acknowledgement of more packets may hide a wrap, which is assumed unless the option's bytes speak against it.

use super::{ACE_MASK, AccurateEcn, Ace, CEP_INIT, ECT_BYTES_INIT, Failures, OptionSeen, advance, is_newer};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::BeforeAck;
use crate::tcp::input::Segment;
use crate::tcp::observe::tcp_info::{CaState, ca_state};
use crate::tcp::recv::receiver::AckOwed;
use wire::{AccurateEcnOption, Ecn, SeqNum, accurate_ecn_difference};

/// Bytes that may have been sent before the first option comes: later, its counters may have wrapped.
const BYTES_BEFORE_OPTION: u64 = (1 << 23) - 1;
/// Marked packets that the peer must hear of before ACE can wrap: it is acknowledged at once (RFC 9768 §3.2.2.5.1).
const UNREPORTED_MOST: u8 = 6;
/// A safe count is believed if the option's bytes make as many marked packets of half a segment (RFC 9768 appendix A.2's SAFETY_FACTOR).
const SAFETY_SHIFT: u32 = 1;

/// The feedback of a segment whose acknowledgement is being worked through.
#[derive(Debug)]
pub(super) struct Arriving {
    /// `None`: its code was the handshake's.
    pub(super) ace: Option<Ace>,
    option: Option<AccurateEcnOption>,
    pub(super) prior_una: SeqNum,
    /// See `Delivery::delivered`.
    prior_delivered: u32,
    /// It cannot be one that was overtaken: its timestamp is newer than the last.
    newer: bool,
}

/// What it has acknowledged.
struct Acknowledged {
    packets: u32,
    bytes: u32,
    mss: u32,
    /// Nothing was out of order that would make the count of packets a guess.
    exact: bool,
}

impl AccurateEcn {
    /// The peer's byte counters; without, what is known of them (Linux's `tcp_accecn_process_option`). True: they can be relied on.
    pub(super) fn read_option(&mut self, option: Option<&AccurateEcnOption>, bytes: u32, sent: u64) -> bool {
        if self.failures.contains(Failures::OPTION_RECEIVED) {
            return false;
        }
        let Some(option) = option else { return self.go_on_without_option(bytes, sent) };
        self.see_option(Some(option));
        let (estimated, mut reliable) = (self.estimated, self.estimated.is_some());
        let (mut changed, mut ambiguous) = (None, false);
        for (codepoint, counter) in option.counters() {
            let init = if codepoint == Ecn::Ce { 0 } else { ECT_BYTES_INIT };
            let Some(count) = self.delivered.of(codepoint) else { continue };
            let difference = accurate_ecn_difference(counter.wrapping_sub(init), *count);
            *count = count.wrapping_add_signed(difference);
            ambiguous |= difference < 0;
            if difference != 0 && Some(codepoint) != estimated {
                ambiguous |= changed.is_some();
                changed = changed.or(Some(codepoint));
            }
        }
        self.estimated = changed.or(estimated);
        if ambiguous {
            self.estimated = None;
            reliable = false;
        }
        reliable
    }

    fn go_on_without_option(&mut self, bytes: u32, sent: u64) -> bool {
        if self.seen == OptionSeen::Nothing {
            if sent >= BYTES_BEFORE_OPTION {
                self.seen = OptionSeen::Failed;
                self.failures |= Failures::OPTION_RECEIVED;
            }
            return false;
        }
        let Some(count) = self.estimated.and_then(|codepoint| self.delivered.of(codepoint)) else {
            return false;
        };
        *count = count.wrapping_add(bytes);
        true
    }

    /// Marked packets that the ACE field tells of beyond those that are known.
    fn newly_marked(&self, ace: Ace, acked: &Acknowledged, reliable: bool, marked_bytes: u32) -> u32 {
        let packets_marked = u32::from(ace.0).wrapping_sub(CEP_INIT);
        let least = packets_marked.wrapping_sub(self.delivered_ce) & ACE_MASK;
        let packets = acked.packets;
        if packets <= ACE_MASK {
            return least;
        }
        let most = packets - (packets.wrapping_sub(least) & ACE_MASK);
        if !reliable {
            return most;
        }
        if marked_bytes == 0 {
            return least;
        }
        if packets >= (ACE_MASK + 1) * 2 && acked.exact {
            if acked.bytes <= marked_bytes {
                return most;
            }
            let share = u64::from(marked_bytes) * u64::from(packets);
            let estimate = share.div_ceil(acked.bytes.max(1).into()) as u32;
            return most.min(least + (estimate & !ACE_MASK));
        }
        let as_least = least.saturating_mul(acked.mss);
        let as_most = most.saturating_mul(acked.mss) >> SAFETY_SHIFT;
        if marked_bytes <= as_least && marked_bytes < as_most { least } else { most }
    }
}

impl Connection {
    /// A segment has come whose acknowledgement is to be looked at. True: what it says of marks is to be looked at, too.
    #[inline(never)]
    pub(in crate::tcp) fn feedback_arrives(&mut self, cx: &Context, segment: &Segment) -> bool {
        self.count_arrived(cx, segment);
        let (prior_una, prior_delivered) = (self.snd.una, self.snd.queue.delivery.delivered());
        let timestamps = segment.header.options.timestamps.filter(|_| self.agreed.timestamps);
        let (covers, ts_recent) = (segment.seq().before_or_eq(self.rcv.last_ack_sent), self.ts_recent);
        let newer = timestamps.is_some_and(|timestamps| covers && is_newer(timestamps.tsval, ts_recent));
        let Some(marks) = self.accurate_ecn() else { return false };
        marks.newly_marked = 0;
        let completes = core::mem::take(&mut marks.completes);
        marks.arriving = (!completes).then(|| Arriving {
            ace: Some(Ace::of(segment.header.flags)),
            option: segment.header.options.accurate_ecn,
            prior_una,
            prior_delivered,
            newer,
        });
        !completes
    }

    /// What was acknowledged is known: is some of it reported as marked?
    pub(in crate::tcp) fn ace_tells_of_marks(&mut self) -> bool {
        let (bytes, runs) = self.snd.queue.news();
        let packets = bytes.div_ceil(u32::from(self.smss()).max(1)).max(runs.into());
        self.decode_marks(packets)
    }

    fn decode_marks(&mut self, packets: u32) -> bool {
        let (una, delivered) = (self.snd.una, self.snd.queue.delivery.delivered());
        let mss = u32::from(self.smss());
        let in_order = matches!(ca_state(self), CaState::Open | CaState::Reducing);
        let exact = self.agreed.sack || in_order;
        let sent = self.bytes_acked + u64::from(self.snd.flight_size());
        let Some(marks) = self.accurate_ecn() else { return false };
        let Some(arriving) = marks.arriving.take() else { return marks.newly_marked > 0 };
        let reported = delivered.wrapping_sub(arriving.prior_delivered);
        let bytes = match advance(una, arriving.prior_una) {
            0 => reported,
            advance => advance,
        };
        // One that was overtaken, or may have been, says what is known.
        if bytes == 0 && !arriving.newer {
            return false;
        }
        let marked_before = marks.delivered.ce;
        let reliable = marks.read_option(arriving.option.as_ref(), bytes, sent);
        let Some(ace) = arriving.ace else { return false };
        let marked_bytes = marks.delivered.ce.wrapping_sub(marked_before);
        let acked = Acknowledged { packets, bytes, mss, exact };
        marks.newly_marked = marks.newly_marked(ace, &acked, reliable, marked_bytes);
        marks.delivered_ce = marks.delivered_ce.wrapping_add(marks.newly_marked);
        let is_marked = marks.newly_marked > 0;
        if marks.unreported_ce >= UNREPORTED_MOST {
            self.rcv.ack_owed = AckOwed::Now;
        }
        is_marked
    }

    /// The acknowledgement was in order. True: it tells of marks.
    #[inline(never)]
    pub(in crate::tcp) fn marks_delivered(
        &mut self,
        cx: &mut Context,
        segment: &Segment,
        before: &BeforeAck,
    ) -> bool {
        if segment.header.ack.before(before.snd_una) {
            return false;
        }
        self.ace_tells_of_marks();
        let newly = self.accurate_ecn().map_or(0, |marks| core::mem::take(&mut marks.newly_marked));
        if !segment.payload.is_empty() && segment.end().after(self.rcv.nxt) {
            self.note_codepoint(segment.ecn);
        }
        // As Linux: what is reported while nothing is in flight is about what was counted as delivered long ago.
        cx.counters.delivered_ce += u64::from(if before.in_flight > 0 { newly } else { 0 });
        newly > 0
    }
}
