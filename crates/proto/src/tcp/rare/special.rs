//! State of what few connections use. It is allocated on first use, so that an ordinary connection holds a null pointer.

mod connection;

use super::fragments::Fragments;
use super::reports::Reports;
use super::rerouted::Rerouted;
use super::room::Waiting;
use crate::rate_limit::LastAnswer;
use crate::rtt::LeastRtt;
use crate::tcp::ecn::accurate::AccurateEcn;
use crate::tcp::observe::limits::Clocks;
use crate::tcp::send::mtu_search::MtuSearch;
use crate::tcp::send::pacer::Pacer;
use crate::{IcmpReport, Instant};
use alloc::boxed::Box;
use wire::SeqNum;

#[derive(Debug, Default)]
pub(crate) struct Special {
    /// When the peer last acknowledged anything; kept for keepalive.
    pub(in crate::tcp) heard_at: Instant,
    /// Keepalive probes since.
    pub(in crate::tcp) unanswered: u32,
    /// When the first window probe since the window closed went; kept for the user time-out.
    pub(in crate::tcp) probing_since: Option<Instant>,
    /// What was to be sent was refused here, with nothing in flight.
    pub(in crate::tcp) refused: Option<Waiting>,
    pub(in crate::tcp) counts: Counts,
    /// Of who counts marks.
    pub(in crate::tcp) accurate_ecn: Option<Box<AccurateEcn>>,
    /// Of a path whose MTU is being looked for.
    pub(in crate::tcp) mtu_search: Option<Box<MtuSearch>>,
    /// Of a sender that paces.
    pub(in crate::tcp) pacer: Pacer,
    /// What follows the least round trip when it is too old.
    pub(in crate::tcp) least_rtt: LeastRtt,
    /// Of one whose packets may be cut on their way.
    pub(super) fragments: Option<Fragments>,
    /// Of one whose route has changed.
    pub(super) rerouted: Option<Rerouted>,
    /// Until when what was reported of the path's MTU is believed.
    pub(in crate::tcp) path_mtu_until: Option<Instant>,
    /// Of what held the sender back.
    pub(in crate::tcp) clocks: Clocks,
    /// To segments that were not taken.
    last_answer: LastAnswer,
    /// The application has shut its reading direction.
    pub(in crate::tcp) reads_no_more: bool,
    /// Number behind the last urgent byte written.
    pub(super) urgent_end: Option<SeqNum>,
    /// A window probe has announced it, and another follows.
    pub(super) urgent_told: bool,
    /// Number of the last urgent byte that the peer announced.
    pub(super) urgent_byte: Option<SeqNum>,
    /// That byte, for who reads it apart.
    pub(super) urgent: Urgent,
    /// What is to be reported of bytes sent and received.
    pub(super) reports: Option<Box<Reports>>,
    /// Headers of the SYN that began it, for who asks.
    pub(crate) saved_syn: Option<Box<[u8]>>,
    /// The last ICMP error believed.
    pub(crate) icmp: Option<Box<IcmpReport>>,
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
    pub(in crate::tcp) fn of(special: &mut Option<Box<Special>>, now: Instant) -> &mut Special {
        special.get_or_insert_with(|| Box::new(Special { heard_at: now, ..Special::default() }))
    }

    /// Nothing of it changes what is sent or taken, or hears of it: it remembers what has been.
    #[cold]
    pub(in crate::tcp) fn only_remembers(&self) -> bool {
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
    pub(in crate::tcp) fn heard(&mut self, now: Instant, unblocked: bool) {
        self.heard_at = now;
        self.unanswered = 0;
        self.probing_since = self.probing_since.filter(|_| !unblocked);
        self.refused = None;
    }

    /// An urgent byte that was acknowledged is none any more: two gigabytes later its number would be one to come.
    pub(in crate::tcp) fn urgent_acknowledged(&mut self, ack: SeqNum) {
        self.urgent_end = self.urgent_end.filter(|end| end.after(ack));
    }
}

/// What `tcp_info` counts of events that most connections never see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Its SYN and the peer's have crossed.
    pub(in crate::tcp) crossed: bool,
    /// Its SYN went more than once before it was answered.
    pub(in crate::tcp) syn_repeated: bool,
    /// Its Fast Open SYN carried no data, and a segment of none counts (`window_unit`).
    pub(in crate::tcp) empty_syn_data: bool,
    pub(in crate::tcp) bytes_retrans: u64,
    /// Sent once at least, and not acknowledged when the connection ended.
    pub(in crate::tcp) bytes_in_vain: u32,
    /// Written and not acknowledged when an established connection ended, its FIN with them.
    pub(in crate::tcp) left: u32,
    pub(in crate::tcp) total_retrans: u32,
    pub(in crate::tcp) dsack_dups: u32,
    pub(in crate::tcp) reord_seen: u32,
    pub(in crate::tcp) rcv_ooopack: u32,
    pub(in crate::tcp) delivered_ce: u32,
    pub(in crate::tcp) total_rto: u32,
    pub(in crate::tcp) total_rto_recoveries: u32,
    pub(in crate::tcp) total_rto_ms: u32,
    /// When the row of time-outs began that is not over.
    pub(in crate::tcp) rto_since: Option<Instant>,
}

impl Counts {
    /// Those of a connection, made on first use.
    pub(in crate::tcp) fn of(special: &mut Option<Box<Special>>, now: Instant) -> &mut Counts {
        &mut Special::of(special, now).counts
    }

    /// Of a passive open whose SYN-ACK was retransmitted `retrans` times, `timeouts` of them by the timer, in `since_first` milliseconds.
    pub(crate) fn begin_late(&mut self, retrans: u32, timeouts: u32, since_first: u32) {
        self.total_retrans = retrans;
        if timeouts > 0 {
            self.total_rto = timeouts;
            self.total_rto_recoveries = 1;
            self.total_rto_ms = since_first;
        }
    }

    /// What the row of time-outs lost is repaired.
    pub(in crate::tcp) fn recovered(&mut self, now: Instant) {
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
