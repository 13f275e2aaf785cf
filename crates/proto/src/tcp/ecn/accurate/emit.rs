//! Accurate ECN on outgoing segments: the ACE field of each, and the option where one is due (RFC 9768 §3.2.2, §3.2.3.3; Linux's
//! `tcp_accecn_set_ace` and `tcp_established_options`).

use super::{AccurateEcn, Ace, ByteCounts, ECT_BYTES_INIT, Failures, OptionSeen};
use crate::Config;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::EcnMode;
use wire::{AccurateEcnOption, AccurateEcnOrder, Ecn, Flags, SackBlocks, TCP_OPTIONS_MAX, TcpOptions};

/// Values of `net.ipv4.tcp_ecn_option`.
const NEVER: u32 = 0;
const ALWAYS: u32 = 2;
/// A SACK option of so many blocks, with its NOPs.
fn sack_len(blocks: usize) -> usize {
    if blocks == 0 { 0 } else { 4 + 8 * blocks }
}

/// What the option takes beside NOPs of others, of which there are so many in a row.
fn padded(fields: usize, nops: usize) -> usize {
    let len = 2 + 3 * fields;
    if len & 3 > nops { len.next_multiple_of(4) } else { len & !3 }
}

/// How many SACK blocks and counters go together into `room` bytes: all counters that fit beside the blocks. Only if those that are needed
/// do not, a block makes room, the third or a later one (Linux's `tcp_options_fit_accecn`).
pub(super) fn fit(room: usize, blocks: usize, least: usize) -> (usize, Option<usize>) {
    let nops = if blocks > 0 { 2 } else { 0 };
    let mut kept = blocks;
    loop {
        let free = room.saturating_sub(sack_len(kept));
        let fields =
            (least..=AccurateEcnOption::FIELDS_MAX).rev().find(|fields| padded(*fields, nops) <= free);
        match fields {
            Some(fields) => return (kept, Some(fields)),
            None if kept > 2 && least > 0 => kept -= 1,
            None => return (blocks, None),
        }
    }
}

impl ByteCounts {
    /// As the option has them: those of ECT began with 1.
    fn option(&self, fields: usize) -> AccurateEcnOption {
        AccurateEcnOption::new(AccurateEcnOrder::Ect1First, fields, |codepoint| match codepoint {
            Ecn::NotEct => 0,
            Ecn::Ect1 => self.ect1.wrapping_add(ECT_BYTES_INIT),
            Ecn::Ect0 => self.ect0.wrapping_add(ECT_BYTES_INIT),
            Ecn::Ce => self.ce,
        })
    }
}

/// Adds the option to those of a SYN-ACK, where there is room beside the signature: nothing has come yet. One that is retransmitted after a
/// time-out is not for this: something on the path may not like it (RFC 9768 §3.2.3.2.2).
pub(crate) fn add_to_syn_ack(config: &Config, ecn: EcnMode, signature: u16, options: &mut TcpOptions) {
    if !ecn.is_accurate() || config.tcp_ecn_option == NEVER {
        return;
    }
    let nops = match (options.timestamps, options.sack_permitted, options.window_scale) {
        (None, true, _) => 2,
        (_, _, Some(_)) => 1,
        _ => 0,
    };
    let room = TCP_OPTIONS_MAX.saturating_sub(options.emit_len() + usize::from(signature));
    let fields = (0..=AccurateEcnOption::FIELDS_MAX).rev().find(|fields| padded(*fields, nops) <= room);
    options.accurate_ecn = fields.filter(|_| room >= 2).map(|fields| ByteCounts::default().option(fields));
}

impl AccurateEcn {
    /// What a SYN-ACK reported counts as reported.
    pub(super) fn option_sent(&mut self, now: crate::Instant) {
        self.least_fields = 0;
        self.option_sent_at = now;
        self.demand = self.demand.saturating_sub(1);
    }
}

