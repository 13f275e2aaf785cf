//! Options: lengths, pointers, ranges, and what is read back.

use super::cases::{Told, WRONG, name, to};
use core::ptr::{null, null_mut};

pub(super) fn options(t: &mut Told<'_>) {
    use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};
    let k = t.calls;
    let fd = t.fresh(libc::AF_INET);
    for level in [SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6, 255, -1] {
        t.set(fd, level, 9999, 1);
        t.get(fd, level, 9999, 4);
    }
    let one = 1_i32;
    let value = (&raw const one).cast();
    let known = [(SOL_SOCKET, libc::SO_KEEPALIVE), (IPPROTO_TCP, libc::TCP_NODELAY)];
    for option in known {
        for len in [0, 1, 3, 4, 5, 8, u32::MAX] {
            let long = [1_i32, 0];
            t.say(
                &format!("set {option:?} of length {len}"),
                k.setsockopt(fd, option, long.as_ptr().cast(), len),
            );
        }
        t.say("set from null", k.setsockopt(fd, option, null(), 4));
        t.say("set from null of no length", k.setsockopt(fd, option, null(), 0));
        t.say("set of a wrong one", k.setsockopt(WRONG, option, value, 4));
        let mut len = 4;
        t.say("get into null", k.getsockopt(fd, option, null_mut(), &raw mut len));
        t.say("get without length", k.getsockopt(fd, option, null_mut(), null_mut()));
        len = u32::MAX;
        t.say("get, negative length", k.getsockopt(fd, option, null_mut(), &raw mut len));
        for room in [0, 1, 3, 4, 9] {
            t.get(fd, option.0, option.1, room);
        }
    }
    let switches =
        [libc::SO_REUSEADDR, libc::SO_REUSEPORT, libc::SO_OOBINLINE, libc::SO_KEEPALIVE, libc::SO_BROADCAST]
            .into_iter()
            .chain([libc::SO_DONTROUTE, libc::SO_ZEROCOPY, libc::SO_TIMESTAMP, libc::SO_TIMESTAMPNS]);
    for option in switches {
        for value in [1, 2, -1, 0] {
            t.set(fd, SOL_SOCKET, option, value);
            t.get(fd, SOL_SOCKET, option, 4);
        }
    }
    for option in [
        libc::SO_TYPE,
        libc::SO_PROTOCOL,
        libc::SO_DOMAIN,
        libc::SO_ERROR,
        libc::SO_ACCEPTCONN,
        libc::SO_SNDLOWAT,
    ] {
        t.set(fd, SOL_SOCKET, option, 1);
        t.get(fd, SOL_SOCKET, option, 8);
    }
    for option in [
        libc::SO_PASSCRED,
        libc::SO_INCOMING_CPU,
        libc::SO_BINDTODEVICE,
        libc::SO_PEERCRED,
        libc::SO_BUSY_POLL,
    ] {
        t.get(fd, SOL_SOCKET, option, 16);
    }
    for value in [0, 1, 500, 5000] {
        t.set(fd, SOL_SOCKET, libc::SO_RCVLOWAT, value);
        t.get(fd, SOL_SOCKET, libc::SO_RCVLOWAT, 4);
        t.set(fd, SOL_SOCKET, libc::SO_PRIORITY, value.clamp(0, 6));
        t.get(fd, SOL_SOCKET, libc::SO_PRIORITY, 4);
    }
    for value in [0, 1, 5000, 100_000] {
        t.set(fd, SOL_SOCKET, libc::SO_SNDBUF, value);
        t.get(fd, SOL_SOCKET, libc::SO_SNDBUF, 4);
        t.set(fd, SOL_SOCKET, libc::SO_RCVBUF, value);
        t.get(fd, SOL_SOCKET, libc::SO_RCVBUF, 4);
    }
    for linger in [[1, 5], [0, 9], [1, 0]] {
        t.say("set SO_LINGER", k.setsockopt(fd, (SOL_SOCKET, libc::SO_LINGER), linger.as_ptr().cast(), 8));
        t.get(fd, SOL_SOCKET, libc::SO_LINGER, 8);
    }
    t.set(fd, SOL_SOCKET, libc::SO_LINGER, 1);
    for time in [[1_i64, 500_000], [0, 0], [0, 1_000_000], [0, -1]] {
        let given = k.setsockopt(fd, (SOL_SOCKET, libc::SO_RCVTIMEO), time.as_ptr().cast(), 16);
        t.say(&format!("set SO_RCVTIMEO to {time:?}"), given);
        t.get(fd, SOL_SOCKET, libc::SO_RCVTIMEO, 16);
    }
    t.set(fd, SOL_SOCKET, libc::SO_RCVTIMEO, 1);
    for flags in [0x10, 1 << 30, 0x80, 1 << 16, 1 << 12, 0] {
        t.set(fd, SOL_SOCKET, libc::SO_TIMESTAMPING, flags);
        t.get(fd, SOL_SOCKET, libc::SO_TIMESTAMPING, 8);
    }
    for (option, values) in [
        (libc::TCP_NODELAY, [0, 1, 2, -1]),
        (libc::TCP_CORK, [1, 5, -1, 0]),
        (libc::TCP_MAXSEG, [87, 88, 32_767, 32_768]),
        (libc::TCP_KEEPIDLE, [0, 1, 32_767, 32_768]),
        (libc::TCP_KEEPINTVL, [0, 1, 32_767, 32_768]),
        (libc::TCP_KEEPCNT, [0, 1, 127, 128]),
        (libc::TCP_SYNCNT, [0, 1, 127, 128]),
        (libc::TCP_LINGER2, [-5, 7, 60, 10]),
        (libc::TCP_DEFER_ACCEPT, [1, 5, 100_000, 0]),
        (libc::TCP_USER_TIMEOUT, [-1, 1, 30_000, 0]),
        (libc::TCP_NOTSENT_LOWAT, [1, 5000, 0, 9]),
        (libc::TCP_WINDOW_CLAMP, [0, 5, 5000, 0]),
        (libc::TCP_THIN_LINEAR_TIMEOUTS, [1, 2, -1, 0]),
        (libc::TCP_THIN_DUPACK, [1, 2, -1, 0]),
        (libc::TCP_FASTOPEN, [-1, 7, 0, 5]),
        (libc::TCP_FASTOPEN_CONNECT, [2, -1, 1, 0]),
        (libc::TCP_FASTOPEN_NO_COOKIE, [2, -1, 1, 0]),
        (36, [2, -1, 1, 0]),
        (44, [999, 1000, 120_000, 120_001]),
    ] {
        for value in values {
            t.set(fd, IPPROTO_TCP, option, value);
            t.get(fd, IPPROTO_TCP, option, 4);
        }
    }
    // Reno is what every kernel lets every user choose.
    for (name, len) in [("reno", 4), ("nothing", 7), ("reno", 0)] {
        let given = k.setsockopt(fd, (IPPROTO_TCP, libc::TCP_CONGESTION), name.as_ptr().cast(), len);
        t.say(&format!("set TCP_CONGESTION to {name}"), given);
        t.get(fd, IPPROTO_TCP, libc::TCP_CONGESTION, 16);
    }
    for (name, len) in [("mptcp", 5), ("mptcp\0", 6), ("mptc", 4), ("nothing", 7)] {
        let given = k.setsockopt(fd, (IPPROTO_TCP, libc::TCP_ULP), name.as_ptr().cast(), len);
        t.say(&format!("set TCP_ULP to {name}"), given);
        t.get(fd, IPPROTO_TCP, libc::TCP_ULP, 16);
    }
    for option in
        [libc::TCP_REPAIR_QUEUE, libc::TCP_QUEUE_SEQ, libc::TCP_REPAIR_OPTIONS, libc::TCP_TIMESTAMP, 29, 43]
    {
        t.set(fd, IPPROTO_TCP, option, 1);
    }
    for option in [
        libc::TCP_REPAIR,
        libc::TCP_REPAIR_QUEUE,
        libc::TCP_QUEUE_SEQ,
        29,
        43,
        libc::TCP_ULP,
        libc::TCP_MD5SIG,
    ] {
        t.get(fd, IPPROTO_TCP, option, 20);
    }
    for (option, values) in [
        (libc::IP_TOS, [0x10, 0x13, 255, 0]),
        (libc::IP_TTL, [0, 1, 255, 256]),
        (libc::IP_RECVERR, [1, 5, -1, 0]),
        (libc::IP_MTU_DISCOVER, [-1, 6, 3, 0]),
        (libc::IP_FREEBIND, [1, 2, -1, 0]),
    ] {
        t.get(fd, IPPROTO_IP, option, 4);
        for value in values {
            t.set(fd, IPPROTO_IP, option, value);
            t.get(fd, IPPROTO_IP, option, 4);
        }
    }
    t.get(fd, IPPROTO_IP, libc::IP_MTU, 4);
}

