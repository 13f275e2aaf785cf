//! Every call in every state, alone and after another: of the kernel's sockets and of ours. What is told is what the call gave, and what the
//! socket is ready for then.

use super::cases::{name, to};
use super::stage::{STATES, Stage, State};
use super::{Calls, Given, Kernel, Ours};
use core::ptr::{null, null_mut};
use libc::{c_int, epoll_event, pollfd};
use posix::ioctl;
use std::time::Duration;

/// A call about a stage's socket.
#[derive(Clone, Copy)]
struct Call {
    what: &'static str,
    make: fn(&Stage<'_>) -> String,
}

macro_rules! calls {
    ($($what:expr => |$stage:ident| $make:expr;)+) => {
        [$(Call { what: $what, make: |$stage| $make }),+]
    };
}

fn told(given: Given) -> String {
    match given {
        Ok(value) => value.to_string(),
        Err(errno) => format!("{:?}", posix::Errno(errno)),
    }
}

/// As [`told`], where a value is a new descriptor: it is closed.
fn told_fd(stage: &Stage<'_>, given: Given) -> String {
    if let Ok(fd) = given {
        let _ = stage.calls.close(fd as c_int);
    }
    told(given.map(|_| 0))
}

fn send(stage: &Stage<'_>, len: usize, flags: c_int) -> String {
    told(stage.calls.send(stage.fd, b"abcdefgh".as_ptr().cast(), len, flags))
}

fn recv(stage: &Stage<'_>, len: usize, flags: c_int) -> String {
    let mut buf = [0_u8; 64];
    let given = stage.calls.recv(stage.fd, buf.as_mut_ptr().cast(), len, flags);
    format!("{} {:?}", told(given), &buf[..8])
}

fn connect(stage: &Stage<'_>, addr: &str) -> String {
    let addr = name(addr);
    told(stage.calls.connect(stage.fd, to(&addr), addr.len() as u32))
}

fn request(stage: &Stage<'_>, request: u64, mut argument: c_int) -> String {
    let given = stage.calls.ioctl(stage.fd, request, &raw mut argument);
    format!("{} {argument}", told(given))
}

fn control(stage: &Stage<'_>, command: c_int, argument: c_int) -> String {
    told(stage.calls.fcntl(stage.fd, command, argument))
}

/// The address, and whether there is a port.
fn ends(stage: &Stage<'_>) -> String {
    let mut lines = String::new();
    for of_peer in [false, true] {
        let (mut buf, mut len) = ([0_u8; 28], 28);
        let (place, len_place) = (buf.as_mut_ptr().cast(), &raw mut len);
        let given = if of_peer {
            stage.calls.getpeername(stage.fd, place, len_place)
        } else {
            stage.calls.getsockname(stage.fd, place, len_place)
        };
        let named = buf[2..4] != [0, 0];
        lines += &format!("{} {len} {:?} {named} {:?}; ", told(given), &buf[..2], &buf[4..8]);
    }
    lines
}

fn error(stage: &Stage<'_>) -> String {
    let (mut value, mut len) = (0_i32, 4);
    let option = (libc::SOL_SOCKET, libc::SO_ERROR);
    let given = stage.calls.getsockopt(stage.fd, option, (&raw mut value).cast(), &raw mut len);
    format!("{} {:?}", told(given), posix::Errno(value))
}

fn linger(stage: &Stage<'_>) -> String {
    let value = [1_i32, 0];
    let option = (libc::SOL_SOCKET, libc::SO_LINGER);
    told(stage.calls.setsockopt(stage.fd, option, value.as_ptr().cast(), 8))
}

fn ready(stage: &Stage<'_>) -> String {
    let mut entry = pollfd { fd: stage.fd, events: 0x27df, revents: 0 };
    let given = stage.calls.poll(&raw mut entry, 1, 0);
    format!("{} {:#x}", told(given), entry.revents)
}

fn epoll(stage: &Stage<'_>, flags: u32) -> String {
    let calls = stage.calls;
    let instance = calls.epoll_create1(0).unwrap() as c_int;
    let mut event = epoll_event { events: 0x27df | flags, u64: 0 };
    let added = calls.epoll_ctl(instance, libc::EPOLL_CTL_ADD, stage.fd, &raw mut event);
    let mut found = [epoll_event { events: 0, u64: 0 }; 2];
    let count = calls.epoll_wait(instance, found.as_mut_ptr(), 2, 0);
    let again = calls.epoll_wait(instance, [found[1]].as_mut_ptr(), 1, 0);
    calls.close(instance).unwrap();
    format!("{} {} {:#x} {}", told(added), told(count), { found[0].events }, told(again))
}

/// Those that change something, which are made one after another, too.
const MOVES: [Call; 21] = calls! {
    "bind" => |s| { let any = name("127.0.0.1:0"); told(s.calls.bind(s.fd, to(&any), 16)) };
    "listen" => |s| told(s.calls.listen(s.fd, 1));
    "accept" => |s| told_fd(s, s.calls.accept4(s.fd, null_mut(), null_mut(), libc::SOCK_NONBLOCK));
    "connect" => |s| told(s.calls.connect(s.fd, to(&s.addr), s.addr.len() as u32));
    "connect where nobody listens" => |s| connect(s, "127.0.0.1:1");
    "disconnect" => |s| told(s.calls.connect(s.fd, to(&[0; 16]), 16));
    "shut reads" => |s| told(s.calls.shutdown(s.fd, libc::SHUT_RD));
    "shut writes" => |s| told(s.calls.shutdown(s.fd, libc::SHUT_WR));
    "shut both" => |s| told(s.calls.shutdown(s.fd, libc::SHUT_RDWR));
    "send" => |s| send(s, 3, 0);
    "send an urgent byte" => |s| send(s, 1, libc::MSG_OOB);
    "recv" => |s| recv(s, 4, 0);
    "peek" => |s| recv(s, 4, libc::MSG_PEEK);
    "recv the urgent byte" => |s| recv(s, 4, libc::MSG_OOB);
    "the error" => |s| error(s);
    "the peer sends" => |s| told(s.peer_sends(b"12345678", 0));
    "the peer sends an urgent byte" => |s| told(s.peer_sends(b"!", libc::MSG_OOB));
    "the peer shuts writes" => |s| told(s.peer_shuts());
    "the peer reads" => |s| told(s.peer_reads());
    "the peer closes" => |s| told(s.peer_closes(false));
    "the peer resets" => |s| told(s.peer_closes(true));
};

const LOOKS: [Call; 97] = calls! {
    "ready" => |s| ready(s);
    "epoll" => |s| epoll(s, 0);
    "epoll, edges" => |s| epoll(s, 1 << 31);
    "epoll, once" => |s| epoll(s, 1 << 30);
    "names" => |s| ends(s);
    "listen with nothing" => |s| told(s.calls.listen(s.fd, 0));
    "listen with less" => |s| told(s.calls.listen(s.fd, -1));
    "accept, flags" => |s| told_fd(s, s.calls.accept4(s.fd, null_mut(), null_mut(), libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC));
    "accept, wrong flags" => |s| told_fd(s, s.calls.accept4(s.fd, null_mut(), null_mut(), 1));
    "accept, all flags" => |s| told_fd(s, s.calls.accept4(s.fd, null_mut(), null_mut(), -1));
    "bind to another's address" => |s| { let a = name("192.0.2.9:0"); told(s.calls.bind(s.fd, to(&a), 16)) };
    "bind, short" => |s| { let a = name("127.0.0.1:0"); told(s.calls.bind(s.fd, to(&a), 15)) };
    "bind to null" => |s| told(s.calls.bind(s.fd, null(), 16));
    "connect to null" => |s| told(s.calls.connect(s.fd, null(), 16));
    "connect, short" => |s| told(s.calls.connect(s.fd, to(&s.addr), 15));
    "connect, much too short" => |s| told(s.calls.connect(s.fd, to(&s.addr), 1));
    "connect to multicast" => |s| connect(s, "224.0.0.1:9");
    "connect to everybody" => |s| connect(s, "255.255.255.255:9");
    "connect to any" => |s| connect(s, "0.0.0.0:1");
    "connect to no port" => |s| connect(s, "127.0.0.1:0");
    "connect to IPv6" => |s| connect(s, "[::1]:9");
    "shutdown, less" => |s| told(s.calls.shutdown(s.fd, -1));
    "shutdown, more" => |s| told(s.calls.shutdown(s.fd, 3));
    "send nothing" => |s| send(s, 0, 0);
    "send from null" => |s| told(s.calls.send(s.fd, null(), 3, 0));
    "send MSG_MORE" => |s| send(s, 3, libc::MSG_MORE);
    "send MSG_EOR" => |s| send(s, 3, libc::MSG_EOR);
    "send MSG_DONTROUTE" => |s| send(s, 3, libc::MSG_DONTROUTE);
    "send MSG_CONFIRM" => |s| send(s, 3, libc::MSG_CONFIRM);
    "send MSG_PEEK" => |s| send(s, 3, libc::MSG_PEEK);
    "send MSG_TRUNC" => |s| send(s, 3, libc::MSG_TRUNC);
    "send MSG_WAITALL" => |s| send(s, 3, libc::MSG_WAITALL);
    "send MSG_ERRQUEUE" => |s| send(s, 3, libc::MSG_ERRQUEUE);
    "send MSG_ZEROCOPY" => |s| send(s, 3, libc::MSG_ZEROCOPY);
    "send MSG_CMSG_CLOEXEC" => |s| send(s, 3, libc::MSG_CMSG_CLOEXEC);
    "send MSG_OOB of three" => |s| send(s, 3, libc::MSG_OOB);
    "send MSG_OOB of nothing" => |s| send(s, 0, libc::MSG_OOB);
    "send MSG_FASTOPEN" => |s| send(s, 3, libc::MSG_FASTOPEN);
    "send MSG_FASTOPEN of nothing" => |s| send(s, 0, libc::MSG_FASTOPEN);
    "send MSG_FASTOPEN to nobody" => |s| {
        told(s.calls.sendto(s.fd, (b"abc".as_ptr().cast(), 3), libc::MSG_FASTOPEN, (to(&[0; 16]), 16)))
    };
    "send MSG_FASTOPEN from null" => |s| {
        told(s.calls.sendto(s.fd, (null(), 3), libc::MSG_FASTOPEN, (to(&s.addr), s.addr.len() as u32)))
    };
    "sendto" => |s| told(s.calls.sendto(s.fd, (b"abc".as_ptr().cast(), 3), 0, (to(&s.addr), s.addr.len() as u32)));
    "sendto nobody" => |s| told(s.calls.sendto(s.fd, (b"abc".as_ptr().cast(), 3), 0, (to(&[0; 16]), 16)));
    "sendto, short" => |s| told(s.calls.sendto(s.fd, (b"abc".as_ptr().cast(), 3), 0, (to(&s.addr), 3)));
    "writev of nothing" => |s| told(s.calls.writev(s.fd, null(), 0));
    "recv nothing" => |s| recv(s, 0, 0);
    "recv to null" => |s| told(s.calls.recv(s.fd, null_mut(), 4, 0));
    "recv all" => |s| recv(s, 64, 0);
    "recv MSG_TRUNC" => |s| told(s.calls.recv(s.fd, null_mut(), 4, libc::MSG_TRUNC));
    "recv MSG_PEEK MSG_TRUNC" => |s| recv(s, 4, libc::MSG_PEEK | libc::MSG_TRUNC);
    "recv MSG_WAITALL" => |s| recv(s, 9, libc::MSG_WAITALL);
    "recv MSG_WAITALL MSG_PEEK" => |s| recv(s, 9, libc::MSG_WAITALL | libc::MSG_PEEK);
    "recv MSG_WAITALL MSG_TRUNC" => |s| told(s.calls.recv(s.fd, null_mut(), 9, libc::MSG_WAITALL | libc::MSG_TRUNC));
    "recv MSG_OOB MSG_PEEK" => |s| recv(s, 4, libc::MSG_OOB | libc::MSG_PEEK);
    "recv MSG_OOB of nothing" => |s| recv(s, 0, libc::MSG_OOB);
    "recv MSG_OOB MSG_TRUNC" => |s| recv(s, 4, libc::MSG_OOB | libc::MSG_TRUNC);
    "recv MSG_ERRQUEUE" => |s| recv(s, 4, libc::MSG_ERRQUEUE);
    "recv MSG_ERRQUEUE MSG_OOB" => |s| recv(s, 4, libc::MSG_ERRQUEUE | libc::MSG_OOB);
    "recv MSG_DONTROUTE" => |s| recv(s, 4, libc::MSG_DONTROUTE);
    "recv MSG_CMSG_CLOEXEC" => |s| recv(s, 4, libc::MSG_CMSG_CLOEXEC);
    "recv MSG_NOSIGNAL" => |s| recv(s, 4, libc::MSG_NOSIGNAL);
    "recv MSG_FASTOPEN" => |s| recv(s, 4, libc::MSG_FASTOPEN);
    "readv of nothing" => |s| told(s.calls.readv(s.fd, null(), 0));
    "SIOCINQ" => |s| request(s, ioctl::SIOCINQ, -7);
    "SIOCOUTQ" => |s| request(s, ioctl::SIOCOUTQ, -7);
    "SIOCOUTQNSD" => |s| request(s, ioctl::SIOCOUTQNSD, -7);
    "SIOCATMARK" => |s| request(s, ioctl::SIOCATMARK, -7);
    "FIONBIO" => |s| request(s, ioctl::FIONBIO, 1);
    "FIOASYNC" => |s| request(s, 0x5452, 0);
    "FIOCLEX" => |s| request(s, ioctl::FIOCLEX, 0);
    "FIOGETOWN" => |s| request(s, 0x8903, -7);
    "SIOCGPGRP" => |s| request(s, 0x8904, -7);
    "SIOCGSTAMP" => |s| told(s.calls.ioctl(s.fd, 0x8906, null_mut()));
    "TCGETS" => |s| told(s.calls.ioctl(s.fd, 0x5401, null_mut()));
    "F_GETFL" => |s| control(s, libc::F_GETFL, 0);
    "F_SETFL" => |s| control(s, libc::F_SETFL, libc::O_NONBLOCK | libc::O_APPEND) + &control(s, libc::F_GETFL, 0);
    "F_GETOWN" => |s| control(s, libc::F_GETOWN, 0);
    "F_GETSIG" => |s| control(s, 11, 0);
    "F_GETPIPE_SZ" => |s| control(s, libc::F_GETPIPE_SZ, 0);
    "F_GET_SEALS" => |s| control(s, libc::F_GET_SEALS, 0);
    "linger for no time" => |s| linger(s);
    "dup" => |s| told_fd(s, s.calls.dup(s.fd));
    "splice flags" => |s| send(s, 3, libc::MSG_MORE | libc::MSG_EOR | libc::MSG_OOB);
    "unknown flags" => |s| send(s, 3, 1 << 25) + &recv(s, 3, 1 << 25);
    "read of -1" => |s| told(s.calls.read(s.fd, [0_u8; 64].as_mut_ptr().cast(), usize::MAX));
    "write of -1" => |s| told(s.calls.write(s.fd, b"abc".as_ptr().cast(), usize::MAX));
    "recv of -1" => |s| recv(s, usize::MAX, 0);
    "readv of -1" => |s| vector(s, |fd, iov| s.calls.readv(fd, iov, 1));
    "writev of -1" => |s| vector(s, |fd, iov| s.calls.writev(fd, iov, 1));
    "recvmsg of -1" => |s| vector(s, |fd, iov| s.calls.recvmsg(fd, &mut message(iov), 0));
    "sendmsg of -1" => |s| vector(s, |fd, iov| s.calls.sendmsg(fd, &message(iov), 0));
    "sendmsg, control of -1" => |s| {
        let mut control = [0_u64; 8];
        let mut message = message(null_mut());
        (message.msg_iovlen, message.msg_controllen) = (0, usize::MAX);
        message.msg_control = control.as_mut_ptr().cast();
        told(s.calls.sendmsg(s.fd, &raw const message, 0))
    };
    "sendto, name of -1" => |s| told(s.calls.sendto(s.fd, (b"abc".as_ptr().cast(), 3), 0, (to(&s.addr), u32::MAX)));
    "bind, name of -1" => |s| told(s.calls.bind(s.fd, to(&s.addr), u32::MAX));
    "connect, name of -1" => |s| told(s.calls.connect(s.fd, to(&s.addr), u32::MAX));
    "setsockopt of -1" => |s| {
        told(s.calls.setsockopt(s.fd, (libc::SOL_SOCKET, libc::SO_KEEPALIVE), (&raw const ONE).cast(), u32::MAX))
    };
    "getsockopt and names of -1" => |s| {
        let (mut place, mut len) = ([0_u8; 64], u32::MAX);
        let option = (libc::SOL_SOCKET, libc::SO_KEEPALIVE);
        let option = s.calls.getsockopt(s.fd, option, place.as_mut_ptr().cast(), &raw mut len);
        len = u32::MAX;
        let own = s.calls.getsockname(s.fd, place.as_mut_ptr().cast(), &raw mut len);
        len = u32::MAX;
        let peers = s.calls.getpeername(s.fd, place.as_mut_ptr().cast(), &raw mut len);
        format!("{} {} {}", told(option), told(own), told(peers))
    };
};

static ONE: c_int = 1;

/// A message of one buffer.
fn message(iov: *mut libc::iovec) -> libc::msghdr {
    // SAFETY: all zeros are a message.
    let empty: libc::msghdr = unsafe { core::mem::zeroed() };
    libc::msghdr { msg_iov: iov, msg_iovlen: 1, ..empty }
}

/// One buffer whose length is -1.
fn vector(stage: &Stage<'_>, call: impl Fn(c_int, *mut libc::iovec) -> Given) -> String {
    let mut place = *b"abcdefgh";
    let mut iov = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: usize::MAX };
    told(call(stage.fd, &raw mut iov))
}

