//! `TCP_USER_TIMEOUT` (RFC 5482): how long the peer may leave something unacknowledged, as Linux counts it.

use crate::peer::*;
use core::time::Duration;
use proto::*;

const MS: Duration = Duration::from_millis(1);

fn patient_for(millis: u32) -> SocketOptions {
    SocketOptions { user_timeout: Some(millis * MS), ..SocketOptions::default() }
}

fn ends_after(p: &mut Peer, id: ConnId, millis: u64) {
    p.expect_nothing_for(millis - 1);
    assert_eq!(p.stack.close_reason(id), None);
    p.expect_nothing_for(1);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

/// It counts from the first retransmission, and the last wait is as short as what is left of it.
#[test]
fn data_without_an_answer() {
    let (mut p, id) = established(patient_for(3000));
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [200, 400, 800, 1600] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
    ends_after(&mut p, id, 200);
    assert_eq!(p.stack.counters().abort_on_timeout, 1);
}

#[test]
fn an_acknowledgement_begins_it_anew() {
    let (mut p, id) = established(patient_for(1000));
    p.write(id, &pattern(1, 2000));
    p.expect("A 1:1001 ack 1");
    p.expect("PA 1001:2001 ack 1");
    p.expect_after(200, "A 1:1001 ack 1");
    p.expect_after(400, "A 1:1001 ack 1");
    p.skip(300);
    p.send("A 1 ack 1001");
    p.expect("PA 1001:2001 ack 1");
    p.expect_after(800, "PA 1001:2001 ack 1");
    ends_after(&mut p, id, 1000);
}

/// It may be longer than `tcp_retries2`, too.
#[test]
fn more_patience_than_the_stack_has() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_retries2", "1").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen_with(ListenOptions { socket: patient_for(5000), ..ListenOptions::default() });
    let id = p.establish(listener);
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [200, 400, 800, 1600] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
    ends_after(&mut p, id, 2200);
}

/// Even a peer that answers every probe is given up, which RFC 9293 §3.8.6.1 leaves to the application to ask.
#[test]
fn a_window_that_stays_closed() {
    let (mut p, id) = established(patient_for(1500));
    p.send("A 1 ack 1 win 0");
    p.write(id, b"x");
    for wait in [200, 400, 800] {
        p.expect_after(wait, "A 0 ack 1");
        p.send("A 1 ack 1 win 0");
    }
    // 1200 ms since the first probe.
    ends_after(&mut p, id, 300);
}

#[test]
fn a_window_that_opens_in_between() {
    let (mut p, id) = established(patient_for(1000));
    p.send("A 1 ack 1 win 0");
    p.write(id, b"x");
    p.expect_after(200, "A 0 ack 1");
    p.expect_after(400, "A 0 ack 1");
    p.send("A 1 ack 1 win 1000");
    p.expect("PA 1:2 ack 1");
    p.send("A 1 ack 2 win 0");
    p.write(id, b"y");
    p.expect_after(200, "A 1 ack 1");
    p.expect_after(400, "A 1 ack 1");
    ends_after(&mut p, id, 600);
}

/// It stands in for the number of probes.
#[test]
fn a_silent_peer() {
    let lively = SocketOptions {
        keepalive: true,
        keepalive_time: Some(1000 * MS),
        keepalive_intvl: Some(1000 * MS),
        keepalive_probes: Some(1),
        ..patient_for(3500)
    };
    let (mut p, id) = established(lively);
    for _ in 0..3 {
        p.expect_after(1000, "A 0 ack 1");
    }
    p.expect_after(1000, "RA 1 ack 1");
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

/// Linux looks at it with the first retransmission, and then counts from the first SYN.
#[test]
fn a_syn_without_an_answer() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions { socket: patient_for(2500), ..ConnectOptions::default() });
    p.expect("S 0");
    p.expect_after(1000, "S 0");
    p.expect_after(1000, "S 0");
    ends_after(&mut p, id, 500);
}

#[test]
fn it_can_be_taken_back() {
    let (mut p, id) = established(patient_for(1000));
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    p.expect_after(200, "PA 1:2 ack 1");
    p.stack.set_option(p.now, id, SocketOption::UserTimeout(Some(Duration::ZERO))).unwrap();
    for wait in [400, 800, 1600, 3200, 6400] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
}

/// Silence counts from the opening at the earliest, also where something else was kept before keepalive was asked for.
#[test]
fn keepalive_asked_for_late() {
    let (mut p, id) = established(patient_for(20_000));
    assert_eq!(p.stack.write_with(p.now, id, b"!", WriteFlags::URGENT), Ok(1));
    p.expect("UPA 1:2 ack 1");
    p.stack.set_option(p.now, id, SocketOption::KeepAliveTime(Some(Duration::from_secs(10)))).unwrap();
    p.stack.set_option(p.now, id, SocketOption::KeepAliveInterval(Some(Duration::from_secs(3)))).unwrap();
    p.stack.set_option(p.now, id, SocketOption::KeepAlive(true)).unwrap();
    p.send("A 1 ack 2");
    for wait in [10_000, 3000, 3000, 3000] {
        p.expect_after(wait, "A 1 ack 1");
    }
    p.expect_after(3000, "RA 2 ack 1");
}

/// The peer has taken text although its window was closed: it lives, and has the whole time again.
#[test]
fn text_that_is_taken_past_a_closed_window_begins_it_anew() {
    let (mut p, id) = established(patient_for(2000));
    p.write(id, &pattern(1, 10));
    p.expect("PA 1:11 ack 1");
    p.send("A 1 ack 1 win 0");
    p.skip(1500);
    p.send("A 1 ack 11 win 0");
    p.write(id, &pattern(11, 10));
    p.skip(1700);
    assert_eq!(p.stack.close_reason(id), None);
    p.skip(3000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}