/// `SO_BINDTODEVICE`. To bind again what is bound, or to take it back, needs rights in the kernel, which ours always has.
pub(super) fn device(t: &mut Told<'_>) {
    use libc::SOL_SOCKET;
    let k = t.calls;
    let option = (SOL_SOCKET, libc::SO_BINDTODEVICE);
    // SAFETY: it takes nothing.
    let may = unsafe { libc::geteuid() } == 0;
    let long = [b"lo".as_slice(), &[0; 13], b"x, which is not looked at"].concat();
    for name in
        [b"lo".as_slice(), b"lo\0", b"lo\0x", b"l", b"lo0", b"nosuchdevice", b"", b"\0lo", &long, &[b'l'; 40]]
    {
        let fd = t.fresh(libc::AF_INET);
        let given = k.setsockopt(fd, option, name.as_ptr().cast(), name.len() as u32);
        t.say(&format!("SO_BINDTODEVICE {name:?}"), given);
        for room in [0, 2, 15, 16, 64] {
            t.get(fd, SOL_SOCKET, libc::SO_BINDTODEVICE, room);
        }
        for again in [b"nosuchdevice".as_slice(), b"lo", b"", b"lo", b"\0"].into_iter().filter(|_| may) {
            let given = k.setsockopt(fd, option, again.as_ptr().cast(), again.len() as u32);
            t.say(&format!("and then {again:?}"), given);
            t.get(fd, SOL_SOCKET, libc::SO_BINDTODEVICE, 16);
        }
        t.say("close", k.close(fd));
    }
    let fd = t.fresh(libc::AF_INET6);
    t.say("a null name", k.setsockopt(fd, option, null(), 2));
    t.say("no name", k.setsockopt(fd, option, null(), 0));
    let (listener, addr) = t.listener();
    t.say("a listener", k.setsockopt(listener, option, b"lo".as_ptr().cast(), 2));
    let client = t.fresh(libc::AF_INET);
    t.say("connect", k.connect(client, to(&addr), 16));
    k.deliver();
    let child = t.fd("accept", k.accept4(listener, null_mut(), null_mut(), 0));
    t.get(child, SOL_SOCKET, libc::SO_BINDTODEVICE, 16);
    t.get(client, SOL_SOCKET, libc::SO_BINDTODEVICE, 16);
    t.say("a connection", k.setsockopt(client, option, b"lo".as_ptr().cast(), 2));
    t.get(client, SOL_SOCKET, libc::SO_BINDTODEVICE, 16);
    t.send("it sends", client, 4, 0);
    k.deliver();
    t.recv("it came", child, 8, 0);
}

