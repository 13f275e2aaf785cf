//! Determines the limits of a sender: each interval between two of its segments gets one cause.
//!
//! A sender reacts to an acknowledgement one round trip (place of capture to sender and back) after
//! it passed the place of capture. [`Sender`] therefore delays acknowledgements by that time, and
//! judges a segment by the acknowledgements that had arrived when it was sent:
//!
//! | the interval ends with | limit |
//! |---|---|
//! | a retransmission, or data before recovery ends | [`Limit::Loss`] |
//! | data that did not fit into the window before | [`Limit::ReceiveWindow`] |
//! | data released by an acknowledgement, with a segment or more in flight | [`Limit::Congestion`] |
//! | a small segment released by the acknowledgement of a small segment | [`Limit::Nagle`] |
//! | data after the other side's data | [`Limit::Peer`], until that data arrived |
//! | data that nothing released | [`Limit::Application`] |
//!
//! An interval shorter than a quarter of the round trip that nothing released is the pace of
//! sending. It counts for no limit.

use crate::packet::Packet;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use wire::SeqNum;

/// The cause of a sender's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Its own application: nothing else kept it from sending.
    Application,
    /// The other side's data: a request or a reply.
    Peer,
    /// The receiver's window.
    ReceiveWindow,
    /// The congestion window or the send buffer. A capture cannot tell them apart.
    Congestion,
    /// The acknowledgement of a small segment (Nagle's algorithm, RFC 9293 section 3.7.4), often a
    /// delayed one.
    Nagle,
    /// Loss recovery.
    Loss,
}

impl Limit {
    /// All limits.
    pub const ALL: [Limit; 6] =
        [Limit::Application, Limit::Peer, Limit::ReceiveWindow, Limit::Congestion, Limit::Nagle, Limit::Loss];

    /// Returns a name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Application => "application",
            Limit::Peer => "peer",
            Limit::ReceiveWindow => "receive-window",
            Limit::Congestion => "congestion-window",
            Limit::Nagle => "nagle",
            Limit::Loss => "loss",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Application => "its application",
            Limit::Peer => "the other side's data",
            Limit::ReceiveWindow => "the receive window",
            Limit::Congestion => "the congestion window or send buffer",
            Limit::Nagle => "the acknowledgement of a small segment",
            Limit::Loss => "loss recovery",
        })
    }
}

/// The round trips from the place of capture to the sender and to the other side. `None`: not known
/// yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths {
    pub(crate) own: Option<Duration>,
    pub(crate) other: Option<Duration>,
}

impl Paths {
    pub(crate) fn rtt(&self) -> Option<Duration> {
        Some(self.own?.saturating_add(self.other?))
    }

    /// Returns the largest difference between the expected and the actual time at which an
    /// acknowledgement releases data. Queues and clocks are not exact.
    fn tolerance(&self) -> Duration {
        self.rtt().unwrap_or(Duration::ZERO) / 8 + Duration::from_micros(200)
    }
}

/// Data that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'p> {
    pub(crate) packet: &'p Packet<'p>,
    /// Sequence number after the last byte sent before it.
    pub(crate) next: SeqNum,
    /// Sequence number after its last byte.
    pub(crate) end: SeqNum,
    /// Maximum payload of a segment.
    pub(crate) mss: u32,
    pub(crate) is_retransmitted: bool,
}

/// One side as a sender.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// Acknowledgements that have not arrived at the sender yet.
    coming: VecDeque<Ack>,
    arrived: Arrived,
    last: Option<Last>,
    recovery_point: Option<SeqNum>,
    waited: [Duration; Limit::ALL.len()],
    delayed_acks: u64,
    restarts: u64,
    flight_max: u32,
    restart: Option<Restart>,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Ack {
    at: Duration,
    ack: SeqNum,
    /// The right edge of the window. `None` if the window scale is unknown.
    edge: Option<SeqNum>,
    has_text: bool,
    /// True if it acknowledges new data, which is known when it arrives.
    is_advancing: bool,
}

/// The sender's knowledge of the other side.
#[derive(Clone, Debug, Default)]
struct Arrived {
    una: Option<SeqNum>,
    edge: Option<SeqNum>,
    /// The last acknowledgement. `last_at` is its arrival in the sender's time, seen from the place
    /// of capture.
    last: Option<Ack>,
    last_at: Duration,
    /// Arrival of the last acknowledgement with data.
    text_at: Option<Duration>,
}

