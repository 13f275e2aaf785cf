//! The two ends of an exchange, for any implementation.
//!
//! Each row of a table runs with the kernel at both ends (the control) and with our stack in place
//! of either. So tests speak to [`ClientEnd`] and [`ServerEnd`]; who stands behind them is the test
//! bed's choice.
use crate::netns::{Addresses, IpVersion};
use proto::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// Fast Open counters by Linux's name without `TCPFastOpen`: `Active`, `PassiveFail`, … Zeros are
/// left out.
pub type FastOpenCounters = BTreeMap<String, i64>;

/// Writes counters as a test expects them: `counters(&[("Active", 1)])`.
pub fn counters(expected: &[(&str, i64)]) -> FastOpenCounters {
    expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// The way in which a client opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Without Fast Open.
    Plain,
    /// `MSG_FASTOPEN`, or `connect_with` of the library.
    FastOpen,
    /// `TCP_FASTOPEN_CONNECT`, or the library's deferred connect.
    FastOpenConnect,
    /// `TCP_FASTOPEN_NO_COOKIE`.
    NoCookie,
    /// Data and FIN both on the SYN, where the library may. A kernel has no such thing.
    FinOnSyn,
}

/// The side that closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closes {
    /// The server, right after its reply.
    ServerFirst,
    /// The client, right after its request.
    ClientFirst,
    /// Nobody.
    Never,
}

/// A client's request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The way to open.
    pub way: Way,
    /// The server's port.
    pub port: u16,
    /// Over which IP.
    pub version: IpVersion,
    /// The request.
    pub data: Vec<u8>,
    /// Whether the client shuts down first.
    pub closes_first: bool,
    /// When to give up.
    pub limit: Duration,
}

impl Ask {
    /// The exchange of the tables: port 80, IPv4, 27 bytes, 20 s.
    pub fn new(way: Way) -> Ask {
        let data = vec![b'q'; 27];
        Ask {
            way,
            port: 80,
            version: IpVersion::V4,
            data,
            closes_first: false,
            limit: Duration::from_secs(20),
        }
    }
}

/// The behaviour of a server on one port.
#[derive(Clone, Debug)]
pub struct Serve {
    /// The port.
    pub port: u16,
    /// Over which IP.
    pub version: IpVersion,
    /// Fast Open's queue limit; 0 = off.
    pub qlen: u32,
    /// `TCP_FASTOPEN_NO_COOKIE`.
    pub no_cookie: bool,
    /// Own keys of the listener (16 or 32 bytes).
    pub key: Option<Vec<u8>>,
    /// Bytes to read before the reply; 0 = the server speaks first.
    pub expect: usize,
    /// The reply.
    pub reply: Vec<u8>,
    /// The side that closes the connection.
    pub closes: Closes,
    /// Whether connections are accepted at all.
    pub accept: bool,
}

impl Serve {
    /// The exchange of the tables: port 80, IPv4, Fast Open with a queue of 16, 43 bytes after 27,
    /// server closes first.
    pub fn new() -> Serve {
        Serve {
            port: 80,
            version: IpVersion::V4,
            qlen: 16,
            no_cookie: false,
            key: None,
            expect: 27,
            reply: vec![b'r'; 43],
            closes: Closes::ServerFirst,
            accept: true,
        }
    }
}

impl Default for Serve {
    fn default() -> Serve {
        Serve::new()
    }
}

/// The result of an exchange, as the client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// All that came back.
    pub reply: Vec<u8>,
    /// From before the first call to the first byte, ms.
    pub first_byte_ms: Option<f64>,
    /// From before the first call to the end of the stream, ms.
    pub total_ms: f64,
    /// `tcpi_fastopen_client_fail`: 0 none, 1 cookie unavailable, 2 data not acknowledged, 3 SYN
    /// retransmitted. Our outcomes are told in these numbers too.
    pub client_fail: u64,
    /// The Fast Open outcome of our library; `None` from the kernel, or when there was no
    /// connection.
    pub outcome: Option<Outcome>,
    /// The error that ended the exchange early.
    pub error: Option<String>,
}

/// Calls that client and server have in common.
pub trait End {
    /// Fast Open counters since the start.
    fn counters(&self) -> FastOpenCounters;
    /// Any counter by Linux's name.
    fn counter(&self, name: &str) -> i64;
    /// Changes a setting by Linux's name, e.g. `net.ipv4.tcp_fastopen`.
    fn set(&mut self, name: &str, value: &str);
    /// Its addresses.
    fn addresses(&self) -> Addresses;
}

/// A client.
pub trait ClientEnd: End {
    /// One exchange, from connect to close.
    fn exchange(&mut self, ask: &Ask) -> Exchange;
}

/// A server.
pub trait ServerEnd: End {
    /// Starts to serve a port.
    fn serve(&mut self, serve: &Serve);
    /// Bytes that each connection of a port sent so far, in order of acceptance.
    fn received(&mut self, port: u16) -> Vec<Vec<u8>>;
    /// Replaces the keys every listener without own keys uses.
    fn set_key(&mut self, text: &str);
}