/// What calls give one after another in a state, and what the socket is ready for after each.
fn play(calls: &dyn Calls, state: State, script: &[Call], patience: Duration) -> Vec<String> {
    let stage = Stage::set(calls, libc::AF_INET, state);
    let mut lines = Vec::new();
    for call in script {
        let given = (call.make)(&stage);
        calls.deliver_at_once();
        std::thread::sleep(patience);
        lines.push(format!("{}: {given}, ready {}", call.what, ready(&stage)));
    }
    lines
}

/// On purpose, or for another reason the same could not be had: state, first call, call, and why.
type Exception = (&'static str, &'static str, &'static str, &'static str);
const EXCEPTIONS: &[Exception] = &[
    ("", "", "connect to no port", "the kernel sends a SYN to port 0, which is nobody's (RFC 6335 §6)"),
    ("Disconnected", "", "SIOCOUTQ", "the kernel moves its sequence numbers on, and tells of the gap"),
    ("Disconnected", "", "SIOCOUTQNSD", "the kernel moves its sequence numbers on, and tells of the gap"),
    ("Refused", "", "SIOCOUTQ", "the kernel counts the SYN that was refused"),
];

fn excused(state: State, script: &[Call]) -> bool {
    let state = format!("{state:?}");
    let last = script.last().map_or("", |call| call.what);
    let first = if script.len() > 1 { script[0].what } else { "" };
    let is = |pattern: &str, what: &str| pattern.is_empty() || pattern == what;
    EXCEPTIONS.iter().any(|(of, before, call, _)| is(of, &state) && is(before, first) && is(call, last))
}

