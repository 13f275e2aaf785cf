//! A client, a server and the path between them; visits by hand, and the output of `explain`.
use crate::{firstbyte, stderr, stdout};
use interop::hook;
use interop::netns::{Addresses, Host};
use interop::path::Wire;
use interop::peer::KernelPeer;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};
use serde_json::{Value, json};
use std::any::Any;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Output;
use std::time::Duration;

/// Arguments for own SYNs; their address is behind the client, which is their router.
pub(super) const OWN: [&str; 6] = ["--tun", "probe0", "--address", "10.79.0.2/24", "--timeout", "500ms"];
/// Length of the request that `explain` sends.
const REQUEST_LEN: usize = 18;

pub(super) struct Bed {
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) wire: Wire,
    /// Address of the server.
    pub(super) target: SocketAddr,
    /// Kept as long as the bed.
    pub(super) kept: Vec<Box<dyn Any>>,
    peer: KernelPeer,
}

impl Bed {
    /// Starts with a server whose `tcp_fastopen` is 3 and that has no listener. Returns `None` if
    /// skipped.
    pub(super) fn new() -> Option<Bed> {
        if let Err(reason) = testnet::can() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
            return None;
        }
        let ((client, client_side), (server, server_side)) =
            (Host::new(Addresses::nth(1)), Host::new(Addresses::nth(2)));
        server.sysctl("net.ipv4.tcp_fastopen", "3");
        client.sysctl("net.ipv4.ip_forward", "1");
        route(&server, &["10.79.0.0/24", "via", "10.77.0.1"]);
        let wire = Wire::new(client_side, server_side, Duration::from_millis(5));
        let (target, peer) = (SocketAddr::new(server.addresses.v4.into(), 80), KernelPeer::new(&server));
        Some(Bed { client, server, wire, target, kept: Vec::new(), peer })
    }

    /// Starts a listener at the server: at port 80, with `TCP_FASTOPEN`, closing after its reply,
    /// except for `changes`.
    pub(super) fn listen(&mut self, changes: &Value) {
        let mut task = json!({
            "do": "listen", "id": 0, "host": self.server.addresses.v4, "port": 80, "qlen": 16,
            "expect": REQUEST_LEN, "reply": "hello", "closes": "first",
        });
        for (name, value) in changes.as_object().unwrap() {
            task[name] = value.clone();
        }
        self.peer.call(&task);
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        let target = self.target.to_string();
        self.client.output(firstbyte().args(["explain", &target]).args(arguments))
    }

    /// Returns the full output with the kernel's sockets.
    #[track_caller]
    pub(super) fn by_kernel(&self) -> Value {
        report(&self.run(&["--json"]))
    }

    /// Returns the full output with own SYNs.
    #[track_caller]
    pub(super) fn by_own(&self) -> Value {
        report(&self.run(&[&OWN[..], &["--json"]].concat()))
    }

    /// Makes the client's kernel fetch a cookie of this server.
    #[track_caller]
    pub(super) fn fetch_cookie(&self) {
        let report = self.by_kernel();
        assert_eq!(report["verdict"]["cause"], "works", "{report:#}");
    }

    /// Opens a connection with the cookie and data, by hand.
    pub(super) fn open(&self, timeout: Duration) -> std::io::Result<TcpStream> {
        let target = self.target;
        self.client.run(|| {
            // Programs started by other tests must not inherit it.
            let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
            let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
            for side in [Timeout::Send, Timeout::Recv] {
                set_socket_timeout(&socket, side, Some(timeout))?;
            }
            // MSG_FASTOPEN (include/linux/socket.h).
            let fast_open = SendFlags::from_bits_retain(0x2000_0000);
            sendto(&socket, &[b'x'; REQUEST_LEN], fast_open, &target)?;
            Ok(TcpStream::from(socket))
        })
    }

    /// Calls [`open`](Self::open), and reads the first bytes of the reply.
    pub(super) fn visit(&self, timeout: Duration) -> std::io::Result<usize> {
        self.open(timeout)?.read(&mut [0; 9])
    }

    pub(super) fn pass(&self) {
        self.wire.set_hook(hook::pass());
    }
}

#[track_caller]
fn report(output: &Output) -> Value {
    serde_json::from_str(stdout(output))
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(output), stderr(output)))
}

pub(super) fn route(host: &Host, to: &[&str]) {
    let added = host.output(testnet::command("ip").args(["route", "add"]).args(to));
    assert!(added.status.success(), "{to:?}: {}", stderr(&added));
}
