//! A receive buffer that is counted packet by packet, in Linux's profile. The figures are a 6.18's; scripts in `windows` show more of them.

use crate::peer::*;
use proto::*;

/// A connection, of a stack whose packets a tap holds.
fn with(socket: SocketOptions, syn: &str) -> (Peer, ConnId) {
    let mut p = Peer::new(Config::linux());
    p.stack.tap_has_read(Some(0));
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, syn);
    p.expect_nothing();
    (p, id)
}

/// One whose buffer holds `size` bytes twice, of a peer with SACK.
fn plain(size: u32) -> (Peer, ConnId) {
    let socket = SocketOptions { recv_buffer: Some(size), ..SocketOptions::default() };
    with(socket, "S 0 win 65535 <mss 1460,sackOK>")
}

fn held(p: &Peer, id: ConnId) -> (u32, u32) {
    let queues = p.stack.queues(id).unwrap();
    (queues.recv_memory, queues.recv_buffer)
}

/// A full-sized segment takes 2304 bytes, one of ten 832, and of a large one its pages count.
#[test]
fn packets_are_charged_with_their_bookkeeping() {
    let (mut p, id) = plain(50_000);
    let mut seq = 1;
    for (len, memory) in [(1460, 2304), (10, 3136), (10, 3968), (3000, 8320), (20_000, 29_056)] {
        p.send(&format!("A {seq}:{} ack 1", seq + len));
        seq += len;
        assert_eq!(held(&p, id), (memory, 100_000), "{len} bytes");
    }
    p.read(id).unwrap();
    assert_eq!(held(&p, id).0, 0);
}

/// What is small is copied behind what came before it, and takes nothing, unless a tap holds that.
#[test]
fn small_packets_share_memory() {
    let (mut p, id) = plain(50_000);
    p.stack.tap_has_read(None);
    let mut seq = 1;
    for (len, memory) in [(10, 832), (100, 832), (43, 1664), (1000, 3968), (100, 3968)] {
        p.send(&format!("A {seq}:{} ack 1", seq + len));
        seq += len;
        assert_eq!(held(&p, id).0, memory, "{len} bytes");
    }
    p.stack.tap_has_read(Some(p.stack.counters().in_segs - 2));
    p.send(&format!("A {seq}:{} ack 1", seq + 1));
    assert_eq!(held(&p, id).0, 4800);
    assert_eq!(p.read(id).unwrap(), pattern(1, seq as usize));
}

/// Of a packet that is read in part everything stays.
#[test]
fn a_packet_goes_when_all_of_it_is_read() {
    let (mut p, id) = plain(50_000);
    p.send("A 1:1461 ack 1");
    p.send("A 1461:2921 ack 1");
    let mut some = [0; 1459];
    assert_eq!(p.stack.read(p.now, id, &mut some), Ok(1459));
    assert_eq!(held(&p, id).0, 4608);
    assert_eq!(p.stack.read(p.now, id, &mut some[..1]), Ok(1));
    assert_eq!(held(&p, id).0, 2304);
}