/// `SO_PEEK_OFF`: peeking goes on where it ended, reading takes what was peeked at away from under it.
pub(super) fn peek_offset(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    let peek = |t: &mut Told<'_>, len: usize| {
        t.recv("peek", server, len, libc::MSG_PEEK);
        t.get(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 4);
    };
    t.get(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 4);
    t.send("eight bytes", client, 8, 0);
    k.deliver();
    peek(t, 3);
    t.set(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 0);
    for len in [3, 2, 9, 1] {
        peek(t, len);
    }
    t.send("eight more", client, 8, 0);
    k.deliver();
    peek(t, 4);
    t.recv("read", server, 5, 0);
    peek(t, 2);
    t.recv("read", server, 9, 0);
    t.get(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 4);
    t.set(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 1);
    peek(t, 9);
    t.set(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 100);
    peek(t, 1);
    t.recv("read over it", server, 9, 0);
    t.set(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1);
    peek(t, 1);
    t.set(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, -7);
    t.send("eight again", client, 8, 0);
    k.deliver();
    peek(t, 2);
    peek(t, 2);
    t.set(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 2);
    t.recv("with MSG_TRUNC", server, 3, libc::MSG_PEEK | libc::MSG_TRUNC);
    t.get(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 4);
    t.recv("thrown away", server, 3, libc::MSG_TRUNC);
    t.get(server, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 4);
}

/// `TCP_SAVE_SYN`, as long as the headers are, which on loopback is the same.
pub(super) fn saved_syn(t: &mut Told<'_>) {
    use libc::{IPPROTO_TCP, TCP_SAVE_SYN, TCP_SAVED_SYN};
    let k = t.calls;
    for saving in [0, 1] {
        let (listener, addr) = t.listener();
        t.set(listener, IPPROTO_TCP, TCP_SAVE_SYN, saving);
        let client = t.fresh(libc::AF_INET);
        t.say("connect", k.connect(client, super::cases::to(&addr), 16));
        k.deliver();
        let child = t.fd("accept", k.accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK));
        t.get(child, IPPROTO_TCP, TCP_SAVE_SYN, 4);
        let ask = |t: &mut Told<'_>, fd, room: u32, null: bool| {
            let mut syn = [0_u8; 256];
            let to = if null { null_mut() } else { syn.as_mut_ptr().cast() };
            let mut len = room;
            let given = k.getsockopt(fd, (IPPROTO_TCP, TCP_SAVED_SYN), to, &raw mut len);
            // Version and length of IP, the flags of TCP.
            t.say(&format!("its SYN into {room}: {len} {:x} {:x}", syn[0], syn[33]), given);
        };
        ask(t, listener, 256, false);
        ask(t, client, 256, false);
        ask(t, child, 0, false);
        ask(t, child, 59, false);
        ask(t, child, 60, true);
        ask(t, child, 60, false);
        ask(t, child, 60, false);
        ask(t, child, 0, true);
    }
}

