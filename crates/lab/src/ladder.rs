//! A ladder: the packets of an exchange between two columns, with the time at either end of each.
//!
//! ```text
//!      client                                                                 server
//!    0.0 ms ├─ SYN        seq 0 len 200  cookie 1d0aa246 mss 1460 ──────────▶   85.0 ms
//!  170.0 ms ◀───────── SYN ACK    seq 0 ack 201 len 500 mss 1460  FIN ──────┤   85.0 ms
//!    0.0 ms ├─ SYN        seq 0 len 200 ─────────────────────────× firewall
//! ```

use crate::capture::Journey;
use crate::exchange::Exchange;
use crate::segment::Segment;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use proto::Instant;
use serde::Serialize;
use wire::{FastOpenKind, Flags, SeqNum, TcpOptions};

/// Direction of a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rung {
    /// Direction.
    pub way: Way,
    /// Time of sending since the start of the ladder, in ms; `None` if that end was not captured.
    pub sent_ms: Option<f64>,
    /// Time of arrival, in ms; `None` if it did not arrive or that end was not captured.
    pub received_ms: Option<f64>,
    /// Control bits, e.g. `SYN ACK`.
    pub flags: String,
    /// Sequence number relative to the sender's ISN.
    pub seq: u32,
    /// Acknowledgement number relative to the receiver's ISN.
    pub ack: Option<u32>,
    /// Data bytes.
    pub len: u32,
    /// Advertised receive window in bytes; `None` if its scale is unknown.
    pub window: Option<u32>,
    /// Options worth showing, e.g. `cookie 1d0aa246d060bffa`, `mss 1460`.
    pub options: Vec<String>,
    /// Name of the place that lost the packet.
    pub lost_by: Option<String>,
    /// Remarks on what the path, or a third party on it, did to the packet.
    pub remarks: Vec<String>,
}

/// The packets of an exchange.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// The title.
    pub title: String,
    /// Name of the left column.
    pub left: String,
    /// Name of the right column.
    pub right: String,
    /// The packets, in order of sending.
    pub rungs: Vec<Rung>,
}

impl Ladder {
    /// Builds the ladder of one exchange. Time zero is its first SYN.
    pub fn of(title: impl Into<String>, exchange: &Exchange) -> Ladder {
        Ladder::of_journeys(title, exchange, exchange.started_at, &exchange.journeys)
    }

    /// Builds the ladder of packets chosen by the caller, with numbers relative to their exchange.
    /// Time zero is `start`.
    pub fn of_journeys(
        title: impl Into<String>,
        exchange: &Exchange,
        start: Instant,
        journeys: &[Journey],
    ) -> Ladder {
        let view = View::new(exchange, journeys);
        let rungs = journeys.iter().filter_map(|journey| view.rung(start, journey)).collect();
        Ladder::between_client_and_server(title, rungs)
    }

    /// Builds the ladder of packets captured at the client's end of a real path, in order: (time
    /// there, packet from the IP header on).
    ///
    /// Time zero is the first packet; the times at the server's end stay blank. Packets that are
    /// not TCP to or from `server` are left out. Each SYN starts a new numbering, so several
    /// connections can follow each other. Before the first SYN, numbers are absolute.
    pub fn at_client(title: impl Into<String>, server: SocketAddr, packets: &[(Instant, Bytes)]) -> Ladder {
        let start = packets.first().map_or(Instant::ZERO, |(at, _)| *at);
        let mut view = View { server, client_isn: SeqNum(0), server_isns: Vec::new(), scales: [None; 2] };
        let rung = |(at, packet): &(Instant, Bytes)| {
            let segment = Segment::parse(packet).filter(|seg| seg.src() == server || seg.dst() == server)?;
            view.notice(&segment);
            let rung = view.describe(&segment);
            let time = Some(milliseconds(at.since(start)));
            Some(match rung.way {
                Way::ToServer => Rung { sent_ms: time, ..rung },
                Way::ToClient => Rung { received_ms: time, ..rung },
            })
        };
        Ladder::between_client_and_server(title, packets.iter().filter_map(rung).collect())
    }

    fn between_client_and_server(title: impl Into<String>, rungs: Vec<Rung>) -> Ladder {
        Ladder { title: title.into(), left: "client".into(), right: "server".into(), rungs }
    }
}

/// The state that makes numbers relative.
struct View {
    server: SocketAddr,
    client_isn: SeqNum,
    server_isns: Vec<SeqNum>,
    /// Window scales of the client and the server; `None` until their SYN was seen.
    scales: [Option<Scale>; 2],
}

/// The window scale of a SYN, if it has one.
type Scale = Option<u8>;

impl View {
    fn new(exchange: &Exchange, journeys: &[Journey]) -> View {
        // A server that answers a copy of a SYN has another initial sequence number than the one
        // the client knows.
        let of_syn_acks =
            journeys.iter().filter_map(Journey::segment).filter(Segment::is_syn_ack).map(|seg| seg.tcp.seq);
        let server_isns = exchange.server_isn.into_iter().chain(of_syn_acks).collect();
        let scale = |is_it: fn(&Segment) -> bool| {
            let of_way =
                journeys.iter().filter_map(|journey| journey.received_segment().or(journey.segment()));
            of_way.filter(is_it).map(|segment| segment.tcp.options.window_scale).next()
        };
        let scales = [scale(Segment::is_syn), scale(Segment::is_syn_ack)];
        View { server: exchange.server, client_isn: exchange.client_isn, server_isns, scales }
    }

