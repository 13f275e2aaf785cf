//! Options: ranges, errors and what is read back (Linux's `do_tcp_setsockopt`, `sk_setsockopt`), and the layout of `TCP_INFO`.

use crate::wire::{DELAY, Wire, recv, send};
use libc::{IPPROTO_IP, IPPROTO_TCP, SOL_SOCKET};
use posix::{Asked, Connect, Errno, Untold, tcp_info};
use std::time::Duration;

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

#[test]
fn a_listener_keeps_the_headers_of_each_syn_until_they_are_read() {
    let mut wire = Wire::new();
    let listener = wire.listen();
    wire.server
        .set_option(wire.now, listener, IPPROTO_TCP, libc::TCP_SAVE_SYN, &1_i32.to_ne_bytes())
        .unwrap();
    let client = wire.socket();
    wire.connect(client).unwrap_err();
    wire.run(DELAY * 3);
    let (child, peer) = wire.server.accept(wire.now, listener, 0).unwrap();
    let option = (IPPROTO_TCP, libc::TCP_SAVED_SYN);
    let asked = |room, faulty| Asked { room, faulty };
    let short = wire.server.option_asked(wire.now, child, option, asked(59, false));
    assert_eq!(short, Err(Untold { errno: Errno::EINVAL, needed: Some(60) }));
    let lost = wire.server.option_asked(wire.now, child, option, asked(60, true)).unwrap();
    let syn = wire.server.option_asked(wire.now, child, option, asked(99, false)).unwrap();
    assert_eq!(syn, lost, "a place that cannot be written does not lose it");
    assert_eq!(syn.len(), 60, "20 bytes of IP, 40 of TCP, without data");
    assert_eq!((syn[0], &syn[12..20]), (0x45, &[10, 0, 0, 1, 10, 0, 0, 2][..]));
    assert_eq!(syn[20..24], [peer.port().to_be_bytes(), 80_u16.to_be_bytes()].concat());
    assert_eq!(syn[33], 2, "SYN and nothing else");
    assert_eq!(wire.server.option_asked(wire.now, child, option, asked(99, false)), Ok(vec![]), "once");
}

#[test]
fn what_a_socket_sends_leaves_later_by_its_delay() {
    let mut wire = Wire::new();
    let listener = wire.listen();
    let fd = wire.socket();
    set(&mut wire, fd, IPPROTO_TCP, 37, 50_000).unwrap();
    assert_eq!(get(&mut wire, fd, IPPROTO_TCP, 37), Ok(50_000));
    assert_eq!(set(&mut wire, fd, IPPROTO_TCP, 37, 1 << 28), Err(Errno::EINVAL));
    wire.connect(fd).unwrap_err();
    // The SYN leaves after 50 ms and is answered after 20 more, the ACK takes 60.
    wire.run(Duration::from_micros(129_999));
    assert_eq!(wire.server.accept(wire.now, listener, 0), Err(Errno::EAGAIN.into()));
    wire.run(Duration::from_micros(1));
    let (child, _) = wire.server.accept(wire.now, listener, 0).unwrap();
    let info = wire.client.option(wire.now, fd, IPPROTO_TCP, libc::TCP_INFO, 280).unwrap();
    let rtt = |info: &[u8]| u32::from_ne_bytes(info[68..72].try_into().unwrap());
    assert_eq!(rtt(&info), 70_000, "the delay is measured with the path");
    set(&mut wire, fd, IPPROTO_TCP, 37, 20_000).unwrap();
    let info = wire.client.option(wire.now, fd, IPPROTO_TCP, libc::TCP_INFO, 280).unwrap();
    assert_eq!(rtt(&info), 40_000, "and leaves the measurement when it is taken back");
    send(&mut wire.client, wire.now, fd, b"late").unwrap();
    wire.run(Duration::from_micros(29_999));
    assert_eq!(recv(&mut wire.server, wire.now, child, 9, libc::MSG_DONTWAIT), Err(Errno::EAGAIN));
    wire.run(Duration::from_micros(1));
    assert_eq!(recv(&mut wire.server, wire.now, child, 9, 0).unwrap(), b"late");
}

#[test]
fn who_comes_from_too_far_away_is_not_heard() {
    let mut wire = Wire::new();
    let listener = wire.listen();
    wire.server.set_option(wire.now, listener, IPPROTO_IP, 21, &255_i32.to_ne_bytes()).unwrap();
    let far = wire.socket();
    wire.connect(far).unwrap_err();
    wire.run(DELAY * 3);
    assert_eq!(wire.server.accept(wire.now, listener, 0), Err(Errno::EAGAIN.into()));
    assert_eq!(wire.server.stack().counters().tcp_min_ttl_drop, 1);
    let near = wire.socket();
    set(&mut wire, near, IPPROTO_IP, libc::IP_TTL, 255).unwrap();
    wire.connect(near).unwrap_err();
    wire.run(DELAY * 3);
    let (child, _) = wire.server.accept(wire.now, listener, 0).unwrap();
    // The child has inherited it.
    set(&mut wire, near, IPPROTO_IP, libc::IP_TTL, 254).unwrap();
    send(&mut wire.client, wire.now, near, b"x").unwrap();
    wire.run(DELAY);
    assert_eq!(recv(&mut wire.server, wire.now, child, 9, libc::MSG_DONTWAIT), Err(Errno::EAGAIN));
    assert_eq!(wire.server.stack().counters().tcp_min_ttl_drop, 2);
}

