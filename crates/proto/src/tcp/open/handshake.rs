//! The two kinds of opening, and what they need only until the handshake is complete.

use crate::Instant;
use crate::fast_open::ClientPlan;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use wire::FastOpenOption;

/// Present while our SYN is not acknowledged.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// SYN-SENT.
    Active(ActiveOpen),
    /// SYN-RECEIVED as a connection: a Fast Open child, or a simultaneous open.
    Passive(PassiveOpen),
}

/// Boxes of openings that are over, for those that begin.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the boxes themselves are used again")]
pub(crate) struct SpareHandshakes(Vec<Box<Handshake>>);

impl SpareHandshakes {
    /// More are given back to the allocator.
    const MOST: usize = 64;

    /// An opening begins.
    #[inline]
    pub(crate) fn place(&mut self, handshake: Handshake) -> Box<Handshake> {
        match self.0.pop() {
            Some(mut place) => {
                *place = handshake;
                place
            }
            None => Box::new(handshake),
        }
    }

    /// One is over.
    #[inline]
    pub(crate) fn keep(&mut self, place: Box<Handshake>) {
        if self.0.len() < Self::MOST {
            self.0.push(place);
        }
    }
}

/// An active open.
#[derive(Debug)]
pub(crate) struct ActiveOpen {
    pub(crate) plan: ClientPlan,
    /// The next SYN is the first, with all the plan says; later ones are plain (RFC 7413 §4.2.2, R27).
    pub(crate) plain: bool,
    /// A SYN is to be sent now.
    pub(crate) due: bool,
    /// SYNs sent.
    pub(crate) transmissions: u8,
    pub(crate) first_sent_at: Instant,
    pub(crate) last_sent_at: Instant,
    /// Payload bytes of the first SYN.
    pub(crate) data_sent: u32,
    /// The first SYN carried the FIN.
    pub(crate) fin_sent: bool,
    /// The first SYN carried the option or data, so the SYN-ACK may bring an answer.
    pub(crate) answer_allowed: bool,
    /// SRTT remembered for the path: the plain SYN may follow early.
    pub(crate) path_srtt: Option<Duration>,
    /// What answered the Fast Open SYN, so that the plain one went without waiting for the time-out.
    pub(crate) cut_short: Option<CutShort>,
    /// The reason why an unanswered Fast Open SYN says nothing about the path.
    pub(crate) excuse: Option<Excuse>,
    /// The timer retransmits the SYN as planned, instead of a plain one.
    pub(crate) repeat_due: bool,
    /// Retransmissions of the SYN as planned.
    pub(crate) repeats: u8,
    /// The application wrote before the handshake was over (Linux's `sk_write_pending`).
    pub(crate) writer_waits: bool,
}

impl ActiveOpen {
    /// Creates an open whose first SYN follows `plan`. `due`: the SYN leaves now.
    pub(crate) fn new(now: Instant, plan: ClientPlan, path_srtt: Option<Duration>, due: bool) -> ActiveOpen {
        let plain = matches!(plan, ClientPlan::Plain(_));
        ActiveOpen {
            plan,
            plain,
            due,
            transmissions: 0,
            first_sent_at: now,
            last_sent_at: now,
            data_sent: 0,
            fin_sent: false,
            answer_allowed: !plain,
            path_srtt,
            cut_short: None,
            excuse: None,
            repeat_due: false,
            repeats: 0,
            writer_waits: false,
        }
    }

    /// Returns whether the first SYN is held back.
    pub(crate) fn held(&self) -> bool {
        self.transmissions == 0 && !self.due
    }

    /// Most retransmissions of an unchanged Fast Open SYN. A peer that cannot be reset answers each
    /// of them.
    const MOST_REPEATS: u8 = 1;

    /// Schedules an unchanged retransmission, if the last SYN was a Fast Open SYN. Called when an
    /// answer was not meant for that SYN.
    pub(in crate::tcp) fn repeat(&mut self) {
        self.repeat_due |= !self.plain && !self.due && self.repeats < Self::MOST_REPEATS;
    }

    /// Returns whether every SYN sent so far carried the planned data.
    pub(in crate::tcp) fn sent_as_planned_only(&self) -> bool {
        self.transmissions == 1 + self.repeats
    }
}

/// The reason why an unanswered Fast Open SYN is not evidence against the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excuse {
    /// The peer, or a late packet from it, answered for an older connection between the same ports.
    OldConnection,
    /// Our own device's queue refused the SYN.
    NeverLeft,
}

/// The plain SYN follows at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    /// A reset, perhaps a middlebox's.
    Reset,
    /// ICMP: the SYN with its data was too big for the path.
    TooBig,
}

/// A passive open that is a connection already.
#[derive(Debug)]
pub(crate) struct PassiveOpen {
    /// Fast Open (not a simultaneous open): the application may read and write.
    pub(crate) fast_open: bool,
    /// Of a simultaneous open: what became of our SYN.
    pub(crate) crossed: Option<Crossed>,
    /// Option of the first SYN-ACK: a new cookie.
    pub(crate) cookie: Option<FastOpenOption>,
    /// The peer can be answered on the SYN-ACK.
    pub(crate) data_allowed: bool,
    /// The answer keeps to `firstbyte.fast_open_amplification`: behind the SYN-ACK only whole segments go.
    pub(crate) limited: bool,
    /// A SYN-ACK is to be sent now.
    pub(crate) due: bool,
    /// SYN-ACKs sent.
    pub(crate) transmissions: u8,
    pub(crate) sent_at: Instant,
    /// Payload bytes and FIN of the first SYN-ACK.
    pub(crate) data_sent: u32,
    pub(crate) fin_sent: bool,
    /// The application has written.
    pub(crate) wrote: bool,
    /// It has ended its direction, and the FIN waits for the handshake.
    pub(crate) fin_waits: bool,
    /// The SYN was full: likely more of the request waits for the SYN-ACK, and a reader that has read it all waits for that.
    pub(crate) request_goes_on: bool,
}

/// Our SYN and the peer's have crossed: the SYN-ACK repeats our SYN's number, and goes on with its time-outs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossed {
    /// SYNs sent before the SYN-ACK.
    pub(in crate::tcp) syns: u8,
    /// Time-outs of the SYN that did not double the next.
    pub(in crate::tcp) linear: u8,
    /// The shift that our SYN offered.
    pub(in crate::tcp) wscale: u8,
}
