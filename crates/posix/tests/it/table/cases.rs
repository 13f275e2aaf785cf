//! The calls, by topic. A line is what was called and what it gave; descriptors and ports differ and are not told.

use super::{Calls, Given, descriptors, messages, options, readiness};
use core::net::SocketAddr;
use core::ptr::{null, null_mut};
use libc::{c_int, iovec, msghdr, pollfd, sockaddr};

type Case = fn(&mut Told<'_>);

pub(super) const ALL: [(&str, Case); 24] = [
    ("socket", socket),
    ("names", names),
    ("names shared", names_shared),
    ("names of the departed", departed),
    ("IPv6", v6),
    ("connect", connect),
    ("send and receive", transfer),
    ("several messages", messages::several),
    ("many messages", messages::many),
    ("shutdown", shutdown),
    ("descriptors", descriptors::descriptors),
    ("owner", descriptors::owner),
    ("splice", descriptors::splice),
    ("splice that waits", descriptors::splice_waits),
    ("bytes in a pipe", descriptors::bytes_in_a_pipe),
    ("options", options::options),
    ("device", options::device),
    ("MD5 keys", options::md5_keys),
    ("peek offset", options::peek_offset),
    ("saved SYN", options::saved_syn),
    ("zero copy", options::zerocopy_receive),
    ("readiness", readiness::readiness),
    ("low water", readiness::low_water),
    ("ancillary", readiness::ancillary),
];

/// What was given so far.
pub(super) struct Told<'a> {
    pub(super) calls: &'a dyn Calls,
    pub(super) lines: Vec<String>,
}

const STREAM: c_int = libc::SOCK_STREAM;
const WAITLESS: c_int = STREAM | libc::SOCK_NONBLOCK;
/// No descriptor.
pub(super) const WRONG: c_int = 99_999;
pub(super) const BYTES: [u8; 8] = *b"abcdefgh";

/// A `sockaddr` as bytes.
pub(super) fn name(addr: &str) -> Vec<u8> {
    match addr.parse().unwrap() {
        SocketAddr::V4(v4) => {
            let head = [libc::AF_INET as u16, v4.port().to_be()].map(u16::to_ne_bytes).concat();
            [head.as_slice(), &v4.ip().octets(), &[0; 8]].concat()
        }
        SocketAddr::V6(v6) => {
            let head = [libc::AF_INET6 as u16, v6.port().to_be()].map(u16::to_ne_bytes).concat();
            [head.as_slice(), &[0; 4], &v6.ip().octets(), &[0; 4]].concat()
        }
    }
}

pub(super) fn to(bytes: &[u8]) -> *const sockaddr {
    bytes.as_ptr().cast()
}

pub(super) fn with_port(mut name: Vec<u8>, port: [u8; 2]) -> Vec<u8> {
    name[2..4].copy_from_slice(&port);
    name
}

pub(super) fn vector(entries: &[(*const u8, usize)]) -> Vec<iovec> {
    entries.iter().map(|(base, len)| iovec { iov_base: base.cast_mut().cast(), iov_len: *len }).collect()
}

/// One that says nothing.
pub(super) fn message(iov: &mut [iovec], count: usize) -> msghdr {
    msghdr {
        msg_name: null_mut(),
        msg_namelen: 0,
        msg_iov: iov.as_mut_ptr(),
        msg_iovlen: count as _,
        msg_control: null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    }
}

