//! Remarks on single packets, from the packets alone.

use crate::capture::{Capture, HostId, Journey, PacketId};
use crate::exchange::{Exchange, exchanges_of};
use crate::ladder::{milliseconds, milliseconds_text};
use crate::segment::Segment;
use proto::Instant;
use std::collections::BTreeMap;
use wire::Flags;

/// Returns remarks by packet, on every connection that `clients` opened and on packets of third
/// parties.
pub(super) fn remarks(capture: &Capture, clients: &[HostId]) -> BTreeMap<PacketId, Vec<String>> {
    let mut remarks: BTreeMap<PacketId, Vec<String>> = BTreeMap::new();
    for journey in capture.journeys().iter().filter(|journey| journey.injected_by.is_some()) {
        let by = journey.injected_by.unwrap_or_default();
        remarks
            .entry(journey.packet)
            .or_default()
            .push(format!("injected by {by}, not sent by the host of this address"));
    }
    for exchange in exchanges_of(capture, clients) {
        let mut syns = 0;
        for journey in &exchange.journeys {
            let Some(segment) = journey.segment() else { continue };
            syns += u32::from(segment.is_syn() && !journey.copy);
            let about = about(&exchange, journey, &segment, syns);
            if !about.is_empty() {
                remarks.entry(journey.packet).or_default().extend(about);
            }
        }
    }
    remarks
}

fn about(exchange: &Exchange, journey: &Journey, segment: &Segment, syns: u32) -> Vec<String> {
    let after = |at: Instant| format!("{} after connect", since_connect(exchange, at));
    let mut about = Vec::new();
    if segment.is_syn() {
        about.extend(about_syn(exchange, journey, segment, syns));
    } else if segment.is_syn_ack() {
        about.extend(about_syn_ack(exchange, segment));
    }
    if let Some(received) = &journey.received
        && Some(received.at) == exchange.first_byte_at
        && segment.src() == exchange.server
        && !segment.payload.is_empty()
    {
        about.push(format!("reply of {} bytes: arrives {}", segment.payload.len(), after(received.at)));
    }
    if segment.is_reset() {
        about.push("resets the connection".into());
    }
    if journey.is_rewritten() {
        about.push("the path changes this packet".into());
    }
    if let Some((at, by)) = &journey.lost {
        about.push(format!("lost {}: {by}", after(*at)));
    }
    about
}

fn since_connect(exchange: &Exchange, at: Instant) -> String {
    milliseconds_text(milliseconds(at.since(exchange.started_at)))
}

fn about_syn(exchange: &Exchange, journey: &Journey, segment: &Segment, syns: u32) -> Option<String> {
    let arrives = journey.received.as_ref().map(|received| {
        format!(": the request arrives {} after connect", since_connect(exchange, received.at))
    });
    let arrives = arrives.unwrap_or_default();
    if syns > 1 {
        return Some(format!(
            "SYN number {syns}, {} after connect",
            since_connect(exchange, journey.sent.at)
        ));
    }
    match (segment.tcp.options.fast_open, segment.payload.len()) {
        (None, 0) => None,
        (None, len) => Some(format!("SYN carries {len} bytes without a cookie{arrives}")),
        (Some(option), 0) if option.cookie.is_none() => Some("SYN requests a Fast Open cookie".into()),
        (Some(_), 0) => Some("SYN carries a cookie without data".into()),
        (Some(_), len) => Some(format!("SYN carries {len} bytes and a cookie{arrives}")),
    }
}

fn about_syn_ack(exchange: &Exchange, segment: &Segment) -> Vec<String> {
    let mut about = Vec::new();
    let acked = segment.tcp.ack.since(exchange.client_isn + 1).min(exchange.syn_data_len);
    match (exchange.syn_data_len, acked) {
        (0, _) => {}
        (len, 0) => {
            about.push(format!("SYN-ACK acknowledges only the SYN: {len} bytes must be retransmitted"))
        }
        (len, acked) if acked == len => {
            about.push(format!("SYN-ACK acknowledges all {len} bytes of the SYN"))
        }
        (len, acked) => about.push(format!("SYN-ACK acknowledges {acked} of the SYN's {len} bytes")),
    }
    if let Some(cookie) = segment.tcp.options.fast_open.and_then(|option| option.cookie) {
        about.push(format!("SYN-ACK grants the cookie {cookie}"));
    }
    if !segment.payload.is_empty() {
        let fin = if segment.tcp.flags.contains(Flags::FIN) { " and the FIN" } else { "" };
        about.push(format!("SYN-ACK carries {} bytes of the reply{fin}", segment.payload.len()));
    }
    about
}
