//! Windows and round trips over time, as comma-separated values.
//!
//! ```text
//! run,end,connection,ms,cwnd,ssthresh,srtt_ms,rttvar_ms,rto_ms,ca_state,limited_by
//! cubic,server,1,60.048,14480,,40.048,20.024,200.0,false,cwnd
//! ```

use super::Recording;
use super::connections::Connections;
use super::trace::each_once;
use crate::ladder::milliseconds;
use core::time::Duration;
use proto::{CaState, Instant, LimitedBy, TraceEvent, Traced};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the senders' state in all runs: a row for each time at which some of it changed. Empty
/// fields are unknown; an empty `ssthresh` is unset, an empty `cwnd` never changed.
///
/// # Errors
/// Errors of the writer.
pub fn write_series(writer: impl Write, recordings: &[Recording<'_>]) -> io::Result<()> {
    let mut file = csv::Writer::from_writer(writer);
    for recording in each_once(recordings) {
        for row in rows(recording) {
            file.serialize(row)?;
        }
    }
    file.flush()
}

/// The state of one end of one connection at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    run: String,
    end: &'static str,
    /// Number of the connection, shared by the rows of both ends.
    connection: usize,
    /// Milliseconds since the start of the run.
    ms: f64,
    /// Bytes.
    cwnd: Option<u32>,
    /// Bytes.
    ssthresh: Option<u32>,
    srtt_ms: Option<f64>,
    rttvar_ms: Option<f64>,
    rto_ms: Option<f64>,
    /// State of loss recovery, in the words of `ss -i`.
    ca_state: &'static str,
    /// The reason why the sender sends no more.
    limited_by: &'static str,
}

impl Row {
    /// Applies an event. Returns whether it changed a value of the row.
    fn learn(&mut self, event: &TraceEvent) -> bool {
        match &event.what {
            Traced::Cwnd { to, .. } => self.cwnd = Some(*to),
            Traced::Ssthresh { to, .. } => self.ssthresh = Some(*to).filter(|bytes| *bytes != u32::MAX),
            Traced::Rtt { srtt, rttvar, rto } => {
                let known = |time: &Duration| Some(milliseconds(*time));
                (self.srtt_ms, self.rttvar_ms, self.rto_ms) = (known(srtt), known(rttvar), known(rto));
            }
            Traced::Limited { to, .. } => self.limited_by = limit(*to),
            Traced::CaState { to, .. } => self.ca_state = ca_state(*to),
            _ => return false,
        }
        true
    }
}

fn ca_state(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Reducing => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}

/// Returns the reason in the words of `ss -i`.
fn limit(by: LimitedBy) -> &'static str {
    match by {
        LimitedBy::Idle => "idle",
        LimitedBy::Application => "app",
        LimitedBy::Handshake => "handshake",
        LimitedBy::SendBuffer => "sndbuf",
        LimitedBy::Congestion => "cwnd",
        LimitedBy::Receiver => "rwnd",
        LimitedBy::Device => "device",
    }
}

fn rows(recording: &Recording<'_>) -> Vec<Row> {
    let mut connections = Connections::default();
    let mut known: BTreeMap<(&str, usize), Row> = BTreeMap::new();
    // A trace reports changes: its first change contains the initial window.
    let mut first_windows: BTreeMap<(&str, usize), u32> = BTreeMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for (host, event) in recording.capture.traced() {
        let Some(ends) = event.ends else { continue };
        let end = if recording.is_client(*host) { "client" } else { "server" };
        let connection = connections.number(ends);
        if let Traced::Cwnd { from, .. } = event.what {
            first_windows.entry((end, connection)).or_insert(from);
        }
        let now = known.entry((end, connection)).or_insert_with(|| Row {
            run: recording.name.clone(),
            end,
            connection,
            ms: 0.0,
            cwnd: None,
            ssthresh: None,
            srtt_ms: None,
            rttvar_ms: None,
            rto_ms: None,
            ca_state: ca_state(CaState::Open),
            limited_by: "",
        });
        if !now.learn(event) {
            continue;
        }
        now.ms = milliseconds(event.at.since(Instant::ZERO));
        let same_moment = |row: &Row| (row.end, row.connection, row.ms) == (end, connection, now.ms);
        match rows.last_mut().filter(|row| same_moment(row)) {
            Some(row) => *row = now.clone(),
            None => rows.push(now.clone()),
        }
    }
    for row in &mut rows {
        let begun_with = first_windows.get(&(row.end, row.connection)).copied();
        row.cwnd = row.cwnd.or(begun_with);
    }
    rows
}

#[cfg(test)]
mod tests;