impl Connection {
    /// Something is about to be sent: does it have the option? Once the peer has shown that options get through: each, or only those that
    /// are needed, and some in every round trip (`tcp_ecn_option`, `tcp_ecn_option_beacon`).
    #[inline(never)]
    pub(in crate::tcp) fn refresh_marks(&mut self, cx: &Context) {
        let srtt = self.rtt.srtt().unwrap_or_default().as_micros();
        let (option, beacon) = (cx.config.tcp_ecn_option, u128::from(cx.config.tcp_ecn_option_beacon));
        let Some(marks) = self.accurate_ecn() else { return };
        let silent = cx.now.since(marks.option_sent_at).as_micros();
        let due = || option >= ALWAYS || marks.demand > 0 || beacon > 0 && silent * beacon >= srtt;
        marks.tells = option != NEVER && marks.seen != OptionSeen::Nothing && due();
        // Segments of one write are equally long (Linux's `tcp_write_xmit` asks for their size once).
        marks.reserves = marks.tells || marks.reserves && marks.refreshed_at == cx.now;
        marks.refreshed_at = cx.now;
    }

    /// Flags that say how many marked packets have come, and whether the segment may be marked itself.
    #[inline(never)]
    pub(in crate::tcp) fn report_marks(&mut self, is_pure_ack: bool) -> (Flags, Ecn) {
        let reflected = self.reflected();
        let Some(marks) = self.accurate_ecn() else { return (Flags::empty(), Ecn::NotEct) };
        marks.sends_ect |= !marks.failures.contains(Failures::ACE_RECEIVED);
        marks.ack_next = false;
        let codepoint = if marks.sends_ect { Ecn::Ect0 } else { Ecn::NotEct };
        if core::mem::take(&mut marks.reflects) && is_pure_ack {
            return (reflected, codepoint);
        }
        marks.unreported_ce = 0;
        (Ace::of_count(marks.received_ce).flags(), codepoint)
    }

    /// A segment of the connection that leaves now has the option.
    pub(in crate::tcp) fn tells_option(&self) -> bool {
        let marks = self.special.as_deref().and_then(|special| special.accurate_ecn.as_deref());
        marks.is_some_and(|marks| marks.tells)
    }

    fn option_fit(&self, blocks: usize, wanted: fn(&AccurateEcn) -> bool) -> (usize, Option<usize>) {
        let marks = self.special.as_deref().and_then(|special| special.accurate_ecn.as_deref());
        let Some(marks) = marks.filter(|marks| wanted(marks)) else { return (blocks, None) };
        fit(usize::from(self.options_room()), blocks, marks.least_fields.into())
    }

    /// Bytes of SACK blocks and of the option, or of room for it, of a segment that leaves now.
    pub(in crate::tcp) fn marks_and_sack_len(&self, blocks: usize) -> usize {
        let (blocks, fields) = self.option_fit(blocks, |marks| marks.reserves);
        let nops = if blocks > 0 { 2 } else { 0 };
        sack_len(blocks) + fields.map_or(0, |fields| padded(fields, nops))
    }

    /// Adds the option to those of a segment that leaves now, which may cost a SACK block.
    pub(in crate::tcp) fn add_marks(&mut self, cx: &Context, options: &mut TcpOptions) {
        let (blocks, fields) = self.option_fit(options.sack.len(), |marks| marks.tells);
        let Some(fields) = fields else { return };
        options.sack = options.sack.iter().copied().take(blocks).collect::<SackBlocks>();
        if let Some(marks) = self.accurate_ecn() {
            options.accurate_ecn = Some(marks.received.option(fields));
            marks.option_sent(cx.now);
        }
    }

    /// The SYN-ACK of crossed SYNs tells by the connection's own counters (as Linux).
    pub(in crate::tcp) fn syn_ack_reported_marks(&mut self, cx: &Context) {
        if let Some(marks) = self.accurate_ecn() {
            marks.option_sent(cx.now);
        }
    }
}
