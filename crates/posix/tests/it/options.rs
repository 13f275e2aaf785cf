//! Options: ranges, errors and what is read back (Linux's `do_tcp_setsockopt`, `sk_setsockopt`), and the layout of `TCP_INFO`.

use crate::wire::{DELAY, Wire, send};
use libc::{IPPROTO_IP, IPPROTO_TCP, SOL_SOCKET};
use posix::{Errno, tcp_info};

fn set(wire: &mut Wire, fd: i32, level: i32, name: i32, value: i32) -> Result<(), Errno> {
    wire.client.set_option(wire.now, fd, level, name, &value.to_ne_bytes())
}

fn get(wire: &mut Wire, fd: i32, level: i32, name: i32) -> Result<i32, Errno> {
    let bytes = wire.client.option(wire.now, fd, level, name, 4)?;
    Ok(i32::from_ne_bytes(bytes[..4].try_into().unwrap()))
}

#[test]
fn what_is_set_is_read_back() {
    let mut wire = Wire::new();
    let fd = wire.socket();
    let pairs = [
        (SOL_SOCKET, libc::SO_REUSEADDR, 9, 1),
        (SOL_SOCKET, libc::SO_KEEPALIVE, 1, 1),
        (SOL_SOCKET, libc::SO_SNDBUF, 10_000, 20_000),
        (SOL_SOCKET, libc::SO_SNDBUF, 1, 4608),
        (SOL_SOCKET, libc::SO_RCVBUF, 1, 2304),
        (SOL_SOCKET, libc::SO_RCVLOWAT, 0, 1),
        (SOL_SOCKET, libc::SO_PRIORITY, 5, 5),
        (SOL_SOCKET, libc::SO_MAX_PACING_RATE, 90_000, 90_000),
        (SOL_SOCKET, libc::SO_MAX_PACING_RATE, -1, -1),
        (IPPROTO_TCP, libc::TCP_NODELAY, 3, 1),
        (IPPROTO_TCP, libc::TCP_CORK, 1, 1),
        (IPPROTO_TCP, libc::TCP_MAXSEG, 1100, 1100),
        (IPPROTO_TCP, libc::TCP_KEEPIDLE, 32_767, 32_767),
        (IPPROTO_TCP, libc::TCP_KEEPINTVL, 1, 1),
        (IPPROTO_TCP, libc::TCP_KEEPCNT, 127, 127),
        (IPPROTO_TCP, libc::TCP_SYNCNT, 1, 1),
        (IPPROTO_TCP, libc::TCP_LINGER2, 500, 120),
        (IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 3000, 3000),
        (IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, 4000, 4000),
        (IPPROTO_TCP, libc::TCP_FASTOPEN, 17, 17),
        (IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1, 1),
        (IPPROTO_TCP, libc::TCP_FASTOPEN_NO_COOKIE, 1, 1),
        (IPPROTO_IP, libc::IP_TOS, 0xff, 0xfc),
        (IPPROTO_IP, libc::IP_TTL, 9, 9),
    ];
    for (level, name, value, read) in pairs {
        assert_eq!(set(&mut wire, fd, level, name, value), Ok(()), "{level} {name}");
        assert_eq!(get(&mut wire, fd, level, name), Ok(read), "{level} {name}");
    }
}

#[test]
fn what_is_out_of_range_or_unknown_is_refused() {
    let mut wire = Wire::new();
    let fd = wire.socket();
    let refused = [
        // Nothing here would tell when memory is free again, or when a packet came.
        (SOL_SOCKET, libc::SO_ZEROCOPY, 2, Errno::EINVAL),
        (SOL_SOCKET, libc::SO_TIMESTAMPING, 1 << 30, Errno::EINVAL),
        (SOL_SOCKET, libc::SO_TIMESTAMPING, 1 << 7, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_MAXSEG, 87, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_MAXSEG, 32_768, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_KEEPIDLE, 0, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_KEEPIDLE, 32_768, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_KEEPINTVL, -1, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_KEEPCNT, 128, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_KEEPCNT, 0, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_SYNCNT, 0, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_SYNCNT, 128, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_USER_TIMEOUT, -1, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_FASTOPEN, -1, Errno::EINVAL),
        (IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 2, Errno::EINVAL),
        (IPPROTO_TCP, 9999, 1, Errno::ENOPROTOOPT),
        (SOL_SOCKET, 9999, 1, Errno::ENOPROTOOPT),
        (SOL_SOCKET, libc::SO_SNDLOWAT, 1, Errno::ENOPROTOOPT),
        (IPPROTO_IP, libc::IP_TTL, 0, Errno::EINVAL),
        (IPPROTO_IP, 9999, 1, Errno::ENOPROTOOPT),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1, Errno::ENOPROTOOPT),
        (77, 1, 1, Errno::ENOPROTOOPT),
    ];
    for (level, name, value, errno) in refused {
        assert_eq!(set(&mut wire, fd, level, name, value), Err(errno), "{level} {name} {value}");
    }
    let short = wire.client.set_option(wire.now, fd, IPPROTO_TCP, libc::TCP_NODELAY, &[1]);
    assert_eq!(short, Err(Errno::EINVAL));
    let key = wire.client.set_option(wire.now, fd, IPPROTO_TCP, libc::TCP_FASTOPEN_KEY, &[1; 15]);
    assert_eq!(key, Err(Errno::EINVAL));
    assert_eq!(get(&mut wire, 999, IPPROTO_TCP, libc::TCP_NODELAY), Err(Errno::EBADF));
}

#[test]
fn a_listener_is_changed_by_its_options() {
    let mut wire = Wire::new();
    let listener = wire.listen();
    let segment = 1100_i32.to_ne_bytes();
    wire.server.set_option(wire.now, listener, IPPROTO_TCP, libc::TCP_MAXSEG, &segment).unwrap();
    let client = wire.socket();
    wire.connect(client).unwrap_err();
    wire.run(DELAY * 3);
    assert_eq!(get(&mut wire, client, IPPROTO_TCP, libc::TCP_MAXSEG), Ok(1100 - 12), "the SYN-ACK told it");
}

#[test]
fn tcp_info_lies_as_in_linux() {
    let mut wire = Wire::new();
    let (client, _) = wire.connected();
    send(&mut wire.client, wire.now, client, &[0; 3000]).unwrap();
    wire.run(DELAY);
    let bytes = wire.client.option(wire.now, client, IPPROTO_TCP, libc::TCP_INFO, 280).unwrap();
    assert_eq!(bytes.len(), tcp_info::SIZE);
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(bytes[0], 1, "ESTABLISHED");
    assert_eq!(bytes[5], 1 | 2 | 4, "timestamps, SACK, window scaling");
    assert_eq!(word(8), 220_000, "rto: 20 ms + 200 ms");
    assert_eq!(word(16), 1448, "snd_mss");
    assert_eq!(word(24), 3, "unacked");
    assert_eq!(word(68), 20_000, "rtt");
    assert_eq!(word(76), 0x7fff_ffff, "snd_ssthresh");
    assert_eq!(word(80), 10, "snd_cwnd");
    assert_eq!(word(84), 1448, "advmss");
    assert_eq!(word(148), 20_000, "min_rtt");
    assert_eq!(long(200), 3000, "bytes_sent");
}
