//! Connections whose application has let go: FIN-WAIT-2 without a reader, closed windows, too many of them.

use crate::peer::*;
use proto::*;

fn established_with(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish(listener);
    (p, id)
}

fn established() -> (Peer, ConnId) {
    established_with(Config::default())
}

/// Of an orphan in FIN-WAIT-2 only numbers are kept, with those of TIME-WAIT, for `tcp_fin_timeout`.
#[test]
fn fin_wait_2_of_an_orphan_ends_after_tcp_fin_timeout() {
    for early in [true, false] {
        let mut p = in_fin_wait_2(early);
        p.expect_nothing_for(59_999);
        assert_eq!((p.sizes(), p.stack.orphans()), ((0, 0, 1), 0));
        p.expect_nothing_for(6);
        assert_eq!(p.sizes(), (0, 0, 0));
        p.send("FA 1 ack 2");
        p.expect("R 2");
    }
}

/// Closed before or after the FIN is acknowledged.
fn in_fin_wait_2(early: bool) -> Peer {
    let (mut p, id) = established();
    if early {
        p.close(id);
    } else {
        p.stack.shutdown(p.now, id).unwrap();
    }
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    if !early {
        p.skip(5000);
        p.close(id);
    }
    p
}

#[test]
fn fin_wait_2_of_an_orphan_becomes_time_wait_by_the_fin() {
    let mut p = in_fin_wait_2(true);
    p.skip(59_000);
    p.send("FA 1 ack 2");
    p.expect("A 2 ack 2 win 65535 <>");
    assert_eq!(p.stack.counters().time_wait, 1);
    p.expect_nothing_for(59_999);
    p.send("FA 1 ack 2");
    p.expect("A 2 ack 2");
    p.expect_nothing_for(60_006);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn fin_wait_2_of_an_orphan_resets_who_sends_text() {
    let mut p = in_fin_wait_2(false);
    p.send("A 0 ack 2");
    p.expect("A 2 ack 1");
    p.send("A 1 ack 2");
    p.expect_nothing();
    p.send("PA 1:11 ack 2");
    p.expect("R 2");
    assert_eq!((p.sizes(), p.stack.counters().out_rsts), ((0, 0, 0), 1));
}

/// A delayed acknowledgement goes before the connection does.
#[test]
fn fin_wait_2_of_an_orphan_owes_nothing() {
    let (mut p, id) = established();
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1 ack 1");
    p.send("PA 1:11 ack 2");
    assert_eq!(p.read(id).unwrap().len(), 10);
    p.close(id);
    p.expect("A 2 ack 11");
    assert_eq!(p.sizes(), (0, 0, 1));
}

/// `tcp_fin_timeout` does not end it before the path had time for the FIN.
#[test]
fn a_short_tcp_fin_timeout_still_waits_for_the_path() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_fin_timeout", "0").unwrap();
    let (mut p, id) = established_with(config);
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    p.expect_nothing_for(699);
    assert_eq!(p.sizes(), (0, 0, 1), "three and a half time-outs of 200 ms");
    p.expect_nothing_for(6);
    assert_eq!(p.sizes(), (0, 0, 0));
}

/// A peer that keeps its window closed keeps what nobody holds for as long as the back-off grows: ten probes take 1023 time-outs, and the wait
/// after the last is `tcp_rto_max_ms`, 120 s: 324.6 s with the time-out of 200 ms here. Linux does it in the same steps, with timers of minutes
/// in steps of 4 s: 365 s with a time-out of 232 ms. With `tcp_rto_max_ms` of a second it is 2.4 s, after three probes.
#[test]
fn an_orphan_behind_a_closed_window_ends() {
    for (rto_max, probes, ms) in [("120000", 10, 324_600), ("1000", 3, 2400)] {
        let mut config = Config::default();
        config.set("net.ipv4.tcp_rto_max_ms", rto_max).unwrap();
        let (mut p, id) = established_with(config);
        p.send("A 1 ack 1 win 0");
        p.write(id, b"text that nobody takes");
        p.close(id);
        let start = p.now;
        let mut heard = 0;
        while p.sizes().0 > 0 {
            p.skip_until_sent();
            heard += 1;
            p.send("A 1 ack 1 win 0");
        }
        assert_eq!((heard - 1, p.now.since(start).as_millis()), (probes, ms), "{rto_max}");
        assert_eq!(p.stack.counters().abort_on_timeout, 1);
    }
}

/// Probes are counted up to the greatest number that `tcp_orphan_retries` may be.
#[test]
fn an_orphan_with_the_most_retries_ends() {
    let (mut p, id) = established_with(Config::default().tcp_orphan_retries(255).tcp_rto_max_ms(1000));
    p.send("A 1 ack 1 win 0");
    p.write(id, b"text that nobody takes");
    p.close(id);
    let start = p.now;
    let mut sent = 0;
    while p.sizes().0 > 0 && sent < 300 {
        p.skip_until_sent();
        sent += 1;
    }
    assert_eq!((sent - 1, p.now.since(start).as_millis()), (254, 253_400));
}

/// While there are too many, a time-out of one ends it.
#[test]
fn an_orphan_too_many_ends_at_its_next_timeout() {
    let mut p = Peer::ours();
    let listener = p.listen();
    for port in [40_000, 40_001] {
        p.remote.set_port(port);
        let id = p.establish(listener);
        p.close(id);
        p.expect("FA 1 ack 1");
    }
    p.stack.set(p.now, "net.ipv4.tcp_max_orphans", "2").unwrap();
    p.skip(200);
    assert_eq!(p.sizes(), (2, 0, 0), "as many as there may be");
    p.stack.set(p.now, "net.ipv4.tcp_max_orphans", "1").unwrap();
    p.expect_after(400, "RA 2 ack 1");
    p.skip(0);
    assert_eq!((p.sizes(), p.stack.counters().abort_on_memory), ((1, 0, 0), 1));
}

/// L-ST-4: of four closed with data on the way, `tcp_max_orphans` lets two deliver in the background; the others are reset at once.
#[test]
fn too_many_orphans_are_reset() {
    for config in both_profiles() {
        let mut p = Peer::new(config.tcp_max_orphans(2));
        let listener = p.listen();
        for port in 40_000..40_004 {
            p.remote.set_port(port);
            let id = p.establish(listener);
            p.write(id, &pattern(1, 10));
            p.expect("PA 1:11 ack 1");
            p.close(id);
            p.expect(if port < 40_002 { "FA 11 ack 1" } else { "RA 11 ack 1" });
        }
        assert_eq!((p.stack.orphans(), p.sizes()), (2, (2, 0, 0)));
        assert_eq!(p.stack.counters().abort_on_memory, 2);
        p.remote.set_port(40_000);
        p.send("FA 1 ack 12");
        p.expect("A 12 ack 2");
        assert_eq!((p.stack.orphans(), p.sizes()), (1, (1, 0, 1)));
        p.remote.set_port(40_001);
        p.send("R 1");
        assert_eq!((p.stack.orphans(), p.sizes()), (0, (0, 0, 1)));
    }
}
