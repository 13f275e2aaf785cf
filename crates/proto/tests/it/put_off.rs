//! Packets that leave later than they would, because their socket wants that (`TCP_TX_DELAY`).

use crate::peer::*;
use core::time::Duration;
use proto::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Round trips of 100 ms.
fn established() -> (Peer, ConnId) {
    let mut p = Peer::new(Config::default().tcp_early_retrans(0));
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000,sackOK>");
    p.expect("SA 0 ack 1");
    p.now = p.now + ms(100);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    (p, id)
}

fn delay(p: &mut Peer, id: ConnId, delay: u64) {
    p.stack.set_option(p.now, id, SocketOption::TxDelay(ms(delay))).unwrap();
}

/// What was measured of the path is believed to change by as much. The time-out counts from when a segment was given out, not from when it left.
#[test]
fn everything_leaves_so_much_later() {
    let (mut p, id) = established();
    let srtt = p.stack.info(id).unwrap().srtt.unwrap();
    delay(&mut p, id, 30);
    let longer = p.stack.info(id).unwrap().srtt.unwrap() - srtt;
    assert_eq!((srtt.as_millis(), (longer.as_secs_f64() * 1000.0).round()), (100, 30.0));
    p.write(id, &pattern(1, 1000));
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_after(30, "PA 1:1001 ack 1");
    p.expect_after_exactly(rto, "PA 1:1001 ack 1");
    p.send("A 1:1001 ack 1001");
    p.stack.shutdown(p.now, id).unwrap();
    p.expect_after(30, "FA 1001 ack 1001");
}

/// A packet keeps the time it was given: who asks for less is overtaken by what follows.
#[test]
fn what_is_put_off_less_leaves_first() {
    let (mut p, id) = established();
    delay(&mut p, id, 30);
    p.write(id, &pattern(1, 1000));
    p.expect_nothing_for(5);
    delay(&mut p, id, 10);
    p.write(id, &pattern(1001, 1000));
    p.expect_after(10, "PA 1001:2001 ack 1");
    p.expect_after(15, "PA 1:1001 ack 1");
    delay(&mut p, id, 0);
    p.write(id, &pattern(2001, 1000));
    p.expect("PA 2001:3001 ack 1");
}

/// A listener's SYN-ACK is put off, and so is what its connections send; a SYN as well, and the last word of a connection that is gone by then.
#[test]
fn the_handshake_is_put_off_too() {
    let socket = SocketOptions { tx_delay: ms(20), ..SocketOptions::default() };
    let mut p = Peer::new(Config::default());
    let listener = p.listen_with(ListenOptions { socket: socket.clone(), ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    p.expect_after(20, "SA 0 ack 1");
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 100));
    p.expect_after(20, "PA 1:101 ack 1");
    let mut p = Peer::new(Config::default());
    let id = p.connect(ConnectOptions { socket, ..ConnectOptions::default() });
    p.expect_after(20, "S 0");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect_after(20, "A 1 ack 1");
    p.stack.abort(p.now, id);
    p.expect_after(20, "RA 1 ack 1");
}
