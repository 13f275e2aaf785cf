//! An ordinary half-open peer in the SYN queue: what is needed to repeat the SYN-ACK and to make the connection, no buffers.

use crate::rate_limit::LastAnswer;
use crate::tcp::negotiation::Negotiated;
use crate::timer_wheel::TimerHandle;
use crate::tuple::FourTuple;
use crate::{Instant, ListenerId};
use wire::{FastOpenOption, SeqNum};

/// SYN-RECEIVED of an ordinary passive open.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) tuple: FourTuple,
    pub(super) listener: ListenerId,
    pub(super) irs: SeqNum,
    pub(super) iss: SeqNum,
    pub(super) agreed: Negotiated,
    pub(super) rcv_wscale: u8,
    /// Window field of the SYN.
    pub(super) peer_window: u16,
    pub(super) ts_recent: u32,
    /// Added to the clock for TSval.
    pub(super) ts_offset: u32,
    /// SYN-ACKs sent; 0 of one that came back as a SYN cookie.
    pub(super) transmissions: u8,
    /// Of those, by the timer: a client that repeats its SYN does not use up our patience.
    pub(super) timeouts: u8,
    pub(super) sent_at: Instant,
    /// When the first went, ms modulo 2³².
    pub(super) first_sent_ms: u32,
    /// Of a repeated SYN, or of a segment outside the window.
    pub(super) last_answer: LastAnswer,
    /// The final ACK has come and made no connection, for want of room or of data: the peer believes itself connected.
    pub(super) acked: bool,
    pub(super) timer: TimerHandle,
    /// Headers of the SYN, where the listener keeps them.
    pub(super) saved_syn: Option<Box<Box<[u8]>>>,
    /// In its listener's row of those who wait for room.
    pub(super) waiting: bool,
}

const _: () = assert!(size_of::<Request>() <= 128, "a half-open peer must stay small");

/// What the first SYN-ACK of a request carries beside the usual.
pub(super) type CookieReply = Option<FastOpenOption>;
