//! The trace: what happens to connections, as typed events in the order of time.
//!
//! ```text
//!  packet in ──► before/after ──┐
//!  packet out ─► before/after ──┼──► Tracer: is it requested? ──► bounded buffer ──► Stack::poll_trace
//!  settle ─────► before/after ──┘                                        (events without room are counted)
//! ```
//!
//! A connection does not know about the trace. While a trace is on, the stack compares its visible
//! state (windows, round trips, counters) before and after each operation, and reports the
//! differences. While it is off, the cost is one test per packet. `event` has the events, `display`
//! their text.

mod display;
mod event;

pub use event::{DropWhy, RetransmitWhy, SegmentSummary, TraceEvent, TraceMask, Traced};

use crate::tcp::connection::Connection;
use crate::tcp::observe::tcp_info::{CaState, ca_state};
use crate::tuple::FourTuple;
use crate::{Instant, LimitedBy, State};
use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

/// What a traced connection looked like when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Look {
    state: State,
    cwnd: u32,
    ssthresh: u32,
    srtt: Option<Duration>,
    ca_state: CaState,
    limited_by: LimitedBy,
}

impl Look {
    fn at(c: &Connection) -> Look {
        use crate::tcp::congestion::Controller;
        Look {
            state: c.state,
            cwnd: c.congestion_window(),
            ssthresh: c.congestion.ssthresh(),
            srtt: c.rtt.srtt(),
            ca_state: ca_state(c),
            limited_by: c.limited_by,
        }
    }
}

/// Who wants to hear what, and what has happened since the last poll.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// Of every connection.
    all: TraceMask,
    /// Of single ones, beside that.
    single: BTreeMap<FourTuple, TraceMask>,
    /// By the connection's index.
    looks: BTreeMap<u32, Look>,
    events: VecDeque<TraceEvent>,
    capacity: usize,
    lost: u64,
}

impl Tracer {
    pub(crate) fn new(capacity: usize) -> Tracer {
        Tracer {
            all: TraceMask::empty(),
            single: BTreeMap::new(),
            looks: BTreeMap::new(),
            events: VecDeque::new(),
            capacity: capacity.max(1),
            lost: 0,
        }
    }

    pub(crate) fn set_all(&mut self, mask: TraceMask) {
        self.all = mask;
    }

    pub(crate) fn set_single(&mut self, tuple: FourTuple, mask: TraceMask) {
        if mask.is_empty() {
            self.single.remove(&tuple);
        } else {
            self.single.insert(tuple, mask);
        }
    }

    /// Nobody wants anything, and everything was fetched.
    pub(crate) fn is_idle(&self) -> bool {
        self.all.is_empty() && self.single.is_empty() && self.events.is_empty() && self.lost == 0
    }

    pub(crate) fn pop(&mut self) -> Option<TraceEvent> {
        self.events.pop_front()
    }

    pub(crate) fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }

    fn mask_of(&self, tuple: Option<&FourTuple>) -> TraceMask {
        self.all | tuple.and_then(|tuple| self.single.get(tuple)).copied().unwrap_or_default()
    }

    pub(crate) fn tell(&mut self, at: Instant, tuple: Option<&FourTuple>, what: Traced) {
        if !self.mask_of(tuple).contains(what.kind()) {
            return;
        }
        if self.events.len() >= self.capacity {
            self.lost += 1;
            return;
        }
        let ends = tuple.map(|tuple| (tuple.local_addr(), tuple.peer_addr()));
        self.events.push_back(TraceEvent { at, ends, what });
    }

    /// Tells what has changed of a connection since the last look.
    pub(crate) fn look(&mut self, at: Instant, index: u32, c: &Connection) {
        let tuple = c.tuple;
        if self.mask_of(Some(&tuple)).is_empty() {
            return;
        }
        let now = Look::at(c);
        let before = self.looks.insert(index, now);
        if before == Some(now) {
            return;
        }
        // Until the SYNs have agreed on a segment size, windows in bytes mean nothing.
        let agreed = before.filter(|before| before.state != State::SynSent);
        let old = Look {
            limited_by: before.map_or(now.limited_by, |before| before.limited_by),
            ..agreed.unwrap_or(Look { srtt: None, ..now })
        };
        let mut tell = |what| self.tell(at, Some(&tuple), what);
        if before.is_none_or(|before| before.state != now.state) {
            tell(Traced::State { from: before.map(|before| before.state), to: now.state });
        }
        if old.ca_state != now.ca_state {
            tell(Traced::CaState { from: old.ca_state, to: now.ca_state });
        }
        if old.cwnd != now.cwnd {
            tell(Traced::Cwnd { from: old.cwnd, to: now.cwnd });
        }
        if old.ssthresh != now.ssthresh {
            tell(Traced::Ssthresh { from: old.ssthresh, to: now.ssthresh });
        }
        if let Some(srtt) = now.srtt.filter(|srtt| old.srtt != Some(*srtt)) {
            tell(Traced::Rtt { srtt, rttvar: c.rtt.rttvar(), rto: c.rtt.rto() });
        }
        if old.limited_by != now.limited_by {
            tell(Traced::Limited { from: old.limited_by, to: now.limited_by });
        }
    }

    /// The connection is no more.
    pub(crate) fn forget(&mut self, index: u32, tuple: &FourTuple) {
        self.looks.remove(&index);
        self.single.remove(tuple);
    }
}