impl<'a> Told<'a> {
    pub(super) fn new(calls: &'a dyn Calls) -> Told<'a> {
        Told { calls, lines: Vec::new() }
    }

    pub(super) fn say(&mut self, what: &str, given: Given) -> Option<i64> {
        let line = match given {
            Ok(value) => format!("{what} = {value}"),
            Err(errno) => format!("{what} = -1 {:?}", posix::Errno(errno)),
        };
        self.lines.push(line);
        given.ok()
    }

    /// As [`say`](Self::say) of a descriptor, whatever its number.
    pub(super) fn fd(&mut self, what: &str, given: Given) -> c_int {
        self.say(what, given.map(|_| 0));
        given.unwrap_or(-1) as c_int
    }

    pub(super) fn fresh(&mut self, domain: c_int) -> c_int {
        let calls = self.calls;
        self.fd("a fresh socket", calls.socket(domain, WAITLESS, 0))
    }

    fn bind(&mut self, what: &str, fd: c_int, addr: &[u8]) {
        let calls = self.calls;
        self.say(what, calls.bind(fd, to(addr), addr.len() as u32));
    }

    pub(super) fn set(&mut self, fd: c_int, level: c_int, option: c_int, value: i32) {
        let calls = self.calls;
        let given = calls.setsockopt(fd, (level, option), (&raw const value).cast(), 4);
        self.say(&format!("set {level} {option} to {value}"), given);
    }

    /// What an option reads, cut to `room`.
    pub(super) fn get(&mut self, fd: c_int, level: c_int, option: c_int, room: usize) {
        let calls = self.calls;
        let mut value = vec![0xee_u8; room];
        let mut len = room as u32;
        let given = calls.getsockopt(fd, (level, option), value.as_mut_ptr().cast(), &raw mut len);
        value.truncate(len as usize);
        let value = if given.is_ok() { format!("{value:?}") } else { String::new() };
        self.say(&format!("get {level} {option} into {room}: {value}"), given);
    }

    fn error(&mut self, fd: c_int) {
        self.get(fd, libc::SOL_SOCKET, libc::SO_ERROR, 4);
    }

    /// What a descriptor is ready for.
    pub(super) fn ready(&mut self, what: &str, fd: c_int) {
        let all = libc::POLLIN
            | libc::POLLOUT
            | libc::POLLPRI
            | libc::POLLRDHUP
            | libc::POLLRDNORM
            | libc::POLLWRNORM;
        let mut entry = pollfd { fd, events: all, revents: 0 };
        let given = self.calls.poll(&raw mut entry, 1, 0);
        self.say(&format!("{what} is ready for {:#x}", entry.revents), given);
    }

    /// The port a socket has.
    fn port(&mut self, fd: c_int) -> [u8; 2] {
        let mut bytes = [0_u8; 28];
        let mut len = 28;
        self.calls.getsockname(fd, bytes.as_mut_ptr().cast(), &raw mut len).unwrap();
        [bytes[2], bytes[3]]
    }

    /// A listener on loopback, and its name.
    pub(super) fn listener(&mut self) -> (c_int, Vec<u8>) {
        let fd = self.fresh(libc::AF_INET);
        self.bind("bind to loopback", fd, &name("127.0.0.1:0"));
        let calls = self.calls;
        self.say("listen", calls.listen(fd, 5));
        let port = self.port(fd);
        (fd, with_port(name("127.0.0.1:0"), port))
    }

    /// Both ends of a connection.
    pub(super) fn connected(&mut self) -> (c_int, c_int) {
        let (listener, addr) = self.listener();
        let client = self.fresh(libc::AF_INET);
        let calls = self.calls;
        self.say("connect", calls.connect(client, to(&addr), 16));
        calls.deliver();
        let server = self.fd("accept", calls.accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK));
        calls.deliver();
        self.say("close the listener", calls.close(listener));
        (client, server)
    }

    pub(super) fn send(&mut self, what: &str, fd: c_int, len: usize, flags: c_int) {
        let calls = self.calls;
        self.say(what, calls.send(fd, BYTES.as_ptr().cast(), len, flags));
    }

    pub(super) fn recv(&mut self, what: &str, fd: c_int, len: usize, flags: c_int) {
        let mut buf = [0_u8; 64];
        let given = self.calls.recv(fd, buf.as_mut_ptr().cast(), len, flags);
        let got = given.map_or(0, |got| got.min(64)) as usize;
        self.say(&format!("{what} {:?}", &buf[..got]), given);
    }
}

fn socket(t: &mut Told<'_>) {
    let k = t.calls;
    let all = [
        (libc::AF_INET, STREAM, 0),
        (libc::AF_INET, STREAM, libc::IPPROTO_TCP),
        (libc::AF_INET6, STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0),
        (libc::AF_INET, STREAM, libc::IPPROTO_UDP),
        (libc::AF_INET6, STREAM, libc::IPPROTO_ICMPV6),
        (libc::AF_INET, STREAM, 255),
        (libc::AF_INET, STREAM, 256),
        (libc::AF_INET, STREAM, 263),
        (libc::AF_INET, STREAM, -1),
        (libc::AF_INET, STREAM | 0o1_000_000, 0),
        (libc::AF_INET, 0, 0),
        (libc::AF_INET, 4, 0),
        (libc::AF_INET, libc::SOCK_SEQPACKET, 0),
        (libc::AF_INET, 11, 0),
        (libc::AF_INET, 15, 0),
        (libc::AF_INET, 16, 0),
        (0, STREAM, 0),
        (-1, STREAM, 0),
        (45, STREAM, 0),
        (99, STREAM, 0),
    ];
    for (domain, kind, protocol) in all {
        t.fd(&format!("socket {domain} {kind:#x} {protocol}"), k.socket(domain, kind, protocol));
    }
    let mut fds = [0; 2];
    for domain in [libc::AF_INET, libc::AF_INET6, 99] {
        t.say(&format!("socketpair {domain}"), k.socketpair(domain, STREAM, 0, fds.as_mut_ptr()));
    }
    t.say("socketpair, wrong protocol", k.socketpair(libc::AF_INET, STREAM, 17, fds.as_mut_ptr()));
    t.say("socketpair to null", k.socketpair(libc::AF_INET, STREAM, 0, null_mut()));
}

