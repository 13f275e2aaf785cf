//! Windows smaller than a segment: what was written goes all the same, and what was read opens them again.

use crate::peer::*;
use proto::*;
use wire::Flags;

/// Headers and lengths of what the stack sends next, within ten seconds.
fn next_sent(p: &mut Peer) -> Vec<(wire::TcpHeader, usize)> {
    p.pass(10_000);
    let packets = std::iter::from_fn(|| p.take_packet());
    packets
        .map(|packet| {
            let (_, header, text) = wire::parse_tcp_packet(&packet).unwrap();
            (header, text.len())
        })
        .collect()
}

/// The peer, which has acknowledged up to `acked`, takes it in windows of so many bytes; its segments begin with these words.
fn everything_goes(p: &mut Peer, mut acked: u32, total: u32, window: u32, words: &str) {
    let isn = p.isn(p.remote.port());
    while acked <= total {
        let sent = next_sent(p);
        assert!(!sent.is_empty(), "nothing in ten seconds, {acked} of {total} acknowledged");
        let ends = sent.iter().map(|(header, len)| header.seq.since(isn) + *len as u32);
        let before = acked;
        acked = ends.filter(|end| *end <= before + window).fold(acked, u32::max);
        p.send(&format!("{words} ack {acked} win {window}"));
    }
}

/// The options of Accurate ECN come and go (RFC 9768 §3.2.3.3), and a segment is larger without them: the window holds one that has them, and
/// none that has not.
#[test]
fn segments_that_change_their_size_go_into_a_window_of_one() {
    for config in both_profiles() {
        for window in 980..=1001 {
            let mut p = Peer::new(config.clone().tcp_ecn(3).tcp_timestamps(0));
            let listener = p.listen();
            p.send("SEWe 0 win 65535 <mss 1000,sackOK>");
            assert_eq!(p.sent_now().len(), 1);
            p.send("AW 1 ack 1 win 65535 <ECN 1 0 1>");
            let id = p.accept(listener);
            p.write(id, &pattern(1, 500));
            assert_eq!(p.sent_now().len(), 1);
            p.send(&format!("AW 1 ack 501 win {window} <ECN 1 0 501>"));
            p.write(id, &pattern(501, 20_000));
            everything_goes(&mut p, 501, 20_500, window, "AW 1");
        }
    }
}

/// The urgent pointer goes ahead of bytes for which there is no room yet (MUST-66).
#[test]
fn urgent_bytes_go_into_small_windows() {
    for config in both_profiles() {
        for window in [1, 7, 100, 999] {
            let mut p = Peer::new(config.clone());
            let listener = p.listen();
            let id = p.establish(listener);
            // A window that shrinks is believed of a segment that is new.
            p.send(&format!("A 1:2 ack 1 win {window}"));
            p.write(id, &pattern(1, 150));
            assert_eq!(p.stack.write_with(p.now, id, &pattern(151, 50), WriteFlags::URGENT), Ok(50));
            p.write(id, &pattern(201, 100));
            everything_goes(&mut p, 1, 300, window, "A 2");
        }
    }
}

/// Segments of `most` bytes as the window takes them, each read at once: with nothing left to read the window is never told to be closed.
fn a_reader_is_sent_much(p: &mut Peer, id: ConnId, most: u32, mut meanwhile: impl FnMut(&mut Peer, u32)) {
    let (mut seq, mut window) = (1, p.stack.info(id).unwrap().rcv_wnd);
    for nth in 0..100 {
        meanwhile(p, nth);
        let len = window.min(most);
        p.send(&format!("PA {seq}:{} ack 1", seq + len));
        assert_eq!(p.read(id).unwrap().len(), len as usize);
        seq += len;
        let isn = p.isn(p.remote.port());
        while seq.wrapping_sub(1) > 0 {
            let sent = next_sent(p);
            let (header, _) = sent.last().expect("it is acknowledged");
            assert!(header.flags.contains(Flags::ACK) && header.seq.since(isn) == 1);
            if header.ack.since(PEER_ISN) == seq {
                window = u32::from(header.window) << p.stack.info(id).unwrap().rcv_wscale;
                break;
            }
        }
        assert!(window > 0, "closed after {seq} bytes, all of which were read");
    }
}

/// Segments of 9000 bytes, of which a small buffer (`SO_RCVBUF` 8192) holds less than one.
#[test]
fn a_buffer_of_less_than_a_jumbo_segment_opens_when_it_is_read() {
    for config in both_profiles() {
        let capabilities = Capabilities { mtu: 9000, gso_max_size: 0, tx_checksum: false };
        let mut p = Peer::with(config, capabilities);
        let socket = SocketOptions { recv_buffer: Some(8192), ..SocketOptions::default() };
        let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
        let id = p.establish_with(listener, "S 0 win 65535 <mss 8960>");
        p.expect_nothing();
        a_reader_is_sent_much(&mut p, id, 8960, |_, _| ());
    }
}

/// `TCP_WINDOW_CLAMP` below the window, in the middle.
#[test]
fn a_clamp_in_the_middle_leaves_a_window() {
    for config in both_profiles() {
        for clamp in [0, 1152, 4096] {
            let capabilities = Capabilities { mtu: 9000, gso_max_size: 0, tx_checksum: false };
            let mut p = Peer::with(config.clone(), capabilities);
            let listener = p.listen();
            let id = p.establish_with(listener, "S 0 win 65535 <mss 8960>");
            p.expect_nothing();
            a_reader_is_sent_much(&mut p, id, 8960, |p, nth| {
                if nth == 10 {
                    p.stack.set_option(p.now, id, SocketOption::WindowClamp(clamp)).unwrap();
                }
            });
        }
    }
}

/// A buffer that the application makes smaller than the unit of the window's scale, in Linux's habits also where the window may shrink to what
/// is free (`tcp_shrink_window`).
#[test]
fn a_buffer_smaller_than_the_scales_unit_does_not_stay_closed() {
    for (config, shrinks) in [(Config::default(), "0"), (Config::linux(), "0"), (Config::linux(), "1")] {
        let mut config = config;
        for (name, value) in [
            ("net.ipv4.tcp_shrink_window", shrinks),
            ("net.ipv4.tcp_rmem", "4096 131072 1073741824"),
            ("net.core.rmem_max", "1073741824"),
        ] {
            config.set(name, value).unwrap();
        }
        let mut p = Peer::new(config);
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,wscale 7>");
        p.expect_nothing();
        let shift = p.stack.info(id).unwrap().rcv_wscale;
        assert!(1152 < 1 << shift, "the buffer holds less than {} bytes", 1 << shift);
        p.stack.set_option(p.now, id, SocketOption::RecvBuffer(0)).unwrap();
        a_reader_is_sent_much(&mut p, id, 1000, |_, _| ());
    }
}
