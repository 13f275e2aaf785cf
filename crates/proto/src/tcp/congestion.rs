//! How much may be in flight: one small trait, one struct per event, an enum to choose.
//!
//! `reno` (RFC 5681, and Tahoe before it), `cubic` (RFC 9438, in bytes with `hystart`, or in Linux's segments),
//! `vegas`, `bbr` (version 3); `validation` lets a window decay
//! that is not used. Says nothing about what is lost (`recovery`) or when to send, but for BBR, which says how fast. The state of an
//! algorithm lives in the algorithm (BBR's, and what CUBIC needs after slow start, in a box); arithmetic is of integers, the same on every machine.

mod bbr;
mod cube_root;
mod cubic;
mod hystart;
mod reno;
mod validation;
mod vegas;

use crate::tcp::send::delivery::{LostSegment, RateSample};
use crate::{CongestionControl, CongestionInfo, Instant};
use alloc::boxed::Box;
use bbr::Bbr;
use core::time::Duration;
use cubic::{Bytes, Cubic, Segments};
use reno::Reno;
use vegas::Vegas;
use wire::SeqNum;

pub(crate) use validation::{Idle, Unused};

/// The connection begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// Bytes.
    pub(super) initial_window: u32,
    /// Bytes; `u32::MAX` as long as nothing is known of the path.
    pub(super) ssthresh: u32,
    /// HyStart++ for algorithms that know it.
    pub(super) hystart: bool,
    /// What is acknowledged, and the window, are whole segments.
    pub(super) by_segments: bool,
    /// Vegas's α and β, segments.
    pub(super) vegas: (u8, u8),
    /// The peer tells what it holds (RFC 2018).
    pub(super) sack: bool,
    /// What random choices follow from.
    pub(super) seed: u32,
}

/// New data was acknowledged while nothing is known to be lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(super) now: Instant,
    /// Bytes newly acknowledged.
    pub(super) bytes: u32,
    /// Most bytes it may add in slow start: appropriate byte counting's L (RFC 3465 §2.2).
    pub(super) most: u32,
    /// The congestion window keeps the sender back, so it may grow (see `window_use`).
    pub(super) limited: bool,
    /// Sender's MSS, bytes.
    pub(super) smss: u32,
    /// SND.UNA after this acknowledgement.
    pub(super) una: SeqNum,
    pub(super) nxt: SeqNum,
    /// Sample of this acknowledgement.
    pub(super) rtt: Option<Duration>,
    pub(super) srtt: Duration,
    /// Least RTT of the connection, the handshake's included.
    pub(super) min_rtt: Option<Duration>,
}

impl Acked {
    /// A round that lasts until `end` is acknowledged is over; also one whose end has fallen so far behind, while nothing was asked of the
    /// controller, that its number looks like one to come.
    fn ends_round(&self, end: SeqNum) -> bool {
        !self.una.before(end) || end.after(self.nxt)
    }
}

/// An acknowledgement gave a sample of the round trip, whatever it means for the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    pub(super) now: Instant,
    pub(super) rtt: Duration,
    /// SND.UNA after this acknowledgement.
    pub(super) una: SeqNum,
    pub(super) nxt: SeqNum,
    /// Sender's MSS, bytes.
    pub(super) smss: u32,
    /// Data does not leave as fast as the window allows.
    pub(super) paced: bool,
}

/// A loss was detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Bytes in flight when it was, or what else the reduction starts from.
    pub(super) in_flight: u32,
    /// Sender's MSS, bytes.
    pub(super) smss: u32,
    /// By the retransmission timer, not by duplicate ACKs.
    pub(super) timeout: bool,
    /// Bytes that a time-out leaves in the network, sent too lately to be held lost (RFC 8985 §6.3).
    pub(super) left: u32,
    /// The window was reduced for it already: a time-out amid a recovery that does not count as a second sign.
    pub(super) again: bool,
}

impl Lost {
    /// After a time-out: one segment more than what is still on its way.
    fn loss_window(&self) -> u32 {
        self.left.saturating_add(self.smss)
    }
}

/// Of congestion that leaves nothing to repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// The peer echoes that a router marked a packet (RFC 3168).
    Mark,
    /// What was lost arrived with the tail loss probe (RFC 8985 §7.4).
    Repaired,
}

/// An acknowledgement reported deliveries, and what it means for losses is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(super) now: Instant,
    pub(super) rate: RateSample,
    /// Bytes in flight now.
    pub(super) in_flight: u32,
    /// Sender's MSS, bytes.
    pub(super) smss: u32,
    /// The window was full since the last round trip.
    pub(super) window_full: bool,
}

/// The signs by which HyStart ends slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FullPath {
    /// Acknowledgements come one behind the other for as long as half the round trip.
    pub(super) train: bool,
    /// The round trip has grown.
    pub(super) delay: bool,
}

