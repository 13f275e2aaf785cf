//! Effects of a segment on a connection in TIME-WAIT, or in FIN-WAIT-2 without a reader.
//!
//! RFC 9293 §3.10.7.4 with RFC 5961 (resets and SYNs), RFC 1122 §4.2.2.13 and RFC 6191 (a SYN that
//! opens the next connection), RFC 1337 (ignored resets) and RFC 7323 §5 (old timestamps).

use super::TimeWait;
use crate::tcp::segment::SegmentFields;
use wire::{Flags, SeqNum};

/// Reaction to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeWaitAction {
    /// Drops it.
    Ignore,
    /// Answers with an ACK, within the limit of such answers.
    Ack,
    /// Restarts 2 MSL and updates TS.Recent, without an answer.
    Restart,
    /// Restarts 2 MSL and answers with an ACK, within the limit of such answers.
    RestartAndAck,
    /// Begins TIME-WAIT and answers with an ACK: it is the FIN that FIN-WAIT-2 waited for.
    FinReceived,
    /// Forgets the connection.
    Remove,
    /// Forgets the connection and resets the peer, which sends data without a reader.
    Reset,
    /// Forgets the connection and handles the segment as in LISTEN.
    AcceptSyn {
        /// Smallest ISN of ours, beyond all data of the old connection that may be in the network.
        min_isn: SeqNum,
    },
}

/// Distance between the numbers of the old and the new connection: the largest window without
/// scaling, and a little more (as in Linux).
pub(crate) const ISN_DISTANCE: u32 = 65_535 + 2;

/// Decides about a segment. `rfc1337`: a reset does not end TIME-WAIT.
pub(crate) fn on_segment(entry: &TimeWait, segment: &SegmentFields, rfc1337: bool) -> TimeWaitAction {
    let flags = segment.flags;
    if entry.fin_awaited {
        return on_segment_in_fin_wait_2(entry, segment);
    }
    if flags.contains(Flags::RST) {
        return on_rst(entry, segment, rfc1337);
    }
    if flags.contains(Flags::SYN) {
        return on_syn(entry, segment);
    }
    if !flags.contains(Flags::ACK) {
        // No such segment is acceptable any more. The answer tells the sender our numbers (RFC 9293
        // §3.10.7.4, first).
        return TimeWaitAction::Ack;
    }
    let expected = segment.seq == entry.rcv_nxt && !is_old(entry, segment);
    let empty = segment.payload_len == 0 && !flags.contains(Flags::FIN);
    match (empty, expected, flags.contains(Flags::FIN)) {
        // Two ends that answered each other's bare ACKs would never stop.
        (true, true, _) => TimeWaitAction::Restart,
        // RFC 9293 §3.10.7.4, TIME-WAIT: "The only thing that can arrive in this state is a
        // retransmission of the remote FIN. Acknowledge it, and restart the 2 MSL timeout."
        (_, _, true) | (_, true, _) => TimeWaitAction::RestartAndAck,
        (_, false, false) => TimeWaitAction::Ack,
    }
}

/// Decides as RFC 9293 §3.10.7.4 in FIN-WAIT-2 without a reader. Text is answered by a reset (RFC
/// 1122 §4.2.2.13), unless its numbers seem guessed.
fn on_segment_in_fin_wait_2(entry: &TimeWait, segment: &SegmentFields) -> TimeWaitAction {
    let flags = segment.flags;
    if flags.contains(Flags::RST) {
        return on_rst(entry, segment, false);
    }
    let fin = u32::from(flags.contains(Flags::FIN));
    let end = segment.seq + segment.payload_len + fin;
    let window_end = entry.rcv_nxt + u32::from(entry.rcv_wnd);
    let inside = segment.seq == entry.rcv_nxt
        || end.after(entry.rcv_nxt) && segment.seq.before(window_end)
        || segment.seq == window_end && end == window_end;
    if flags.contains(Flags::SYN) || !inside || is_old(entry, segment) {
        return TimeWaitAction::Ack;
    }
    let new = end.after(entry.rcv_nxt);
    match () {
        () if !flags.contains(Flags::ACK) || !is_plausible(entry, segment.ack) || !new => {
            TimeWaitAction::Ignore
        }
        () if fin == 1 && end == entry.rcv_nxt + 1 => TimeWaitAction::FinReceived,
        () => TimeWaitAction::Reset,
    }
}

/// Returns whether the segment acknowledges sent data, at most the largest window old (RFC 5961
/// §5.2).
fn is_plausible(entry: &TimeWait, ack: SeqNum) -> bool {
    ack.before_or_eq(entry.snd_nxt) && ack.after(entry.snd_nxt - (1 << 30))
}

