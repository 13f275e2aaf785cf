//! SEGMENT ARRIVES on an open connection: what is acceptable, what is challenged, what is ignored.

use crate::peer::*;
use core::time::Duration;
use proto::*;

fn established() -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish(listener);
    p.events();
    (p, id)
}

fn established_with_timestamps() -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,TS 100 0>");
    p.events();
    (p, id)
}

#[test]
fn a_reset_needs_the_exact_number() {
    let (mut p, id) = established();
    p.send("R 2");
    p.expect("A 1 ack 1 <>");
    p.skip(500);
    p.send("R 64241");
    p.expect("A 1 ack 1");
    p.send("R 70000");
    p.send("R 0");
    p.expect_nothing();
    assert_eq!((p.state(id), p.stack.counters().challenge_ack), (State::Established, 2));
    p.send("R 1");
    p.expect_nothing();
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
    assert_eq!(p.events_of(id), Events::CLOSED | Events::READABLE | Events::WRITABLE);
    assert_eq!(p.stack.counters().estab_resets, 1);
    assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::Reset)));
    assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::Closed(CloseReason::Reset)));
    p.send("A 1 ack 1");
    p.expect("R 1");
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn what_came_before_a_reset_can_still_be_read() {
    let (mut p, id) = established();
    p.send("PA 1:11 ack 1");
    p.send("R 11");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::Reset)));
}

/// Linux's `tcp_reset_check`: FIN and reset of one number, as some hosts end a program.
#[test]
fn a_reset_of_the_fins_number_counts() {
    let (mut p, id) = established();
    p.send("FA 1 ack 1");
    p.expect_after(40, "A 1 ack 2");
    p.send("R 1");
    p.expect_nothing();
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
    let (mut p, id) = established();
    p.send("R 0");
    assert_eq!(p.state(id), State::Established, "without a FIN that number is old");
}

/// A peer whose text was lost resets with the number behind all of it; the highest selectively acknowledged one is as good a proof.
#[test]
fn a_reset_behind_what_came_early_counts() {
    for (options, reason) in [("mss 1000,sackOK", Some(CloseReason::Reset)), ("mss 1000", None)] {
        let mut p = Peer::ours();
        let listener = p.listen();
        let id = p.establish_with(listener, &format!("S 0 win 65535 <{options}>"));
        p.send("A 11:21 ack 1");
        p.send("A 31:41 ack 1");
        p.expect_only_acks();
        p.send("R 21");
        assert_eq!(p.state(id), State::Established);
        p.send("R 41");
        assert_eq!(p.stack.close_reason(id), reason, "{options}");
    }
}

/// `tcp_invalid_ratelimit`: the connection's own limit, for challenges and for answers to what was not taken alike.
#[test]
fn a_connection_answers_nonsense_twice_a_second() {
    let (mut p, _) = established();
    for wait in [0, 499, 1, 499] {
        p.skip(wait);
        p.send("R 2");
        p.expect_only_acks();
    }
    assert_eq!((p.stack.counters().challenge_ack, p.stack.counters().ack_skipped_challenge), (2, 2));
    p.send("A 0 ack 1");
    p.expect_nothing();
    p.send("A 70000:70010 ack 1");
    p.expect("A 1 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.ack_skipped_seq, counters.beyond_window), (1, 1), "text is answered each time");
    p.skip(1);
    p.send("A 0 ack 1");
    p.expect("A 1 ack 1");
}

/// RFC 5961 §7: the stack's limit, which nobody can count by his own connection.
#[test]
fn challenges_of_all_connections_are_limited_too() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_challenge_ack_limit", "10").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen();
    let ports = 40_000..40_050;
    for port in ports.clone() {
        p.remote.set_port(port);
        p.establish(listener);
    }
    let mut seconds = Vec::new();
    for second in 1..40 {
        let before = p.stack.counters().challenge_ack;
        for port in ports.clone() {
            p.remote.set_port(port);
            p.send("R 2");
            p.expect_only_acks();
        }
        seconds.push(p.stack.counters().challenge_ack - before);
        p.now = Instant::ZERO + Duration::from_secs(1000 + second);
    }
    assert!(seconds.iter().all(|sent| (5..15).contains(sent)), "{seconds:?}");
    assert!(seconds.iter().any(|sent| *sent != seconds[0]), "the same every second: {seconds:?}");
}

#[test]
fn a_syn_is_challenged_wherever_it_lies() {
    let (mut p, id) = established();
    for (number, seq) in ["0", "1", "2", "70000"].iter().enumerate() {
        p.skip(500);
        p.send(&format!("S {seq} <mss 1000>"));
        p.expect("A 1 ack 1 <>");
        assert_eq!(p.stack.counters().challenge_ack, number as u64 + 1);
    }
    p.skip(500);
    p.send("SA 1 ack 1");
    p.expect("A 1 ack 1");
    assert_eq!((p.state(id), p.stack.counters().syn_challenge), (State::Established, 5));
}

