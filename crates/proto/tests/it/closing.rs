//! Closing: every state of the table, in both orders; resets; lingering; TIME-WAIT; what is left in the tables.

use crate::peer::*;
use core::time::Duration;
use proto::*;

fn established_with(config: Config, socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen_with(ListenOptions { socket, ..Default::default() });
    let id = p.establish(listener);
    p.events();
    (p, id)
}

fn established() -> (Peer, ConnId) {
    established_with(Config::default(), SocketOptions::default())
}

fn lingering(linger: Duration) -> (Peer, ConnId) {
    established_with(Config::default(), SocketOptions { linger: Some(linger), ..Default::default() })
}

fn shutdown(p: &mut Peer, id: ConnId) {
    p.stack.shutdown(p.now, id).unwrap();
}

#[test]
fn we_close_first() {
    let (mut p, id) = established();
    shutdown(&mut p, id);
    p.expect("FA 1 ack 1");
    assert_eq!(p.state(id), State::FinWait1);
    p.send("A 1 ack 2");
    assert_eq!(p.state(id), State::FinWait2);
    p.send("FA 1 ack 2");
    p.expect("A 2 ack 2");
    assert_eq!(p.state(id), State::TimeWait);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Finished));
    assert_eq!(p.sizes(), (1, 0, 1));
    assert_eq!(p.read(id).unwrap(), b"");
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 1));
    p.expect_nothing_for(59_990);
    assert_eq!(p.sizes(), (0, 0, 1));
    p.expect_nothing_for(15);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn the_peer_closes_first() {
    let (mut p, id) = established();
    p.send("FA 1 ack 1");
    assert_eq!(p.state(id), State::CloseWait);
    assert_eq!(p.events_of(id), Events::READABLE);
    assert_eq!(p.read(id).unwrap(), b"");
    p.expect_after(40, "A 1 ack 2");
    shutdown(&mut p, id);
    p.expect("FA 1 ack 2");
    assert_eq!(p.state(id), State::LastAck);
    p.send("A 2 ack 2");
    assert_eq!(p.state(id), State::Closed);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Finished));
    assert_eq!(p.sizes(), (1, 0, 0));
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 0));
    p.send("A 2 ack 2");
    p.expect("R 2");
}

#[test]
fn a_close_that_answers_a_fin_takes_one_packet() {
    let (mut p, id) = established();
    p.send("FA 1 ack 1");
    p.close(id);
    p.expect("FA 1 ack 2");
    p.send("A 2 ack 2");
    p.expect_nothing();
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn fin_and_ack_of_our_fin_in_one_segment() {
    let (mut p, id) = established();
    shutdown(&mut p, id);
    p.expect("FA 1 ack 1");
    p.send("FA 1 ack 2");
    p.expect("A 2 ack 2");
    assert_eq!(p.state(id), State::TimeWait);
}

#[test]
fn simultaneous_close() {
    let (mut p, id) = established();
    shutdown(&mut p, id);
    p.expect("FA 1 ack 1");
    p.send("FA 1 ack 1");
    p.expect("A 2 ack 2");
    assert_eq!(p.state(id), State::Closing);
    p.send("A 2 ack 2");
    p.expect_nothing();
    assert_eq!(p.state(id), State::TimeWait);
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 1));
}

#[test]
fn closing_repeats_its_fin() {
    let (mut p, id) = established();
    shutdown(&mut p, id);
    p.expect("FA 1 ack 1");
    p.send("FA 1 ack 1");
    p.expect("A 2 ack 2");
    p.expect_after(200, "FA 1 ack 2");
    p.send("A 2 ack 2");
    assert_eq!(p.state(id), State::TimeWait);
}

