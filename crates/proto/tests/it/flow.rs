//! Flow control: the receiver's window, the sender's persistence, both ends' avoidance of silly windows, buffer limits.

use crate::peer::*;
use proto::*;

fn with_socket(socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..Default::default() });
    let id = p.establish(listener);
    p.events();
    (p, id)
}

fn established() -> (Peer, ConnId) {
    with_socket(SocketOptions::default())
}

/// A window of 10000 bytes.
fn small_receiver() -> (Peer, ConnId) {
    with_socket(SocketOptions { recv_buffer: Some(10_000), ..Default::default() })
}

fn read(p: &mut Peer, id: ConnId, len: usize) {
    assert_eq!(p.stack.read(p.now, id, &mut vec![0; len]), Ok(len));
}

#[test]
fn a_receiver_that_does_not_read_closes_its_window() {
    let (mut p, id) = small_receiver();
    for (seq, window) in [(1, 8540), (1461, 7080), (2921, 5620), (4381, 4160), (5841, 2700), (7301, 1240)] {
        p.send(&format!("A {seq}:{} ack 1", seq + 1460));
        p.expect(&format!("A 1 ack {} win {window}", seq + 1460));
    }
    p.send("A 8761:10001 ack 1");
    let header = p.expect_after(5, "A 1 ack 10001 win 0");
    assert_eq!(header.window, 0);
    p.send("A 10001:10002 ack 1");
    p.expect("A 1 ack 10001 win 0");
    assert_eq!(p.stack.info(id).unwrap().recv_queue, 10_000);
}

/// RFC 9293 §3.8.6.2.2: the window opens by a segment, or by half the buffer.
#[test]
fn a_closed_window_opens_when_it_is_worth_a_segment() {
    let (mut p, id) = small_receiver();
    p.send("A 1:1461 ack 1");
    p.expect("A 1 ack 1461");
    for seq in [1461, 2921, 4381, 5841, 7301] {
        p.send(&format!("A {seq}:{} ack 1", seq + 1460));
        p.expect(&format!("A 1 ack {}", seq + 1460));
    }
    p.send("A 8761:10001 ack 1");
    p.expect_after(5, "A 1 ack 10001 win 0");
    read(&mut p, id, 1459);
    p.expect_nothing_for(1000);
    read(&mut p, id, 1);
    p.expect("A 1 ack 10001 win 1460");
    read(&mut p, id, 1459);
    p.expect_nothing_for(1000);
    read(&mut p, id, 1);
    p.expect("A 1 ack 10001 win 2920");
    read(&mut p, id, 1460);
    p.expect_nothing_for(1000);
    p.send("A 10001:10002 ack 1");
    p.expect_after(5, "A 1 ack 10002 win 4379");
}

/// Linux's `tcp_cleanup_rbuf`: "2*rcv_window_now <= tp->window_clamp", and the window at least doubles. Of a buffer that grows with the path,
/// the ACKs of what comes next tell soon enough.
#[test]
fn a_chosen_buffer_that_is_read_is_advertised_while_half_of_it_is_open() {
    for (chosen, update) in [(Some(20_000), true), (None, false)] {
        let (mut p, id) = with_socket(SocketOptions { recv_buffer: chosen, ..Default::default() });
        let whole = p.stack.info(id).unwrap().rcv_wnd;
        let segments = whole / 2 / 1460 + 1;
        for seq in (0..segments).map(|n| 1 + n * 1460) {
            p.send(&format!("A {seq}:{} ack 1", seq + 1460));
        }
        p.pass(200);
        let all = format!("ack {}", 1 + 1460 * segments);
        assert!(p.sent_now().last().unwrap().contains(&all));
        read(&mut p, id, 1460 * segments as usize);
        match update {
            true => drop(p.expect(&format!("A 1 {all} win {whole}"))),
            false => p.expect_nothing_for(1000),
        }
    }
}

#[test]
fn the_windows_right_edge_never_retreats() {
    let (mut p, id) = small_receiver();
    p.send("A 1:101 ack 1");
    p.expect_after(5, "A 1 ack 101 win 9900");
    read(&mut p, id, 100);
    p.send("A 101:201 ack 1");
    p.expect_after(5, "A 1 ack 201 win 9800");
    p.send("A 201:10001 ack 1");
    assert_eq!(p.read(id).unwrap().len(), 9900, "everything up to the edge is taken");
}