    /// Returns the number relative to the closest initial sequence number before it.
    fn since_server_isn(&self, number: SeqNum) -> u32 {
        self.server_isns.iter().map(|isn| number.since(*isn)).min().unwrap_or(number.0)
    }

    /// Makes later numbers relative to this SYN or SYN-ACK.
    fn notice(&mut self, segment: &Segment) {
        if segment.is_syn_ack() {
            self.server_isns = vec![segment.tcp.seq];
            self.scales[1] = Some(segment.tcp.options.window_scale);
        } else if segment.is_syn() {
            self.client_isn = segment.tcp.seq;
            self.server_isns.clear();
            self.scales = [Some(segment.tcp.options.window_scale), None];
        }
    }

    fn rung(&self, start: Instant, journey: &Journey) -> Option<Rung> {
        let segment = journey.segment()?;
        let ms = |at: Instant| milliseconds(at.since(start));
        Some(Rung {
            sent_ms: Some(ms(journey.sent.at)),
            received_ms: journey.received.as_ref().map(|received| ms(received.at)),
            lost_by: journey.lost.as_ref().map(|(_, by)| by.clone()),
            remarks: remarks(journey, &segment),
            ..self.describe(&segment)
        })
    }

    /// Returns the window in bytes. It is scaled if both SYNs have a scale; a SYN's own window
    /// never is (RFC 7323 §2.2).
    fn window(&self, segment: &Segment, way: Way) -> Option<u32> {
        let raw = u32::from(segment.tcp.window);
        if segment.tcp.flags.contains(Flags::SYN) {
            return Some(raw);
        }
        let [client, server] = self.scales;
        let (Some(client), Some(server)) = (client?, server?) else { return Some(raw) };
        let scale = if way == Way::ToServer { client } else { server };
        Some(raw << scale.min(14))
    }

    /// Describes the segment alone.
    fn describe(&self, segment: &Segment) -> Rung {
        let way = if segment.dst() == self.server { Way::ToServer } else { Way::ToClient };
        let (seq, ack) = match way {
            Way::ToServer => (segment.tcp.seq.since(self.client_isn), self.since_server_isn(segment.tcp.ack)),
            Way::ToClient => (self.since_server_isn(segment.tcp.seq), segment.tcp.ack.since(self.client_isn)),
        };
        Rung {
            way,
            sent_ms: None,
            received_ms: None,
            flags: flags_text(segment.tcp.flags),
            seq,
            ack: segment.tcp.flags.contains(Flags::ACK).then_some(ack),
            len: segment.text_len(),
            window: self.window(segment, way),
            options: options_text(&segment.tcp.options),
            lost_by: None,
            remarks: Vec::new(),
        }
    }
}

/// Returns milliseconds, exact to the nanosecond.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// Formats milliseconds with one decimal, or three below 10 ms.
pub fn milliseconds_text(ms: f64) -> String {
    if ms < 10.0 { format!("{ms:.3} ms") } else { format!("{ms:.1} ms") }
}

/// Formats control bits, SYN first and ACK last.
pub fn flags_text(flags: Flags) -> String {
    let names = [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
        (Flags::ACK, "ACK"),
    ];
    let set: Vec<&str> =
        names.iter().filter(|(bit, _)| flags.contains(*bit)).map(|(_, name)| *name).collect();
    if set.is_empty() { "none".into() } else { set.join(" ") }
}

/// Formats the options worth showing: Fast Open, MSS, and the number of SACK blocks.
pub fn options_text(options: &TcpOptions) -> Vec<String> {
    let fast_open = options.fast_open.map(|option| {
        let kind = if option.kind == FastOpenKind::Experimental { " (254)" } else { "" };
        match option.cookie {
            None => format!("cookie request{kind}"),
            Some(cookie) => format!("cookie {cookie}{kind}"),
        }
    });
    let mss = options.mss.map(|mss| format!("mss {mss}"));
    let sack = (!options.sack.is_empty()).then(|| format!("sack {}", options.sack.len()));
    [fast_open, mss, sack].into_iter().flatten().collect()
}

fn remarks(journey: &Journey, sent: &Segment) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(by) = journey.injected_by {
        remarks.push(format!("sent by {by}"));
    }
    if journey.copy {
        remarks.push("copy".into());
    }
    if let Some(received) = journey.received_segment().filter(|_| journey.is_rewritten()) {
        if received.src() != sent.src() {
            remarks.push(format!("arrives from {}", received.src().ip()));
        }
        if received.dst().ip() != sent.dst().ip() {
            remarks.push(format!("sent to {}", sent.dst().ip()));
        }
        if sent.tcp.options.fast_open.is_some() && received.tcp.options.fast_open.is_none() {
            remarks.push("option stripped".into());
        }
    }
    remarks
}