/// The previous segment.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Duration,
    text_len: u32,
    /// Bytes in flight after it.
    flight: u32,
    /// Room in the window after this segment, in bytes.
    room: Option<u32>,
}

/// Data after a pause.
#[derive(Clone, Copy, Debug)]
struct Restart {
    from: SeqNum,
    /// Bytes sent before any of them was acknowledged.
    sent: u32,
}

/// Most acknowledgements kept until they arrive. More do not fit the longest realistic path.
const COMING_MAX: usize = 4096;

/// Lateness from which an acknowledgement counts as delayed (RFC 9293 section 3.8.6.3). Linux
/// delays by at least 40 ms.
const DELAYED: Duration = Duration::from_millis(20);

/// Linux's minimum retransmission time-out. After a longer pause the window restarts (RFC 5681
/// section 4.1).
const RTO_MIN: Duration = Duration::from_millis(200);

/// The restart window in segments (RFC 6928).
const INITIAL_WINDOW_SEGS: u32 = 10;

impl Sender {
    /// Returns how long the sender waited because of this limit.
    pub fn waited(&self, limit: Limit) -> Duration {
        self.waited[limit as usize]
    }

    /// Returns the limit that the sender waited for longest, or `None` if it never waited.
    pub fn longest(&self) -> Option<Limit> {
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.waited(*limit))?;
        (self.waited(longest) > Duration::ZERO).then_some(longest)
    }

    /// Returns the number of waits for the delayed acknowledgement of a small segment.
    pub fn delayed_acks(&self) -> u64 {
        self.delayed_acks
    }

    /// Returns the number of pauses after which the window restarted small (slow start after idle).
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the maximum number of bytes in flight.
    pub fn flight_max(&self) -> u32 {
        self.flight_max
    }

    /// Handles an acknowledgement. `has_text`: it carries data of the other side, not only a probe.
    pub(crate) fn on_ack(&mut self, packet: &Packet<'_>, edge: Option<SeqNum>, has_text: bool) {
        if self.coming.len() == COMING_MAX {
            self.take_arrived(Duration::MAX, Duration::ZERO, 1);
        }
        self.coming.push_back(Ack { at: packet.at, ack: packet.ack, edge, has_text, is_advancing: false });
    }

    /// Drops the acknowledgements that have not arrived yet: no data follows that waited for them.
    pub(crate) fn end(&mut self) {
        self.coming = VecDeque::new();
    }

    /// Returns the bytes of heap memory that it takes.
    pub(crate) fn footprint(&self) -> usize {
        self.coming.capacity() * size_of::<Ack>()
    }

    pub(crate) fn on_text(&mut self, sent: &Sent<'_>, paths: &Paths) {
        let at = sent.packet.at;
        let own = paths.own.unwrap_or(Duration::ZERO);
        // The path is the smallest round trip seen, so a slightly later arrival is in time.
        self.take_arrived(at.saturating_add(paths.tolerance() / 2), own, usize::MAX);
        let una = self.arrived.una.unwrap_or(sent.next);
        let flight_before = flight(una, sent.next);
        if let Some(last) = self.last {
            self.judge(sent, paths, last, flight_before);
        }
        self.watch_restart(sent, flight_before);
        if sent.is_retransmitted {
            self.recovery_point = Some(sent.next);
        } else if self.recovery_point.is_some_and(|point| una.after_or_eq(point)) {
            self.recovery_point = None;
        }
        let flight = flight(una, sent.end);
        self.flight_max = self.flight_max.max(flight);
        let room = self.arrived.edge.map(|edge| if edge.before(sent.end) { 0 } else { edge.since(sent.end) });
        self.last = Some(Last { at, text_len: sent.packet.text_len, flight, room });
    }

    /// Attributes the time since the previous segment to a limit.
    fn judge(&mut self, sent: &Sent<'_>, paths: &Paths, last: Last, flight_before: u32) {
        let gap = sent.packet.at.saturating_sub(last.at);
        let tolerance = paths.tolerance();
        let una = self.arrived.una.unwrap_or(sent.next);
        let in_recovery = self.recovery_point.is_some_and(|point| una.before(point));
        if sent.is_retransmitted || in_recovery {
            return self.add(Limit::Loss, gap);
        }
        let released = self.arrived.last.filter(|_| {
            self.arrived.last_at > last.at && sent.packet.at.saturating_sub(self.arrived.last_at) <= tolerance
        });
        let is_small = |len: u32| len < sent.mss;
        let need = sent.packet.text_len.min(sent.mss);
        match released {
            Some(ack) if ack.has_text && flight_before == 0 => self.add(Limit::Peer, gap),
            Some(_) if last.room.is_some_and(|room| room < need) => self.add(Limit::ReceiveWindow, gap),
            Some(ack)
                if ack.is_advancing
                    && flight_before == 0
                    && is_small(last.text_len)
                    && is_small(sent.packet.text_len) =>
            {
                let late =
                    ack.at.saturating_sub(last.at.saturating_add(paths.other.unwrap_or(Duration::ZERO)));
                self.delayed_acks += u64::from(late >= DELAYED);
                self.add(Limit::Nagle, gap);
            }
            Some(ack) if ack.is_advancing && last.flight >= sent.mss => self.add(Limit::Congestion, gap),
            _ => self.add_unreleased(sent.packet.at, last.at, paths),
        }
    }

    /// Attributes an interval that no acknowledgement ended. The other side's data may have ended
    /// it.
    fn add_unreleased(&mut self, at: Duration, last_at: Duration, paths: &Paths) {
        let gap = at.saturating_sub(last_at);
        let pace = (paths.rtt().unwrap_or(Duration::ZERO) / 4).max(paths.tolerance());
        let text_at = self.arrived.text_at.filter(|text_at| *text_at > last_at);
        if let Some(text_at) = text_at {
            self.add(Limit::Peer, text_at.saturating_sub(last_at));
            self.add(Limit::Application, at.saturating_sub(text_at));
        } else if gap > pace {
            self.add(Limit::Application, gap);
        }
    }

    /// Detects a restart with the initial window after a pause, although more had been in flight
    /// before.
    fn watch_restart(&mut self, sent: &Sent<'_>, flight_before: u32) {
        let initial = INITIAL_WINDOW_SEGS * sent.mss;
        let has_paused = self.last.is_some_and(|last| sent.packet.at.saturating_sub(last.at) >= RTO_MIN);
        if has_paused && flight_before == 0 && self.flight_max > initial {
            self.restart = Some(Restart { from: sent.next, sent: sent.packet.text_len });
            return;
        }
        let Some(restart) = &mut self.restart else { return };
        if !self.arrived.una.is_some_and(|una| una.after(restart.from)) {
            restart.sent = restart.sent.saturating_add(sent.packet.text_len);
            return;
        }
        // There was more to send, and it waited for this acknowledgement.
        let is_whole = restart.sent <= initial && restart.sent + sent.mss > initial;
        self.restarts += u64::from(is_whole);
        self.restart = None;
    }

    /// Takes the acknowledgements that have arrived by `at`. Each takes `path` from the place of
    /// capture to the sender and back.
    fn take_arrived(&mut self, at: Duration, path: Duration, most: usize) {
        for _ in 0..most {
            let Some(ack) = self.coming.front().copied().filter(|ack| ack.at.saturating_add(path) <= at)
            else {
                return;
            };
            self.coming.pop_front();
            self.arrived.take(ack, ack.at.saturating_add(path));
        }
    }

    fn add(&mut self, limit: Limit, gap: Duration) {
        let waited = &mut self.waited[limit as usize];
        *waited = waited.saturating_add(gap);
    }
}

impl Arrived {
    /// Handles an acknowledgement that arrives at `at`. If it changes nothing, it releases nothing.
    fn take(&mut self, ack: Ack, at: Duration) {
        let (una, edge) = (self.una, self.edge);
        self.una = Some(una.map_or(ack.ack, |una| una.latest(ack.ack)));
        if let Some(new) = ack.edge {
            self.edge = Some(edge.map_or(new, |known| known.latest(new)));
        }
        if ack.has_text {
            self.text_at = Some(at);
        }
        let is_advancing = self.una != una;
        if is_advancing || self.edge != edge || ack.has_text {
            self.last = Some(Ack { is_advancing, ..ack });
            self.last_at = at;
        }
    }
}

fn flight(una: SeqNum, end: SeqNum) -> u32 {
    if una.before(end) { end.since(una) } else { 0 }
}