#[test]
fn a_closed_window_is_probed_less_and_less_often_for_as_long_as_the_peer_answers() {
    let (mut p, id) = established();
    p.send("A 1 ack 1 win 0");
    p.write(id, &pattern(1, 3000));
    // No RTT but that of the handshake: 0, so RTO is the least.
    let mut wait = 200;
    for _ in 0..40 {
        p.expect_after(wait, "A 0 ack 1");
        p.send("A 1 ack 1 win 0");
        p.expect_nothing();
        wait = (wait * 2).min(120_000);
    }
    assert_eq!(p.state(id), State::Established);
    p.send("A 1 ack 1 win 2500");
    p.expect("A 1:1001 ack 1");
    p.expect("A 1001:2001 ack 1");
    p.expect_nothing();
    p.expect_after(200, "A 1:1001 ack 1");
}

/// RFC 9293 §3.8.6: a FIN takes a number, too. Behind a closed window it waits, and the window is probed.
#[test]
fn a_fin_waits_behind_a_closed_window() {
    let (mut p, id) = established();
    p.send("A 1 ack 1 win 0");
    p.stack.shutdown(p.now, id).unwrap();
    p.expect_after(200, "A 0 ack 1");
    p.send("A 1 ack 1 win 0");
    p.expect_after(400, "A 0 ack 1");
    p.send("A 1 ack 1 win 1000");
    p.expect("FA 1 ack 1");
}

#[test]
fn an_unanswered_probe_ends_the_connection() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_retries2", "3").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish(listener);
    p.send("A 1 ack 1 win 0");
    p.write(id, b"x");
    for wait in [200, 400, 800] {
        p.expect_after(wait, "A 0 ack 1");
    }
    p.expect_nothing_for(1600);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

/// Probes are counted in a byte, and `tcp_retries2` may be all that it holds.
#[test]
fn the_most_unanswered_probes_end_the_connection_too() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_retries2", "255").unwrap();
    config.set("net.ipv4.tcp_rto_max_ms", "1000").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish(listener);
    p.send("A 1 ack 1 win 0");
    p.write(id, b"x");
    for wait in [200, 400, 800].into_iter().chain([1000; 251]) {
        p.expect_after(wait, "A 0 ack 1");
    }
    p.expect_nothing_for(1000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

/// The window closes over text in flight (the peer shrank it): it is not thrown at the peer, but probed.
#[test]
fn a_window_that_shrinks_over_text_in_flight_is_probed() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 2000));
    p.expect("A 1:1001 ack 1");
    p.expect("PA 1001:2001 ack 1");
    p.send("A 1 ack 1 win 0");
    p.expect_after(200, "A 1:1001 ack 1");
    p.send("A 1 ack 1 win 0");
    p.expect_after(400, "A 1:1001 ack 1");
    p.send("A 1 ack 1 win 1000");
    p.expect("A 1:1001 ack 1");
    p.send("A 1 ack 1001 win 5000");
    p.expect("PA 1001:2001 ack 1");
    assert_eq!(p.state(id), State::Established);
}

/// RFC 9293 §3.8.6.1: as long as the peer answers, "the sending TCP peer MUST allow the connection to stay open" (MUST-37). Without SACK its
/// answer to a probe with text that was in flight looks like a duplicate.
#[test]
fn answered_probes_with_text_in_flight_do_not_count_towards_the_retry_limit() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_retries2", "3").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000>");
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.send("A 1 ack 1 win 0");
    for wait in [200, 400, 800, 1600, 3200, 6400] {
        p.expect_after(wait, "PA 1:1001 ack 1");
        p.send("A 1 ack 1 win 0");
    }
    assert_eq!(p.state(id), State::Established);
}

/// Each end has seen the other's window closed by text with a hole before it: what the answers to their probes offer comes with numbers
/// from before that. The repeated text moves them on.
#[test]
fn two_windows_shrunken_at_once_open_again() {
    for sack in ["", ",sackOK"] {
        let mut p = Peer::ours();
        let listener = p.listen();
        let id = p.establish_with(listener, &format!("S 0 win 65535 <mss 1000{sack}>"));
        p.write(id, &pattern(1, 2000));
        p.expect_range(1..2001);
        p.send("A 501:1001 ack 1 win 0");
        p.expect("A 1 ack 1");
        p.send("A 1 ack 1 win 65535");
        assert_eq!(p.stack.info(id).unwrap().snd_wnd, 0, "not newer than what closed it");
        p.skip_until_sent();
        p.send("A 1 ack 1001 win 65535");
        assert_eq!(p.stack.info(id).unwrap().snd_wnd, 65_535, "it acknowledges more");
        assert!(!p.sent_now().is_empty(), "the rest follows");
    }
}