/// Decides about a reset. Only the exact number counts (RFC 5961 §3.2). Old duplicates are expected
/// here, so a timestamp must not be old (as in Linux's `tcp_timewait_state_process`; RFC 7323 §5.2
/// is about live connections).
fn on_rst(entry: &TimeWait, segment: &SegmentFields, rfc1337: bool) -> TimeWaitAction {
    let believed = segment.seq == entry.rcv_nxt && !is_old(entry, segment);
    if believed && !rfc1337 { TimeWaitAction::Remove } else { TimeWaitAction::Ignore }
}

/// Decides about a SYN (RFC 6191 §2). Acknowledges SYNs that RFC 6191 would drop (RFC 5961 §4.2),
/// so that a peer without the old connection resets it and can try again.
fn on_syn(entry: &TimeWait, segment: &SegmentFields) -> TimeWaitAction {
    if segment.flags.contains(Flags::ACK) {
        return TimeWaitAction::Ack;
    }
    let later_number = segment.seq.after_or_eq(entry.rcv_nxt);
    let new_connection = match (entry.ts_recent, segment.timestamps) {
        (Some(last), Some(new)) if new.tsval == last => later_number,
        (Some(last), Some(new)) => SeqNum(new.tsval).after(SeqNum(last)),
        (None, Some(_)) => true,
        (_, None) => later_number,
    };
    if new_connection {
        TimeWaitAction::AcceptSyn { min_isn: entry.snd_nxt + ISN_DISTANCE }
    } else {
        TimeWaitAction::Ack
    }
}

