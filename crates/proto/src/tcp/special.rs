//! State of what few connections use. It is allocated on first use, so that an ordinary connection holds a null pointer.

use super::accurate_ecn::AccurateEcn;
use super::connection::{Connection, Context};
use super::fragments::Fragments;
use super::limits::Clocks;
use super::mtu_search::MtuSearch;
use super::output::Waiting;
use super::pacer::Pacer;
use super::reports::Reports;
use super::rerouted::Rerouted;
use crate::rate_limit::LastAnswer;
use crate::rtt::LeastRtt;
use crate::{IcmpReport, Instant};
use alloc::boxed::Box;
use wire::SeqNum;

#[derive(Debug, Default)]
pub(crate) struct Special {
    /// When the peer last acknowledged anything; kept for keepalive.
    pub(super) heard_at: Instant,
    /// Keepalive probes since.
    pub(super) unanswered: u32,
    /// When the first window probe since the window closed went; kept for the user time-out.
    pub(super) probing_since: Option<Instant>,
    /// What was to be sent was refused here, with nothing in flight.
    pub(super) refused: Option<Waiting>,
    pub(super) counts: Counts,
    /// Of who counts marks.
    pub(super) accurate_ecn: Option<Box<AccurateEcn>>,
    /// Of a path whose MTU is being looked for.
    pub(super) mtu_search: Option<Box<MtuSearch>>,
    /// Of a sender that paces.
    pub(super) pacer: Pacer,
    /// What follows the least round trip when it is too old.
    pub(super) least_rtt: LeastRtt,
    /// Of one whose packets may be cut on their way.
    pub(super) fragments: Option<Fragments>,
    /// Of one whose route has changed.
    pub(super) rerouted: Option<Rerouted>,
    /// Until when what was told of the path's MTU is believed.
    pub(super) path_mtu_until: Option<Instant>,
    /// Of what held the sender back.
    pub(super) clocks: Clocks,
    /// To segments that were not taken.
    pub(super) last_answer: LastAnswer,
    /// The application has shut its reading direction.
    pub(super) reads_no_more: bool,
    /// Number behind the last urgent byte written.
    pub(super) urgent_end: Option<SeqNum>,
    /// A window probe has told of it, and another follows.
    pub(super) urgent_told: bool,
    /// Number of the last urgent byte the peer told of.
    pub(super) urgent_byte: Option<SeqNum>,
    /// That byte, for who reads it apart.
    pub(super) urgent: Urgent,
    /// What is to be told of bytes sent and received.
    pub(super) reports: Option<Box<Reports>>,
    /// Headers of the SYN that began it, for who asks.
    pub(crate) saved_syn: Option<Box<[u8]>>,
    /// The last ICMP error believed.
    pub(crate) icmp: Option<Box<IcmpReport>>,
}

impl Connection {
    /// The headers of the SYN that began it, if they are kept.
    pub(crate) fn keep_syn(&mut self, now: Instant, headers: Option<Box<[u8]>>) {
        if headers.is_some() {
            Special::of(&mut self.special, now).saved_syn = headers;
        }
    }

    /// The application has shut its reading direction.
    pub(crate) fn read_no_more(&mut self, now: Instant) {
        self.leave_fast_paths();
        Special::of(&mut self.special, now).reads_no_more = true;
    }
}

/// An urgent byte beside the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Urgent {
    /// It has not come, or lies in the stream still.
    #[default]
    InStream,
    Kept(u8),
    Read,
}

impl Special {
    /// That of a connection, made on first use.
    pub(super) fn of(special: &mut Option<Box<Special>>, now: Instant) -> &mut Special {
        special.get_or_insert_with(|| Box::new(Special { heard_at: now, ..Special::default() }))
    }

    /// May a segment that was not taken be answered? Not sooner than `tcp_invalid_ratelimit` after the last.
    pub(super) fn may_answer(special: &mut Option<Box<Special>>, cx: &Context) -> bool {
        Special::of(special, cx.now).last_answer.may_answer(cx.now, cx.config.invalid_ratelimit())
    }

    /// Nothing of it changes what is sent or taken, or hears of it: it remembers what has been.
    #[cold]
    pub(super) fn only_remembers(&self) -> bool {
        self.accurate_ecn.is_none()
            && self.mtu_search.is_none()
            && self.fragments.is_none()
            && self.path_mtu_until.is_none()
            && self.rerouted.is_none()
            && self.urgent_end.is_none()
            && self.reports.is_none()
            && self.refused.is_none()
            && !self.reads_no_more
            && !self.pacer.is_held()
    }

    /// A segment with a good acknowledgement has come. `unblocked`: the peer's window is open, or it has taken text although it was closed.
    pub(super) fn heard(&mut self, now: Instant, unblocked: bool) {
        self.heard_at = now;
        self.unanswered = 0;
        self.probing_since = self.probing_since.filter(|_| !unblocked);
        self.refused = None;
    }
}

/// What `tcp_info` counts of events that most connections never see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Its SYN and the peer's have crossed.
    pub(super) crossed: bool,
    /// Its SYN went more than once before it was answered.
    pub(super) syn_repeated: bool,
    /// Its Fast Open SYN carried no data, and a segment of none counts (`count_segments`).
    pub(super) empty_syn_data: bool,
    pub(super) bytes_retrans: u64,
    /// Sent once at least, and not acknowledged when the connection ended.
    pub(super) bytes_in_vain: u32,
    /// Written and not acknowledged when an established connection ended, its FIN with them.
    pub(crate) left: u32,
    pub(super) total_retrans: u32,
    pub(super) dsack_dups: u32,
    pub(super) reord_seen: u32,
    pub(super) rcv_ooopack: u32,
    pub(super) delivered_ce: u32,
    pub(super) total_rto: u32,
    pub(super) total_rto_recoveries: u32,
    pub(super) total_rto_ms: u32,
    /// When the row of time-outs began that is not over.
    pub(super) rto_since: Option<Instant>,
}

impl Counts {
    /// Those of a connection, made on first use.
    pub(super) fn of(special: &mut Option<Box<Special>>, now: Instant) -> &mut Counts {
        &mut Special::of(special, now).counts
    }

    /// Of a passive open whose SYN-ACK went again `retrans` times, `timeouts` of them by the timer, in `since_first` milliseconds.
    pub(crate) fn begin_late(&mut self, retrans: u32, timeouts: u32, since_first: u32) {
        self.total_retrans = retrans;
        if timeouts > 0 {
            self.total_rto = timeouts;
            self.total_rto_recoveries = 1;
            self.total_rto_ms = since_first;
        }
    }

    /// What the row of time-outs lost is repaired.
    pub(super) fn recovered(&mut self, now: Instant) {
        if let Some(since) = self.rto_since.take() {
            let took = u32::try_from(now.since(since).as_millis()).unwrap_or(u32::MAX);
            self.total_rto_ms = self.total_rto_ms.saturating_add(took);
        }
    }

    pub(crate) fn timed_out(&mut self, now: Instant, first: bool) {
        self.total_rto = self.total_rto.saturating_add(1);
        if first {
            self.total_rto_recoveries = self.total_rto_recoveries.saturating_add(1);
            self.rto_since = Some(now);
        }
    }
}