/// An ACK of ours behind a shrunken window would be thrown away.
#[test]
fn an_empty_segment_stays_inside_the_peers_window() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 2000));
    p.expect_range(1..2001);
    p.send("A 1 ack 1001 win 500");
    p.send("PA 1:11 ack 1001 win 500");
    p.expect_after(5, "A 1501 ack 11");
}

/// The peer's scale, 1 byte here, is what its window may have been rounded by; ours, 128 bytes, has no part in it.
#[test]
fn an_empty_segment_may_exceed_the_window_by_what_the_peers_scale_rounds_off() {
    for (scale, sent) in [(0, 1901), (7, 2001)] {
        let mut p = Peer::ours();
        let listener = p.listen();
        let id = p.establish_with(listener, &format!("S 0 win 65535 <mss 1000,wscale {scale}>"));
        assert_eq!(p.stack.info(id).unwrap().rcv_wscale, 7);
        p.write(id, &pattern(1, 2000));
        p.expect_range(1..2001);
        let window = 900 >> scale;
        p.send(&format!("A 1 ack 1001 win {window}"));
        p.send(&format!("PA 1:11 ack 1001 win {window}"));
        p.expect_after(5, &format!("A {sent} ack 11"));
    }
}

/// After a time-out the next number to send is an old one; an ACK with it would be old to a peer that has received all.
#[test]
fn an_empty_segment_carries_the_latest_number_also_after_a_timeout() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 3000));
    assert_eq!(p.sent_now().len(), 3);
    p.expect_after(200, "A 1:1001 ack 1");
    p.send("PA 1:11 ack 1");
    p.expect_after(5, "A 3001 ack 11");
    p.stack.abort(p.now, id);
    p.expect("RA 3001 ack 11");
}

/// RFC 9293 §3.8.6.2.1: less than a segment is sent only when it is half of the largest window seen, or after a time-out.
#[test]
fn a_window_smaller_than_a_segment_is_used_after_a_while() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.send("A 1 ack 1001 win 500");
    p.write(id, &pattern(1001, 2000));
    p.expect_after(200, "PA 1001:1501 ack 1");
    p.send("A 1 ack 1501 win 500");
    p.expect_after(200, "PA 1501:2001 ack 1");
    p.send("A 1 ack 2001 win 5000");
    p.expect("PA 2001:3001 ack 1");
}

#[test]
fn a_peer_with_a_tiny_buffer_gets_half_of_it_at_a_time() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 win 600 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 1 win 600");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 1500));
    p.expect("A 1:601 ack 1");
    p.send("A 1 ack 601 win 0");
    p.send("A 1 ack 601 win 299");
    p.expect_nothing();
    p.send("A 1 ack 601 win 300");
    p.expect("A 601:901 ack 1");
}

#[test]
fn the_peers_window_is_never_exceeded() {
    let (mut p, id) = established();
    p.send("A 1 ack 1 win 2500");
    p.write(id, &pattern(1, 10_000));
    p.expect("A 1:1001 ack 1");
    p.expect("A 1001:2001 ack 1");
    p.expect_nothing();
    p.send("A 1 ack 1001 win 2500");
    p.expect("A 2001:3001 ack 1");
    p.expect_nothing();
}

/// Linux's `tcp_sendmsg_locked`: what a write has sent by the time it begins its next segment does not wait any more.
#[test]
fn a_write_that_sends_in_its_middle_takes_more_than_may_wait() {
    for (config, taken) in [(Config::default(), 4000), (Config::linux(), 14_000)] {
        let mut p = Peer::new(config);
        let listener = p.listen();
        let id = p.establish(listener);
        p.stack.set_option(p.now, id, SocketOption::NotsentLowat(Some(4000))).unwrap();
        assert_eq!(p.stack.write(p.now, id, &pattern(1, 20_000)), Ok(taken));
        let sent = p.sent_now();
        assert_eq!(sent.len(), taken.min(10_000) / 1000, "in order, and none twice");
        assert_eq!(p.stack.info(id).unwrap().tcp_info.notsent_bytes as usize, taken - taken.min(10_000));
    }
}