/// What every algorithm does. All quantities are bytes.
pub(crate) trait Controller {
    fn cwnd(&self) -> u32;
    fn ssthresh(&self) -> u32;
    fn on_ack(&mut self, acked: &Acked);
    /// Called before [`on_ack`](Self::on_ack). What it says of a full path may end slow start.
    fn on_round_trip(&mut self, _sample: &RoundTrip) -> FullPath {
        FullPath::default()
    }
    /// Data was acknowledged, but the window does not keep the sender back. True: that is all it has to hear.
    fn on_ack_unlimited(&mut self, _now: Instant) -> bool {
        false
    }
    fn on_loss(&mut self, lost: &Lost);
    fn on_idle(&mut self, idle: &Idle);
    fn on_unused(&mut self, unused: &Unused);
    /// The last loss was none: `cwnd` and `ssthresh` were these before it (RFC 4015).
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32);
    /// Segments have another size from now on; the window is `cwnd` for that.
    fn on_resize(&mut self, _cwnd: u32) {}
    /// Congestion that leaves nothing to repair.
    fn on_signal(&mut self, lost: &Lost, _signal: Signal) {
        self.on_loss(lost);
    }
    fn on_segment_lost(&mut self, _segment: &LostSegment) {}
    /// Losses begin to be repaired.
    fn on_recovery(&mut self) {}
    /// They are repaired.
    fn on_recovered(&mut self) {}
    fn on_sample(&mut self, _sample: &Sample) {}
    /// Bytes per second at which data is to leave, from an algorithm that decides that.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// It follows its own course while losses are repaired, instead of PRR's.
    fn shapes_recovery(&self) -> bool {
        false
    }
    /// A loss is not repaired beside what is in flight: everything after it is retransmitted, from one segment on.
    fn starts_over(&self) -> bool {
        false
    }
    /// It sends less than the path would take, so that rates measured now are lower bounds.
    fn holds_back(&self) -> bool {
        false
    }
}

/// The algorithm of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Reno(Reno),
    Cubic(Cubic<Bytes>),
    CubicSegments(Box<Cubic<Segments>>),
    Vegas(Box<Vegas>),
    Bbr(Box<Bbr>),
}

const _: () =
    assert!(size_of::<Congestion>() <= 40, "what an algorithm needs of every connection, at rest too");

impl Congestion {
    /// CUBIC, with a window of so many bytes, where no slow start has ended before.
    pub(super) fn begin_cubic(&mut self, initial_window: u32, hystart: bool) {
        let start = Start { initial_window, ssthresh: u32::MAX, hystart, ..Start::default() };
        match self {
            Congestion::Cubic(cubic) => *cubic = Cubic::new(&start),
            other => *other = Congestion::Cubic(Cubic::new(&start)),
        }
    }

    pub(crate) fn new(algorithm: CongestionControl, start: &Start) -> Congestion {
        match algorithm {
            CongestionControl::Reno => Congestion::Reno(Reno::new(start)),
            CongestionControl::Cubic if start.by_segments => {
                Congestion::CubicSegments(Box::new(Cubic::new(start)))
            }
            CongestionControl::Cubic => Congestion::Cubic(Cubic::new(start)),
            CongestionControl::Vegas => Congestion::Vegas(Box::new(Vegas::new(start))),
            CongestionControl::Tahoe => Congestion::Reno(Reno::tahoe(start)),
            CongestionControl::Bbr => Congestion::Bbr(Box::new(Bbr::new(start))),
        }
    }
}

impl Congestion {
    pub(crate) fn algorithm(&self) -> CongestionControl {
        match self {
            Congestion::Reno(reno) if reno.starts_over() => CongestionControl::Tahoe,
            Congestion::Reno(_) => CongestionControl::Reno,
            Congestion::Cubic(_) | Congestion::CubicSegments(_) => CongestionControl::Cubic,
            Congestion::Vegas(_) => CongestionControl::Vegas,
            Congestion::Bbr(_) => CongestionControl::Bbr,
        }
    }

    pub(crate) fn info(&self) -> CongestionInfo {
        match self {
            Congestion::Vegas(vegas) => vegas.info(),
            Congestion::Bbr(bbr) => bbr.info(),
            _ => CongestionInfo::Nothing,
        }
    }
}

/// Makes a call on whichever algorithm is in use.
macro_rules! chosen {
    ($congestion:expr, $algorithm:ident => $call:expr) => {
        match $congestion {
            Congestion::Reno($algorithm) => $call,
            Congestion::Cubic($algorithm) => $call,
            Congestion::CubicSegments($algorithm) => $call,
            Congestion::Vegas($algorithm) => $call,
            Congestion::Bbr($algorithm) => $call,
        }
    };
}

/// What every packet asks of the algorithm that nearly all have is answered without looking which of the others it is.
impl Congestion {
    #[cold]
    fn other_cwnd(&self) -> u32 {
        chosen!(self, algorithm => algorithm.cwnd())
    }

