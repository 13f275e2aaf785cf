//! The child between its SYN and its final ACK: initial window, repetition of the SYN-ACK, resets, ICMP, closing.

use super::*;
use wire::{Icmp, IcmpError, IpHeader};

/// A Linux-like server (no hold) with an accepted child whose SYN-ACK has gone.
fn opened(config: Config, syn: &str) -> (Peer, ListenerId, ConnId) {
    let mut p = server(config);
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
    p.send(&syn.replace("COOKIE", &cookie(&p)));
    p.expect("SA 0 ack 11");
    let id = p.accept(listener);
    (p, listener, id)
}

fn both(syn: &str) -> [(Peer, ListenerId, ConnId); 2] {
    [opened(Config::default(), syn), opened(linux(), syn)]
}

#[test]
fn ten_segments_go_before_the_final_ack() {
    for (mut p, _, id) in both("S 0:10 win 65535 <mss 1460,TS 9 0,FO COOKIE>") {
        p.write(id, &pattern(1, 20_000));
        for n in 0..10 {
            let start = 1 + n * 1448;
            p.expect(&format!("A {start}:{} ack 11", start + 1448));
        }
        p.expect_nothing();
        assert_eq!(p.stack.info(id).unwrap().flight_size, 14_480);
    }
}

/// What the buffer has no room for is not taken, and the SYN-ACK acknowledges the rest.
#[test]
fn data_beyond_the_buffer_is_not_acknowledged() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_rmem", "4096 4096 4096").unwrap();
    let mut p = server(config);
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
    p.send(&format!("S 0:4000 win 65535 <mss 1460,sackOK,TS 9 0,wscale 7,FO {}>", cookie(&p)));
    p.expect("SA 0 ack 2049");
    let id = p.accept(listener);
    assert_eq!(p.stack.info(id).unwrap().recv_queue, 2048);
}

/// The SYN fills a small buffer, and is read before the final ACK: that is answered with the room there is.
#[test]
fn room_that_was_made_before_the_final_ack_is_told() {
    let mut p = server(Config::default());
    let socket = SocketOptions { recv_buffer: Some(0), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), socket, ..qlen(4) });
    p.send(&format!("S 0:1198 win 65535 <mss 1460,FO {}>", cookie(&p)));
    p.expect("SA 0 ack 1153 win 0");
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap().len(), 1152);
    p.expect_nothing();
    p.send("A 1153 ack 1 win 65535");
    p.expect("A 1 ack 1153 win 1152");
    p.expect_nothing();
}

#[test]
fn the_window_of_the_syn_holds_until_the_final_ack_and_is_not_scaled() {
    for (mut p, _, id) in both("S 0:10 win 3000 <mss 1000,wscale 7,FO COOKIE>") {
        p.write(id, &pattern(1, 10_000));
        for (push, start) in [("", 1), ("P", 1001), ("", 2001)] {
            p.expect(&format!("{push}A {start}:{} ack 11", start + 1000));
        }
        p.expect_nothing();
        p.send("A 11 ack 3001 win 100");
        assert_eq!(p.stack.info(id).unwrap().snd_wnd, 12_800);
    }
}

/// The data's own timer is off: only the SYN-ACK is repeated, with neither data nor option.
#[test]
fn only_the_syn_ack_is_repeated() {
    for (mut p, _, id) in both("S 0:10 win 65535 <mss 1000,FO COOKIE>") {
        p.write(id, &pattern(1, 100));
        p.expect("PA 1:101 ack 11");
        for wait in [1000, 2000] {
            p.expect_after(wait, "SA 0 ack 11 <mss 1460>");
        }
        assert_eq!(p.stack.counters().syn_retrans, 2);
        // The client took one of the SYN-ACKs and threw the data away.
        p.expect_nothing_for(20);
        p.send("A 11 ack 1");
        p.expect("PA 1:101 ack 11");
        assert_eq!(p.state(id), State::Established);
    }
}

/// The greatest time-out of a connection is kept in steps of two milliseconds, and so it holds for a request that is none yet.
#[test]
fn every_syn_ack_waits_for_the_same_greatest_time_out() {
    let config = || Config::default().rto_initial(Duration::from_secs(3)).tcp_rto_max_ms(1001);
    for (syn, syn_ack) in [
        ("S 0 win 65535 <mss 1000>", "SA 0 ack 1"),
        ("S 0:10 win 65535 <mss 1000,FO COOKIE>", "SA 0 ack 11"),
        ("S 0:10 win 65535 <mss 1000,sackOK,TS 200 0,wscale 7,FO COOKIE>", "SA 0 ack 11"),
    ] {
        let mut p = server(config());
        p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
        p.send(&syn.replace("COOKIE", &cookie(&p).to_string()));
        p.expect(syn_ack);
        p.expect_after(1002, syn_ack);
        p.expect_after(1002, syn_ack);
    }
}

