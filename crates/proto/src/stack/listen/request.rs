//! An ordinary half-open peer in the SYN queue: what is needed to repeat the SYN-ACK and to make the connection, no buffers.

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

/// SYN-RECEIVED of an ordinary passive open.
#[derive(Debug)]
pub(in crate::stack) struct Request {
    pub(in crate::stack) tuple: FourTuple,
    /// Of the tuple, in the table of those who have one.
    pub(in crate::stack) hash: u64,
    pub(in crate::stack) listener: ListenerId,
    pub(in crate::stack) irs: SeqNum,
    pub(in crate::stack) iss: SeqNum,
    pub(in crate::stack) agreed: Negotiated,
    pub(in crate::stack) rcv_wscale: u8,
    /// Window field of the SYN.
    pub(in crate::stack) peer_window: u16,
    pub(in crate::stack) ts_recent: u32,
    /// Added to the clock for TSval.
    pub(in crate::stack) ts_offset: u32,
    /// SYN-ACKs sent; 0 of one that came back as a SYN cookie.
    pub(in crate::stack) transmissions: u8,
    /// Of those, retransmitted by the timer: a client that repeats its SYN does not use up our retry limit.
    pub(in crate::stack) timeouts: u8,
    pub(in crate::stack) sent_at: Instant,
    /// When the first went, ms modulo 2³².
    pub(in crate::stack) first_sent_ms: u32,
    /// Of a repeated SYN, or of a segment outside the window.
    pub(in crate::stack) last_answer: LastAnswer,
    /// The final ACK has come and made no connection, for want of room or of data: the peer believes itself connected.
    pub(in crate::stack) acked: bool,
    pub(in crate::stack) timer: TimerHandle,
    /// Class of the SYN.
    pub(in crate::stack) dscp: u8,
    /// Headers of the SYN, where the listener keeps them.
    pub(in crate::stack) saved_syn: Option<Box<Box<[u8]>>>,
    /// What was seen of the peer's counts of marks.
    pub(in crate::stack) option_seen: OptionSeen,
    /// In its listener's row of those who wait for room.
    pub(in crate::stack) waiting: bool,
}

/// Milliseconds: an echo is not older.
const ECHO_MOST: u32 = u32::MAX / 2 / 1000;

/// Why a segment's timestamps show that it does not belong to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::stack) enum AnotherTime {
    /// Older than the SYN's: of an earlier connection (RFC 7323 §5.3).
    Earlier,
    /// An echo of none of our SYN-ACKs: forged, or of an earlier connection (Linux's `tcp_check_req`).
    Foreign,
}

impl Request {
    /// Of a SYN that has just come; nothing was sent yet.
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
        // Zero: some hosts begin to count behind their SYN (as Linux's `tcp_paws_check`).
        if self.ts_recent != 0 && (self.ts_recent.wrapping_sub(tsval) as i32) > 0 {
            return Some(AnotherTime::Earlier);
        }
        let foreign = tsecr != 0 && echoed.wrapping_sub(first) > last.wrapping_sub(first);
        foreign.then_some(AnotherTime::Foreign)
    }

    /// What the final ACK tells of the round trip. Where the SYN-ACK went more than once only its timestamp says which was answered
    /// (RFC 7323 §4.1), and so with a SYN cookie. In nanoseconds.
    pub(in crate::stack) fn round_trip(&self, cx: &Context, timestamps: Option<Timestamps>) -> Option<u64> {
        match self.transmissions {
            // An earlier ACK would have been the measure.
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

/// What the first SYN-ACK of a request carries beside the usual.
pub(in crate::stack) type CookieReply = Option<FastOpenOption>;
