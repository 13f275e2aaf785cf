//! How much may be in flight: one small trait, one struct per event, an enum to choose.
//!
//! `reno` (RFC 5681), `cubic` (RFC 9438, with `hystart` and `cube_root`), `vegas`; `validation` lets a window decay that is not used. Says nothing about what is lost (`recovery`) or when to
//! send. The state of an algorithm lives in the algorithm; arithmetic is of integers, the same on every machine.

mod cube_root;
mod cubic;
mod hystart;
mod reno;
mod validation;
mod vegas;

use crate::{CongestionControl, Instant};
use core::time::Duration;
use cubic::Cubic;
use reno::Reno;
use vegas::Vegas;
use wire::SeqNum;

pub(crate) use validation::{Idle, Unused};

/// The connection begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Bytes.
    pub(crate) initial_window: u32,
    /// Bytes; `u32::MAX` as long as nothing is known of the path.
    pub(crate) ssthresh: u32,
    /// HyStart++ for algorithms that know it.
    pub(crate) hystart: bool,
}

/// New data was acknowledged while nothing is known to be lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// Bytes newly acknowledged.
    pub(crate) bytes: u32,
    /// The congestion window keeps the sender back, so it may grow (see `window_use`).
    pub(crate) limited: bool,
    /// Sender's MSS, bytes.
    pub(crate) smss: u32,
    /// SND.UNA after this acknowledgement.
    pub(crate) una: SeqNum,
    pub(crate) nxt: SeqNum,
    /// Sample of this acknowledgement.
    pub(crate) rtt: Option<Duration>,
    pub(crate) srtt: Duration,
}

/// A loss was detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Bytes in flight when it was.
    pub(crate) in_flight: u32,
    /// Sender's MSS, bytes.
    pub(crate) smss: u32,
    /// By the retransmission timer, not by duplicate ACKs.
    pub(crate) timeout: bool,
}

/// What every algorithm does. All quantities are bytes.
pub(crate) trait Controller {
    fn cwnd(&self) -> u32;
    fn ssthresh(&self) -> u32;
    fn on_ack(&mut self, acked: &Acked);
    fn on_loss(&mut self, lost: &Lost);
    fn on_idle(&mut self, idle: &Idle);
    fn on_unused(&mut self, unused: &Unused);
    /// The last loss was none: `cwnd` and `ssthresh` were these before it (RFC 4015).
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32);
}

/// The algorithm of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Reno(Reno),
    Cubic(Cubic),
    Vegas(Vegas),
}

const _: () =
    assert!(size_of::<Congestion>() <= 72, "an algorithm takes at most 64 bytes of every connection");

impl Congestion {
    pub(crate) fn new(algorithm: CongestionControl, start: &Start) -> Congestion {
        match algorithm {
            CongestionControl::Reno => Congestion::Reno(Reno::new(start)),
            CongestionControl::Cubic => Congestion::Cubic(Cubic::new(start)),
            CongestionControl::Vegas => Congestion::Vegas(Vegas::new(start)),
        }
    }
}

impl Congestion {
    pub(crate) fn algorithm(&self) -> CongestionControl {
        match self {
            Congestion::Reno(_) => CongestionControl::Reno,
            Congestion::Cubic(_) => CongestionControl::Cubic,
            Congestion::Vegas(_) => CongestionControl::Vegas,
        }
    }
}

/// The same call on whichever algorithm it is.
macro_rules! chosen {
    ($congestion:expr, $algorithm:ident => $call:expr) => {
        match $congestion {
            Congestion::Reno($algorithm) => $call,
            Congestion::Cubic($algorithm) => $call,
            Congestion::Vegas($algorithm) => $call,
        }
    };
}

impl Controller for Congestion {
    fn cwnd(&self) -> u32 {
        chosen!(self, algorithm => algorithm.cwnd())
    }
    fn ssthresh(&self) -> u32 {
        chosen!(self, algorithm => algorithm.ssthresh())
    }
    fn on_ack(&mut self, acked: &Acked) {
        chosen!(self, algorithm => algorithm.on_ack(acked));
    }
    fn on_loss(&mut self, lost: &Lost) {
        chosen!(self, algorithm => algorithm.on_loss(lost));
    }
    fn on_idle(&mut self, idle: &Idle) {
        chosen!(self, algorithm => algorithm.on_idle(idle));
    }
    fn on_unused(&mut self, unused: &Unused) {
        chosen!(self, algorithm => algorithm.on_unused(unused));
    }
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        chosen!(self, algorithm => algorithm.on_undo(cwnd, ssthresh));
    }
}

/// Events for the tests of the algorithms.
#[cfg(test)]
mod events {
    use super::*;

    /// `bytes` acknowledged at `ms`, with nothing else worth telling.
    pub(super) fn acked(ms: u64, bytes: u32, smss: u32) -> Acked {
        Acked {
            now: Instant::from_nanos(ms * 1_000_000),
            bytes,
            limited: true,
            smss,
            una: SeqNum(0),
            nxt: SeqNum(0),
            rtt: None,
            srtt: Duration::ZERO,
        }
    }
}
