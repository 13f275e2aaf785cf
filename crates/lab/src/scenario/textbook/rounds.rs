//! Rounds: the data that left at one instant, its cause, and the window.

use super::{MSS, Params};
use crate::capture::Journey;
use crate::ladder::milliseconds;
use crate::scenario::Run;
use proto::{Instant, Traced};
use std::collections::BTreeSet;

/// The cause of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Acknowledgments or the application; nothing was missing.
    Progress,
    /// The retransmission timer.
    Timeout,
    /// Acknowledgments of retransmissions after a timeout, with more to retransmit.
    GoBack,
    /// Duplicate acknowledgments.
    Duplicates,
}

/// The data that left at one instant.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Round {
    /// Milliseconds since the first data.
    pub ms: f64,
    /// Congestion window, segments.
    pub window: f64,
    /// Slow-start threshold, segments.
    pub ssthresh: Option<f64>,
    /// Segments that left.
    pub sent: usize,
    /// Segments of them that were retransmissions.
    pub again: usize,
    /// Segments of them that were lost.
    pub lost: usize,
    /// The cause.
    pub cause: Cause,
    #[serde(skip)]
    pub(super) at: Instant,
}

impl Round {
    /// Returns whether the window is shrinking to the threshold, paced by the data reported as
    /// delivered by duplicate ACKs (RFC 6937).
    pub fn is_recovering(&self) -> bool {
        self.cause == Cause::Duplicates && self.ssthresh.is_some_and(|ssthresh| self.window > ssthresh)
    }

    pub(super) fn remark(&self) -> &'static str {
        match self {
            Round { lost, sent, .. } if lost == sent => "all of it is lost",
            Round { lost: 1.., .. } => "its first segment is lost",
            Round { cause: Cause::Progress, .. } => "",
            Round { cause: Cause::Timeout, .. } => "timeout: retransmits the first missing segment",
            Round { cause: Cause::GoBack, .. } => "retransmits the next missing segments",
            Round { .. } if self.is_recovering() => {
                "duplicate ACKs: the window shrinks step by step; retransmits the missing segment"
            }
            Round { .. } => "duplicate ACKs: retransmits the missing segment",
        }
    }
}

/// Returns all data that left the server, by instant.
pub(super) fn rounds(params: &Params, run: &Run) -> Vec<Round> {
    let is_data = |journey: &&Journey| {
        journey.sent.host == Some(run.server) && journey.segment().is_some_and(|sent| sent.text_len() > 0)
    };
    let journeys = run.capture.journeys();
    let data: Vec<&Journey> = journeys.iter().filter(is_data).collect();
    let Some(begun) = data.first().map(|first| first.sent.at) else { return Vec::new() };
    let of_server = || run.capture.traced().iter().filter(|(host, _)| *host == run.server);
    let first_change = of_server().find_map(|(_, event)| match event.what {
        Traced::Cwnd { from, .. } => Some(from),
        _ => None,
    });
    let mut windows =
        Windows { cwnd: first_change.unwrap_or(0), ssthresh: params.ssthresh.saturating_mul(MSS) };
    let mut traced = of_server().peekable();
    let arrivals: BTreeSet<Instant> = journeys
        .iter()
        .filter_map(|journey| journey.received.as_ref())
        .filter(|received| received.host == Some(run.server))
        .map(|received| received.at)
        .collect();
    let (mut highest, mut cause) = (None, Cause::Progress);
    let round = |journeys: &[&Journey]| {
        let at = journeys[0].sent.at;
        while let Some((_, event)) = traced.next_if(|(_, event)| event.at <= at) {
            windows.heed(&event.what);
        }
        let mut again = 0;
        for segment in journeys.iter().filter_map(|journey| journey.segment()) {
            let seq = segment.text_seq();
            match highest {
                Some(known) if !seq.after(known) => again += 1,
                _ => highest = Some(seq),
            }
        }
        cause = match cause {
            _ if again == 0 => Cause::Progress,
            _ if !arrivals.contains(&at) => Cause::Timeout,
            Cause::Timeout | Cause::GoBack => Cause::GoBack,
            Cause::Progress | Cause::Duplicates => Cause::Duplicates,
        };
        Round {
            ms: milliseconds(at.since(begun)),
            window: segments(windows.cwnd),
            ssthresh: (windows.ssthresh != u32::MAX).then(|| segments(windows.ssthresh)),
            sent: journeys.len(),
            again,
            lost: journeys.iter().filter(|journey| journey.lost.is_some()).count(),
            cause,
            at,
        }
    };
    data.chunk_by(|a, b| a.sent.at == b.sent.at).map(round).collect()
}

/// The sender's last report, bytes.
struct Windows {
    cwnd: u32,
    ssthresh: u32,
}

impl Windows {
    fn heed(&mut self, what: &Traced) {
        match what {
            Traced::Cwnd { to, .. } => self.cwnd = *to,
            Traced::Ssthresh { to, .. } => self.ssthresh = *to,
            _ => {}
        }
    }
}

fn segments(bytes: u32) -> f64 {
    f64::from(bytes) / f64::from(MSS)
}