fn names(t: &mut Told<'_>) {
    let k = t.calls;
    let fd = t.fresh(libc::AF_INET);
    let mut pipe = [0; 2];
    t.say("pipe", k.pipe2(pipe.as_mut_ptr(), libc::O_NONBLOCK));
    let any = name("0.0.0.0:0");
    for (what, fd) in [("wrong", WRONG), ("negative", -1), ("a pipe", pipe[0])] {
        t.bind(&format!("bind {what}"), fd, &any);
        t.say(&format!("listen {what}"), k.listen(fd, 1));
        t.say(&format!("accept {what}"), k.accept4(fd, null_mut(), null_mut(), 0));
        t.say(&format!("connect {what}"), k.connect(fd, to(&any), 16));
        t.say(&format!("getsockname {what}"), k.getsockname(fd, null_mut(), null_mut()));
        t.say(&format!("shutdown {what}"), k.shutdown(fd, 0));
        t.set(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1);
        t.get(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 4);
    }
    for len in [0, 1, 2, 15, 129, u32::MAX] {
        let long = [any.clone(), vec![0; 200]].concat();
        t.say(&format!("bind with length {len}"), k.bind(fd, to(&long), len));
        t.say(&format!("connect with length {len}"), k.connect(fd, to(&long), len));
    }
    t.say("bind to null", k.bind(fd, null(), 16));
    t.say("bind to null of no length", k.bind(fd, null(), 0));
    t.say("connect to null", k.connect(fd, null(), 16));
    t.bind("bind to IPv6", fd, &name("[::1]:0"));
    t.bind("bind to another's address", fd, &name("192.0.2.77:0"));
    let mut unspecified = name("127.0.0.1:0");
    unspecified[..2].copy_from_slice(&[0, 0]);
    t.bind("bind to AF_UNSPEC with an address", fd, &unspecified);
    t.bind("bind to AF_UNSPEC", fd, &[0; 16]);
    t.bind("bind twice", fd, &any);
    let (listener, addr) = t.listener();
    t.bind("bind a listener", listener, &any);
    t.say("connect a listener", k.connect(listener, to(&addr), 16));
    t.say("listen again", k.listen(listener, -1));
    t.say("accept nothing", k.accept4(listener, null_mut(), null_mut(), 0));
    t.say("accept with wrong flags", k.accept4(listener, null_mut(), null_mut(), 1));
    t.say("accept of what does not listen", k.accept4(fd, null_mut(), null_mut(), 0));
    let mut buf = [0_u8; 28];
    let mut len = 28;
    t.say("getpeername of a listener", k.getpeername(listener, buf.as_mut_ptr().cast(), &raw mut len));
    t.say("getsockname to null", k.getsockname(listener, null_mut(), &raw mut len));
    t.say("getsockname without length", k.getsockname(listener, buf.as_mut_ptr().cast(), null_mut()));
    len = u32::MAX;
    t.say("getsockname, negative length", k.getsockname(listener, buf.as_mut_ptr().cast(), &raw mut len));
    len = 4;
    t.say("getsockname, short", k.getsockname(listener, buf.as_mut_ptr().cast(), &raw mut len));
    t.say("its length", Ok(len.into()));
}

