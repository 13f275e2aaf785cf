//! Sending and receiving: segment sizes, acknowledgement, reassembly, Nagle, bursts and merged input.

use crate::pair::ethernet;
use crate::peer::*;
use proto::*;

fn established_by(mut p: Peer, syn: &str) -> (Peer, ConnId) {
    let listener = p.listen();
    let id = p.establish_with(listener, syn);
    p.events();
    (p, id)
}

fn established() -> (Peer, ConnId) {
    established_by(Peer::ours(), "S 0 win 65535 <mss 1000>")
}

/// Past the segments that are acknowledged one by one at the start.
fn past_the_quick_acks(p: &mut Peer, id: ConnId) -> u32 {
    for number in 0..16 {
        let seq = 1 + number * 1460;
        p.send(&format!("A {seq}:{} ack 1", seq + 1460));
        p.expect(&format!("A 1 ack {}", seq + 1460));
        assert_eq!(p.read(id).unwrap().len(), 1460);
    }
    1 + 16 * 1460
}

#[test]
fn the_peers_mss_is_honoured() {
    for (offer, sent) in
        [("mss 1000", 1000), ("mss 0", 536), ("mss 1460", 1460), ("mss 9000", 1460), ("mss 10", 48)]
    {
        let (mut p, id) = established_by(Peer::ours(), &format!("S 0 win 65535 <{offer}>"));
        assert_eq!(p.stack.info(id).unwrap().snd_mss, sent, "{offer}");
        p.write(id, &pattern(1, 2 * usize::from(sent)));
        let sent = u32::from(sent);
        p.expect(&format!("A 1:{} ack 1", 1 + sent));
        p.expect(&format!("PA {}:{} ack 1", 1 + sent, 1 + 2 * sent));
    }
    let (p, id) = established_by(Peer::ours(), "S 0 <>");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 536);
    let (p, id) = established_by(Peer::ours().v6(), "S 0 <>");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 1220);
    let (p, id) = established_by(Peer::ours(), "S 0 <mss 1460,TS 100 0>");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 1448, "timestamps take 12 bytes of each segment");
}

/// `tcp_min_snd_mss`: a peer that asks for less gets segments of that size, options among it: 40 bytes of these and 8 of text at least.
#[test]
fn a_tiny_mss_is_not_believed() {
    let sent = |setting: &str, syn: &str| {
        let mut config = Config::default();
        config.set("net.ipv4.tcp_min_snd_mss", setting).unwrap();
        let mut p = Peer::new(config);
        let listener = p.listen();
        let id = p.establish_with(listener, syn);
        p.stack.info(id).unwrap().snd_mss
    };
    assert_eq!(sent("48", "S 0 win 65535 <mss 1>"), 48);
    assert_eq!(sent("48", "S 0 win 65535 <mss 60>"), 60);
    assert_eq!(sent("48", "S 0 win 65535 <mss 1,sackOK,TS 100 0>"), 36);
    assert_eq!(sent("536", "S 0 win 65535 <mss 60>"), 536);
    for refused in ["47", "65536"] {
        assert!(Config::default().set("net.ipv4.tcp_min_snd_mss", refused).is_err());
    }
}

#[test]
fn tcp_maxseg_clamps_both_directions() {
    let mut p = Peer::ours();
    let socket = SocketOptions { max_segment: Some(700), ..Default::default() };
    let listener = p.listen_with(ListenOptions { socket, ..Default::default() });
    p.send("S 0 <mss 1460>");
    p.expect("SA 0 ack 1 <mss 700>");
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 1400));
    p.expect("A 1:701 ack 1");
    p.expect("PA 701:1401 ack 1");
}

#[test]
fn windows_are_scaled_in_both_directions() {
    let (mut p, id) = established_by(Peer::ours(), "S 0 win 65535 <mss 1000,wscale 3>");
    p.send("A 1 ack 1 win 1000");
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 8000);
    p.send("PA 1:11 ack 1 win 1000");
    let header = p.expect_after(5, "A 1 ack 11");
    assert_eq!(p.stack.info(id).unwrap().rcv_wscale, 7);
    assert_eq!(
        header.window,
        (524_288 >> 7) as u16,
        "half of tcp_rmem's initial megabyte; what waits to be read is less than the scale shows"
    );
    // A shift beyond 14 counts as 14 (RFC 7323 §2.3).
    let (p, id) = established_by(Peer::ours(), "S 0 win 65535 <mss 1000,wscale 15>");
    assert_eq!(p.stack.info(id).unwrap().snd_wscale, 14);
    // Without the option nothing is scaled.
    let (p, id) = established();
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.snd_wscale, info.rcv_wscale, info.snd_wnd), (0, 0, 65535));
}

