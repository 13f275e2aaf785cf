//! Linux's answer to black holes: no Fast Open at all for a while (`tcp_fastopen_blackhole_timeout_sec`).

use super::*;

fn pausing() -> Peer {
    client(linux().tcp_fastopen_blackhole_timeout_sec(4))
}

fn ask(p: &mut Peer) -> ConnId {
    p.connect(ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    })
}

/// Nothing is answered: three time-outs, of a second each.
fn swallowed(p: &mut Peer) {
    let id = ask(p);
    p.expect("S 0:27");
    p.expect_after(1000, "S 0");
    p.expect_after(1000, "S 0");
    let before = p.stack.counters().tcp_fastopen_blackhole;
    p.expect_after(1000, "S 0");
    assert_eq!(p.stack.counters().tcp_fastopen_blackhole, before + 1);
    p.stack.abort(p.now, id);
    p.expect_nothing();
}

fn is_paused(p: &mut Peer) -> bool {
    let id = ask(p);
    let sent = p.take_packet().unwrap();
    let (_, header, payload) = wire::parse_tcp_packet(&sent).unwrap();
    let plain = header.options.fast_open.is_none() && payload.is_empty();
    assert_eq!(plain, p.stack.outcome(id) == Some(Outcome::Skipped(Skipped::Paused)));
    p.stack.abort(p.now, id);
    plain
}

#[test]
fn the_third_time_out_pauses_everything() {
    let mut p = pausing();
    swallowed(&mut p);
    assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("Blackhole", 1)]);
    assert!(is_paused(&mut p));
    // For everyone, and not even a cookie is asked for.
    p.remote.set_ip("10.0.0.77".parse().unwrap());
    assert!(is_paused(&mut p));
    p.remote.set_ip("10.0.0.1".parse().unwrap());
    p.skip(3999);
    assert!(is_paused(&mut p));
    p.skip(1);
    assert!(!is_paused(&mut p));
}

/// Linux: `timeouts < 2 && expired`.
#[test]
fn giving_up_before_the_third_time_out_pauses_too() {
    let few = linux().tcp_syn_retries(1).tcp_syn_linear_timeouts(0);
    let mut p = client(few.tcp_fastopen_blackhole_timeout_sec(4));
    let id = ask(&mut p);
    p.expect("S 0:27");
    p.expect_after(1000, "S 0");
    p.expect_nothing_for(1999);
    assert_eq!(counters(&p.stack), []);
    p.expect_nothing_for(1);
    assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("Blackhole", 1)]);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

#[test]
fn pauses_double_up_to_sixty_four_times() {
    let mut p = pausing();
    for secs in [4, 8, 16, 32, 64, 128, 256, 256] {
        swallowed(&mut p);
        p.skip(secs * 1000 - 1);
        assert!(is_paused(&mut p), "{secs}");
        p.skip(1);
        assert!(!is_paused(&mut p), "{secs}");
    }
}

#[test]
fn success_with_data_starts_afresh() {
    let mut p = pausing();
    swallowed(&mut p);
    p.skip(4000);
    let id = ask(&mut p);
    p.expect("S 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.stack.abort(p.now, id);
    p.expect("RA 28 ack 1");
    swallowed(&mut p);
    p.skip(4000);
    assert!(!is_paused(&mut p), "not eight seconds");
}

#[test]
fn three_time_outs_after_the_handshake_pause_too() {
    let mut p = pausing();
    let id = ask(&mut p);
    p.expect("S 0:27");
    p.skip(40);
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.write(id, b"hello");
    p.expect("PA 28:33 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.skip((7 * rto).as_millis() as u64 - 1);
    assert_eq!(counters(&p.stack), [("Active", 1)]);
    p.skip(1);
    assert_eq!(counters(&p.stack), [("Active", 1), ("ActiveFail", 1), ("Blackhole", 1)]);
}

/// The data of the server is swallowed and its FIN passes: seen when the connection is torn down.
#[test]
fn a_fin_that_came_alone_pauses() {
    let mut p = pausing();
    let id = ask(&mut p);
    p.expect("S 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.send("FA 44 ack 28");
    p.expect("A 28 ack 1");
    assert_eq!(p.stack.counters().tcp_fastopen_blackhole, 0);
    p.stack.abort(p.now, id);
    p.expect("RA 28 ack 1");
    assert_eq!(p.stack.counters().tcp_fastopen_blackhole, 1);
    assert!(is_paused(&mut p));
}

#[test]
fn what_does_not_pause() {
    // A reset in order: the server's own.
    let mut p = pausing();
    ask(&mut p);
    p.expect("S 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.send("R 1");
    assert!(!is_paused(&mut p));
    // A FIN behind other data that waits for a hole.
    let mut p = pausing();
    let id = ask(&mut p);
    p.expect("S 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.send("PA 20:44 ack 28");
    p.send("FA 44 ack 28");
    p.stack.abort(p.now, id);
    p.expect("RA 28 ack 1");
    assert!(!is_paused(&mut p));
    // Anything without Fast Open.
    let mut p = pausing();
    p.connect(ConnectOptions::default());
    p.skip(200_000);
    assert!(!is_paused(&mut p));
    // What a server meets from its clients: else any of them could switch it off.
    let mut p = pausing();
    p.stack.set_fast_open_key(ring(KEY));
    let (local, remote) = (p.local, p.remote);
    p.local.set_port(80);
    p.listen_with(qlen(4));
    p.remote.set_port(51_000);
    p.send(&format!("S 0 <mss 1000,FO {}>", cookie(&p)));
    p.expect("SA 0 ack 1");
    p.send("R 1");
    (p.local, p.remote) = (local, remote);
    assert!(!is_paused(&mut p));
    assert_eq!(p.stack.counters().tcp_fastopen_blackhole, 0);
    // Off is off.
    let mut p = client(linux());
    let id = ask(&mut p);
    p.expect("S 0:27");
    p.skip(3000);
    assert_eq!(counters(&p.stack), [("ActiveFail", 1)]);
    p.stack.abort(p.now, id);
    assert!(!is_paused(&mut p));
}

#[test]
fn the_setting_works_while_running() {
    let mut p = client(linux());
    p.stack.set(p.now, "net.ipv4.tcp_fastopen_blackhole_timeout_sec", "2").unwrap();
    swallowed(&mut p);
    p.skip(1999);
    assert!(is_paused(&mut p));
    p.stack.set(p.now, "net.ipv4.tcp_fastopen_blackhole_timeout_sec", "0").unwrap();
    assert!(!is_paused(&mut p));
}