fn names_shared(t: &mut Told<'_>) {
    let k = t.calls;
    let (listener, addr) = t.listener();
    let any = with_port(name("0.0.0.0:0"), [addr[2], addr[3]]);
    for (reuse, share) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let fd = t.fresh(libc::AF_INET);
        t.set(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, reuse);
        t.set(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, share);
        t.bind("bind beside a listener", fd, &addr);
        t.bind("bind to any beside a listener", fd, &any);
        t.say("close", k.close(fd));
    }
    t.say("close", k.close(listener));
    for (option, other) in [
        (libc::SO_REUSEADDR, libc::SO_REUSEADDR),
        (libc::SO_REUSEPORT, libc::SO_REUSEPORT),
        (libc::SO_REUSEADDR, libc::SO_REUSEPORT),
    ] {
        let (first, second) = (t.fresh(libc::AF_INET), t.fresh(libc::AF_INET));
        t.set(first, libc::SOL_SOCKET, option, 1);
        t.set(second, libc::SOL_SOCKET, other, 1);
        t.bind("bind the first", first, &name("127.0.0.1:0"));
        let port = t.port(first);
        t.bind("bind the second", second, &with_port(name("0.0.0.0:0"), port));
        t.bind("bind the second again", second, &with_port(name("127.0.0.1:0"), port));
        t.say("listen on the first", k.listen(first, 1));
        t.say("listen on the second", k.listen(second, 1));
        t.say("close the first", k.close(first));
        t.say("listen on the second now", k.listen(second, 1));
        t.say("close the second", k.close(second));
    }
}

/// Connections outlive their sockets: in TIME-WAIT, waiting for the peer's FIN, or unread by the peer.
fn departed(t: &mut Told<'_>) {
    let k = t.calls;
    for (reuse, peer_ends) in [(0, true), (1, true), (0, false), (1, false)] {
        let first = t.fresh(libc::AF_INET);
        t.set(first, libc::SOL_SOCKET, libc::SO_REUSEADDR, reuse);
        t.bind("bind", first, &name("127.0.0.1:0"));
        t.say("listen", k.listen(first, 5));
        let addr = with_port(name("127.0.0.1:0"), t.port(first));
        let client = t.fresh(libc::AF_INET);
        t.say("connect", k.connect(client, to(&addr), 16));
        k.deliver();
        let child = t.fd("accept", k.accept4(first, null_mut(), null_mut(), libc::SOCK_NONBLOCK));
        t.say("close the listener", k.close(first));
        let try_all = |t: &mut Told<'_>, what: &str| {
            for (reuse, ip) in [(0, "127.0.0.1:0"), (1, "127.0.0.1:0"), (0, "0.0.0.0:0"), (1, "0.0.0.0:0")] {
                let fd = t.fresh(libc::AF_INET);
                t.set(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, reuse);
                t.bind(&format!("{what}: bind {ip} {reuse}"), fd, &with_port(name(ip), [addr[2], addr[3]]));
                t.say("close", k.close(fd));
            }
            let fd = t.fresh(libc::AF_INET6);
            t.bind(&format!("{what}: bind IPv6"), fd, &with_port(name("[::]:0"), [addr[2], addr[3]]));
            t.say("close", k.close(fd));
        };
        try_all(t, "connected");
        t.say("close the child", k.close(child));
        k.deliver();
        if peer_ends {
            t.say("close the client", k.close(client));
            k.deliver();
        }
        try_all(t, "departed");
        let again = t.fresh(libc::AF_INET);
        t.set(again, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1);
        t.bind("bind again", again, &addr);
        t.say("listen again", k.listen(again, 5));
        t.say("close", k.close(again));
    }
}

fn v6(t: &mut Told<'_>) {
    let k = t.calls;
    for only in [0, 1] {
        let fd = t.fresh(libc::AF_INET6);
        t.set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, only);
        t.get(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 4);
        t.bind("bind to IPv4", fd, &name("127.0.0.1:0"));
        t.bind("bind, short", fd, &name("[::1]:0")[..20]);
        let mapped = t.fresh(libc::AF_INET6);
        t.set(mapped, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, only);
        t.bind("bind to a mapped address", mapped, &name("[::ffff:127.0.0.1]:0"));
        t.bind("bind to any", fd, &name("[::]:0"));
        t.set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1);
        t.say("listen", k.listen(fd, 1));
        let port = t.port(fd);
        let v4 = t.fresh(libc::AF_INET);
        t.bind("bind IPv4 to the same port", v4, &with_port(name("0.0.0.0:0"), port));
        let client = t.fresh(libc::AF_INET);
        t.say("connect by IPv4", k.connect(client, to(&with_port(name("127.0.0.1:0"), port)), 16));
        k.deliver();
        t.error(client);
        let mut peer = [0_u8; 28];
        let mut len = 28;
        let child = t.fd("accept", k.accept4(fd, peer.as_mut_ptr().cast(), &raw mut len, 0));
        t.lines.push(format!("from {:?}", &peer[8..24]));
        t.say("close", k.close(child));
        let other = t.fresh(libc::AF_INET6);
        t.set(other, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1);
        let mapped = with_port(name("[::ffff:127.0.0.1]:0"), port);
        t.say("connect IPv6 only to a mapped address", k.connect(other, to(&mapped), 28));
        t.say(
            "connect IPv6 to IPv4's family",
            k.connect(other, to(&with_port(name("127.0.0.1:0"), port)), 16),
        );
    }
    let fd = t.fresh(libc::AF_INET);
    t.set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1);
    t.get(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 4);
}