/// The shift told in the SYN and the shift used later are one, also for buffers beyond `tcp_rmem`.
#[test]
fn a_large_receive_buffer_is_scaled_as_it_was_told() {
    let socket = SocketOptions { recv_buffer: Some(40 << 20), ..Default::default() };
    let mut config = Config::default();
    config.set("net.core.rmem_max", &(40 << 20).to_string()).unwrap();
    let mut p = Peer::new(config.clone());
    let listener = p.listen_with(ListenOptions { socket: socket.clone(), ..Default::default() });
    p.send("S 0 <mss 1000,wscale 0>");
    p.expect("SA 0 ack 1 <mss 1460,wscale 10>");
    p.send("PA 1:11 ack 1");
    let id = p.accept(listener);
    assert_eq!(p.expect_after(5, "A 1 ack 11").window, ((40 << 20) >> 10) as u16);
    assert_eq!(p.stack.info(id).unwrap().rcv_wscale, 10);
    let mut p = Peer::new(config);
    p.connect(ConnectOptions { socket, ..Default::default() });
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 10>");
    p.send("SA 0 ack 1 <mss 1000,wscale 0>");
    assert_eq!(p.expect("A 1 ack 1").window, ((40 << 20) >> 10) as u16);
}

#[test]
fn settings_take_options_away() {
    let mut config = Config::default();
    for name in ["timestamps", "window_scaling", "sack"] {
        config.set(&format!("net.ipv4.tcp_{name}"), "0").unwrap();
    }
    let mut p = Peer::new(config);
    p.listen();
    p.send("S 0 <mss 1000,sackOK,TS 100 0,wscale 7>");
    p.expect("SA 0 ack 1 <mss 1460>");
    p.local.set_port(1);
    p.connect(ConnectOptions::default());
    p.expect("S 0 <mss 1460>");
}

/// Where an answer has followed, another is waited for.
#[test]
fn a_lone_small_segment_is_acknowledged_after_40_ms() {
    let (mut p, id) = established();
    p.send("PA 1:11 ack 1");
    p.expect_nothing_for(4);
    p.write(id, b"answer");
    p.expect("PA 1:7 ack 11");
    p.send("PA 11:21 ack 7");
    p.expect_nothing_for(39);
    p.write(id, b"answer");
    p.expect("PA 7:13 ack 21");
    p.send("PA 21:31 ack 13");
    p.expect_after(40, "A 13 ack 31");
    assert_eq!(p.stack.counters().delayed_acks, 1);
    p.write(id, b"answer");
    p.expect("PA 13:19 ack 31");
    p.send("PA 31:41 ack 19");
    p.expect_after(5, "A 19 ack 41");
}

/// Half a request has no answer, and a peer with Nagle's algorithm keeps the other half back until the first is acknowledged.
#[test]
fn a_lone_small_segment_that_no_answer_may_follow_is_acknowledged_after_5_ms() {
    let (mut p, id) = established();
    p.send("PA 1:11 ack 1");
    p.expect_after(5, "A 1 ack 11");
    p.send("PA 11:21 ack 1");
    p.expect_nothing_for(4);
    p.write(id, b"answer");
    p.expect("PA 1:7 ack 21");
    p.expect_nothing_for(100);
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    let (mut p, id) = established();
    let mut seq = past_the_quick_acks(&mut p, id);
    for _ in 0..3 {
        p.send(&format!("A {seq}:{} ack 1", seq + 1460));
        p.expect_nothing_for(10);
        p.send(&format!("A {}:{} ack 1", seq + 1460, seq + 2920));
        seq += 2920;
        p.expect(&format!("A 1 ack {seq}"));
        p.read(id).unwrap();
    }
    p.send(&format!("A {seq}:{} ack 1", seq + 1460));
    p.expect_after(40, &format!("A 1 ack {}", seq + 1460));
}

