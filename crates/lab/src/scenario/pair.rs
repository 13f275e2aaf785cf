//! A client and a server with a path between them, and consecutive visits.

use super::texts;
use crate::apps::{Client, Closer, Opening, Server, Service, Visit, VisitEnd};
use crate::capture::{Capture, HostId};
use crate::exchange::{Exchange, exchanges};
use crate::ladder::{milliseconds, milliseconds_text};
use crate::network::{HostPlan, Network, PathId, Profile, Route};
use crate::report::Recording;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::slice;
use core::time::Duration;
use proto::fast_open::{Key, KeyRing, PathEntry};
use proto::{Addr, Counters};
use serde::Serialize;

/// The client's address in the first run of a scenario (RFC 5737, like the others). See [`in_run`].
pub(super) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// A second address of the client.
pub(super) const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
/// The server's listening address.
pub(super) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 80);

/// The client over IPv6 (RFC 3849).
pub(super) const CLIENT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1));
/// The server's listening address over IPv6.
pub(super) const SERVER_V6: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1)), 80);

/// Returns the address that replaces `first` in the run of this number. Without it, runs in one
/// capture would be copies of each other, and a reader of the capture would see retransmissions.
pub(super) fn in_run(run: usize, first: IpAddr) -> IpAddr {
    // In steps of two: a client may have a second address.
    match first {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + 2 * run as u32).into(),
        IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + 2 * run as u128).into(),
    }
}

/// The server's cookie key at the start.
pub(super) const KEY: Key = Key::from_bytes(*b"the first secret");

/// Virtual time after which a visit is given up: longer than any retransmission sequence of a
/// scenario.
const VISIT_MAX: Duration = Duration::from_secs(600);

/// The plan of a pair.
pub(super) struct PairPlan {
    pub(super) seed: u64,
    pub(super) client: HostPlan,
    pub(super) server: HostPlan,
    pub(super) program: Server,
    pub(super) route: Route,
}

impl PairPlan {
    /// Creates both ends with one profile, in the run of this number.
    pub(super) fn new(seed: u64, run: usize, profile: Profile, program: Server, route: Route) -> PairPlan {
        let client = HostPlan::new(profile, in_run(run, CLIENT));
        let server = HostPlan::new(profile, SERVER.ip());
        PairPlan { seed, client, server, program, route }
    }
}

pub(super) struct Pair {
    pub(super) network: Network,
    pub(super) client: HostId,
    pub(super) server: HostId,
    pub(super) path: PathId,
}

impl Pair {
    pub(super) fn new(plan: PairPlan) -> Pair {
        let mut network = Network::new(plan.seed);
        let client = network.add_host(plan.client, Client::new());
        let server = network.add_host(plan.server, plan.program);
        let path = network.join(client, server, plan.route);
        network.with_stack(server, |stack, _| stack.set_fast_open_key(KeyRing::new(KEY)));
        Pair { network, client, server, path }
    }

    /// Makes a visit and waits until its connection is over.
    pub(super) fn visit(&mut self, visit: Visit) -> Exchange {
        self.visits([visit]).pop().expect("the client sent a SYN")
    }

    /// Starts visits at the same time and waits until all are over.
    pub(super) fn visits(&mut self, visits: impl IntoIterator<Item = Visit>) -> Vec<Exchange> {
        let mark = self.network.capture().mark();
        for visit in visits {
            self.begin(visit);
        }
        self.network.run_until_quiet(VISIT_MAX);
        exchanges(&self.network.capture().since(mark), self.client)
    }

    /// Starts a visit and does not wait.
    pub(super) fn begin(&mut self, visit: Visit) {
        let begun = self.network.with_app(self.client, |client: &mut Client, sys| client.begin(sys, visit));
        begun.expect("the host has the address, and ports are free");
    }