#[test]
fn last_ack_repeats_its_fin() {
    let (mut p, id) = established();
    p.send("FA 1 ack 1");
    p.close(id);
    p.expect("FA 1 ack 2");
    p.expect_after(200, "FA 1 ack 2");
    p.expect_after(400, "FA 1 ack 2");
    p.send("FA 1 ack 1");
    p.expect("A 2 ack 2");
    p.send("A 2 ack 2");
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn a_half_closed_connection_still_receives() {
    let (mut p, id) = established();
    p.write(id, b"request");
    shutdown(&mut p, id);
    p.expect("FPA 1:8 ack 1");
    p.send("A 1 ack 9");
    assert_eq!(p.state(id), State::FinWait2);
    assert_eq!(p.stack.write(p.now, id, b"more"), Err(WriteError::Shutdown));
    assert_eq!(p.stack.shutdown(p.now, id), Err(WriteError::Shutdown));
    p.expect_nothing_for(3_600_000);
    p.send("PA 1:1001 ack 9");
    p.expect_after(5, "A 9 ack 1001");
    p.send("FPA 1001:2001 ack 9");
    p.expect("A 9 ack 2002");
    assert_eq!(p.read(id).unwrap(), pattern(1, 2000));
    assert_eq!(p.read(id).unwrap(), b"");
    assert_eq!(p.state(id), State::TimeWait);
}

#[test]
fn a_half_closed_connection_still_sends() {
    let (mut p, id) = established();
    p.send("FPA 1:11 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    assert_eq!(p.read(id).unwrap(), b"");
    p.write(id, &pattern(1, 2500));
    p.expect("A 1:1001 ack 12");
    p.expect("A 1001:2001 ack 12");
    p.expect("PA 2001:2501 ack 12");
    p.send("A 12 ack 2501");
    p.write(id, b"end");
    p.close(id);
    p.expect("FPA 2501:2504 ack 12");
    p.send("A 12 ack 2505");
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn text_behind_a_fin_is_not_taken() {
    let (mut p, id) = established();
    p.send("FPA 1:11 ack 1");
    p.expect_after(40, "A 1 ack 12");
    p.send("PA 12:22 ack 1");
    p.expect_nothing();
    p.send("PA 6:22 ack 1");
    p.expect("A 1 ack 12");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    assert_eq!(p.read(id).unwrap(), b"");
    p.send("FA 11 ack 1");
    p.expect("A 1 ack 12");
}

#[test]
fn what_was_written_is_delivered_after_close() {
    let socket = SocketOptions { congestion: Some(CongestionControl::Reno), ..Default::default() };
    let (mut p, id) = established_with(Config::default().abc_limit(2), socket);
    p.write(id, &pattern(1, 25_000));
    p.close(id);
    assert_eq!(p.sent_now().len(), 10);
    p.send("A 1 ack 10001");
    assert_eq!(p.sent_now().len(), 12);
    p.send("A 1 ack 22001");
    p.expect("A 22001:23001 ack 1");
    p.expect("A 23001:24001 ack 1");
    p.expect("FPA 24001:25001 ack 1");
    p.send("FA 1 ack 25002");
    p.expect("A 25002 ack 2");
    assert_eq!(p.sizes(), (0, 0, 1));
}

#[test]
fn closing_with_unread_text_resets() {
    let (mut p, id) = established();
    p.send("PA 1:11 ack 1");
    p.close(id);
    p.expect("RA 1 ack 11");
    assert_eq!(p.sizes(), (0, 0, 0));
    p.expect_nothing_for(1000);
    assert_eq!(p.stack.counters().out_rsts, 1);
}

#[test]
fn text_that_comes_after_close_is_answered_by_a_reset() {
    let (mut p, id) = established();
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    p.send("PA 1:11 ack 2");
    p.expect("R 2");
    // Only its numbers were kept: Linux counts no abort.
    assert_eq!((p.sizes(), p.stack.counters().abort_on_data), ((0, 0, 0), 0));
}

#[test]
fn a_linger_of_zero_resets() {
    let (mut p, id) = lingering(Duration::ZERO);
    p.write(id, b"never arrives");
    p.close(id);
    p.expect("RA 1 ack 1");
    assert_eq!(p.sizes(), (0, 0, 0));
    let (mut p, id) = established();
    p.stack.set_option(p.now, id, SocketOption::Linger(Some(Duration::ZERO))).unwrap();
    p.close(id);
    p.expect("RA 1 ack 1");
}

#[test]
fn a_linger_that_runs_out_resets() {
    let (mut p, id) = lingering(Duration::from_secs(1));
    p.write(id, b"x");
    p.close(id);
    p.expect("FPA 1:2 ack 1");
    p.expect_after(200, "FPA 1:2 ack 1");
    p.expect_after(400, "FPA 1:2 ack 1");
    p.expect_after(400, "RA 3 ack 1");
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn a_linger_is_over_when_everything_is_acknowledged() {
    let (mut p, id) = lingering(Duration::from_secs(1));
    p.write(id, b"x");
    p.close(id);
    p.expect("FPA 1:2 ack 1");
    p.send("A 1 ack 3");
    p.expect_nothing_for(59_999);
    assert_eq!(p.sizes(), (0, 0, 1), "FIN-WAIT-2 has its own limit");
    p.send("FA 1 ack 3");
    p.expect("A 3 ack 2");
    assert_eq!(p.sizes(), (0, 0, 1));
}

#[test]
fn abort_resets_in_every_state() {
    let (mut p, id) = established();
    p.stack.abort(p.now, id);
    p.expect("RA 1 ack 1");
    let (mut p, id) = established();
    p.send("FA 1 ack 1");
    p.stack.abort(p.now, id);
    p.expect("RA 1 ack 2");
    let (mut p, id) = established();
    shutdown(&mut p, id);
    p.expect("FA 1 ack 1");
    p.stack.abort(p.now, id);
    p.expect("RA 2 ack 1");
    assert_eq!(p.sizes(), (0, 0, 0));
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.stack.abort(p.now, id);
    p.expect_nothing_for(1000);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn resets_end_every_closing_state() {
    for (step, state) in ["FA 1 ack 1", "A 1 ack 2"].iter().zip([State::Closing, State::FinWait2]) {
        let (mut p, id) = established();
        shutdown(&mut p, id);
        p.expect("FA 1 ack 1");
        p.send(step);
        p.expect_only_acks();
        assert_eq!(p.state(id), state);
        let next = if state == State::Closing { 2 } else { 1 };
        p.send(&format!("R {next}"));
        p.expect_nothing();
        assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
        p.close(id);
        assert_eq!(p.sizes(), (0, 0, 0));
    }
    let (mut p, id) = established();
    p.send("FA 1 ack 1");
    p.close(id);
    p.expect("FA 1 ack 2");
    p.send("R 2");
    assert_eq!(p.sizes(), (0, 0, 0));
}

fn in_time_wait(config: Config, syn: &str) -> Peer {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, syn);
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send(if syn.contains("TS") { "FA 1 ack 2 <TS 100 0>" } else { "FA 1 ack 2" });
    p.expect("A 2 ack 2");
    assert_eq!(p.sizes(), (0, 0, 1));
    p
}

#[test]
fn time_wait_acknowledges_a_repeated_fin_and_starts_anew() {
    let mut p = in_time_wait(Config::default(), "S 0 win 65535 <mss 1000>");
    p.skip(50_000);
    p.send("FA 1 ack 2");
    p.expect("A 2 ack 2 win 65535 <>");
    p.expect_nothing_for(59_990);
    assert_eq!(p.sizes(), (0, 0, 1));
    p.expect_nothing_for(20);
    assert_eq!(p.sizes(), (0, 0, 0));
}

/// `tcp_invalid_ratelimit`: a repeated FIN is answered each time, anything else twice a second; or two ends in TIME-WAIT would go on
/// for ever.
#[test]
fn time_wait_answers_nonsense_twice_a_second() {
    let mut p = in_time_wait(Config::default(), "S 0 win 65535 <mss 1000>");
    for _ in 0..3 {
        p.send("FA 1 ack 2");
        p.expect("A 2 ack 2");
    }
    p.send("A 1 ack 2");
    p.expect("A 2 ack 2");
    p.skip(499);
    p.send("S 0");
    p.expect_nothing();
    p.skip(1);
    p.send("S 0");
    p.expect("A 2 ack 2");
    assert_eq!(p.stack.counters().ack_skipped_time_wait, 1);
}

#[test]
fn time_wait_speaks_in_timestamps_if_the_connection_did() {
    let mut p = in_time_wait(Config::default(), "S 0 win 65535 <mss 1000,TS 100 0>");
    p.skip(1000);
    p.send("FA 1 ack 2 <TS 110 0>");
    p.expect("A 2 ack 2 <TS 1000 110>");
}

/// Whatever the setting has become: a peer refuses what seems to be older than its TS.Recent.
#[test]
fn time_wait_keeps_the_offset_of_its_timestamps() {
    for (before, after) in [(1, 2), (2, 1), (1, 0)] {
        let mut p =
            in_time_wait(Config::default().tcp_timestamps(before), "S 0 win 65535 <mss 1000,TS 100 0>");
        p.stack.set(p.now, "net.ipv4.tcp_timestamps", &after.to_string()).unwrap();
        p.skip(1000);
        p.send("FA 1 ack 2 <TS 110 0>");
        p.expect("A 2 ack 2 <TS 1000 110>");
    }
}

#[test]
fn a_later_syn_reopens_time_wait_above_all_old_numbers() {
    let mut p = in_time_wait(Config::default(), "S 0 win 65535 <mss 1000>");
    p.send("S 1 <mss 1000>");
    p.expect("A 2 ack 2");
    let old = p.send_and_isn("S 2 <mss 1000>", "SA 0 ack 3");
    assert_eq!(old, 2 + 65_537, "behind all that the old connection can have in the network");
    assert_eq!(p.sizes(), (0, 1, 0));
    p.send("A 3 ack 1");
    assert_eq!(p.sizes(), (1, 0, 0));
}

#[test]
fn a_reset_ends_time_wait_unless_rfc_1337_forbids() {
    let mut p = in_time_wait(Config::linux(), "S 0 win 65535 <mss 1000>");
    p.send("R 1");
    assert_eq!(p.sizes(), (0, 0, 1));
    p.send("R 2");
    assert_eq!(p.sizes(), (0, 0, 0));
    let mut p = in_time_wait(Config::default(), "S 0 win 65535 <mss 1000>");
    p.send("R 2");
    p.expect_nothing();
    assert_eq!((p.sizes(), p.stack.drops().get(DropReason::TimeWait)), ((0, 0, 1), 1));
}

#[test]
fn the_oldest_time_wait_makes_room() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_max_tw_buckets", "1").unwrap();
    let mut p = in_time_wait(config, "S 0 win 65535 <mss 1000>");
    p.remote.set_port(40_001);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("FA 1 ack 1");
    p.expect_nothing();
    assert_eq!(p.sizes(), (1, 0, 1));
    assert_eq!(p.stack.counters().time_wait_overflow, 0);
}

#[test]
fn close_in_syn_sent_delivers_what_was_written() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions { first_bytes: pattern(1, 5).into(), ..Default::default() });
    p.write(id, &pattern(6, 5));
    p.close(id);
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("FPA 1:11 ack 1");
    p.send("FA 1 ack 12");
    p.expect("A 12 ack 2");
    assert_eq!(p.sizes(), (0, 0, 1));
}

#[test]
fn close_in_syn_sent_with_nothing_written_gives_up() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.close(id);
    p.expect_nothing_for(10_000);
    assert_eq!(p.sizes(), (0, 0, 0));
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("R 1");
}