#[test]
fn a_socket_chooses_among_the_ports_it_was_given() {
    let mut wire = Wire::new();
    let range = 40_000 | 40_001 << 16;
    let mut ports = Vec::new();
    for _ in 0..2 {
        let fd = wire.socket();
        set(&mut wire, fd, IPPROTO_IP, 51, range).unwrap();
        assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
        ports.push(wire.client.local_name(fd).unwrap().port());
    }
    ports.sort_unstable();
    assert_eq!(ports, [40_000, 40_001]);
    let fd = wire.socket();
    set(&mut wire, fd, IPPROTO_IP, 51, range).unwrap();
    assert_eq!(wire.connect(fd), Err(Errno::EADDRNOTAVAIL), "both are taken");
    let other = "10.0.0.2:81".parse().unwrap();
    let elsewhere = Connect::new(fd, Some(other)).attempt(&mut wire.client, wire.now);
    assert_eq!(elsewhere, Err(Errno::EINPROGRESS.into()), "but not towards another port");
}

#[test]
fn a_name_without_a_port_leaves_it_to_connect() {
    let mut wire = Wire::new();
    let fd = wire.socket();
    set(&mut wire, fd, IPPROTO_IP, 24, 1).unwrap();
    wire.client.bind(fd, "10.0.0.1:0".parse().unwrap()).unwrap();
    assert_eq!(wire.client.local_name(fd).unwrap().to_string(), "10.0.0.1:0");
    assert_eq!(wire.connect(fd), Err(Errno::EINPROGRESS));
    assert_ne!(wire.client.local_name(fd).unwrap().port(), 0);
    let listener = wire.socket();
    set(&mut wire, listener, IPPROTO_IP, 24, 1).unwrap();
    wire.client.bind(listener, "10.0.0.1:0".parse().unwrap()).unwrap();
    wire.client.listen(wire.now, listener, 1).unwrap();
    assert_ne!(wire.client.local_name(listener).unwrap().port(), 0, "who listens needs one");
}

#[test]
fn an_open_connection_changes_its_congestion_control_and_keeps_its_window() {
    let mut wire = Wire::new();
    let (client, _) = wire.connected();
    let name = |wire: &mut Wire| {
        wire.client.option(wire.now, client, IPPROTO_TCP, libc::TCP_CONGESTION, 16).unwrap()
    };
    assert!(name(&mut wire).starts_with(b"cubic\0"));
    send(&mut wire.client, wire.now, client, &[0; 14_480]).unwrap();
    wire.run(DELAY * 2);
    let cwnd = |wire: &mut Wire| {
        let info = wire.client.option(wire.now, client, IPPROTO_TCP, libc::TCP_INFO, 280).unwrap();
        u32::from_ne_bytes(info[80..84].try_into().unwrap())
    };
    let before = cwnd(&mut wire);
    assert!(before > 10, "it has grown to {before}");
    for algorithm in ["reno", "bbr", "vegas", "cubic"] {
        wire.client
            .set_option(wire.now, client, IPPROTO_TCP, libc::TCP_CONGESTION, algorithm.as_bytes())
            .unwrap();
        assert!(name(&mut wire).starts_with(algorithm.as_bytes()), "{algorithm}");
        assert_eq!(cwnd(&mut wire), before, "{algorithm}");
    }
}

/// `TCP_CC_INFO` is what the algorithm measures itself: 16 bytes of Vegas, 20 of BBR, nothing of the others.
#[test]
fn what_an_algorithm_measures() {
    let mut wire = Wire::new();
    let words = |wire: &mut Wire, fd| -> Vec<u32> {
        let info = wire.client.option(wire.now, fd, IPPROTO_TCP, libc::TCP_CC_INFO, 64).unwrap();
        info.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    };
    let choose = |wire: &mut Wire, fd, name: &str| {
        wire.client.set_option(wire.now, fd, IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes()).unwrap();
    };
    let fresh = wire.socket();
    for (algorithm, length) in [("reno", 0), ("cubic", 0), ("vegas", 4), ("bbr", 5)] {
        choose(&mut wire, fresh, algorithm);
        assert_eq!(words(&mut wire, fresh), vec![0; length], "{algorithm}, not connected");
    }

    let (client, _) = wire.connected();
    choose(&mut wire, client, "bbr");
    send(&mut wire.client, wire.now, client, &[0; 14_480]).unwrap();
    wire.run(DELAY * 2);
    let round_trip = 2 * DELAY.as_micros() as u32;
    let [bandwidth, 0, min_rtt, 709, 512] = words(&mut wire, client)[..] else {
        panic!("BBR begins with 2.77 and 2")
    };
    assert_eq!(min_rtt, round_trip);
    let ten_segments = 14_480 * (1_000_000 / round_trip);
    assert!((ten_segments * 99 / 100..=ten_segments).contains(&bandwidth), "{bandwidth}, not {ten_segments}");

    choose(&mut wire, client, "vegas");
    send(&mut wire.client, wire.now, client, &[0; 2896]).unwrap();
    wire.run(DELAY * 2);
    assert_eq!(words(&mut wire, client), [1, 0, round_trip, 0x7fff_ffff], "another round has just begun");
}