    #[cold]
    fn other_ssthresh(&self) -> u32 {
        chosen!(self, algorithm => algorithm.ssthresh())
    }

    #[cold]
    fn other_pacing_rate(&self) -> Option<u64> {
        chosen!(self, algorithm => algorithm.pacing_rate())
    }

    #[cold]
    fn others_shape_recovery(&self) -> bool {
        chosen!(self, algorithm => algorithm.shapes_recovery())
    }

    #[cold]
    fn other_on_ack_unlimited(&mut self, now: Instant) -> bool {
        chosen!(self, algorithm => algorithm.on_ack_unlimited(now))
    }

    /// [`on_round_trip`](Controller::on_round_trip) does something.
    pub(crate) fn hears_round_trips(&self) -> bool {
        matches!(self, Congestion::CubicSegments(_))
    }

    /// [`on_sample`](Controller::on_sample) does something.
    pub(crate) fn hears_rates(&self) -> bool {
        matches!(self, Congestion::Bbr(_))
    }

    #[cold]
    fn other_holds_back(&self) -> bool {
        chosen!(self, algorithm => algorithm.holds_back())
    }
}

impl Controller for Congestion {
    #[inline]
    fn cwnd(&self) -> u32 {
        if let Congestion::Cubic(cubic) = self { cubic.cwnd() } else { self.other_cwnd() }
    }
    #[inline]
    fn ssthresh(&self) -> u32 {
        if let Congestion::Cubic(cubic) = self { cubic.ssthresh() } else { self.other_ssthresh() }
    }
    fn on_ack(&mut self, acked: &Acked) {
        chosen!(self, algorithm => algorithm.on_ack(acked));
    }
    fn on_round_trip(&mut self, sample: &RoundTrip) -> FullPath {
        chosen!(self, algorithm => algorithm.on_round_trip(sample))
    }
    fn on_ack_unlimited(&mut self, now: Instant) -> bool {
        if let Congestion::Cubic(cubic) = self {
            cubic.on_ack_unlimited(now)
        } else {
            self.other_on_ack_unlimited(now)
        }
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
    fn on_resize(&mut self, cwnd: u32) {
        chosen!(self, algorithm => algorithm.on_resize(cwnd));
    }
    fn on_signal(&mut self, lost: &Lost, signal: Signal) {
        chosen!(self, algorithm => algorithm.on_signal(lost, signal));
    }
    fn on_segment_lost(&mut self, segment: &LostSegment) {
        chosen!(self, algorithm => algorithm.on_segment_lost(segment));
    }
    fn on_recovery(&mut self) {
        chosen!(self, algorithm => algorithm.on_recovery());
    }
    fn on_recovered(&mut self) {
        chosen!(self, algorithm => algorithm.on_recovered());
    }
    fn on_sample(&mut self, sample: &Sample) {
        chosen!(self, algorithm => algorithm.on_sample(sample));
    }
    #[inline]
    fn pacing_rate(&self) -> Option<u64> {
        if let Congestion::Cubic(cubic) = self { cubic.pacing_rate() } else { self.other_pacing_rate() }
    }
    #[inline]
    fn shapes_recovery(&self) -> bool {
        if let Congestion::Cubic(cubic) = self {
            cubic.shapes_recovery()
        } else {
            self.others_shape_recovery()
        }
    }
    fn starts_over(&self) -> bool {
        chosen!(self, algorithm => algorithm.starts_over())
    }
    #[inline]
    fn holds_back(&self) -> bool {
        if let Congestion::Cubic(cubic) = self { cubic.holds_back() } else { self.other_holds_back() }
    }
}

/// Events for the tests of the algorithms.
#[cfg(test)]
mod events {
    use super::*;

    pub(super) fn start(initial_window: u32, ssthresh: u32) -> Start {
        Start {
            initial_window,
            ssthresh,
            hystart: true,
            by_segments: false,
            vegas: (2, 4),
            sack: true,
            seed: 0,
        }
    }

    /// Data leaves after `ms`, with ten segments of 1000 as initial window.
    pub(super) fn idle(ms: u64, rto_ms: u64) -> Idle {
        Idle {
            now: Instant::from_nanos(ms * 1_000_000),
            idle: Duration::from_millis(ms),
            rto: Some(Duration::from_millis(rto_ms)),
            initial_window: 10_000,
            app_limited: true,
            srtt: None,
        }
    }

    /// `bytes` acknowledged at `ms`, with nothing else worth telling.
    pub(super) fn acked(ms: u64, bytes: u32, smss: u32) -> Acked {
        Acked {
            now: Instant::from_nanos(ms * 1_000_000),
            bytes,
            most: 8 * smss,
            limited: true,
            smss,
            una: SeqNum(0),
            nxt: SeqNum(0),
            rtt: None,
            srtt: Duration::ZERO,
            min_rtt: None,
        }
    }
}