#[test]
fn a_refused_orphan_leaves_nothing() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions { first_bytes: pattern(1, 5).into(), ..Default::default() });
    p.close(id);
    p.expect("S 0");
    p.send("RA 0 ack 1");
    p.expect_nothing_for(1000);
    assert_eq!(p.sizes(), (0, 0, 0));
    assert!(p.events().is_empty(), "nobody listens any more");
}

#[test]
fn shutdown_in_syn_sent_closes_when_open() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    shutdown(&mut p, id);
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("FA 1 ack 1");
    assert_eq!(p.state(id), State::FinWait1);
    p.send("PA 1:11 ack 2");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

#[test]
fn a_closed_listener_resets_what_nobody_accepted() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("PA 1:11 ack 1");
    p.remote.set_port(40_001);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    assert_eq!(p.sizes(), (1, 1, 0));
    p.stack.close_listener(p.now, listener);
    p.expect("RA 1 ack 11");
    assert_eq!(p.sizes(), (0, 0, 0));
    p.expect_nothing_for(10_000);
    p.send("A 1 ack 1");
    p.expect("R 1");
    assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Closed));
    assert!(p.stack.listener_info(listener).is_none());
    p.listen();
}

#[test]
fn connections_that_ended_before_accept_can_be_accepted_and_say_why() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("PA 1:11 ack 1");
    p.send("R 11");
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::Reset)));
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn undelivered_counts_what_the_peer_lacks_and_abort_undelivered_resets_it() {
    let (mut p, id) = established();
    assert_eq!(p.stack.undelivered(), 0);
    p.write(id, b"x");
    p.close(id);
    p.expect("FPA 1:2 ack 1");
    assert_eq!(p.stack.undelivered(), 1);
    p.send("A 1 ack 3");
    assert_eq!((p.stack.undelivered(), p.sizes()), (0, (0, 0, 1)), "the peer only owes its own FIN");
    p.stack.abort_undelivered(p.now);
    p.expect_nothing();
    let (mut p, id) = established();
    p.write(id, b"x");
    p.close(id);
    p.expect("FPA 1:2 ack 1");
    p.stack.abort_undelivered(p.now);
    p.expect("RA 3 ack 1");
    assert_eq!(p.sizes(), (0, 0, 0));
}

