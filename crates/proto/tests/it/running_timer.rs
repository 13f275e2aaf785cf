//! The timer that runs for a socket, as `ss -o` shows it.

use crate::peer::*;
use core::time::Duration;
use proto::*;

const S: Duration = Duration::from_secs(1);

/// Of the first connection, or of what has only its numbers.
fn shown(p: &Peer) -> Option<String> {
    let timer = p.stack.sockets().find_map(|socket| match socket {
        SocketInfo::Listener(_) => None,
        SocketInfo::Connection(connection) => Some(connection.timer),
        SocketInfo::Numbers { timer, .. } => Some(timer),
    });
    timer.flatten().map(|timer| timer.ss(p.now).to_string())
}

fn says(p: &Peer, expected: &str) {
    assert_eq!(shown(p).as_deref(), Some(expected));
}

/// SYN-ACK, nothing, data, its repetition.
#[test]
fn what_is_not_acknowledged_is_timed() {
    let mut p = Peer::ours();
    p.stack.set(p.now, "net.ipv4.tcp_early_retrans", "0").unwrap();
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    says(&p, "timer:(on,1sec,0)");
    p.expect_after(1000, "SA 0 ack 1");
    says(&p, "timer:(on,2sec,1)");
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    assert_eq!(shown(&p), None, "nothing is on the way");
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_nothing_for(50);
    says(&p, &format!("timer:(on,{}sec,0)", (rto - Duration::from_millis(50)).as_secs_f64()));
    p.expect_after_exactly(rto - Duration::from_millis(50), "PA 1:1001 ack 1");
    assert_eq!(p.stack.info(id).unwrap().timer.unwrap().expirations, 1);
}

/// The probes of a closed window are counted, and a window that opens ends them.
#[test]
fn a_closed_window_is_probed_by_the_persist_timer() {
    let (mut p, id) = established(SocketOptions::default());
    p.send("A 1 ack 1 win 0");
    p.write(id, &pattern(1, 1000));
    let timer = p.stack.info(id).unwrap().timer.unwrap();
    assert_eq!((timer.kind, timer.expirations), (TimerKind::Persist, 0));
    p.now = timer.expires_at;
    p.stack.handle_timeout(p.now);
    p.expect("A 0 ack 1");
    let next = p.stack.info(id).unwrap().timer.unwrap();
    assert_eq!((next.kind, next.expirations), (TimerKind::Persist, 1));
    assert!(next.expires_at > timer.expires_at);
    p.send("A 1 ack 1 win 65535");
    p.expect("PA 1:1001 ack 1");
    assert_eq!(p.stack.info(id).unwrap().timer.unwrap().kind, TimerKind::Retransmission);
}

/// Two unanswered probes, then the peer is given up.
#[test]
fn a_silent_peer_is_asked_by_the_keepalive_timer() {
    let options = SocketOptions {
        keepalive: true,
        keepalive_time: Some(100 * S),
        keepalive_intvl: Some(3 * S),
        keepalive_probes: Some(2),
        ..SocketOptions::default()
    };
    let (mut p, _) = established(options);
    p.skip(10_000);
    says(&p, "timer:(keepalive,1min30sec,0)");
    p.expect_after(90_000, "A 0 ack 1");
    says(&p, "timer:(keepalive,3sec,1)");
}

/// Linux's 60 s, counted in units of 4 ms.
#[test]
fn time_wait_ends_by_its_own() {
    let (mut p, id) = established(SocketOptions::default());
    p.stack.close(p.now, id);
    p.expect("FA 1 ack 1");
    p.send("FA 1 ack 2");
    p.expect("A 2 ack 2");
    p.skip(30_000);
    let said = shown(&p).unwrap();
    assert!(said.starts_with("timer:(timewait,30") && said.ends_with("sec,0)"), "{said}");
}
