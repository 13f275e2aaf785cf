//! Sums of a capture: handshakes by the outcome of Fast Open, and the connections that were slowed
//! down most.
use capture::{Connection, Effect, FastOpen, Limit, NotTcp, Packet, Side, Tunnels};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// Most nestings of tunnels that are counted separately; others are counted by their outermost
/// tunnel.
const TUNNELS_MAX: usize = 64;

/// The sums, in memory that does not grow with the capture: a finished connection leaves about 2
/// KiB.
#[derive(Debug)]
pub(crate) struct Account {
    keep: usize,
    kept: BinaryHeap<Reverse<Kept>>,
    connections: u64,
    packets: u64,
    span: Option<(Duration, Duration)>,
    evicted: u64,
    others: BTreeMap<NotTcp, u64>,
    headers_cut: u64,
    tunnels: BTreeMap<Tunnels, u64>,
    unseen: Unseen,
    strays: Strays,
    failures: BTreeMap<&'static str, Failures>,
    handshakes: BTreeMap<FastOpen, Handshakes>,
}

/// A connection, ordered by how long the network delayed it; failed attempts come first.
#[derive(Debug)]
struct Kept {
    is_failure: bool,
    slowed: Duration,
    connection: Box<Connection>,
}

/// Acknowledged data that is missing in the capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unseen {
    /// Connections with missing data.
    pub(crate) connections: u64,
    pub(crate) bytes: u64,
    /// Connections captured in only one direction.
    pub(crate) one_way: u64,
}

/// Packets that do not belong to the connection between their ports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strays {
    /// Packets with sequence numbers of an older connection, and the connections that they came
    /// between.
    pub(crate) older: (u64, u64),
    /// Packets of another server.
    pub(crate) other: (u64, u64),
}

/// Failed attempts with the same reason.
#[derive(Debug)]
pub(crate) struct Failures {
    pub(crate) title: &'static str,
    pub(crate) count: u64,
}

/// Handshakes of one kind.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    pub(crate) count: u64,
    /// Smallest and largest round trip.
    pub(crate) rtt: Option<(Duration, Duration)>,
    pub(crate) saved: Duration,
    pub(crate) wasted: Duration,
}

impl Account {
    /// Keeps the details of `keep` connections.
    pub(crate) fn keeping(keep: usize) -> Account {
        Account {
            keep,
            kept: BinaryHeap::new(),
            connections: 0,
            packets: 0,
            span: None,
            evicted: 0,
            others: BTreeMap::new(),
            headers_cut: 0,
            tunnels: BTreeMap::new(),
            unseen: Unseen::default(),
            strays: Strays::default(),
            failures: BTreeMap::new(),
            handshakes: BTreeMap::new(),
        }
    }

    /// Adds a segment.
    pub(crate) fn note_packet(&mut self, packet: &Packet<'_>) {
        self.packets += 1;
        self.headers_cut += u64::from(packet.is_header_cut);
        if !packet.tunnels.is_empty() {
            let is_known = self.tunnels.len() < TUNNELS_MAX || self.tunnels.contains_key(&packet.tunnels);
            let tunnels = if is_known { packet.tunnels } else { packet.tunnels.outermost() };
            *self.tunnels.entry(tunnels).or_default() += 1;
        }
        let at = packet.at;
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
    }

    /// Adds a frame without a segment.
    pub(crate) fn note_other(&mut self, why: NotTcp) {
        *self.others.entry(why).or_default() += 1;
    }

    pub(crate) fn note_evicted(&mut self, evicted: u64) {
        self.evicted = evicted;
    }

