//! A client, a server and the path between them; visits by hand, and what `explain` says.
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

/// Arguments for SYNs of our own; their address is behind the client, which is their router.
pub(super) const OWN: [&str; 6] = ["--tun", "probe0", "--address", "10.79.0.2/24", "--timeout", "500ms"];
/// What `explain` sends.
const REQUEST_LEN: usize = 18;

pub(super) struct Bed {
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) wire: Wire,
    /// Where the server is.
    pub(super) target: SocketAddr,
    /// Lives as long as the bed.
    pub(super) kept: Vec<Box<dyn Any>>,
    peer: KernelPeer,
}

impl Bed {
    /// With a server whose `tcp_fastopen` is 3 and where nobody listens. `None`: skipped, and said.
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

    /// A program listens at the server: at port 80, with `TCP_FASTOPEN`, and closes after its reply, but for what `changes` say.
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

    /// The whole of what the kernel's sockets say.
    #[track_caller]
    pub(super) fn by_kernel(&self) -> Value {
        report(&self.run(&["--json"]))
    }

    /// The whole of what SYNs of our own say.
    #[track_caller]
    pub(super) fn by_own(&self) -> Value {
        report(&self.run(&[&OWN[..], &["--json"]].concat()))
    }

    /// The client's kernel gets the cookie of this server.
    #[track_caller]
    pub(super) fn fetch_cookie(&self) {
        let report = self.by_kernel();
        assert_eq!(report["verdict"]["cause"], "works", "{report:#}");
    }

    /// One connection with the cookie, by hand: it begins with data. It lives as long as what is returned.
    pub(super) fn open(&self, timeout: Duration) -> std::io::Result<TcpStream> {
        let target = self.target;
        self.client.run(|| {
            // Programs that other tests start meanwhile must not keep it open.
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

    /// As [`open`](Self::open), until the reply begins.
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