/// Tiny packets with gaps between: the buffer is full of them long before the window is. The next is refused; what fills the first gap is
/// not, but the last give way to it.
#[test]
fn what_comes_out_of_order_fills_the_buffer() {
    let (mut p, id) = plain(5000);
    for n in 1..=13 {
        p.send(&format!("A {}:{} ack 1", 200 * n + 1, 200 * n + 101));
        p.expect_only_acks();
    }
    assert_eq!(held(&p, id), (13 * 832, 10_000));
    p.send("A 2801:2901 ack 1");
    p.expect_nothing();
    let counters = p.stack.counters();
    assert_eq!((counters.prune_called, counters.rcv_pruned, counters.ofo_drop), (1, 1, 1));
    p.send("A 1:201 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.prune_called, counters.rcv_pruned, counters.ofo_pruned), (2, 1, 1));
    assert_eq!(held(&p, id).0, 11 * 832 + 1280);
    assert_eq!(p.read(id).unwrap().len(), 300);
    // The blocks are forgotten with them: the first that comes is reported alone.
    p.expect("A 1 ack 301");
    p.send("A 2401:2501 ack 1");
    p.expect("A 1 ack 301 <sack 2401:2501>");
    p.send("A 2601:2701 ack 1");
    p.expect("A 1 ack 301 <sack 2601:2701 2401:2501>");
}

/// A window may shrink to the memory that is left (`tcp_shrink_window`), which is all in packets behind a gap. What fills the gap is taken
/// all the same: no read would open the window again.
#[test]
fn a_window_that_shrinks_stays_open_for_what_fills_the_gap() {
    let mut config = Config::linux();
    config.set("net.ipv4.tcp_shrink_window", "1").unwrap();
    let mut p = Peer::new(config);
    p.stack.tap_has_read(Some(0));
    let socket = SocketOptions { recv_buffer: Some(5000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,sackOK,wscale 7>");
    p.expect_nothing();
    for n in 1..=13 {
        p.send(&format!("A {}:{} ack 1", 200 * n + 1, 200 * n + 101));
        p.expect_only_acks();
    }
    assert!(p.stack.info(id).unwrap().rcv_wnd > 0);
    p.send("A 1:101 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 100));
}

/// A packet replaces those that it covers, and one that brings nothing goes itself.
#[test]
fn a_packet_that_covers_others_takes_their_place() {
    let (mut p, id) = plain(50_000);
    p.send("A 2001:3001 ack 1");
    p.expect("A 1 ack 1 <sack 2001:3001>");
    p.send("A 4001:5001 ack 1");
    p.expect("A 1 ack 1 <sack 4001:5001 2001:3001>");
    p.send("A 2001:6001 ack 1");
    p.expect("A 1 ack 1 <sack 2001:3001 2001:6001>");
    assert_eq!((p.stack.counters().ofo_merge, held(&p, id).0), (2, 8448));
    p.send("A 2501:3501 ack 1");
    p.expect("A 1 ack 1 <sack 2501:3501 2001:6001>");
    assert_eq!((p.stack.counters().ofo_merge, held(&p, id).0), (3, 8448));
    p.send("A 1:2001 ack 1");
    p.expect("A 1 ack 6001");
    assert_eq!(p.read(id).unwrap().len(), 6000);
}

/// Three go at once; of what follows within the delay one is sent. (Where the window grows each goes at once.)
#[test]
fn acknowledgements_behind_a_gap_are_compressed() {
    let (mut p, _) = plain(5000);
    for n in 1..=3 {
        p.send(&format!("A {}:{} ack 1", 100 * n + 1, 100 * n + 101));
        p.expect(&format!("A 1 ack 1 <sack 101:{}>", 100 * n + 101));
    }
    p.send("A 401:501 ack 1");
    p.send("A 501:601 ack 1");
    p.expect("A 1 ack 1 <sack 101:601>");
    assert_eq!(p.stack.counters().ack_compressed, 1);
}

/// A tenth of 50 ms, but not longer than the time that is set.
#[test]
fn compressed_acknowledgements_wait_for_a_part_of_a_round_trip() {
    for (most, waits) in [("20000000", 5), ("2000000", 2)] {
        let mut config = Config::linux();
        config.set("net.ipv4.tcp_comp_sack_rtt_percent", "10").unwrap();
        config.set("net.ipv4.tcp_comp_sack_delay_ns", most).unwrap();
        let mut p = Peer::new(config);
        let socket = SocketOptions { recv_buffer: Some(5000), ..SocketOptions::default() };
        let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
        p.send("S 0 win 65535 <mss 1460,sackOK,TS 1000 0>");
        p.expect("SA 0 ack 1");
        p.skip(50);
        p.send("A 1:601 ack 1 <TS 1050 0>");
        p.expect("A 1 ack 601");
        let id = p.accept(listener);
        p.read(id).unwrap();
        p.expect_nothing();
        let mut sent = 0;
        for n in 7..17 {
            p.send(&format!("A {}:{} ack 1 <TS 1050 0>", 100 * n + 1, 100 * n + 101));
            sent += p.sent_now().len();
        }
        assert!((3..10).contains(&sent), "{sent}");
        p.expect_after(waits, &format!("A 1 ack 601 <TS {} 1050,sack 701:1701>", 50 + waits));
    }
}

/// Memory that is not used to the full is copied together when the buffer takes too much, and more must be set aside.
#[test]
fn bloated_packets_are_copied_together() {
    let (mut p, id) = plain(5000);
    let mut seq = 1;
    for _ in 0..9 {
        p.send(&format!("A {seq}:{} ack 1", seq + 200));
        p.expect_only_acks();
        seq += 200;
    }
    assert_eq!(held(&p, id).0, 9 * 1280);
    p.send(&format!("A {seq}:{} ack 1", seq + 200));
    p.expect_nothing();
    let counters = p.stack.counters();
    assert_eq!((counters.prune_called, counters.rcv_collapsed, counters.rcv_pruned), (1, 9, 0));
    assert_eq!(held(&p, id).0, 4352);
    assert_eq!(p.read(id).unwrap(), pattern(1, 2000));
}

/// What a device merged is more than a segment; and of one the timestamps take twelve bytes.
#[test]
fn a_full_sized_segment_is_our_mss_without_timestamps() {
    let (mut p, id) = with(SocketOptions::default(), "S 0 win 65535 <mss 1460,sackOK,TS 100 0>");
    p.send("A 1:2897 ack 1 <TS 101 0>");
    assert_eq!(p.stack.info(id).unwrap().tcp_info.rcv_mss, 1448);
}

/// A part that came twice is told late, if what follows takes the fast path.
#[test]
fn a_part_that_came_twice_is_told_with_the_delayed_acknowledgement() {
    let (mut p, id) = plain(50_000);
    p.send("PA 1:1001 ack 1");
    p.expect("A 1 ack 1001");
    p.write(id, &pattern(1, 100));
    p.expect("PA 1:101 ack 1001");
    p.send("A 1001 ack 101");
    p.send("PA 991:1011 ack 101");
    p.send("PA 1011:1021 ack 101");
    p.expect_after(40, "A 101 ack 1021 <sack 991:1001>");
}

/// All that has come is a byte that is read apart: it does not keep the buffer's memory, which would stay full.
#[test]
fn an_urgent_byte_that_is_passed_over_takes_no_memory() {
    for by_chunk in [false, true] {
        let socket = SocketOptions { urgent_apart: true, recv_buffer: Some(0), ..SocketOptions::default() };
        let (mut p, id) = with(socket, "S 0 win 65535 <mss 1460,sackOK>");
        for seq in 1..=10 {
            let mut packet = p.packet(&format!("UPA {seq}:{} ack 1", seq + 1)).to_vec();
            packet[38..40].copy_from_slice(&1_u16.to_be_bytes());
            p.send_rx(RxPacket { checksum: wire::RxChecksum::Trusted, ..RxPacket::new(packet.into()) });
            let read = match by_chunk {
                true => p.stack.read_chunk(p.now, id, 100).map(|_| 0),
                false => p.stack.read(p.now, id, &mut [0; 100]),
            };
            assert_eq!((read, held(&p, id).0), (Err(ReadError::Blocked), 0), "{seq}");
            assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(seq)));
            p.expect_only_acks();
        }
    }
}

/// The packet of a FIN alone goes when the end is read (Linux's `tcp_recvmsg_locked`), however it is.
#[test]
fn a_fin_takes_no_memory_when_it_is_read() {
    for by_chunk in [false, true] {
        let (mut p, id) = plain(50_000);
        p.send("FA 1 ack 1");
        assert_eq!(held(&p, id).0, 832);
        if by_chunk {
            assert_eq!(p.stack.read_chunk(p.now, id, 100), Ok(None));
        } else {
            assert_eq!(p.read(id), Ok(vec![]));
        }
        assert_eq!(held(&p, id).0, 0);
    }
}

/// What a device merged is as many packets (Linux's `gso_segs`).
#[test]
fn merged_packets_out_of_order_are_counted_each() {
    for config in both_profiles() {
        let mut p = Peer::new(config);
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,sackOK>");
        let merged = RxPacket { gso_size: 1000, ..RxPacket::new(p.packet("A 1001:3501 ack 1")) };
        p.send_rx(merged);
        p.send("A 5001:5501 ack 1");
        assert_eq!(p.stack.info(id).unwrap().tcp_info.rcv_ooopack, 4);
    }
}
