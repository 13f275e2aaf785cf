//! Connections found in a capture, and their measurements: from the client's point of view and from
//! packets alone.

use crate::capture::{Capture, HostId, Journey};
use crate::segment::Segment;
use core::net::SocketAddr;
use core::time::Duration;
use proto::Instant;
use std::collections::HashMap;
use wire::{Cookie, Flags, SeqNum};

/// The result of Fast Open on one connection, according to the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The SYN carried neither data nor option.
    Plain,
    /// The SYN requested a cookie.
    CookieRequested {
        /// True if the SYN-ACK granted one.
        granted: bool,
    },
    /// The SYN-ACK acknowledged all of the SYN's data.
    Accepted,
    /// The SYN-ACK acknowledged part of the SYN's data.
    Partial,
    /// The SYN-ACK acknowledged the SYN alone.
    NotAcknowledged {
        /// The Fast Open option that came with it.
        answer: Answer,
    },
    /// No answer came until a plain SYN was sent; its SYN-ACK did not acknowledge the data.
    Lost,
    /// No SYN-ACK arrived.
    Unanswered,
}

/// The Fast Open option of a SYN-ACK, compared with the SYN's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No option.
    NoOption,
    /// The cookie of the SYN.
    SameCookie,
    /// A different cookie.
    NewCookie,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The client's address, as the client sees it.
    pub client: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
    /// The client's initial sequence number.
    pub client_isn: SeqNum,
    /// The server's initial sequence number, if a SYN-ACK arrived.
    pub server_isn: Option<SeqNum>,
    /// Time of the first SYN.
    pub started_at: Instant,
    /// Time at which the client could use the first byte of the reply: not before the SYN-ACK.
    pub first_byte_at: Option<Instant>,
    /// Time of the last packet.
    pub ended_at: Instant,
    /// Data bytes on the first SYN.
    pub syn_data_len: u32,
    /// Bytes of that data that the first SYN-ACK acknowledged.
    pub syn_data_acked: u32,
    /// Cookie of the first SYN.
    pub cookie: Option<Cookie>,
    /// Cookie of the first SYN-ACK.
    pub cookie_granted: Option<Cookie>,
    /// Data bytes on the first SYN-ACK that arrived.
    pub synack_data_len: u32,
    /// Number of SYNs sent.
    pub syns: u32,
    /// The result of Fast Open, according to the packets.
    pub verdict: Verdict,
    /// Data bytes that the client retransmitted.
    pub bytes_resent: u64,
    /// Bytes of all IP packets that both ends sent.
    pub bytes_on_wire: u64,
    /// Every packet that either end sent, lost ones included, in order of sending.
    pub journeys: Vec<Journey>,
}

impl Exchange {
    /// Returns the time from the first SYN to the first byte of the reply.
    pub fn time_to_first_byte(&self) -> Option<Duration> {
        Some(self.first_byte_at?.since(self.started_at))
    }

    /// Returns the number of packets both ends sent, lost ones and copies included.
    pub fn packets(&self) -> usize {
        self.journeys.len()
    }
}

/// Returns the connections that `client` opened, in order of their first SYNs.
pub fn exchanges(capture: &Capture, client: HostId) -> Vec<Exchange> {
    exchanges_of(capture, &[client])
}

/// Returns the connections that any of these clients opened, in order of their first SYNs. Runs in
/// time linear in the packets.
///
/// `clients` must be in ascending order.
pub fn exchanges_of(capture: &Capture, clients: &[HostId]) -> Vec<Exchange> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_port: HashMap<(u16, SocketAddr), Vec<usize>> = HashMap::new();
    for journey in capture.journeys() {
        let Some((flow, segment)) = Flow::of(&journey, clients) else { continue };
        let begins = flow.from_client && segment.is_syn();
        let alike = by_port.entry((flow.client.port(), flow.server)).or_default();
        let of_host = |group: &&usize| groups[**group].flow.host == flow.host;
        let of_address = |group: &&usize| groups[**group].flow.client == flow.client;
        // Behind a NAT a lost packet shows only the public address; the port identifies its client.
        let known = match flow.host {
            Some(_) => alike.iter().rev().find(of_host),
            None => alike.iter().rev().find(of_address).or(alike.last()),
        };
        match known.copied() {
            Some(group) if !begins || groups[group].isn == segment.tcp.seq => {
                groups[group].journeys.push(journey);
            }
            _ if begins => {
                alike.push(groups.len());
                groups.push(Group { flow, isn: segment.tcp.seq, journeys: vec![journey] });
            }
            _ => {}
        }
    }
    groups.into_iter().map(Group::measure).collect()
}

