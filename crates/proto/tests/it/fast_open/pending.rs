//! How many Fast Open connections a listener lets wait for their final ACK (RFC 7413 §4.2, R18, R38).

use super::*;

/// `qlen` SYNs from ports 50000 on, all accepted by cookie; SYN-ACKs are thrown away.
fn filled(config: Config, qlen: u16) -> (Peer, ListenerId) {
    let mut p = server(config);
    let options = ListenOptions { synack_hold: Some(Duration::ZERO), ..super::qlen(qlen.into()) };
    let listener = p.listen_with(options);
    for n in 0..qlen {
        assert_eq!(knock(&mut p, 50_000 + n), "accepted");
    }
    (p, listener)
}

/// A Fast Open SYN from this port: what came of it.
fn knock(p: &mut Peer, port: u16) -> &'static str {
    p.remote.set_port(port);
    p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(p)));
    let sent = p.sent_now().concat();
    match (sent.contains("ack 11"), sent.contains("FO ")) {
        (true, false) => "accepted",
        (false, true) => "cookie",
        (false, false) => "plain",
        (true, true) => "accepted with a cookie",
    }
}

fn pending(p: &Peer, listener: ListenerId) -> u32 {
    p.stack.listener_info(listener).unwrap().fast_open_pending
}

#[test]
fn over_the_limit_ours_hands_out_the_cookie_and_linux_does_not() {
    for (config, refusal, extra) in
        [(Config::default(), "cookie", Some(("CookieOnOverflow", 2))), (linux(), "plain", None)]
    {
        let (mut p, listener) = filled(config, 2);
        assert_eq!((knock(&mut p, 51_000), knock(&mut p, 51_001)), (refusal, refusal));
        assert_eq!(pending(&p, listener), 2);
        let expected: Vec<_> = [("Passive", 2), ("ListenOverflow", 2)].into_iter().chain(extra).collect();
        assert_eq!(counters(&p.stack), expected);
        // The three-way handshake goes on.
        p.send("A 1 ack 1");
        assert_eq!(p.stack.listener_info(listener).unwrap().accept_queue, 3);
    }
}

/// Linux looks at the queue before the option, so a request comes away empty-handed too.
#[test]
fn requests_and_stale_cookies_over_the_limit() {
    for option in ["FO", "FO 0102030405060708"] {
        let (mut p, _) = filled(Config::default(), 1);
        let cookie = cookie(&p);
        p.remote.set_port(51_000);
        p.send(&format!("S 0 <mss 1000,{option}>"));
        p.expect(&format!("SA 0 ack 1 <mss 1460,FO {cookie}>"));
        assert_eq!(p.stack.counters().cookie_on_overflow, 1);
        let (mut p, _) = filled(linux(), 1);
        p.remote.set_port(51_000);
        p.send(&format!("S 0 <mss 1000,{option}>"));
        p.expect("SA 0 ack 1 <mss 1460>");
        assert_eq!(p.stack.counters().tcp_fastopen_listen_overflow, 1);
        assert_eq!(p.stack.counters().tcp_fastopen_passive_fail, 0);
    }
}

#[test]
fn the_final_ack_frees_the_slot() {
    for config in both_profiles() {
        let (mut p, listener) = filled(config, 1);
        p.send("A 11 ack 1");
        assert_eq!(pending(&p, listener), 0);
        assert_eq!(knock(&mut p, 51_000), "accepted");
    }
}

#[test]
fn a_reset_before_accept_frees_the_slot_at_once() {
    for config in both_profiles() {
        let (mut p, listener) = filled(config, 1);
        p.send("R 11");
        assert_eq!(pending(&p, listener), 0);
        assert_eq!(knock(&mut p, 51_000), "accepted");
    }
}

/// To the millisecond.
#[test]
fn a_reset_after_accept_keeps_the_slot_for_sixty_seconds() {
    for (config, refusal) in [(Config::default(), "cookie"), (linux(), "plain")] {
        let (mut p, listener) = filled(config, 2);
        let first = p.accept(listener);
        let second = p.accept(listener);
        p.send("R 11");
        p.skip(1000);
        p.remote.set_port(50_000);
        p.send("R 11");
        assert_eq!([first, second].map(|id| p.stack.close_reason(id)), [Some(CloseReason::Reset); 2]);
        assert_eq!(pending(&p, listener), 2);
        assert_eq!(knock(&mut p, 51_000), refusal);
        p.skip(58_999);
        assert_eq!(knock(&mut p, 51_001), refusal);
        p.skip(1);
        assert_eq!(knock(&mut p, 51_002), "accepted");
        assert_eq!(knock(&mut p, 51_003), refusal, "the second was reset a second later");
        p.skip(1000);
        assert_eq!(knock(&mut p, 51_004), "accepted");
        assert_eq!(pending(&p, listener), 2);
    }
}

#[test]
fn the_application_may_end_a_child_and_free_its_slot() {
    for config in both_profiles() {
        let (mut p, listener) = filled(config, 1);
        let id = p.accept(listener);
        p.stack.abort(p.now, id);
        p.expect("RA 1 ack 11");
        assert_eq!(pending(&p, listener), 0);
    }
}

/// A flood of plain SYNs: who holds a cookie has proved his address, so ours still serves him, within the Fast Open limit.
#[test]
fn a_full_syn_queue() {
    for (config, served) in [(Config::default(), true), (linux(), false)] {
        let mut p = server(config.tcp_syncookies(0));
        let options = ListenOptions { backlog: 1, synack_hold: Some(Duration::ZERO), ..qlen(1) };
        let listener = p.listen_with(options);
        for port in [40_000, 40_001] {
            p.remote.set_port(port);
            p.send("S 0 <mss 1000>");
            p.expect("SA 0 ack 1");
        }
        let good = cookie(&p);
        let mut knock = |port, cookie: &str| {
            p.remote.set_port(port);
            p.send(&format!("S 0:10 <mss 1000,FO {cookie}>"));
            p.sent_now().concat()
        };
        assert_eq!(knock(50_000, "0102030405060708"), "");
        assert_eq!(knock(50_001, &good).contains("ack 11"), served);
        assert_eq!(knock(50_002, &good), "", "the Fast Open queue is full too, or nobody is served");
        assert_eq!(pending(&p, listener), u32::from(served));
        assert_eq!(p.stack.drops().get(DropReason::SynQueueFull), if served { 2 } else { 3 });
    }
}

#[test]
fn a_full_accept_queue_drops_the_syn() {
    for config in both_profiles() {
        let mut p = server(config);
        let options = ListenOptions { backlog: 1, synack_hold: Some(Duration::ZERO), ..qlen(100) };
        let listener = p.listen_with(options);
        // As Linux: one more than the backlog.
        assert_eq!([knock(&mut p, 50_000), knock(&mut p, 50_001)], ["accepted"; 2]);
        p.remote.set_port(50_002);
        p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
        p.expect_nothing();
        assert_eq!((p.stack.counters().listen_overflows, p.stack.counters().listen_drops), (1, 1));
        p.accept(listener);
        assert_eq!(knock(&mut p, 50_002), "accepted");
    }
}
