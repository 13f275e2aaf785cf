//! The kernel as an end: its own namespace, its sockets driven by a [`KernelPeer`].
use crate::ends::{Ask, ClientEnd, Closes, End, Exchange, FastOpenCounters, Serve, ServerEnd, Way};
use crate::netns::{Addresses, Host, fast_open_since};
use crate::peer::{KernelPeer, text};
use serde_json::{Value, json};
use std::net::IpAddr;
use testnet::Counters;

/// A kernel in its namespace with a program on its sockets.
#[derive(Debug)]
pub struct KernelEnd {
    /// The namespace.
    pub host: Host,
    /// The program.
    pub peer: KernelPeer,
    partner: Addresses,
    before: Counters,
}

impl KernelEnd {
    /// Takes over a fresh namespace; `partner` is the other end. Fast Open is on for clients and
    /// servers.
    pub fn new(host: Host, partner: Addresses) -> KernelEnd {
        host.sysctl("net.ipv4.tcp_fastopen", "3");
        let peer = KernelPeer::new(&host);
        let before = host.counters();
        KernelEnd { host, peer, partner, before }
    }
}

impl End for KernelEnd {
    fn counters(&self) -> FastOpenCounters {
        fast_open_since(&self.host.counters(), &self.before)
    }

    fn counter(&self, name: &str) -> i64 {
        self.host.counters().of(name) - self.before.of(name)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.host.sysctl(name, value);
    }

    fn addresses(&self) -> Addresses {
        self.host.addresses
    }
}

impl ClientEnd for KernelEnd {
    fn exchange(&mut self, ask: &Ask) -> Exchange {
        let host: IpAddr = self.partner.of(ask.version);
        let way = match ask.way {
            Way::Plain => "plain",
            Way::FastOpen => "msg_fastopen",
            Way::FastOpenConnect => "fastopen_connect",
            Way::NoCookie => "no_cookie",
            Way::FinOnSyn => panic!("the kernel's sockets cannot put a FIN on a SYN"),
        };
        let answer = self.peer.call(&json!({
            "do": "exchange", "host": host, "port": ask.port, "way": way, "data": text(&ask.data),
            "closes": if ask.closes_first { "first" } else { "last" }, "limit": ask.limit.as_secs_f64(),
        }));
        Exchange {
            reply: bytes(&answer["reply"]),
            first_byte_ms: answer["first_byte_ms"].as_f64(),
            total_ms: answer["total_ms"].as_f64().unwrap_or(f64::NAN),
            client_fail: answer["info"]["client_fail"].as_u64().unwrap_or(u64::MAX),
            outcome: None,
            error: answer["error"].as_str().map(str::to_owned),
        }
    }
}

impl ServerEnd for KernelEnd {
    fn serve(&mut self, serve: &Serve) {
        let host = self.host.addresses.of(serve.version);
        let closes = match serve.closes {
            Closes::ServerFirst => "first",
            Closes::ClientFirst => "last",
            Closes::Never => "never",
        };
        self.peer.call(&json!({
            "do": "listen", "id": serve.port, "host": host, "port": serve.port, "qlen": serve.qlen,
            "no_cookie": serve.no_cookie, "key": serve.key.as_deref().map(hex), "expect": serve.expect,
            "reply": text(&serve.reply), "closes": closes, "accept": serve.accept,
        }));
    }

    fn received(&mut self, port: u16) -> Vec<Vec<u8>> {
        let answer = self.peer.call(&json!({"do": "connections", "id": port}));
        let connections = answer["connections"].as_array().cloned().unwrap_or_default();
        for (number, connection) in connections.iter().enumerate() {
            if let Some(error) = connection["error"].as_str() {
                // A test that fails shows it.
                println!("port {port}, connection {number}: the kernel's server ended with {error}");
            }
        }
        connections.iter().map(|connection| bytes(&connection["data"])).collect()
    }

    fn set_key(&mut self, text: &str) {
        self.host.sysctl("net.ipv4.tcp_fastopen_key", text);
    }
}

/// Hexadecimal digits of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that crossed JSON as text of code points below 256.
fn bytes(value: &Value) -> Vec<u8> {
    value.as_str().unwrap_or_default().chars().map(|point| point as u8).collect()
}
