//! The listener's queues: SYN queue, accept queue, what overflows, what stays small.

use crate::peer::*;
use proto::*;

fn client(p: &mut Peer, number: u16) {
    p.remote.set_port(40_000 + number);
}

/// As Linux: one more than the backlog.
#[test]
fn the_syn_queue_holds_one_more_than_the_backlog() {
    let mut p = Peer::new(Config::default().tcp_syncookies(0));
    p.listen_with(ListenOptions { backlog: 2, ..Default::default() });
    for number in 0..3 {
        client(&mut p, number);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
    }
    client(&mut p, 3);
    p.send("S 0 <mss 1000>");
    p.expect_nothing();
    assert_eq!(p.sizes(), (0, 3, 0));
    assert_eq!(p.stack.drops().get(DropReason::SynQueueFull), 1);
    assert_eq!(p.stack.counters().listen_drops, 1);
    client(&mut p, 0);
    p.send("A 1 ack 1");
    client(&mut p, 3);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    assert_eq!(p.sizes(), (1, 3, 0));
}

/// As Linux: one more than the backlog.
#[test]
fn the_accept_queue_holds_one_more_than_the_backlog() {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { backlog: 2, ..Default::default() });
    for number in 0..3 {
        client(&mut p, number);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
        p.send("A 1 ack 1");
    }
    assert_eq!(p.stack.listener_info(listener).unwrap().accept_queue, 3);
    client(&mut p, 3);
    p.send("S 0 <mss 1000>");
    p.expect_nothing();
    assert_eq!(p.stack.drops().get(DropReason::AcceptQueueFull), 1);
    assert_eq!((p.stack.counters().listen_overflows, p.stack.counters().listen_drops), (1, 1));
    p.accept(listener);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
}

/// The final ACK finds the queue full: the request stays, and the answer to the repeated SYN-ACK opens it later.
#[test]
fn a_request_waits_while_the_accept_queue_is_full() {
    let mut p = Peer::new(Config::default().accept_overflow(AcceptOverflow::Forget));
    let listener = p.listen_with(ListenOptions { backlog: 2, ..Default::default() });
    // Two half-open ones, then the queue fills behind their backs.
    for number in [0, 1] {
        client(&mut p, number);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
    }
    for number in [0, 1] {
        client(&mut p, number);
        p.send("A 1 ack 1");
    }
    client(&mut p, 2);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    client(&mut p, 3);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    client(&mut p, 2);
    p.send("A 1 ack 1");
    client(&mut p, 3);
    p.send("PA 1:11 ack 1");
    p.expect_nothing();
    assert_eq!(p.sizes(), (3, 1, 0));
    assert_eq!(p.stack.counters().listen_overflows, 1);
    p.accept(listener);
    p.expect_after(1000, "SA 0 ack 1");
    p.send("PA 1:11 ack 1");
    assert_eq!(p.sizes(), (4, 0, 0));
    let ids: Vec<ConnId> = (0..3).map(|_| p.accept(listener)).collect();
    assert_eq!(p.read(ids[2]).unwrap(), pattern(1, 10));
}

#[test]
fn connections_are_limited() {
    let mut config = Config::default();
    config.set("firstbyte.max_connections", "1").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.establish(listener);
    client(&mut p, 1);
    p.send("S 0 <mss 1000>");
    p.expect_nothing();
    assert_eq!(p.stack.drops().get(DropReason::TooManyConnections), 1);
}

#[test]
fn one_event_announces_many_connections() {
    let mut p = Peer::ours();
    let listener = p.listen();
    for number in 0..3 {
        client(&mut p, number);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
        p.send("A 1 ack 1");
    }
    assert_eq!(p.events(), [(SocketId::Listener(listener), Events::ACCEPTABLE)]);
    assert!(p.events().is_empty());
    for _ in 0..3 {
        p.accept(listener);
    }
    assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
}

/// The peer of an accepted connection is the one that opened it; connections come in the order of their completion.
#[test]
fn accept_gives_connections_in_the_order_of_completion() {
    let mut p = Peer::ours();
    let listener = p.listen();
    for number in 0..3 {
        client(&mut p, number);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
    }
    for number in [2, 0, 1] {
        client(&mut p, number);
        p.send("A 1 ack 1");
    }
    let ports = [(); 3].map(|()| p.stack.accept(p.now, listener).unwrap().1.port());
    assert_eq!(ports, [40_002, 40_000, 40_001]);
}

/// C-01: the cap is read by `listen`; `listen` once more reads it again (Linux: 5 becomes 77 so).
#[test]
fn listening_again_changes_the_backlog() {
    let mut p = Peer::ours();
    p.stack.set(p.now, "net.core.somaxconn", "7").unwrap();
    let listener = p.listen_with(ListenOptions { backlog: 5000, ..Default::default() });
    let backlog = |p: &Peer| p.stack.listener_info(listener).unwrap().backlog;
    p.stack.set(p.now, "net.core.somaxconn", "700").unwrap();
    assert_eq!(backlog(&p), 7);
    assert!(p.stack.set_backlog(p.now, listener, 5000));
    assert_eq!(backlog(&p), 700);
    assert!(p.stack.set_backlog(p.now, listener, 1));
    let connect = |p: &mut Peer, number| {
        client(p, number);
        p.send("S 0 <mss 1000>");
        p.expect_sent(usize::from(number != 3));
        p.send("A 1 ack 1");
        p.expect_sent(usize::from(number == 3));
    };
    (1..=3).for_each(|number| connect(&mut p, number));
    assert_eq!(p.stack.listener_info(listener).unwrap().accept_queue, 2, "one more than the backlog");
    assert!(p.stack.set_backlog(p.now, listener, 2));
    connect(&mut p, 4);
    assert_eq!(p.stack.listener_info(listener).unwrap().accept_queue, 3);
    p.stack.close_listener(p.now, listener);
    assert!(!p.stack.set_backlog(p.now, listener, 5));
}