fn connect(t: &mut Told<'_>) {
    let k = t.calls;
    let closed = {
        let (listener, addr) = t.listener();
        t.say("close", k.close(listener));
        addr
    };
    let fd = t.fresh(libc::AF_INET);
    t.ready("a fresh socket", fd);
    t.say("connect where nobody listens", k.connect(fd, to(&closed), 16));
    k.deliver();
    t.ready("refused", fd);
    t.say("connect again", k.connect(fd, to(&closed), 16));
    t.error(fd);
    t.say("connect once more", k.connect(fd, to(&closed), 16));
    k.deliver();
    t.error(fd);
    t.error(fd);
    t.recv("recv after a refusal", fd, 8, 0);
    t.send("send after a refusal", fd, 8, 0);
    let fd = t.fresh(libc::AF_INET);
    let mut short = closed.clone();
    short[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
    t.say("connect to another family", k.connect(fd, to(&short), 16));
    t.say("connect to AF_UNSPEC", k.connect(fd, to(&[0; 16]), 16));
    let (client, server) = t.connected();
    t.say("connect, connected", k.connect(client, to(&closed), 16));
    t.say("listen, connected", k.listen(client, 1));
    t.bind("bind, connected", client, &name("127.0.0.1:0"));
    t.say("disconnect", k.connect(client, to(&[0; 16]), 16));
    k.deliver();
    t.ready("disconnected", client);
    let (mut buf, mut len) = ([0_u8; 28], 28);
    t.say("getpeername, disconnected", k.getpeername(client, buf.as_mut_ptr().cast(), &raw mut len));
    t.ready("reset", server);
    t.send("send after a reset", server, 8, 0);
    t.send("send again", server, 8, 0);
    t.recv("recv after a reset", server, 8, 0);
}

fn transfer(t: &mut Told<'_>) {
    let k = t.calls;
    let fd = t.fresh(libc::AF_INET);
    for flags in [0, libc::MSG_OOB, libc::MSG_PEEK, libc::MSG_ERRQUEUE, libc::MSG_WAITALL] {
        t.recv(&format!("recv {flags:#x} of a fresh socket"), fd, 8, flags);
        t.recv(&format!("recv {flags:#x} of nothing"), fd, 0, flags);
    }
    t.send("send of a fresh socket", fd, 8, 0);
    t.send("send of nothing", fd, 0, 0);
    let (listener, _) = t.listener();
    t.recv("recv of a listener", listener, 8, 0);
    t.recv("recv errors of a listener", listener, 8, libc::MSG_ERRQUEUE);
    t.send("send of a listener", listener, 8, 0);
    let (client, server) = t.connected();
    t.recv("recv nothing yet", client, 8, 0);
    t.recv("recv of no length", client, 0, 0);
    t.recv("recv errors", client, 8, libc::MSG_ERRQUEUE);
    t.recv("recv urgent", client, 8, libc::MSG_OOB);
    t.say("recv to null, nothing yet", k.recv(client, null_mut(), 8, 0));
    t.say("send from null", k.send(client, null(), 8, 0));
    t.say("send nothing from null", k.send(client, null(), 0, 0));
    t.send("send", client, 8, 0);
    k.deliver();
    t.say("recv to null", k.recv(server, null_mut(), 4, 0));
    t.recv("peek", server, 3, libc::MSG_PEEK);
    t.recv("cut", server, 2, libc::MSG_TRUNC);
    t.say("throw away into null", k.recv(server, null_mut(), 2, libc::MSG_TRUNC));
    t.recv("the rest", server, 64, libc::MSG_WAITALL | libc::MSG_DONTWAIT);
    let mut some = vector(&[(BYTES.as_ptr(), 0), (BYTES.as_ptr(), 3), (null(), 0), (BYTES.as_ptr(), 2)]);
    t.say("writev", k.writev(client, some.as_ptr(), 4));
    t.say("writev of none", k.writev(client, some.as_ptr(), 0));
    t.say("writev of too many", k.writev(client, some.as_ptr(), 1025));
    t.say("writev of fewer than none", k.writev(client, some.as_ptr(), -1));
    t.say("writev from null", k.writev(client, null(), 1));
    t.say("sendmsg from null", k.sendmsg(client, null(), 0));
    let mut many = message(&mut some, 1025);
    t.say("sendmsg of too many", k.sendmsg(client, &raw const many, 0));
    many.msg_iovlen = 4;
    t.say("sendmsg", k.sendmsg(client, &raw const many, 0));
    many.msg_iovlen = 0;
    t.say("sendmsg of none", k.sendmsg(client, &raw const many, 0));
    k.deliver();
    let mut bad = vector(&[(null(), 4)]);
    t.say("readv to null", k.readv(server, bad.as_ptr(), 1));
    t.say("readv of too many", k.readv(server, bad.as_ptr(), 1025));
    let mut got = message(&mut bad, 1025);
    t.say("recvmsg of too many", k.recvmsg(server, &raw mut got, 0));
    t.say("recvmsg from null", k.recvmsg(server, null_mut(), 0));
    t.recv("both", server, 64, 0);
    let addr = name("127.0.0.1:9");
    t.say("sendto, connected", k.sendto(client, (BYTES.as_ptr().cast(), 3), 0, (to(&addr), 16)));
    t.say(
        "MSG_FASTOPEN, connected",
        k.sendto(client, (BYTES.as_ptr().cast(), 3), libc::MSG_FASTOPEN, (to(&addr), 16)),
    );
    for flags in [libc::MSG_OOB, 0] {
        t.send(&format!("send {flags:#x}"), client, 3, flags);
    }
    k.deliver();
    t.ready("with an urgent byte", server);
    let mut inq = 0;
    t.say("FIONREAD", k.ioctl(server, posix::ioctl::SIOCINQ, &raw mut inq).map(|_| inq.into()));
    t.recv("up to the urgent byte", server, 64, 0);
    t.say("SIOCATMARK", k.ioctl(server, posix::ioctl::SIOCATMARK, &raw mut inq).map(|_| inq.into()));
    t.recv("peek at the urgent byte", server, 64, libc::MSG_OOB | libc::MSG_PEEK);
    t.recv("the urgent byte", server, 64, libc::MSG_OOB);
    t.recv("the urgent byte again", server, 64, libc::MSG_OOB);
    t.recv("behind it", server, 64, 0);
    t.ready("with nothing", server);
    t.set(server, libc::SOL_SOCKET, libc::SO_OOBINLINE, 1);
    t.send("send an urgent byte", client, 1, libc::MSG_OOB);
    k.deliver();
    t.recv("urgent, inline", server, 64, libc::MSG_OOB);
    t.recv("inline", server, 64, 0);
}

fn shutdown(t: &mut Told<'_>) {
    let k = t.calls;
    let fd = t.fresh(libc::AF_INET);
    for how in [-1, 3, 0, 1, 2] {
        t.say(&format!("shutdown {how} of a fresh socket"), k.shutdown(fd, how));
    }
    let (listener, _) = t.listener();
    t.say("shutdown writes of a listener", k.shutdown(listener, 1));
    t.say("accept", k.accept4(listener, null_mut(), null_mut(), 0));
    t.say("shutdown reads of a listener", k.shutdown(listener, 0));
    t.say("accept", k.accept4(listener, null_mut(), null_mut(), 0));
    t.say("listen again", k.listen(listener, 1));
    let (client, _server) = t.connected();
    t.ready("connected", client);
    t.say("shutdown reads", k.shutdown(client, 0));
    t.ready("reads shut", client);
    t.recv("recv, reads shut", client, 8, 0);
    t.say("shutdown both", k.shutdown(client, 2));
    t.ready("both shut", client);
    let (client, server) = t.connected();
    t.say("shutdown writes", k.shutdown(client, 1));
    t.ready("writes shut", client);
    t.send("send, writes shut", client, 8, 0);
    t.say("shutdown writes again", k.shutdown(client, 1));
    k.deliver();
    t.ready("the peer has finished", server);
    t.recv("the end", server, 8, 0);
    t.recv("the end again", server, 8, libc::MSG_PEEK);
    t.send("send to who has finished", server, 8, 0);
    k.deliver();
    t.say("shutdown both", k.shutdown(server, 2));
    k.deliver();
    t.say("shutdown once more", k.shutdown(server, 2));
    t.say("close", k.close(server));
    t.say("close again", k.close(server));
}