    /// Adds a finished connection.
    pub(crate) fn note(&mut self, connection: Connection) {
        self.connections += 1;
        let handshakes = self.handshakes.entry(connection.fast_open()).or_default();
        handshakes.count += 1;
        if let Some(rtt) = connection.rtt() {
            let (least, most) = handshakes.rtt.unwrap_or((rtt, rtt));
            handshakes.rtt = Some((least.min(rtt), most.max(rtt)));
        }
        match connection.fast_open_effect() {
            Some(Effect::Saved(time)) => handshakes.saved = handshakes.saved.saturating_add(time),
            Some(Effect::Wasted(time)) => handshakes.wasted = handshakes.wasted.saturating_add(time),
            None => {}
        }
        let unseen: u64 = Side::BOTH.map(|side| connection.half(side).unseen_bytes()).iter().sum();
        self.unseen.connections += u64::from(unseen > 0);
        self.unseen.bytes = self.unseen.bytes.saturating_add(unseen);
        self.unseen.one_way += u64::from(connection.captured_only().is_some());
        for (count, (packets, connections)) in [
            (connection.older_packets(), &mut self.strays.older),
            (connection.other_answers(), &mut self.strays.other),
        ] {
            *packets += count;
            *connections += u64::from(count > 0);
        }
        let opening = connection.opening();
        if opening.is_failure() {
            let failures = self.failures.entry(opening.name());
            failures.or_insert(Failures { title: opening.title(), count: 0 }).count += 1;
        }
        self.kept.push(Reverse(Kept {
            is_failure: opening.is_failure(),
            slowed: slowed(&connection),
            connection: Box::new(connection),
        }));
        if self.kept.len() > self.keep {
            self.kept.pop();
        }
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections
    }

    /// Returns the number of segments.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the time from the first segment to the last.
    pub(crate) fn span(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(first, last)| last - first)
    }

    /// Returns the number of connections dropped for lack of memory before their end.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the frames without a segment, by reason.
    pub(crate) fn others(&self) -> impl Iterator<Item = (NotTcp, u64)> {
        self.others.iter().map(|(why, count)| (*why, *count))
    }

    /// Returns the number of segments with a truncated header.
    pub(crate) fn headers_cut(&self) -> u64 {
        self.headers_cut
    }

    /// Returns the segments found in tunnels, by tunnels.
    pub(crate) fn tunnels(&self) -> impl Iterator<Item = (Tunnels, u64)> {
        self.tunnels.iter().map(|(tunnels, count)| (*tunnels, *count))
    }

    pub(crate) fn unseen(&self) -> Unseen {
        self.unseen
    }

    pub(crate) fn strays(&self) -> Strays {
        self.strays
    }

    /// Returns the failed attempts, by the name of the reason.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, &Failures)> {
        self.failures.iter().map(|(name, failures)| (*name, failures))
    }

    /// Returns the time of the last segment, since 1970.
    pub(crate) fn ended_at(&self) -> Option<Duration> {
        self.span.map(|(_, last)| last)
    }

    /// Returns the handshakes by the outcome of Fast Open.
    pub(crate) fn handshakes(&self) -> impl Iterator<Item = (FastOpen, &Handshakes)> {
        self.handshakes.iter().map(|(kind, handshakes)| (*kind, handshakes))
    }

    /// Returns the kept connections: failed attempts first. The others are ordered by number if all
    /// were kept, otherwise by how much they were slowed down.
    pub(crate) fn kept(&self) -> Vec<&Connection> {
        let mut kept: Vec<&Kept> = self.kept.iter().map(|Reverse(kept)| kept).collect();
        if self.connections > self.keep as u64 {
            kept.sort_by(|one, other| other.cmp(one));
        } else {
            kept.sort_by_key(|kept| (!kept.is_failure, kept.connection.number()));
        }
        kept.into_iter().map(|kept| &*kept.connection).collect()
    }
}

/// Returns how long the network, and not an application, delayed a connection.
fn slowed(connection: &Connection) -> Duration {
    let by_network = [Limit::ReceiveWindow, Limit::Congestion, Limit::Nagle, Limit::Loss];
    let waits = Side::BOTH
        .into_iter()
        .flat_map(|side| by_network.map(|limit| connection.half(side).sender().waited(limit)));
    let opening = match connection.fast_open_effect() {
        Some(Effect::Wasted(time)) => time,
        _ => connection.handshake().retried_for(),
    };
    waits.fold(opening, Duration::saturating_add)
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> std::cmp::Ordering {
        // Of two that were slowed down equally, the first one counts more.
        let key = |kept: &Kept| (kept.is_failure, kept.slowed, Reverse(kept.connection.number()));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Kept {}
