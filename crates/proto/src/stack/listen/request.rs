//! Half-open peers in the SYN queue: the data needed to repeat the SYN-ACK and to create the
//! connection, without buffers.

use crate::rate_limit::LastAnswer;
use crate::stack::FirstNumbers;
use crate::tcp::connection::Context;
use crate::tcp::ecn::accurate::OptionSeen;
use crate::tcp::input::Segment;
use crate::tcp::open::negotiation::Negotiated;
use crate::timer_wheel::TimerHandle;
use crate::tuple::FourTuple;
use crate::tuple::Name;
use crate::{Instant, ListenerId};
use alloc::boxed::Box;
use wire::{FastOpenOption, SeqNum, Timestamps};

/// An ordinary passive open in SYN-RECEIVED.
#[derive(Debug)]
pub(in crate::stack) struct Request {
    pub(in crate::stack) tuple: FourTuple,
    /// Hash of the tuple in the table of holders.
    pub(in crate::stack) hash: u64,
    pub(in crate::stack) listener: ListenerId,
    pub(in crate::stack) irs: SeqNum,
    pub(in crate::stack) iss: SeqNum,
    pub(in crate::stack) agreed: Negotiated,
    pub(in crate::stack) rcv_wscale: u8,
    /// Window field of the SYN.
    pub(in crate::stack) peer_window: u16,
    pub(in crate::stack) ts_recent: u32,
    /// Offset of TSval from the clock.
    pub(in crate::stack) ts_offset: u32,
    /// SYN-ACKs sent; 0 for a SYN cookie that came back.
    pub(in crate::stack) transmissions: u8,
    /// SYN-ACKs that the timer retransmitted. A client that repeats its SYN does not use up our
    /// retries.
    pub(in crate::stack) timeouts: u8,
    pub(in crate::stack) sent_at: Instant,
    /// Time of the first SYN-ACK in ms, modulo 2³².
    pub(in crate::stack) first_sent_ms: u32,
    /// Last answer to a repeated SYN, or to a segment outside the window.
    pub(in crate::stack) last_answer: LastAnswer,
    /// The final ACK has come, but there was no room or no data for a connection. The peer
    /// considers itself connected.
    pub(in crate::stack) acked: bool,
    pub(in crate::stack) timer: TimerHandle,
    /// DiffServ code point of the SYN.
    pub(in crate::stack) dscp: u8,
    /// Headers of the SYN, if the listener keeps them.
    pub(in crate::stack) saved_syn: Option<Box<Box<[u8]>>>,
    /// Counts of ECN marks that the peer reported.
    pub(in crate::stack) option_seen: OptionSeen,
    /// The request is in its listener's queue for room.
    pub(in crate::stack) waiting: bool,
}

/// Longest valid age of an echo in milliseconds.
const ECHO_MOST: u32 = u32::MAX / 2 / 1000;

/// Reasons why a segment's timestamps show that it does not belong to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::stack) enum AnotherTime {
    /// Older than the SYN's timestamp, so from an earlier connection (RFC 7323 §5.3).
    Earlier,
    /// Not an echo of any of our SYN-ACKs: forged, or from an earlier connection (Linux's
    /// `tcp_check_req`).
    Foreign,
}

impl Request {
    /// Creates the request of a SYN. Nothing was sent yet.
    pub(in crate::stack) fn new(
        now: Instant,
        listener: ListenerId,
        Name { tuple, hash }: Name,
        FirstNumbers { iss, ts_offset }: FirstNumbers,
        (agreed, rcv_wscale): (Negotiated, u8),
        syn: &Segment,
    ) -> Request {
        Request {
            tuple,
            hash,
            listener,
            irs: syn.seq(),
            iss,
            agreed,
            rcv_wscale,
            peer_window: syn.header.window,
            ts_recent: syn.header.options.timestamps.map_or(0, |timestamps| timestamps.tsval),
            ts_offset,
            transmissions: 0,
            timeouts: 0,
            sent_at: now,
            first_sent_ms: now.as_millis() as u32,
            last_answer: LastAnswer::default(),
            acked: false,
            dscp: syn.dscp,
            timer: TimerHandle::default(),
            saved_syn: None,
            waiting: false,
            option_seen: OptionSeen::Nothing,
        }
    }

    pub(in crate::stack) fn of_another_time(&self, timestamps: Option<Timestamps>) -> Option<AnotherTime> {
        let Timestamps { tsval, tsecr } = timestamps.filter(|_| self.agreed.timestamps)?;
        let (first, last) = (self.first_sent_ms, self.sent_at.as_millis() as u32);
        let echoed = tsecr.wrapping_sub(self.ts_offset);
        // Zero: some hosts begin to count after their SYN (as in Linux's `tcp_paws_check`).
        if self.ts_recent != 0 && (self.ts_recent.wrapping_sub(tsval) as i32) > 0 {
            return Some(AnotherTime::Earlier);
        }
        let foreign = tsecr != 0 && echoed.wrapping_sub(first) > last.wrapping_sub(first);
        foreign.then_some(AnotherTime::Foreign)
    }

    /// Returns the round trip in nanoseconds by the final ACK. If the SYN-ACK was sent more than
    /// once, or the request is a SYN cookie, only the timestamp tells which was answered (RFC 7323
    /// §4.1).
    pub(in crate::stack) fn round_trip(&self, cx: &Context, timestamps: Option<Timestamps>) -> Option<u64> {
        match self.transmissions {
            // An earlier ACK would have been the sample.
            1 if self.acked && !cx.config.rtt_of_first => None,
            1 => Some(cx.now.nanos_since(self.sent_at)),
            _ => {
                let Timestamps { tsecr, .. } = timestamps.filter(|_| self.agreed.timestamps)?;
                let now_ms = cx.now.as_millis() as u32;
                let passed = now_ms.wrapping_sub(tsecr.wrapping_sub(self.ts_offset));
                let sensible = tsecr != 0 && passed < ECHO_MOST;
                sensible.then(|| u64::from(passed.max(1)) * 1_000_000)
            }
        }
    }
}

const _: () = assert!(size_of::<Request>() <= 128, "a half-open peer must stay small");

/// Fast Open option of a request's first SYN-ACK.
pub(in crate::stack) type CookieReply = Option<FastOpenOption>;