/// Linux counts 832 bytes for a segment beside its payload, looks when one begins, and doubles what an application asks for.
#[test]
fn a_send_buffer_of_segments_is_overrun_by_the_last() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    let id = p.establish(listener);
    p.stack.set_option(p.now, id, SocketOption::SendBuffer(3000)).unwrap();
    assert_eq!(p.stack.write(p.now, id, &pattern(1, 10_000)), Ok(4000), "3 × 1832 bytes are less than 6000");
    assert_eq!(p.stack.info(id).unwrap().send_buffer_used, 4 * 1832);
    p.expect_range(1..4001);
    p.events();
    p.send("A 1 ack 1001");
    assert_eq!(p.events_of(id), Events::empty(), "5496 of 6000");
    p.send("A 1 ack 2001");
    assert_eq!(p.events_of(id), Events::WRITABLE, "3664 are two thirds");
    assert!(p.stack.info(id).unwrap().writable);
}

/// Linux's `tcp_bound_to_half_wnd` and `tcp_mss_split_point`; otherwise RFC 9293 §3.8.6.2.1.
#[test]
fn small_windows_are_filled_with_smaller_segments() {
    let opened = |config: Config, window: u32| {
        let mut p = Peer::new(config);
        let listener = p.listen();
        p.send(&format!("S 0 win {window} <mss 1000>"));
        p.expect("SA 0 ack 1");
        p.send(&format!("A 1 ack 1 win {window}"));
        let id = p.accept(listener);
        p.write(id, &pattern(1, 3000));
        (p, id)
    };
    let (mut p, id) = opened(Config::linux(), 1500);
    p.expect("A 1:751 ack 1");
    p.expect("PA 751:1501 ack 1");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 750);
    p.send("A 1 ack 1501 win 3000");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 1000, "the peer has offered more");
    let (mut p, id) = opened(Config::default(), 1500);
    assert_eq!((p.sent_now().len(), p.stack.info(id).unwrap().flight_size), (1, 1000));
}

#[test]
fn the_send_buffer_has_a_limit_and_says_when_there_is_room() {
    let (mut p, id) = with_socket(SocketOptions { send_buffer: Some(9000), ..Default::default() });
    assert_eq!(p.stack.send_capacity(id), Ok(9000));
    assert_eq!(p.stack.write(p.now, id, &pattern(1, 10_000)), Ok(9000));
    assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::Blocked));
    assert_eq!(p.stack.send_capacity(id), Err(WriteError::Blocked));
    assert_eq!(p.stack.write(p.now, id, b""), Ok(0));
    p.expect_range(1..9001);
    p.events();
    p.send("A 1 ack 2001");
    assert_eq!(p.events_of(id), Events::empty(), "a third must be free first");
    p.send("A 1 ack 3001");
    assert_eq!(p.events_of(id), Events::WRITABLE);
    assert_eq!(p.stack.send_capacity(id), Ok(3000));
    assert_eq!(p.stack.write(p.now, id, &pattern(9001, 10)), Ok(10));
    p.send("A 1 ack 9001");
    assert_eq!(p.events_of(id), Events::empty(), "nobody waited");
    p.expect("PA 9001:9011 ack 1");
    p.send("A 1 ack 9011");
    assert_eq!(p.events_of(id), Events::SENT_ALL);
}

#[test]
fn a_window_update_is_not_a_duplicate_ack() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 5000));
    assert_eq!(p.sent_now().len(), 5);
    for window in [60_000, 50_000, 40_000, 30_000] {
        p.send(&format!("A 1 ack 1 win {window}"));
    }
    p.expect_nothing();
    assert_eq!(p.stack.info(id).unwrap().cwnd, 10_000);
}

/// One-byte segments in 1500-byte packets do not pin their packets.
#[test]
fn early_text_is_bounded() {
    let (mut p, id) = established();
    for number in 0..2000 {
        let seq = 3 + number * 2;
        p.send(&format!("A {seq}:{} ack 1", seq + 1));
        p.expect("A 1 ack 1");
    }
    p.send("A 1:3 ack 1");
    // 256 pieces are kept, the others must come again.
    assert_eq!(p.stack.info(id).unwrap().recv_queue, 3);
    assert_eq!(p.read(id).unwrap(), pattern(1, 3));
    assert_eq!(p.read(id), Err(ReadError::Blocked));
}

#[test]
fn a_part_sent_into_a_small_window_is_sent_again_when_it_is_lost() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.send("A 1 ack 1001 win 500");
    p.write(id, &pattern(1001, 2000));
    p.expect_after(200, "PA 1001:1501 ack 1");
    p.expect_after(200, "PA 1001:1501 ack 1");
    p.expect_after(400, "PA 1001:1501 ack 1");
    p.expect_after(800, "PA 1001:1501 ack 1");
    p.send("A 1 ack 1501 win 5000");
    p.expect("A 1501:2501 ack 1");
    p.send("A 1 ack 2501 win 5000");
    p.expect("PA 2501:3001 ack 1");
}