#[test]
fn an_ack_of_what_was_never_sent_is_challenged_and_its_text_is_not_taken() {
    let (mut p, id) = established();
    p.send("PA 1:11 ack 2");
    p.expect("A 1 ack 1");
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.write(id, &pattern(1, 10));
    p.expect("PA 1:11 ack 1");
    p.send("A 1 ack 11");
    p.send("PA 1:11 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10), "an old ACK in the window of RFC 5961 §5.2 will do");
    p.expect_after(5, "A 11 ack 11");
    p.write(id, &pattern(11, 10));
    p.expect("PA 11:21 ack 11");
    let before = p.stack.counters().challenge_ack;
    p.now = p.now + Duration::from_secs(1);
    // Older than any window the peer ever offered.
    p.stack.handle_packet(p.now, RxPacket::new(p.packet("PA 11:21 ack 4294900000")));
    p.expect("A 21 ack 11");
    assert_eq!(p.stack.counters().challenge_ack, before + 1);
    assert_eq!(p.read(id), Err(ReadError::Blocked));
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let (mut p, id) = established();
    p.send("P 1:11");
    p.send("F 1");
    p.expect_nothing();
    assert_eq!((p.read(id), p.state(id)), (Err(ReadError::Blocked), State::Established));
}

#[test]
fn text_outside_the_window_is_acknowledged_and_not_taken() {
    let (mut p, id) = established();
    p.send("A 65540:65550 ack 1");
    p.expect("A 1 ack 1");
    p.send("PA 1:11 ack 1");
    p.read(id).unwrap();
    p.expect_after(5, "A 1 ack 11");
    p.send("PA 1:11 ack 1");
    p.expect("A 1 ack 11");
    p.send("A 0 ack 1");
    p.expect("A 1 ack 11");
    assert_eq!(p.read(id), Err(ReadError::Blocked));
}

#[test]
fn an_old_timestamp_is_refused_but_for_a_reset() {
    let (mut p, id) = established_with_timestamps();
    p.send("PA 1:11 ack 1 <TS 99 0>");
    p.expect("A 1 ack 1 <TS 0 100>");
    assert_eq!((p.read(id), p.stack.counters().paws_estab_rejected), (Err(ReadError::Blocked), 1));
    p.send("PA 1:11 ack 1 <TS 100 0>");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    p.expect_after(5, "A 1 ack 11 <TS 5 100>");
    p.send("PA 11:21 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(11, 10), "as Linux: a segment without the option is taken");
    p.send("R 21 <TS 1 0>");
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
}

/// Linux's `tcp_disordered_ack`: the network may reorder ACKs within a time-out; older ones are dropped without an answer.
#[test]
fn pure_acks_with_old_timestamps() {
    let (mut p, id) = established_with_timestamps();
    p.write(id, &pattern(1, 1000));
    p.expect_range(1..1001);
    p.send("PA 1:11 ack 1 win 1000 <TS 2000 0>");
    p.skip(40);
    p.send("A 1 ack 1001 <TS 1999 0>");
    p.expect_nothing();
    assert_eq!((p.stack.counters().paws_old_ack, p.stack.info(id).unwrap().send_queue), (1, 1000));
    p.send("A 11 ack 1 <TS 1999 0>");
    assert_eq!(p.stack.counters().paws_estab_rejected, 1, "another window: not the ACK we know");
    p.send("A 11 ack 1 win 1000 <TS 2001 0>");
    p.send("A 11 ack 1 win 1000 <TS 1999 0>");
    assert_eq!(p.stack.counters().paws_estab_rejected, 1, "a duplicate, reordered");
    p.send("A 11 ack 1 win 1000 <TS 100 0>");
    assert_eq!(p.stack.counters().paws_estab_rejected, 2, "a duplicate of long ago");
}

/// RFC 7323 §5.5: after 24 days of silence a timestamp may have wrapped.
/// Before the handshake is complete, too: neither an old duplicate nor who guesses the echo opens a connection.
#[test]
fn a_half_open_request_looks_at_timestamps() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000,TS 1000 0>");
    p.expect("SA 0 ack 1 <mss 1460,TS 0 1000>");
    p.expect_after(1000, "SA 0 ack 1 <mss 1460,TS 1000 1000>");
    p.skip(500);
    p.send("PA 1:11 ack 1 <TS 999 0>");
    p.expect("A 1 ack 1 <TS 1500 1000>");
    for echo in ["4294967295", "1501"] {
        p.send(&format!("PA 1:11 ack 1 <TS 2000 {echo}>"));
        p.expect("A 1 ack 1 <TS 1500 1000>");
    }
    let counters = p.stack.counters();
    assert_eq!((counters.paws_estab_rejected, counters.tsecr_rejected), (1, 2));
    assert!(p.stack.accept(p.now, listener).is_err());
    // Any of the three echoes will do, and so does who has forgotten the option.
    p.send("PA 1:11 ack 1 <TS 2000 1000>");
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

#[test]
fn timestamps_age() {
    let (mut p, id) = established_with_timestamps();
    p.skip(24 * 24 * 3600 * 1000);
    p.send("PA 1:11 ack 1 <TS 5 0>");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

/// RFC 7323 §4.3: with delayed ACKs the earliest timestamp not yet acknowledged is echoed; a hole's later ones wait.
#[test]
fn the_echoed_timestamp_is_that_of_the_segment_that_moved_the_edge() {
    let (mut p, _) = established_with_timestamps();
    p.send("A 1:101 ack 1 <TS 110 0>");
    p.expect_nothing();
    p.send("A 201:301 ack 1 <TS 130 0>");
    p.expect("A 1 ack 101 <TS 0 110>");
    p.send("A 101:201 ack 1 <TS 120 0>");
    p.expect("A 1 ack 301 <TS 0 120>");
}

/// A blind segment whose ACK is refused must not set the timestamp that later ones are measured against.
#[test]
fn a_refused_segment_does_not_move_the_timestamp() {
    let (mut p, id) = established_with_timestamps();
    p.send("A 1 ack 99 <TS 5000 0>");
    p.expect("A 1 ack 1 <TS 0 100>");
    p.send("P 1:11 <TS 5000 0>");
    p.expect_nothing_for(500);
    p.send("S 1 <TS 5000 0>");
    p.expect("A 1 ack 1");
    p.send("PA 1:11 ack 1 <TS 101 0>");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

#[test]
fn urgent_is_plain_text() {
    let (mut p, id) = established();
    p.send("PAU 1:11 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

#[test]
fn old_windows_do_not_undo_newer_ones() {
    let (mut p, id) = established();
    p.send("A 1:11 ack 1 win 3000");
    p.send("A 11:21 ack 1 win 2000");
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 2000);
    p.send("A 1:21 ack 1 win 9000");
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 2000, "WL1: a repeated, older segment");
    p.write(id, b"x");
    p.expect("PA 1:2 ack 21");
    p.send("A 21 ack 2 win 4000");
    p.send("A 21 ack 1 win 9000");
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 4000, "WL2: an older acknowledgement");
    p.send("A 21 ack 2 win 1000");
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 1000, "the newest may take back");
}

/// WL1 is that of the acknowledgement sent ahead, whatever is retransmitted behind it, be it as a run.
#[test]
fn a_run_of_older_segments_leaves_wl1() {
    let (mut p, id) = established();
    p.send("A 2001 ack 1 win 5000");
    let run =
        ["A 1:1001 ack 1 win 5000", "A 1001:2001 ack 1 win 5000"].map(|text| RxPacket::new(p.packet(text)));
    p.stack.handle_packets(p.now, &mut RxBatch::from_iter(run));
    p.expect("A 1 ack 2001");
    p.send("A 1501:2101 ack 1 win 9000");
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 5000);
}

#[test]
fn packets_that_are_not_ours_come_back() {
    let (mut p, _) = established();
    let mut elsewhere = p.ip();
    elsewhere.dst = std::net::Ipv4Addr::new(10, 0, 0, 99).into();
    let header = wire::TcpHeader::new(1, 2);
    let packet = wire::build_tcp_packet(&elsewhere, &header, b"");
    assert!(p.stack.handle_packet(p.now, RxPacket::new(packet.clone())).is_some());
    assert!(!p.stack.handle_slice(p.now, &packet));
    let mut batch = RxBatch::from_iter([RxPacket::new(packet), RxPacket::new(p.packet("A 1 ack 1"))]);
    p.stack.handle_packets(p.now, &mut batch);
    assert_eq!(batch.len(), 1, "only what nobody claims is left");
    p.expect_nothing();
}

/// Nobody can be at such an address, so nobody is answered there (RFC 1122 §3.2.1.3).
#[test]
fn a_source_that_cannot_be_is_not_answered() {
    let mut p = Peer::ours();
    p.listen();
    let syn = wire::TcpHeader { flags: wire::Flags::SYN, window: 65_535, ..wire::TcpHeader::new(1, 80) };
    for source in ["127.0.0.1", "127.1.2.3", "224.0.0.5", "255.255.255.255"] {
        let mut ip = p.ip();
        ip.src = source.parse::<std::net::IpAddr>().unwrap().into();
        let packet = wire::build_tcp_packet(&ip, &syn, b"");
        assert!(p.stack.handle_packet(p.now, RxPacket::new(packet)).is_none(), "{source}");
        p.expect_nothing();
    }
    assert_eq!((p.stack.drops().get(DropReason::BadAddress), p.sizes()), (4, (0, 0, 0)));
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
}
