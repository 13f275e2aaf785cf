//! Keepalive (RFC 9293 §3.8.4): when a silent peer is asked, with what, and when it is given up.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use core::time::Duration;
use proto::*;

const S: Duration = Duration::from_secs(1);

fn lively() -> SocketOptions {
    SocketOptions {
        keepalive: true,
        keepalive_time: Some(10 * S),
        keepalive_intvl: Some(3 * S),
        keepalive_probes: Some(2),
        ..SocketOptions::default()
    }
}

/// A probe is one number below what the peer has, so that it must answer.
#[test]
fn a_silent_peer_is_probed_and_given_up() {
    let (mut p, id) = established(lively());
    p.events();
    p.expect_after(10_000, "A 0 ack 1");
    p.expect_after(3000, "A 0 ack 1");
    p.expect_after(3000, "RA 1 ack 1");
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
    assert!(p.events_of(id).contains(Events::CLOSED));
    assert_eq!((p.stack.counters().keep_alive, p.stack.counters().abort_on_timeout), (2, 1));
    assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::TimedOut)));
}

#[test]
fn an_answer_begins_the_silence_anew() {
    let (mut p, id) = established(lively());
    p.expect_after(10_000, "A 0 ack 1");
    p.expect_after(3000, "A 0 ack 1");
    p.skip(1000);
    p.send("A 1 ack 1");
    p.expect_after(10_000, "A 0 ack 1");
    p.send("A 1 ack 1");
    p.skip(4000);
    // Data of the peer counts, too.
    p.send("PA 1:11 ack 1");
    p.expect_after(5, "A 1 ack 11");
    p.expect_after(9995, "A 0 ack 11");
    assert_eq!(p.state(id), State::Established);
}

/// The ACK that opens the connection may be dropped for coming from too far away (RFC 5082): the silence counts all the same.
#[test]
fn a_connection_whose_first_packet_was_dropped_is_kept_alive_too() {
    let socket = SocketOptions { min_hops: 64, ..lively() };
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    let near = p.packet("A 1 ack 1 win 65535");
    let (ip, header, text) = wire::parse_tcp_packet(&near).unwrap();
    let far = wire::IpHeader { hop_limit: 63, ..ip };
    p.send_rx(RxPacket::new(wire::build_tcp_packet(&far, &header, &near[text])));
    assert_eq!(p.stack.counters().tcp_min_ttl_drop, 1);
    assert_eq!(p.stack.poll_timeout(), Some(p.now + 10 * S));
    p.expect_after(10_000, "A 0 ack 1");
    p.accept(listener);
}

/// While something is in flight, or the window is closed, the retransmission timer asks.
#[test]
fn nothing_is_probed_while_data_is_outstanding() {
    let (mut p, id) = established(lively());
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [200, 400, 800, 1600, 3200, 6400] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
    p.send("A 1 ack 2");
    // The timer looked at 10 s and found data outstanding: it looks again at 20 s and, 12.6 s after the ACK, at 22.6 s.
    p.expect_after(10_000, "A 1 ack 1");
}

#[test]
fn the_stacks_settings_hold_where_the_socket_says_nothing() {
    let socket = SocketOptions { keepalive: true, ..SocketOptions::default() };
    let (mut p, _) = established(socket);
    p.expect_after(7_200_000, "A 0 ack 1");
    for _ in 1..9 {
        p.expect_after(75_000, "A 0 ack 1");
    }
    p.expect_after(75_000, "RA 1 ack 1");
}

#[test]
fn it_can_be_switched_at_any_time() {
    let (mut p, id) = established(SocketOptions::default());
    assert_eq!(p.stack.poll_timeout(), None);
    p.skip(5000);
    for option in [
        SocketOption::KeepAlive(true),
        SocketOption::KeepAliveTime(Some(20 * S)),
        SocketOption::KeepAliveInterval(Some(7 * S)),
        SocketOption::KeepAliveProbes(Some(5)),
    ] {
        p.stack.set_option(p.now, id, option).unwrap();
    }
    p.expect_after(20_000, "A 0 ack 1");
    p.expect_after(7000, "A 0 ack 1");
    // A shorter time than has passed already: at once.
    p.stack.set_option(p.now, id, SocketOption::KeepAliveTime(Some(S))).unwrap();
    p.expect_after(0, "A 0 ack 1");
    p.stack.set_option(p.now, id, SocketOption::KeepAlive(false)).unwrap();
    assert_eq!(p.stack.poll_timeout(), None);
}

/// A client that has sent everything waits for an answer that will never come: the server is gone without a word.
#[test]
fn a_half_closed_client_does_not_wait_for_ever() {
    let mut w = Pair::ours();
    let listener = w.listen(0);
    let id = w.connect(ConnectOptions { socket: lively(), ..ConnectOptions::default() });
    w.run(100);
    let server = w.accept(listener).unwrap();
    let now = w.now;
    w.stacks[CLIENT].shutdown(now, id).unwrap();
    w.run(100);
    assert_eq!(w.read(SERVER, server), Ok(vec![]));
    w.filter = Box::new(|sent| sent.from == CLIENT);
    let now = w.now;
    w.stacks[SERVER].abort(now, server);
    let start = w.now;
    while w.stacks[CLIENT].close_reason(id).is_none() {
        assert!(w.step(), "it waits for ever");
    }
    assert!(w.ms_since(start) < 16_000, "{}", w.ms_since(start));
}

/// Two of ours: probes are answered, and nothing ends.
#[test]
fn two_ends_keep_each_other_alive() {
    let mut w = Pair::ours();
    let listener = w.listen(0);
    let id = w.connect(ConnectOptions { socket: lively(), ..ConnectOptions::default() });
    w.run(100);
    w.accept(listener).unwrap();
    w.log.clear();
    w.run(60_000);
    assert_eq!(w.stacks[CLIENT].info(id).unwrap().state, State::Established);
    assert_eq!(w.ladder(), ["> A", "< A"].repeat(5));
}

/// After `close` the timer is the orphan's: no probe disturbs FIN-WAIT-2.
#[test]
fn a_closed_connection_is_not_probed() {
    let (mut p, id) = established(lively());
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    p.expect_nothing_for(70_000);
    assert_eq!(p.sizes().0, 0);
}