#[test]
fn every_socket_has_a_cookie_of_its_own() {
    let mut wire = Wire::new();
    let (one, other) = (wire.socket(), wire.socket());
    let cookie = |wire: &mut Wire, fd| wire.client.option(wire.now, fd, SOL_SOCKET, 57, 8).unwrap();
    let first = cookie(&mut wire, one);
    assert_ne!(first, cookie(&mut wire, other));
    assert_eq!(first, cookie(&mut wire, one), "always the same");
    let again = wire.client.duplicate(one, 0, false).unwrap();
    assert_eq!(first, cookie(&mut wire, again), "whatever its number");
}

#[test]
fn a_buffer_that_is_unlocked_grows_again() {
    let mut wire = Wire::new();
    let (client, accepted) = wire.connected();
    set(&mut wire, client, SOL_SOCKET, libc::SO_SNDBUF, 20_000).unwrap();
    assert_eq!(get(&mut wire, client, SOL_SOCKET, 72), Ok(1), "chosen is locked");
    assert!(send(&mut wire.client, wire.now, client, &[0; 100_000]).unwrap() < 30_000);
    set(&mut wire, client, SOL_SOCKET, 72, 0).unwrap();
    for _ in 0..8 {
        wire.run(DELAY * 2);
        while recv(&mut wire.server, wire.now, accepted, 99_999, 0).is_ok_and(|got| !got.is_empty()) {}
        let _ = send(&mut wire.client, wire.now, client, &[0; 100_000]);
    }
    assert!(get(&mut wire, client, SOL_SOCKET, libc::SO_SNDBUF).unwrap() > 80_000);
}

/// `struct tcp_md5sig` for an IPv4 peer; without a secret it takes the key away.
fn md5_key(peer: &str, secret: &[u8]) -> Vec<u8> {
    let mut value = vec![0; 216];
    value[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    value[4..8].copy_from_slice(&peer.parse::<std::net::Ipv4Addr>().unwrap().octets());
    value[130..132].copy_from_slice(&(secret.len() as u16).to_ne_bytes());
    value[136..136 + secret.len()].copy_from_slice(secret);
    value
}

/// What becomes of the listener's key between handshake and `accept` does not matter (`tcp_v4_syn_recv_sock` copies it): the connection has it, and
/// its descriptor knows.
#[test]
fn a_connection_is_accepted_with_the_key_of_its_handshake() {
    for changed in [&b"two"[..], b""] {
        let mut wire = Wire::new();
        let (listener, client) = (wire.listen(), wire.socket());
        let of_client = md5_key("10.0.0.1", b"one");
        wire.server.set_option(wire.now, listener, IPPROTO_TCP, libc::TCP_MD5SIG, &of_client).unwrap();
        let of_server = md5_key("10.0.0.2", b"one");
        wire.client.set_option(wire.now, client, IPPROTO_TCP, libc::TCP_MD5SIG, &of_server).unwrap();
        assert_eq!(wire.connect(client), Err(Errno::EINPROGRESS));
        wire.run(DELAY * 3);
        let changed = md5_key("10.0.0.1", changed);
        wire.server.set_option(wire.now, listener, IPPROTO_TCP, libc::TCP_MD5SIG, &changed).unwrap();
        let (accepted, _) = wire.server.accept(wire.now, listener, libc::SOCK_NONBLOCK).unwrap();
        assert_eq!(send(&mut wire.client, wire.now, client, b"hello"), Ok(5));
        wire.run(DELAY * 3);
        assert_eq!(recv(&mut wire.server, wire.now, accepted, 10, 0), Ok(b"hello".to_vec()));
        let gone = md5_key("10.0.0.1", b"");
        for expected in [Ok(()), Err(Errno::ENOENT)] {
            let given = wire.server.set_option(wire.now, accepted, IPPROTO_TCP, libc::TCP_MD5SIG, &gone);
            assert_eq!(given, expected);
        }
    }
}
