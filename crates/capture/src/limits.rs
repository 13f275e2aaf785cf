//! The limits that a sender waited for: each interval between two of its segments gets one cause.
//!
//! The sender reacts to an acknowledgement one round trip after it passed the place of capture: half of it to the sender, half back. So
//! [`Sender`] keeps acknowledgements until then, and judges a segment by those that had arrived when it was sent:
//!
//! | the interval ends with | it was |
//! |---|---|
//! | a retransmission, or text before a recovery is over | [`Limit::Loss`] |
//! | text that did not fit the window offered before | [`Limit::ReceiveWindow`] |
//! | text released by an acknowledgement, a segment or more in flight before | [`Limit::Congestion`] |
//! | a small segment released by the acknowledgement of a small segment | [`Limit::Nagle`] |
//! | text after the other side's text | [`Limit::Peer`], until that arrived |
//! | text that nothing released | [`Limit::Application`] |
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
    /// Its own application: nothing kept it from sending.
    Application,
    /// The other side's text: a request, or a reply.
    Peer,
    /// The window that the receiver offered.
    ReceiveWindow,
    /// The congestion window, or the send buffer: from outside they look alike.
    Congestion,
    /// The acknowledgement of a small segment (Nagle's algorithm, RFC 9293 section 3.7.4), often a delayed one.
    Nagle,
    /// The repair of losses.
    Loss,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 6] =
        [Limit::Application, Limit::Peer, Limit::ReceiveWindow, Limit::Congestion, Limit::Nagle, Limit::Loss];

    /// A name for programs.
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
            Limit::Loss => "the repair of losses",
        })
    }
}

/// The round trips from the place of capture to the sender, and to the other side; `None`: not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths {
    pub(crate) own: Option<Duration>,
    pub(crate) other: Option<Duration>,
}

impl Paths {
    pub(crate) fn rtt(&self) -> Option<Duration> {
        Some(self.own?.saturating_add(self.other?))
    }

    /// Returns how far from the expected time an acknowledgement can seem to have released text:
    /// queues and clocks are not exact.
    fn tolerance(&self) -> Duration {
        self.rtt().unwrap_or(Duration::ZERO) / 8 + Duration::from_micros(200)
    }
}

/// Text that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'p> {
    pub(crate) packet: &'p Packet<'p>,
    /// Behind the last number before it.
    pub(crate) next: SeqNum,
    /// Behind the last number with it.
    pub(crate) end: SeqNum,
    /// The most text of a segment.
    pub(crate) mss: u32,
    pub(crate) is_retransmitted: bool,
}

/// One side as a sender.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// Acknowledgements that have not yet arrived at it.
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
    /// The right edge of the window; `None`: the scale is not known.
    edge: Option<SeqNum>,
    has_text: bool,
    /// It acknowledged something, as is known when it arrives.
    is_advancing: bool,
}

/// The sender's knowledge of the other side.
#[derive(Clone, Debug, Default)]
struct Arrived {
    una: Option<SeqNum>,
    edge: Option<SeqNum>,
    /// When the last one passed the place of capture, and when it arrived, in the time of what is sent.
    last: Option<Ack>,
    last_at: Duration,
    /// The last one with text.
    text_at: Option<Duration>,
}

/// The segment before.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Duration,
    text_len: u32,
    /// In flight after it.
    flight: u32,
    /// Bytes that the window still had room for after this segment.
    room: Option<u32>,
}

/// Text after a pause.
#[derive(Clone, Copy, Debug)]
struct Restart {
    from: SeqNum,
    /// Before anything of it was acknowledged.
    sent: u32,
}

/// Acknowledgements that are kept until they arrive: more do not fit the longest path of a capture that makes sense.
const COMING_MAX: usize = 4096;

/// An acknowledgement that comes this much later than the path takes was delayed (RFC 9293 section 3.8.6.3; Linux waits 40 ms and more).
const DELAYED: Duration = Duration::from_millis(20);

/// Linux's least time-out of retransmission: after a longer pause the window starts again (RFC 5681 section 4.1).
const RTO_MIN: Duration = Duration::from_millis(200);

/// The window it starts again with, segments (RFC 6928).
const INITIAL_WINDOW_SEGS: u32 = 10;

impl Sender {
    /// Returns how long the sender waited because of this limit.
    pub fn waited(&self, limit: Limit) -> Duration {
        self.waited[limit as usize]
    }

    /// Returns the limit that the sender waited for longest; `None`: it never waited.
    pub fn longest(&self) -> Option<Limit> {
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.waited(*limit))?;
        (self.waited(longest) > Duration::ZERO).then_some(longest)
    }

    /// Waits for the acknowledgement of a small segment that was delayed.
    pub fn delayed_acks(&self) -> u64 {
        self.delayed_acks
    }

    /// Pauses after which it began again with a small window although it had had a larger one (slow start after idle).
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Bytes in flight at most.
    pub fn flight_max(&self) -> u32 {
        self.flight_max
    }

    /// `has_text`: it brings the other side's text, and not only a probe.
    pub(crate) fn on_ack(&mut self, packet: &Packet<'_>, edge: Option<SeqNum>, has_text: bool) {
        if self.coming.len() == COMING_MAX {
            self.take_arrived(Duration::MAX, Duration::ZERO, 1);
        }
        self.coming.push_back(Ack { at: packet.at, ack: packet.ack, edge, has_text, is_advancing: false });
    }

    /// Lets go of the acknowledgements that are still to arrive: no text follows that waited for them.
    pub(crate) fn end(&mut self) {
        self.coming = VecDeque::new();
    }

    /// Bytes of memory that it takes beside itself.
    pub(crate) fn footprint(&self) -> usize {
        self.coming.capacity() * size_of::<Ack>()
    }

    pub(crate) fn on_text(&mut self, sent: &Sent<'_>, paths: &Paths) {
        let at = sent.packet.at;
        let own = paths.own.unwrap_or(Duration::ZERO);
        // The path is the least seen: a little later is early enough.
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

    /// Lays the time since the segment before at somebody's door.
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

    /// Nothing came that had been waited for, but perhaps the other side's text.
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

    /// After a pause: does it begin again with the initial window, although it had had more in flight?
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

    /// The acknowledgements that have arrived by `at`: each needs `path` from the place of capture and back.
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
    /// Takes an acknowledgement that arrives `at` this time. One that changes nothing releases nothing.
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