/// The copy is answered, the timer keeps its time.
#[test]
fn a_copy_of_the_syn_does_not_move_the_timer() {
    for (mut p, _, _) in both("S 0:10 win 65535 <mss 1000,FO COOKIE>") {
        p.expect_nothing_for(400);
        p.send("S 0 win 65535 <mss 1000>");
        p.expect("SA 0 ack 11 <mss 1460>");
        p.expect_after(600, "SA 0 ack 11 <mss 1460>");
        p.expect_after(2000, "SA 0 ack 11 <mss 1460>");
        assert_eq!(p.stack.counters().syn_retrans, 3);
    }
}

/// Both come in one batch.
#[test]
fn a_reset_before_the_syn_ack_has_gone_leaves_nothing_to_send() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(qlen(4));
        p.send(&format!("S 0:10 <mss 1000,sackOK,TS 9 0,wscale 7,FO {}>", cookie(&p)));
        p.send("R 11");
        p.expect_nothing_for(10_000);
        assert_eq!(p.stack.listener_info(listener).unwrap().fast_open_pending, 0);
    }
}

/// Linux: `tcp_synack_retries` + 1 (`tcp_fastopen_synack_timer`).
#[test]
fn a_child_that_is_never_answered_ends() {
    for (mut p, listener, id) in both("S 0:10 win 65535 <mss 1000,FO COOKIE>") {
        for wait in [1000, 2000, 4000, 8000, 16_000, 32_000] {
            p.expect_after(wait, "SA 0 ack 11 <mss 1460>");
        }
        assert_eq!(p.stack.listener_info(listener).unwrap().fast_open_pending, 1);
        p.expect_nothing_for(63_999);
        assert_eq!(p.stack.close_reason(id), None);
        p.expect_nothing_for(1);
        assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
        assert_eq!(p.read(id), Ok(pattern(0, 10)), "what came can still be read");
        assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::TimedOut)));
        assert_eq!(p.stack.listener_info(listener).unwrap().fast_open_pending, 0);
        p.close(id);
        assert_eq!(p.sizes(), (0, 0, 0));
    }
}

/// The most repetitions that can be set are counted to their end.
#[test]
fn a_child_with_255_retries_ends_too() {
    let mut p = server(Config::default().tcp_synack_retries(255));
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
    p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
    p.expect("SA 0 ack 11");
    let id = p.accept(listener);
    for wait in [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000].into_iter().chain([120_000; 248]) {
        p.expect_after(wait, "SA 0 ack 11");
    }
    p.expect_nothing_for(120_000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

#[test]
fn a_reset_leaves_the_data_readable() {
    for accepted in [true, false] {
        for config in both_profiles() {
            let mut p = server(config);
            let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
            p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
            p.expect("SA 0 ack 11");
            let before = accepted.then(|| p.accept(listener));
            p.send("R 11");
            let id = before.unwrap_or_else(|| p.accept(listener));
            assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
            assert_eq!(p.read(id), Ok(pattern(0, 10)));
            assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::Reset)));
            assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::Closed(CloseReason::Reset)));
            p.expect_nothing_for(10_000);
        }
    }
}

#[test]
fn a_reset_with_a_wrong_number_is_challenged() {
    for (mut p, _, id) in both("S 0:10 <mss 1000,FO COOKIE>") {
        p.send("R 12");
        p.expect("A 1 ack 11");
        assert_eq!(p.state(id), State::SynReceived);
    }
}

fn icmp(p: &mut Peer, error: IcmpError, quote: &[u8]) {
    let protocol = if p.local.is_ipv4() { wire::protocol::ICMP } else { wire::protocol::ICMPV6 };
    let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), protocol);
    let packet = wire::build_icmp_packet(&ip, &Icmp::Error { error, quote });
    p.send_rx(RxPacket::new(packet));
}

/// Linux: `fastopen && !fastopen->sk`: before `accept` the child ends, after it ICMP is a soft error.
#[test]
fn an_unreachable_client() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
        p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
        let syn_ack = p.take_packet().unwrap();
        icmp(&mut p, IcmpError::HostUnreachable, &syn_ack);
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(pattern(0, 10)));
        assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::HostUnreachable)));
        assert_eq!(p.stack.listener_info(listener).unwrap().fast_open_pending, 0);
        // Accepted first.
        p.remote.set_port(40001);
        p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
        let syn_ack = p.take_packet().unwrap();
        let id = p.accept(listener);
        icmp(&mut p, IcmpError::HostUnreachable, &syn_ack);
        assert_eq!(p.state(id), State::SynReceived);
    }
}