/// Returns the connections opened by third parties, in order of their first SYNs.
pub fn spoofed(capture: &Capture) -> Vec<Exchange> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_ends: HashMap<[SocketAddr; 2], usize> = HashMap::new();
    for journey in capture.journeys() {
        let Some(segment) = journey.segment() else { continue };
        let (from, to) = (segment.src(), segment.dst());
        let is_foreign = journey.injected_by.is_some();
        if let Some(group) = by_ends.get(&if is_foreign { [from, to] } else { [to, from] }) {
            groups[*group].journeys.push(journey);
        } else if is_foreign && segment.is_syn() {
            by_ends.insert([from, to], groups.len());
            let flow = Flow { host: None, client: from, server: to, from_client: true };
            groups.push(Group { flow, isn: segment.tcp.seq, journeys: vec![journey] });
        }
    }
    groups.into_iter().map(Group::measure).collect()
}

/// A connection's packets from the client's point of view: sent and received (or lost on the way to
/// it).
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The client, where the packet was seen at it.
    host: Option<HostId>,
    client: SocketAddr,
    server: SocketAddr,
    from_client: bool,
}

impl Flow {
    fn of(journey: &Journey, clients: &[HostId]) -> Option<(Flow, Segment)> {
        let segment = journey.segment()?;
        let client_of = |host: Option<HostId>| host.filter(|host| clients.binary_search(host).is_ok());
        if let host @ Some(_) = client_of(journey.sent.host) {
            let (client, server) = (segment.src(), segment.dst());
            return Some((Flow { host, client, server, from_client: true }, segment));
        }
        if journey.injected_by.is_some() {
            return None;
        }
        let (host, seen) = match &journey.received {
            Some(received) => (Some(client_of(received.host)?), journey.received_segment()?),
            None => (None, segment.clone()),
        };
        Some((Flow { host, client: seen.dst(), server: seen.src(), from_client: false }, segment))
    }
}

struct Group {
    flow: Flow,
    isn: SeqNum,
    journeys: Vec<Journey>,
}

impl Group {
    fn measure(self) -> Exchange {
        let Group { flow, isn, journeys } = self;
        let first_syn = journeys[0].segment();
        let syn = first_syn.as_ref();
        let from_client = |journey: &&Journey| journey.segment().is_some_and(|seg| seg.dst() == flow.server);
        let syns = journeys
            .iter()
            .filter(from_client)
            .filter(|j| j.segment().is_some_and(|seg| seg.is_syn() && !j.copy));
        let syns = u32::try_from(syns.count()).unwrap_or(u32::MAX);
        let arrived = first_syn_ack(&journeys, flow);
        let syn_ack = arrived.as_ref().map(|(_, segment)| segment);
        let syn_data_len = syn.map_or(0, Segment::text_len);
        let syn_data_acked = syn_ack.map_or(0, |seg| seg.tcp.ack.since(isn + 1)).min(syn_data_len);
        let ended_at = journeys.iter().map(last_seen).max().unwrap_or_default();
        Exchange {
            client: flow.client,
            server: flow.server,
            client_isn: isn,
            server_isn: syn_ack.map(|seg| seg.tcp.seq),
            started_at: journeys[0].sent.at,
            first_byte_at: arrived
                .as_ref()
                .and_then(|(at, seg)| first_byte(&journeys, flow, *at, seg.text_seq())),
            ended_at,
            syn_data_len,
            syn_data_acked,
            cookie: syn.and_then(cookie),
            cookie_granted: syn_ack.and_then(cookie),
            synack_data_len: syn_ack.map_or(0, Segment::text_len),
            syns,
            verdict: verdict(syn, syn_ack, syn_data_acked, syns),
            bytes_resent: bytes_resent(&journeys, flow, isn),
            bytes_on_wire: journeys.iter().map(|journey| journey.sent.bytes.len() as u64).sum(),
            journeys,
        }
    }
}