#[test]
fn text_out_of_order_is_acknowledged_at_once_with_sack() {
    let (mut p, id) = established_by(Peer::ours(), "S 0 win 65535 <mss 1000,sackOK>");
    p.send("A 101:201 ack 1");
    p.expect("A 1 ack 1 <sack 101:201>");
    p.send("A 301:401 ack 1");
    p.expect("A 1 ack 1 <sack 301:401 101:201>");
    p.send("A 501:601 ack 1");
    p.expect("A 1 ack 1 <sack 501:601 301:401 101:201>");
    p.send("A 201:301 ack 1");
    p.expect("A 1 ack 1 <sack 101:401 501:601>");
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.send("A 1:101 ack 1");
    p.expect("A 1 ack 401 <sack 501:601>");
    p.send("A 401:501 ack 1");
    p.expect("A 1 ack 601 <>");
    assert_eq!(p.read(id).unwrap(), pattern(1, 600));
}

/// RFC 2018 §3: with timestamps three blocks fit, without four. What one acknowledgement has no room for goes in the next, at once: a
/// batch of packets tells the peer as much as the packets would one by one.
#[test]
fn as_many_sack_blocks_as_fit() {
    let (mut p, _) = established_by(Peer::ours(), "S 0 win 65535 <mss 1000,sackOK>");
    for seq in [101, 301, 501, 701, 901] {
        p.send(&format!("A {seq}:{} ack 1", seq + 100));
    }
    p.expect("A 1 ack 1 <sack 701:801 501:601 301:401 101:201>");
    p.expect("A 1 ack 1 <sack 901:1001 701:801 501:601 301:401>");
    p.expect_nothing();
    let (mut p, _) = established_by(Peer::ours(), "S 0 win 65535 <mss 1000,sackOK,TS 100 0>");
    for seq in [101, 301, 501, 701] {
        p.send(&format!("A {seq}:{} ack 1 <TS 100 0>", seq + 100));
    }
    p.expect("A 1 ack 1 <TS 0 100,sack 501:601 301:401 101:201>");
    p.expect("A 1 ack 1 <TS 0 100,sack 701:801 501:601 301:401>");
    p.expect_nothing();
}

/// Slow start overshoots a long path by half a window, of which every other segment is lost: what arrives is kept, not
/// only its first 256 pieces.
#[test]
fn a_window_with_every_other_segment_missing_is_kept() {
    let (mut p, id) = established_by(Peer::ours(), "S 0 win 65535 <mss 1000,sackOK,wscale 7>");
    for number in (1..870).step_by(2) {
        p.send(&format!("A {}:{} ack 1", 1 + number * 600, 601 + number * 600));
        p.expect("A 1 ack 1");
    }
    for number in (0..870).step_by(2) {
        p.send(&format!("A {}:{} ack 1", 1 + number * 600, 601 + number * 600));
        p.expect(&format!("A 1 ack {}", 1201 + number * 600));
    }
    assert_eq!(p.read(id).unwrap().len(), 522_000);
}

#[test]
fn without_sack_permitted_no_blocks_are_sent() {
    let (mut p, _) = established();
    p.send("A 101:201 ack 1");
    p.expect("A 1 ack 1 <>");
}

#[test]
fn overlapping_text_is_taken_once() {
    let (mut p, id) = established();
    p.send("A 51:151 ack 1");
    p.send("A 101:301 ack 1");
    p.send("A 21:61 ack 1");
    p.send("A 401:501 ack 1");
    p.send("A 11:451 ack 1");
    p.send("A 1:31 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 500));
    assert_eq!(p.stack.info(id).unwrap().bytes_received, 500);
    p.expect("A 1 ack 501");
    p.send("A 401:601 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(501, 100));
}

#[test]
fn an_early_fin_waits_for_the_text_before_it() {
    let (mut p, id) = established();
    p.send("FPA 101:201 ack 1");
    p.expect("A 1 ack 1");
    assert_eq!((p.read(id), p.state(id)), (Err(ReadError::Blocked), State::Established));
    p.send("A 1:101 ack 1");
    p.expect_after(40, "A 1 ack 202");
    assert_eq!(p.read(id).unwrap(), pattern(1, 200));
    assert_eq!(p.read(id).unwrap(), b"");
    assert_eq!(p.state(id), State::CloseWait);
}

#[test]
fn push_marks_the_end_of_each_write_that_ends_a_segment() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 2500));
    p.expect("A 1:1001 ack 1");
    p.expect("A 1001:2001 ack 1");
    p.expect("PA 2001:2501 ack 1");
}

#[test]
fn nagle_holds_a_second_small_segment_back() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 100));
    p.expect("PA 1:101 ack 1");
    p.write(id, &pattern(101, 100));
    p.write(id, &pattern(201, 100));
    p.expect_nothing_for(10);
    p.write(id, &pattern(301, 900));
    p.expect("A 101:1101 ack 1");
    p.expect_nothing_for(10);
    p.send("A 1 ack 101");
    p.expect("PA 1101:1201 ack 1");
}