#[test]
fn closing_with_the_request_unread_resets() {
    for (mut p, listener, id) in both("S 0:10 <mss 1000,FO COOKIE>") {
        p.close(id);
        p.expect("RA 1 ack 11");
        assert_eq!(p.sizes(), (0, 0, 0));
        assert_eq!(p.stack.listener_info(listener).unwrap().fast_open_pending, 0);
    }
}

#[test]
fn closing_before_the_final_ack_sends_the_fin() {
    for (mut p, _, id) in both("S 0:10 <mss 1000,FO COOKIE>") {
        p.read(id).unwrap();
        p.write(id, b"hello");
        p.expect("PA 1:6 ack 11");
        p.close(id);
        p.expect("FA 6 ack 11");
        p.send("A 11 ack 7");
        p.send("FA 11 ack 7");
        p.expect("A 7 ack 12");
        assert_eq!(p.sizes(), (0, 0, 1));
    }
}

#[test]
fn closing_the_listener_resets_what_was_not_accepted() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
        p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
        p.expect("SA 0 ack 11");
        let accepted = p.accept(listener);
        p.remote.set_port(40001);
        p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
        p.expect("SA 0 ack 11");
        p.stack.close_listener(p.now, listener);
        p.expect("RA 1 ack 11");
        p.remote.set_port(40000);
        // The accepted one lives on without its listener.
        p.send("A 11 ack 1");
        assert_eq!(p.state(accepted), State::Established);
        assert_eq!(p.sizes(), (1, 0, 0));
    }
}

#[test]
fn closing_the_listener_resets_a_child_whose_syn_ack_is_held() {
    let mut p = server(Config::default());
    let listener = p.listen_with(qlen(4));
    p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
    p.stack.close_listener(p.now, listener);
    // The client is in SYN-SENT and believes a reset that acknowledges its SYN.
    let reset = p.sent_now();
    assert_eq!(reset.len(), 1);
    assert!(reset[0].starts_with("RA ") && reset[0].contains(" ack 11 "), "{reset:?}");
    p.expect_nothing_for(10_000);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn more_of_the_request_may_follow_the_syn_before_the_final_ack() {
    for (mut p, _, id) in both("S 0:10 <mss 1000,FO COOKIE>") {
        p.send("PA 11:21 ack 1");
        assert_eq!(p.state(id), State::Established);
        assert_eq!(p.read(id).unwrap().len(), 20);
        assert_eq!(p.stack.early_data(id), Some(EarlyData { len: 10, confirmed: true }));
    }
}

#[test]
fn an_ack_of_more_than_was_sent_is_answered_by_a_reset() {
    for (mut p, _, id) in both("S 0:10 <mss 1000,FO COOKIE>") {
        p.send("A 11 ack 2");
        p.expect("R 2");
        assert_eq!(p.state(id), State::SynReceived);
    }
}

/// `close` does not wait in either profile, `shutdown` by a setting.
#[test]
fn a_shutdown_before_the_final_ack() {
    for (config, waits) in [(Config::default(), false), (linux(), true)] {
        let (mut p, _, id) = opened(config, "S 0:10 win 65535 <mss 1000,FO COOKIE>");
        p.stack.shutdown(p.now, id).unwrap();
        if waits {
            p.expect_nothing();
            assert_eq!(p.state(id), State::SynReceived);
            assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::Shutdown));
            p.send("A 11 ack 1");
        }
        p.expect("FA 1 ack 11");
        assert_eq!(p.state(id), State::FinWait1);
    }
}

/// What came with the SYN does not count as the first half of an exchange: the next segment is still acknowledged at once.
#[test]
fn an_answer_to_the_syn_is_no_ping_pong_yet() {
    let (mut p, _, id) = opened(linux(), "S 0:10 win 65535 <mss 1000,FO COOKIE>");
    p.read(id).unwrap();
    p.write(id, &pattern(1, 10));
    p.expect("PA 1:11 ack 11");
    p.expect_nothing_for(50);
    p.send("A 11 ack 11");
    p.expect_nothing_for(50);
    p.send("PA 11:21 ack 11");
    p.expect("A 11 ack 21");
}

/// Text from elsewhere is answered, and the SYN-ACK goes once more, at the same moment.
#[test]
fn an_answer_to_a_stranger_and_a_repeated_syn_ack_go_together() {
    let syn = "S 0:10 win 65535 <mss 1460,TS 9 0,FO COOKIE>";
    let (mut p, _, _) = opened(linux(), syn);
    p.skip(600);
    p.send("A 1000000:1000010 ack 1 <TS 9 0>");
    let again = syn.replace("COOKIE", &cookie(&p));
    p.send(&again);
    let sent = p.sent_now();
    assert!(sent.iter().any(|packet| packet.starts_with("SA 0:")), "{sent:?}");
}