#[test]
fn every_call_answers_as_the_kernels_do_in_every_state() {
    testnet::in_namespace(|| {
        super::leave_descriptors();
        testnet::sysctl("net.ipv4.tcp_fastopen", "1");
        let mut scripts: Vec<Vec<Call>> = LOOKS.iter().map(|look| vec![*look]).collect();
        scripts.extend(MOVES.iter().map(|one| vec![*one]));
        scripts.extend(MOVES.iter().flat_map(|one| MOVES.iter().map(|other| vec![*one, *other])));
        scripts.extend(
            MOVES
                .iter()
                .flat_map(|one| [LOOKS[1], LOOKS[4], LOOKS[63], LOOKS[66]].map(|look| vec![*one, look])),
        );
        let mut differing = Vec::new();
        for state in STATES {
            for script in scripts.iter().filter(|script| !excused(state, script)) {
                let own = play(&Ours::new(), state, script, Duration::ZERO);
                // The kernel delivers within the call, unless the machine is busy.
                let differs = [0, 4]
                    .into_iter()
                    .all(|wait| play(&Kernel, state, script, Duration::from_millis(wait)) != own);
                if differs {
                    let theirs = play(&Kernel, state, script, Duration::from_millis(3));
                    let at = theirs.iter().zip(&own).position(|(theirs, own)| theirs != own).unwrap_or(0);
                    let before = if at > 0 { format!("{}; ", theirs[0]) } else { String::new() };
                    differing.push(format!(
                        "{state:?}: {before}the kernel: {}\n{state:?}: {before}      ours: {}",
                        theirs[at], own[at]
                    ));
                }
            }
        }
        if let Ok(file) = std::env::var("FIRSTBYTE_DIFFERENCES") {
            std::fs::write(file, differing.join("\n")).unwrap();
        }
        assert!(
            differing.is_empty(),
            "{} differ:\n{}",
            differing.len(),
            differing[..differing.len().min(100)].join("\n")
        );
    });
}