/// Minshall: only a small segment in flight holds another one back, full ones do not.
#[test]
fn a_small_segment_may_follow_full_ones() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1100));
    p.expect("A 1:1001 ack 1");
    p.expect("PA 1001:1101 ack 1");
    p.write(id, &pattern(1101, 10));
    p.expect_nothing_for(10);
    p.send("A 1 ack 1001");
    p.expect_nothing_for(10);
    p.send("A 1 ack 1101");
    p.expect("PA 1101:1111 ack 1");
}

#[test]
fn nodelay_sends_at_once_also_when_switched_on_later() {
    let (mut p, id) = established();
    p.write(id, b"a");
    p.expect("PA 1:2 ack 1");
    p.write(id, b"b");
    p.expect_nothing();
    p.stack.set_option(p.now, id, SocketOption::NoDelay(true)).unwrap();
    p.expect("PA 2:3 ack 1");
    p.write(id, b"c");
    p.expect("PA 3:4 ack 1");
}

#[test]
fn a_fin_takes_what_nagle_holds_along() {
    let (mut p, id) = established();
    p.write(id, b"a");
    p.expect("PA 1:2 ack 1");
    p.write(id, b"b");
    p.expect_nothing();
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 2:3 ack 1");
}

fn gso() -> Capabilities {
    Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() }
}

#[test]
fn a_burst_leaves_whole_for_the_device_to_cut() {
    let (mut p, id) = established_by(Peer::with(Config::default(), gso()), "S 0 win 65535 <mss 1000>");
    p.write(id, &pattern(1, 3500));
    let packet = p.stack.poll_transmit(p.now).unwrap();
    assert_eq!((packet.payload_len(), packet.gso_size), (3500, 1000));
    assert_eq!(packet.checksum, wire::TxChecksum::Partial { start: 20, offset: 16 });
    let cut: Vec<usize> =
        packet.segments().iter().map(|p| wire::parse_tcp_packet(p).unwrap().2.len()).collect();
    assert_eq!(cut, [1000, 1000, 1000, 500]);
    assert!(p.stack.poll_transmit(p.now).is_none());
    p.write(id, b"x");
    p.expect_nothing_for(10);
    p.send("A 1 ack 3001");
    p.expect_nothing();
    p.send("A 1 ack 3501");
    p.expect("PA 3501:3502 ack 1");
}

/// Ten segments of cwnd, of 3500 bytes each: no burst exceeds the window, and none the device's limit.
#[test]
fn bursts_obey_the_window_and_the_devices_limit() {
    let limited = Capabilities { gso_max_size: 4096, ..gso() };
    let (mut p, id) = established_by(Peer::with(Config::default(), limited), "S 0 win 65535 <mss 1000>");
    p.write(id, &pattern(1, 30_000));
    let sizes: Vec<usize> =
        std::iter::from_fn(|| p.stack.poll_transmit(p.now)).map(|packet| packet.payload_len()).collect();
    assert_eq!(sizes, [4000, 4000, 2000]);
    // One segment, cut out of the burst it was sent in, is retransmitted alone.
    p.send("A 1 ack 1");
    p.send("A 1 ack 1");
    p.send("A 1 ack 1");
    let again = p.stack.poll_transmit(p.now).unwrap();
    assert_eq!((again.payload_len(), again.gso_size), (1000, 0));
}

#[test]
fn the_syn_and_pure_acks_leave_their_checksum_to_the_device_too() {
    let mut p = Peer::with(Config::default(), gso());
    p.listen();
    p.send("S 0 <mss 1000>");
    let packet = p.stack.poll_transmit(p.now).unwrap();
    assert_eq!(packet.checksum, wire::TxChecksum::Partial { start: 20, offset: 16 });
    assert!(wire::parse_tcp_packet(&packet.to_bytes()).is_ok(), "completed when copied out");
}

#[test]
fn merged_input_is_several_segments() {
    let (mut p, id) = established();
    let seq = past_the_quick_acks(&mut p, id);
    let packet = p.packet(&format!("PA {seq}:{} ack 1", seq + 4380));
    p.send_rx(RxPacket { gso_size: 1460, checksum: wire::RxChecksum::Trusted, ..RxPacket::new(packet) });
    p.expect(&format!("A 1 ack {}", seq + 4380));
    assert_eq!(p.read(id).unwrap(), pattern(seq, 4380));
}