    pub(super) fn finish(self) -> Run {
        let ends = self.network.app::<Client>(self.client).ends().to_vec();
        let remembered = self.remembered();
        Run {
            capture: self.network.capture().clone(),
            client: self.client,
            server: self.server,
            ends,
            remembered,
            counted: self.network.stack(self.server).counters().clone(),
        }
    }

    fn remembered(&self) -> Vec<Remembered> {
        let entries = self.network.stack(self.client).path_cache().iter();
        let entry = |(local, peer, entry): (Addr, Addr, &PathEntry)| Remembered {
            local: local.to_string(),
            peer: peer.to_string(),
            rtt_ms: entry.rtt().map(milliseconds),
            mss: entry.mss,
            cookie: entry.cookie.map(|cookie| cookie.to_string()),
        };
        entries.map(entry).collect()
    }
}

/// The results of a pair's run.
#[derive(Clone, Debug)]
pub struct Run {
    /// All packets of the run.
    pub capture: Capture,
    /// The client.
    pub client: HostId,
    /// The server.
    pub server: HostId,
    /// Ends of the client's visits, as its program saw them.
    pub ends: Vec<Option<VisitEnd>>,
    /// Path cache of the client's stack at the end.
    pub remembered: Vec<Remembered>,
    /// Counters of the server's stack.
    pub counted: Counters,
}

/// An entry of a stack's path cache, in the words of `ip tcp_metrics`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remembered {
    /// The local address.
    pub local: String,
    /// The peer's address.
    pub peer: String,
    /// Smoothed round-trip time, ms.
    pub rtt_ms: Option<f64>,
    /// The peer's MSS, bytes.
    pub mss: Option<u16>,
    /// The cookie, hexadecimal.
    pub cookie: Option<String>,
}

impl fmt::Display for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.peer)?;
        if let Some(rtt) = self.rtt_ms {
            write!(f, " rtt {}", milliseconds_text(rtt).replace(' ', ""))?;
        }
        if let Some(mss) = self.mss {
            write!(f, " fo_mss {mss}")?;
        }
        if let Some(cookie) = &self.cookie {
            write!(f, " fo_cookie {cookie}")?;
        }
        write!(f, " source {}", self.local)
    }
}

impl Run {
    pub(super) fn recording(&self, name: impl Into<String>) -> Recording<'_> {
        Recording {
            name: name.into(),
            capture: &self.capture,
            host: self.client,
            clients: slice::from_ref(&self.client),
        }
    }

    pub(super) fn recording_at_server(&self, name: impl Into<String>) -> Recording<'_> {
        Recording {
            name: name.into(),
            capture: &self.capture,
            host: self.server,
            clients: slice::from_ref(&self.client),
        }
    }
}

/// Returns a visit whose connection the server closes.
pub(super) fn visit(opening: Opening, request_len: usize, reply_len: usize) -> Visit {
    Visit {
        peer: SERVER,
        local: None,
        opening,
        request: texts::request(request_len),
        reply: texts::reply(reply_len),
        closer: Closer::Server,
    }
}

/// Returns a server that answers each request and closes.
pub(super) fn answering(qlen: Option<u32>, request_len: usize, reply_len: usize) -> Server {
    answering_at(SERVER, qlen, request_len, reply_len)
}

/// Returns a server that answers each request at `local` and closes.
pub(super) fn answering_at(
    local: SocketAddr,
    qlen: Option<u32>,
    request_len: usize,
    reply_len: usize,
) -> Server {
    let service = Service::Answer { request_len, reply: texts::reply(reply_len), think: Duration::ZERO };
    Server::new(local, qlen, service, Closer::Server)
}

/// Returns a server that answers each request; `closer` closes.
pub(super) fn answering_until(
    qlen: Option<u32>,
    request_len: usize,
    reply_len: usize,
    closer: Closer,
) -> Server {
    let service = Service::Answer { request_len, reply: texts::reply(reply_len), think: Duration::ZERO };
    Server::new(SERVER, qlen, service, closer)
}