/// Returns whether PAWS refuses the segment (RFC 7323 §5.3). Like Linux, accepts segments without
/// timestamps.
pub(crate) fn is_old(entry: &TimeWait, segment: &SegmentFields) -> bool {
    let (Some(last), Some(new)) = (entry.ts_recent, segment.timestamps) else { return false };
    SeqNum(new.tsval).before(SeqNum(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple::FourTuple;
    use core::net::Ipv4Addr;
    use wire::Timestamps;

    const NEXT: u32 = 1_000;
    const RECENT: u32 = 50;
    const ACCEPT: TimeWaitAction = TimeWaitAction::AcceptSyn { min_isn: SeqNum(7_000 + 65_537) };

    fn entry(ts_recent: Option<u32>) -> TimeWait {
        let address = Ipv4Addr::LOCALHOST.into();
        TimeWait {
            tuple: FourTuple { local: address, local_port: 1, peer: address, peer_port: 2 },
            snd_nxt: SeqNum(7_000),
            rcv_nxt: SeqNum(NEXT),
            rcv_wnd: 1,
            ts_recent,
            ts_offset: true,
            fin_awaited: false,
        }
    }

    fn act(seq: u32, flags: Flags, payload_len: u32, tsval: Option<u32>) -> TimeWaitAction {
        let timestamps = tsval.map(|tsval| Timestamps { tsval, tsecr: 0 });
        let segment =
            SegmentFields { seq: SeqNum(seq), ack: SeqNum(7_000), flags, payload_len, timestamps, window: 0 };
        on_segment(&entry(tsval.map(|_| RECENT)), &segment, false)
    }

    #[test]
    fn a_retransmitted_fin_is_acknowledged_and_restarts() {
        let fin = Flags::FIN.union(Flags::ACK);
        assert_eq!(act(NEXT - 1, fin, 0, None), TimeWaitAction::RestartAndAck);
        assert_eq!(act(NEXT - 44, fin, 43, Some(RECENT - 1)), TimeWaitAction::RestartAndAck);
    }

    #[test]
    fn other_segments_are_acknowledged_but_for_a_bare_ack_in_order() {
        assert_eq!(act(NEXT, Flags::ACK, 0, Some(RECENT)), TimeWaitAction::Restart);
        assert_eq!(act(NEXT, Flags::ACK, 0, Some(RECENT - 1)), TimeWaitAction::Ack);
        assert_eq!(act(NEXT - 1, Flags::ACK, 0, None), TimeWaitAction::Ack);
        assert_eq!(act(NEXT, Flags::ACK, 10, None), TimeWaitAction::RestartAndAck);
        assert_eq!(act(NEXT - 10, Flags::ACK, 10, None), TimeWaitAction::Ack);
        assert_eq!(act(NEXT, Flags::empty(), 10, None), TimeWaitAction::Ack);
    }

    #[test]
    fn a_reset_needs_the_exact_number_and_the_permission() {
        assert_eq!(act(NEXT, Flags::RST, 0, Some(RECENT)), TimeWaitAction::Remove);
        assert_eq!(act(NEXT, Flags::RST, 0, Some(RECENT - 1)), TimeWaitAction::Ignore);
        assert_eq!(act(NEXT, Flags::RST.union(Flags::SYN), 0, None), TimeWaitAction::Remove);
        assert_eq!(act(NEXT + 1, Flags::RST, 0, None), TimeWaitAction::Ignore);
        let segment = SegmentFields {
            seq: SeqNum(NEXT),
            ack: SeqNum(0),
            flags: Flags::RST,
            payload_len: 0,
            window: 0,
            timestamps: None,
        };
        assert_eq!(on_segment(&entry(None), &segment, true), TimeWaitAction::Ignore);
    }

    #[test]
    fn a_syn_reopens_by_later_timestamp() {
        assert_eq!(act(NEXT - 500, Flags::SYN, 0, Some(RECENT + 1)), ACCEPT);
        assert_eq!(act(NEXT + 500, Flags::SYN, 0, Some(RECENT - 1)), TimeWaitAction::Ack);
        assert_eq!(act(NEXT + 500, Flags::SYN, 100, Some(RECENT)), ACCEPT);
        assert_eq!(act(NEXT - 1, Flags::SYN, 0, Some(RECENT)), TimeWaitAction::Ack);
    }

    #[test]
    fn a_syn_reopens_by_later_number() {
        assert_eq!(act(NEXT, Flags::SYN, 0, None), ACCEPT);
        assert_eq!(act(NEXT - 1, Flags::SYN, 0, None), TimeWaitAction::Ack);
        let gained = SegmentFields {
            seq: SeqNum(0),
            ack: SeqNum(0),
            flags: Flags::SYN,
            payload_len: 0,
            window: 0,
            timestamps: Some(Timestamps { tsval: 1, tsecr: 0 }),
        };
        assert_eq!(on_segment(&entry(None), &gained, false), ACCEPT);
        let lost = SegmentFields { timestamps: None, ..gained };
        assert_eq!(on_segment(&entry(Some(RECENT)), &lost, false), TimeWaitAction::Ack);
        let later = SegmentFields { seq: SeqNum(NEXT + 9), ..lost };
        assert_eq!(on_segment(&entry(Some(RECENT)), &later, false), ACCEPT);
    }

    /// A copy of the connection's own SYN, made by the network or kept by an attacker.
    #[test]
    fn a_replayed_syn_opens_nothing() {
        assert_eq!(act(NEXT - 30, Flags::SYN, 7, Some(RECENT - 2)), TimeWaitAction::Ack);
        assert_eq!(act(NEXT - 30, Flags::SYN, 7, None), TimeWaitAction::Ack);
        assert_eq!(act(NEXT + 9, Flags::SYN.union(Flags::ACK), 0, None), TimeWaitAction::Ack);
    }

    #[test]
    fn fin_wait_2_waits_for_the_fin() {
        let waiting = TimeWait { fin_awaited: true, rcv_wnd: 500, ..entry(Some(RECENT)) };
        let act = |seq: u32, flags: Flags, payload_len: u32, ack: u32| {
            let (seq, ack) = (SeqNum(seq), SeqNum(ack));
            on_segment(
                &waiting,
                &SegmentFields { seq, ack, flags, payload_len, timestamps: None, window: 0 },
                true,
            )
        };
        let fin = Flags::FIN.union(Flags::ACK);
        assert_eq!(act(NEXT, fin, 0, 7_000), TimeWaitAction::FinReceived);
        assert_eq!(act(NEXT - 5, fin, 5, 7_000), TimeWaitAction::FinReceived, "its text was here before");
        assert_eq!(act(NEXT, fin, 0, 6_999), TimeWaitAction::FinReceived, "an old acknowledgement");
        assert_eq!(act(NEXT, fin, 0, 7_001), TimeWaitAction::Ignore, "a guess");
        assert_eq!(act(NEXT, fin, 1, 7_000), TimeWaitAction::Reset);
        assert_eq!(act(NEXT + 9, fin, 0, 7_000), TimeWaitAction::Reset, "text is missing before it");
        assert_eq!(act(NEXT, Flags::ACK, 1, 7_000), TimeWaitAction::Reset);
        assert_eq!(act(NEXT + 501, Flags::ACK, 1, 7_000), TimeWaitAction::Ack);
        assert_eq!(act(NEXT - 9, Flags::ACK, 8, 7_000), TimeWaitAction::Ack);
        assert_eq!(act(NEXT - 1, Flags::ACK, 0, 7_000), TimeWaitAction::Ack, "keep-alive");
        assert_eq!(act(NEXT, Flags::ACK, 0, 7_000), TimeWaitAction::Ignore);
        assert_eq!(act(NEXT, Flags::SYN, 0, 0), TimeWaitAction::Ack);
        assert_eq!(act(NEXT, Flags::RST, 0, 0), TimeWaitAction::Remove);
        assert_eq!(act(NEXT + 1, Flags::RST, 0, 0), TimeWaitAction::Ignore);
    }
}