/// SYN+FIN, closed before the SYN-ACK acknowledges both: FIN-WAIT-2 of an orphan from the first moment.
#[test]
fn an_orphan_whose_syn_closed_it_does_not_wait_for_ever() {
    let mut p = Peer::ours();
    let options = ConnectOptions {
        fast_open: FastOpen::NoCookie,
        first_bytes: pattern(1, 5).into(),
        fin: true,
        syn_fin: true,
        ..Default::default()
    };
    let id = p.connect(options);
    p.close(id);
    p.expect("FS 0:5");
    p.send("SA 0 ack 7 <mss 1000>");
    p.expect("A 7 ack 1");
    p.expect_nothing_for(59_999);
    assert_eq!(p.sizes(), (0, 0, 1));
    p.expect_nothing_for(6);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn linger_has_nothing_to_say_when_everything_was_delivered_before() {
    let (mut p, id) = lingering(Duration::from_secs(1));
    shutdown(&mut p, id);
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    p.close(id);
    p.expect_nothing_for(59_999);
    assert_eq!(p.sizes(), (0, 0, 1));
    p.expect_nothing_for(6);
    assert_eq!(p.sizes(), (0, 0, 0));
}

fn without_timestamps() -> Config {
    Config::linux().tcp_timestamps(0)
}

fn established_with_sack() -> (Peer, ConnId) {
    let mut p = Peer::new(without_timestamps());
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK>");
    (p, id)
}

#[test]
fn a_fin_that_comes_early_is_told_by_sack() {
    let (mut p, id) = established_with_sack();
    p.send("FA 1001 ack 1");
    p.expect("A 1 ack 1 <sack 1001:1002>");
    p.send("A 501:1001 ack 1");
    p.expect("A 1 ack 1 <sack 501:1002>");
    p.send("A 1:501 ack 1");
    p.expect("A 1 ack 1002 <>");
    assert_eq!((p.read(id).unwrap().len(), p.read(id).unwrap().len()), (1000, 0));
}

#[test]
fn a_fin_that_comes_again_is_told_by_d_sack() {
    let (mut p, _) = established_with_sack();
    p.send("FA 1 ack 1");
    p.expect_after(1, "A 1 ack 2 <>");
    p.send("FA 1 ack 1");
    p.expect("A 1 ack 2 <sack 1:2>");
    // "Ignore the segment text": nothing lies behind a FIN.
    p.send("PA 2:12 ack 1");
    p.expect_nothing_for(1000);
}

#[test]
fn text_for_who_has_shut_both_directions_is_answered_by_a_reset() {
    for read in [false, true] {
        let (mut p, id) = established_with(without_timestamps(), SocketOptions::default());
        if read {
            p.stack.shutdown_read(p.now, id);
        }
        shutdown(&mut p, id);
        p.expect("FA 1 ack 1");
        p.send("A 1 ack 2");
        p.send("PA 1:11 ack 2");
        p.expect(if read { "R 2" } else { "A 2 ack 11" });
        assert_eq!(p.stack.close_reason(id), read.then_some(CloseReason::Reset));
    }
}

#[test]
fn an_orphan_that_may_not_wait_resets_whoever_acknowledges_its_fin() {
    let socket = SocketOptions { linger2: Some(Duration::ZERO), ..Default::default() };
    let (mut p, id) = established_with(without_timestamps(), socket);
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    p.expect("R 2");
    assert_eq!((p.sizes(), p.stack.counters().abort_on_linger), ((0, 0, 0), 1));
}

/// What was retransmitted after a FIN is acknowledged with it, and told to have come twice: the FIN is not overtaken, it is there.
#[test]
fn a_fin_that_is_acknowledged_does_not_go_again() {
    for (last, reordered) in
        [("A 1 ack 2002", false), ("A 1 ack 2002 <sack 1:1001>", false), ("A 1 ack 2002 <sack 1:1001>", true)]
    {
        let (mut p, id) = crate::sack::established_with(Config::default());
        p.write(id, &pattern(1, 2000));
        p.expect_range(1..2001);
        shutdown(&mut p, id);
        p.expect("FA 2001 ack 1");
        p.expect_nothing_for(100);
        p.send("A 1 ack 1 <sack 1001:2001>");
        p.pass(60);
        assert_eq!(p.sent_now().len(), 1, "1:1001 is retransmitted");
        if reordered {
            p.send("A 1 ack 2001");
        }
        p.now = p.now + core::time::Duration::from_millis(110);
        p.send(last);
        p.expect_nothing_for(10_000);
        assert_eq!(p.state(id), State::FinWait2);
    }
}