/// `TCP_ZEROCOPY_RECEIVE` without a mapping: what fits is copied, of what does not the length is told.
pub(super) fn zerocopy_receive(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    let ask = |t: &mut Told<'_>, what: &str, room: i32, len: u32| {
        let mut copied = [0_u8; 16];
        let mut value = [0_u64; 8];
        value[3] = copied.as_mut_ptr() as u64;
        value[4] = u64::from(room.cast_unsigned());
        let mut len = len;
        let option = (libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE);
        let given = k.getsockopt(server, option, value.as_mut_ptr().cast(), &raw mut len);
        value[3] = 0;
        t.say(&format!("{what}, {len}: {value:x?} {copied:?}"), given);
    };
    ask(t, "nothing yet", 16, 64);
    t.send("eight bytes", client, 8, 0);
    k.deliver();
    for len in [12, 16, 20, 24, 32, 36, 40, 48, 56, 60, 64] {
        ask(t, "without a buffer", 0, len);
    }
    ask(t, "too small a buffer", 7, 64);
    ask(t, "into a buffer", 16, 64);
    t.send("eight more", client, 8, 0);
    k.deliver();
    ask(t, "just large enough", 8, 64);
    t.say("the peer ends", k.shutdown(client, 1));
    k.deliver();
    ask(t, "the end", 8, 64);
}

/// `TCP_MD5SIG` and `TCP_MD5SIG_EXT`: families, prefixes, lengths, flags, and which key is there to be taken away; of every kind of socket.
pub(super) fn md5_keys(t: &mut Told<'_>) {
    let k = t.calls;
    let (client, server) = t.connected();
    let (listener, _) = t.listener();
    let fds = [t.fresh(libc::AF_INET), t.fresh(libc::AF_INET6), client, server, listener];
    let names = [
        name("127.0.0.1:0"),
        name("10.1.2.3:80"),
        name("0.0.0.0:0"),
        name("[::1]:0"),
        name("[fd00::7]:0"),
        name("[::ffff:10.1.2.3]:0"),
        vec![0; 16],
    ];
    for fd in fds {
        for (at, name) in names.iter().enumerate() {
            for (option, flags, prefix_len, key_len, device) in [
                (14, 0, 0, 0, 0),
                (14, 0, 0, 7, 0),
                (14, 0, 0, 7, 0),
                (14, 1, 8, 9, 0),
                (32, 1, 8, 9, 0),
                (32, 1, 32, 9, 0),
                (32, 1, 33, 9, 0),
                (32, 1, 128, 80, 0),
                (32, 1, 129, 80, 0),
                (32, 0, 200, 80, 0),
                (32, 0, 0, 81, 0),
                (14, 0, 0, u16::MAX, 0),
                (32, 2, 0, 5, 0),
                (32, 2, 0, 5, 77),
                (14, 2, 0, 5, 77),
                (32, 3, 16, 5, 0),
                (32, 4, 16, 5, 77),
                (32, 1, 8, 0, 0),
                (32, 1, 9, 0, 0),
                (32, 3, 16, 0, 0),
                (32, 2, 0, 0, 0),
                (14, 0, 0, 0, 0),
                (14, 0, 0, 0, 0),
            ] {
                let mut value = [0_u8; 220];
                value[..name.len()].copy_from_slice(name);
                (value[128], value[129]) = (flags, prefix_len);
                value[130..132].copy_from_slice(&u16::to_ne_bytes(key_len));
                value[132..136].copy_from_slice(&i32::to_ne_bytes(device));
                for len in [216, 215, 220] {
                    let given = k.setsockopt(fd, (libc::IPPROTO_TCP, option), value.as_ptr().cast(), len);
                    t.say(&format!("{at}: {option} {flags} {prefix_len} {key_len} {device} of {len}"), given);
                }
            }
        }
        t.say("from null", k.setsockopt(fd, (libc::IPPROTO_TCP, 14), null(), 216));
        t.get(fd, libc::IPPROTO_TCP, 14, 216);
        t.get(fd, libc::IPPROTO_TCP, 32, 216);
    }
}