fn last_seen(journey: &Journey) -> Instant {
    let lost = journey.lost.as_ref().map(|(at, _)| *at);
    journey.received.as_ref().map(|seen| seen.at).or(lost).unwrap_or(journey.sent.at)
}

fn cookie(segment: &Segment) -> Option<Cookie> {
    segment.tcp.options.fast_open?.cookie
}

/// Returns the server's packets in order of arrival at the client.
fn arrivals(journeys: &[Journey], flow: Flow) -> impl Iterator<Item = (Instant, Segment)> {
    journeys.iter().filter_map(move |journey| {
        let segment = journey.received_segment()?;
        (segment.src() == flow.server && segment.dst() == flow.client)
            .then_some((journey.received.as_ref()?.at, segment))
    })
}

fn first_syn_ack(journeys: &[Journey], flow: Flow) -> Option<(Instant, Segment)> {
    arrivals(journeys, flow).filter(|(_, segment)| segment.is_syn_ack()).min_by_key(|(at, _)| *at)
}

/// Returns the arrival time of the byte `first`, but not before the SYN-ACK: the client discards
/// earlier data.
fn first_byte(journeys: &[Journey], flow: Flow, synchronised_at: Instant, first: SeqNum) -> Option<Instant> {
    let holds_it = |segment: &Segment| {
        segment.text_seq().before_or_eq(first) && (segment.text_seq() + segment.text_len()).after(first)
    };
    arrivals(journeys, flow)
        .filter(|(at, segment)| *at >= synchronised_at && holds_it(segment))
        .map(|(at, _)| at)
        .min()
}

fn verdict(syn: Option<&Segment>, syn_ack: Option<&Segment>, acked: u32, syns: u32) -> Verdict {
    let Some(syn) = syn else { return Verdict::Plain };
    let (option, data_len) = (syn.tcp.options.fast_open, syn.text_len());
    if option.is_none() && data_len == 0 {
        return Verdict::Plain;
    }
    let Some(syn_ack) = syn_ack else { return Verdict::Unanswered };
    let granted = cookie(syn_ack);
    match option {
        Some(option) if option.cookie.is_none() && data_len == 0 => {
            Verdict::CookieRequested { granted: granted.is_some() }
        }
        _ if acked == data_len => Verdict::Accepted,
        _ if acked > 0 => Verdict::Partial,
        _ if syns > 1 && granted.is_none() => Verdict::Lost,
        _ => Verdict::NotAcknowledged { answer: answer(cookie(syn), granted) },
    }
}

fn answer(sent: Option<Cookie>, granted: Option<Cookie>) -> Answer {
    match granted {
        None => Answer::NoOption,
        Some(_) if granted == sent => Answer::SameCookie,
        Some(_) => Answer::NewCookie,
    }
}

/// Returns the data bytes that the client retransmitted.
fn bytes_resent(journeys: &[Journey], flow: Flow, isn: SeqNum) -> u64 {
    let mut sent_to = 0u32;
    let mut resent = 0u64;
    let own = journeys.iter().filter(|journey| !journey.copy).filter_map(Journey::segment);
    for segment in
        own.filter(|segment| segment.dst() == flow.server && !segment.tcp.flags.contains(Flags::RST))
    {
        let start = segment.text_seq().since(isn + 1);
        let end = start.wrapping_add(segment.text_len());
        resent += u64::from(sent_to.min(end).saturating_sub(start));
        sent_to = sent_to.max(end);
    }
    resent
}

#[cfg(test)]
mod tests;
