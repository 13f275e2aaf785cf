//! One line per event: time, ends, what.

use super::{DropWhy, RetransmitWhy, SegmentSummary, TraceEvent, Traced};
use crate::LimitedBy;
use alloc::string::String;
use core::fmt;
use core::time::Duration;
use wire::Flags;

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.at.as_nanos();
        write!(f, "{}.{:06} ", nanos / 1_000_000_000, nanos % 1_000_000_000 / 1_000)?;
        if let Some((local, peer)) = &self.ends {
            write!(f, "{local} {peer} ")?;
        }
        self.what.fmt(f)
    }
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Traced::State { from: None, to } => write!(f, "state {to:?}"),
            Traced::State { from: Some(from), to } => write!(f, "state {from:?} -> {to:?}"),
            Traced::Cwnd { from, to } => write!(f, "cwnd {from} -> {to}"),
            Traced::Ssthresh { from, to } => {
                write!(f, "ssthresh {} -> {}", Threshold(*from), Threshold(*to))
            }
            Traced::Rtt { srtt, rttvar, rto } => {
                write!(f, "srtt {} rttvar {} rto {}", Ms(*srtt), Ms(*rttvar), Ms(*rto))
            }
            Traced::Limited { from, to } => write!(f, "limited by {} -> {}", limit(*from), limit(*to)),
            Traced::CaState { from, to } => write!(f, "ca_state {from:?} -> {to:?}"),
            Traced::Retransmitted { seq, len, why } => {
                let why = match why {
                    RetransmitWhy::Handshake => "no answer to the handshake",
                    RetransmitWhy::Lost => "lost",
                    RetransmitWhy::Probe => "tail loss probe",
                    RetransmitWhy::Timeout => "time-out",
                };
                write!(f, "again seq {} len {len}: {why}", seq.0)
            }
            Traced::Dropped(DropWhy::Packet(reason)) => write!(f, "dropped: {reason:?}"),
            Traced::Dropped(DropWhy::Segment(counter)) => write!(f, "dropped: {counter}"),
            Traced::Received(segment) => write!(f, "in  {segment}"),
            Traced::Sent(segment) => write!(f, "out {segment}"),
            // Linux's words (`ip_handle_martian_source`).
            Traced::Martian { source, to, device } => {
                write!(f, "martian source {to} from {source}, on dev {device}")
            }
        }
    }
}

/// Flags as tcpdump has them; the window as it stands, and what it means.
impl fmt::Display for SegmentSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::URG, 'U'),
            (Flags::ACK, '.'),
        ];
        let flags: String =
            names.iter().filter(|(flag, _)| self.flags.contains(*flag)).map(|(_, name)| *name).collect();
        write!(f, "[{flags}] seq {} len {}", self.seq.0, self.len)?;
        if self.flags.contains(Flags::ACK) {
            write!(f, " ack {}", self.ack.0)?;
        }
        write!(f, " win {}", self.window)?;
        if self.window == 0 && !self.flags.intersects(Flags::RST | Flags::SYN) {
            return f.write_str(" (zero window)");
        }
        let syn = self.flags.contains(Flags::SYN);
        match self.shift {
            Some(shift) if syn => write!(f, " wscale {shift}"),
            None if syn => f.write_str(" no wscale"),
            Some(shift) => write!(f, " = {}", u32::from(self.window) << shift.min(14)),
            None => Ok(()),
        }
    }
}

struct Threshold(u32);

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u32::MAX { f.write_str("none") } else { self.0.fmt(f) }
    }
}

/// Milliseconds with three decimals.
struct Ms(Duration);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}ms", micros / 1000, micros % 1000)
    }
}

fn limit(by: LimitedBy) -> &'static str {
    match by {
        LimitedBy::Idle => "nothing",
        LimitedBy::Application => "the application",
        LimitedBy::Handshake => "the handshake",
        LimitedBy::SendBuffer => "the send buffer",
        LimitedBy::Congestion => "cwnd",
        LimitedBy::Receiver => "the receiver (window full)",
        LimitedBy::Device => "queues below the stack",
    }
}
