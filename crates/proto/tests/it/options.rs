//! What an application may ask of a connection: Linux's ranges, and what follows.

use crate::pair::ethernet;
use crate::peer::*;
use core::time::Duration;
use proto::*;

const MS: Duration = Duration::from_millis(1);

fn connecting(socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::with(Config::default(), ethernet());
    let id = p.connect(ConnectOptions { socket, ..ConnectOptions::default() });
    (p, id)
}

fn established(socket: SocketOptions) -> (Peer, ConnId) {
    let (mut p, id) = connecting(socket);
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("A 1 ack 1");
    (p, id)
}

#[test]
fn options_are_told_as_they_were_set() {
    let (mut p, id) = established(SocketOptions { nodelay: true, ..SocketOptions::default() });
    assert_eq!(p.stack.options(id), Some(SocketOptions { nodelay: true, ..SocketOptions::default() }));
    for option in [
        SocketOption::NoDelay(false),
        SocketOption::Cork(true),
        SocketOption::Linger2(Some(MS)),
        SocketOption::RtoMin(Some(5 * MS)),
    ] {
        assert_eq!(p.stack.set_option(p.now, id, option), Ok(()));
    }
    let expected =
        SocketOptions { cork: true, linger2: Some(MS), rto_min: Some(5 * MS), ..SocketOptions::default() };
    assert_eq!(p.stack.options(id), Some(expected.clone()));
    let wrong = SocketOption::MaxSegment(Some(1));
    assert_eq!(p.stack.set_option(p.now, id, wrong), Err(OptionError::OutOfRange));
    assert_eq!(p.stack.options(id), Some(expected));
    p.stack.abort(p.now, id);
    assert_eq!(p.stack.set_option(p.now, id, SocketOption::Cork(false)), Err(OptionError::NotFound));
    assert_eq!(p.stack.options(id), None);
}

/// `TCP_SYNCNT` 1: four linear time-outs and one retry more, but no longer than two doublings take (1 s + 2 s).
#[test]
fn tcp_syncnt_ends_a_connect_sooner() {
    let (mut p, id) = connecting(SocketOptions { syn_retries: Some(1), ..SocketOptions::default() });
    p.expect("S 0");
    p.expect_after(1000, "S 0");
    p.expect_after(1000, "S 0");
    p.expect_nothing_for(1000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

#[test]
fn the_retransmission_timeout_keeps_to_the_sockets_bounds() {
    let bounds =
        SocketOptions { rto_min: Some(10 * MS), rto_max: Some(1000 * MS), ..SocketOptions::default() };
    let (mut p, id) = established(bounds);
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [10, 20, 40, 80, 160, 320, 640, 1000, 1000] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
    p.stack.set_option(p.now, id, SocketOption::RtoMin(None)).unwrap();
    assert_eq!(p.stack.info(id).unwrap().rto, 1000 * MS);
    p.send("A 1 ack 2");
    p.write(id, b"y");
    p.expect("PA 2:3 ack 1");
    p.send("A 1 ack 3");
    assert_eq!(p.stack.info(id).unwrap().rto, 200 * MS);
}

/// Six time-outs that do not double, then the usual back-off.
#[test]
fn thin_streams_are_retransmitted_at_a_steady_pace() {
    let thin = SocketOptions { thin_linear_timeouts: true, ..SocketOptions::default() };
    let (mut p, id) = established(thin.clone());
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [200, 200, 200, 200, 200, 200, 200, 400, 800] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
    let (mut p, id) = established(thin);
    p.write(id, &pattern(1, 4000));
    p.skip(1);
    p.expect_after(199, "A 1:1001 ack 1");
    p.expect_after(400, "A 1:1001 ack 1");
}

/// `TCP_LINGER2`: FIN-WAIT-2 lasts so long, and not below 3.5 RTO (Linux's `tcp_fin_time`).
#[test]
fn tcp_linger2_shortens_fin_wait_2() {
    let sizes_after = |linger2: Option<Duration>| {
        let (mut p, id) = established(SocketOptions { linger2, ..SocketOptions::default() });
        p.close(id);
        p.expect("FA 1 ack 1");
        p.send("A 1 ack 2");
        let start = p.now;
        while p.sizes() != (0, 0, 0) {
            let at = p.stack.poll_timeout().expect("FIN-WAIT-2 ends");
            p.now = at;
            p.stack.handle_timeout(at);
        }
        // Its end is kept to 4 ms.
        (p.now.since(start).as_millis() / 10 * 10, p.sent_now())
    };
    assert_eq!(sizes_after(None), (60_000, vec![]));
    assert_eq!(sizes_after(Some(5000 * MS)), (5000, vec![]));
    assert_eq!(sizes_after(Some(100 * MS)), (700, vec![]));
    let (at_once, reset) = sizes_after(Some(Duration::ZERO));
    assert_eq!((at_once, reset.len()), (0, 1));
    assert!(reset[0].starts_with("R 2:2(0) "), "{reset:?}");
}

/// The clamp may come late: it holds for what is sent from then on.
#[test]
fn tcp_maxseg_may_be_set_on_an_open_connection() {
    let (mut p, id) = established(SocketOptions::default());
    p.stack.set_option(p.now, id, SocketOption::MaxSegment(Some(600))).unwrap();
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 600);
    p.write(id, &pattern(1, 900));
    p.expect("A 1:601 ack 1");
    p.expect("PA 601:901 ack 1");
}