#[test]
fn an_unverified_checksum_is_not_looked_at() {
    let (mut p, id) = established();
    let mut packet = p.packet("PA 1:11 ack 1").to_vec();
    packet[20 + 16] ^= 0xff;
    p.send_rx(RxPacket { checksum: wire::RxChecksum::Trusted, ..RxPacket::new(packet.into()) });
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

#[test]
fn reading_in_pieces_peeking_and_chunks() {
    let (mut p, id) = established();
    p.send("PA 1:101 ack 1");
    p.send("PA 101:201 ack 1");
    let mut buf = [0; 30];
    assert_eq!(p.stack.peek(p.now, id, &mut buf), Ok(30));
    assert_eq!(p.stack.read(p.now, id, &mut buf), Ok(30));
    assert_eq!(buf[..], pattern(1, 30));
    let chunk = p.stack.read_chunk(p.now, id, 50).unwrap().unwrap();
    assert_eq!(chunk[..], pattern(31, chunk.len()));
    let rest = p.read(id).unwrap();
    assert_eq!(rest, pattern(31 + chunk.len() as u32, 200 - 30 - chunk.len()));
    assert_eq!(p.stack.peek(p.now, id, &mut buf), Err(ReadError::Blocked));
    assert_eq!(p.stack.read(p.now, id, &mut []), Ok(0));
    p.send("FA 201 ack 1");
    assert_eq!(p.stack.peek(p.now, id, &mut buf), Ok(0));
    assert_eq!(p.stack.read_chunk(p.now, id, 50), Ok(None));
}

#[test]
fn bytes_are_written_without_copying() {
    let (mut p, id) = established();
    let data = bytes::Bytes::from(pattern(1, 2000));
    let address = data.as_ptr();
    assert_eq!(p.stack.write_bytes(p.now, id, &mut data.clone()), Ok(2000));
    let packet = p.stack.poll_transmit(p.now).unwrap();
    assert_eq!(packet.shared[0].as_ptr(), address);
}

/// RFC 9293 §3.7.1: what the SACK blocks take is not there for text.
#[test]
fn text_leaves_room_for_the_sack_blocks_beside_it() {
    let small = Capabilities { mtu: 576, ..ethernet() };
    let mut config = Config::default();
    config.set("net.ipv4.tcp_early_retrans", "0").unwrap();
    let (mut p, id) = established_by(Peer::with(config, small), "S 0 win 65535 <mss 1460,sackOK>");
    p.send("A 101:201 ack 1");
    p.expect("A 1 ack 1 <sack 101:201>");
    p.write(id, &pattern(1, 1100));
    p.expect("A 1:525 ack 1 <sack 101:201>");
    p.send("A 301:401 ack 1");
    p.expect_sent(3);
    p.skip(300);
    p.expect_after(300, "A 1:517 ack 1 <sack 301:401 101:201>");
    p.send("A 1:101 ack 1");
    p.send("A 201:301 ack 517");
    let sizes: Vec<String> = p.sent_now();
    assert_eq!(sizes, ["A 517:1053(536) ack 401 win 65535 <>", "PA 1053:1101(48) ack 401 win 65535 <>"]);
}

/// Linux's habit: a new connection acknowledges at once, until the exchange goes back and forth.
#[test]
fn the_linux_profile_acknowledges_at_once_at_first() {
    let (mut p, id) = established_by(Peer::new(Config::linux()), "S 0 win 65535 <mss 1000>");
    p.send("PA 1:11 ack 1");
    p.expect("A 1 ack 11");
    p.send("PA 11:21 ack 1");
    p.write(id, b"answer");
    p.expect("PA 1:7 ack 21");
    p.send("PA 21:31 ack 7");
    p.expect_after(40, "A 7 ack 31");
}

/// `TCP_MAXSEG` of nonsense is no division by zero.
#[test]
fn a_clamp_of_zero_means_the_least_mss() {
    let socket = SocketOptions { max_segment: Some(0), ..Default::default() };
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions { socket: socket.clone(), ..Default::default() });
    p.expect("S 0 <mss 88,sackOK,TS 0 0,wscale 7>");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("A 1 ack 1");
    p.write(id, &pattern(1, 176));
    p.expect("A 1:89 ack 1");
    p.expect("PA 89:177 ack 1");
    let mut p = Peer::ours();
    p.listen_with(ListenOptions { socket, ..Default::default() });
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1 <mss 88>");
}
