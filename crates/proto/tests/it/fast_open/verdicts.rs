//! Negative evidence (RFC 7413 §4.1.3.1, R14–R16): recorded only by what proves it, for this network, peer and port, for a time.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A Fast Open connect with 27 bytes whose SYN leaves now.
fn ask(p: &mut Peer) -> ConnId {
    let options = ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    };
    let id = p.connect(options);
    p.expect("S 0:27");
    id
}

/// A connect that finds Fast Open ruled out: its SYN is plain.
fn expect_ruled_out(p: &mut Peer, verdict: Verdict) {
    let id = p.connect(auto(b"hello"));
    assert_eq!(p.expect("S 0").options.fast_open, None);
    assert_eq!(p.stack.outcome(id), Some(Outcome::Skipped(Skipped::Verdict(verdict))));
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:6 ack 1");
    p.stack.abort(p.now, id);
    p.expect("RA 6 ack 1");
}

/// The data is refused without a cookie: `Verdict::NotAcknowledged`.
fn refused(p: &mut Peer) {
    let id = ask(p);
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:28 ack 1");
    p.stack.abort(p.now, id);
    p.expect("RA 28 ack 1");
}

fn accepted(p: &mut Peer) {
    let id = ask(p);
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.stack.abort(p.now, id);
    p.expect("RA 28 ack 1");
}

#[test]
fn not_acknowledged_and_no_cookie() {
    let mut p = client(Config::default());
    refused(&mut p);
    assert_eq!(verdict(&p), Some(Verdict::NotAcknowledged));
    expect_ruled_out(&mut p, Verdict::NotAcknowledged);
    assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("SynDataRejectedBytes", 27)], "paid once");
}

#[test]
fn dropped_on_the_way() {
    let mut p = client(Config::default());
    ask(&mut p);
    p.expect_after(100, "S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:28 ack 1");
    assert_eq!(verdict(&p), Some(Verdict::Dropped));
    expect_ruled_out(&mut p, Verdict::Dropped);
}

/// The Fast Open SYN is lost, the plain one arrives.
fn lost(p: &mut Peer) {
    let id = ask(p);
    p.expect_after(100, "S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:28 ack 1");
    assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::Lost)));
    p.stack.abort(p.now, id);
    p.expect("RA 28 ack 1");
}

/// Where SYN data has passed before, packets are lost now and then: only the second in a row is held against the path.
#[test]
fn a_path_that_worked_gets_a_second_try() {
    let mut p = client(Config::default());
    accepted(&mut p);
    for _ in 0..3 {
        lost(&mut p);
        assert_eq!(verdict(&p), None, "an accident");
        accepted(&mut p);
    }
    assert_eq!(p.stack.path_cache().verdicts().count(), 0, "success forgets the doubt");
    lost(&mut p);
    p.skip(3_600_000);
    // The round trip is forgotten by now, and with it the early fallback.
    ask(&mut p);
    p.expect_after(1000, "S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:28 ack 1");
    assert_eq!(verdict(&p), Some(Verdict::Dropped));
    let entry = *p.stack.path_cache().verdicts().next().unwrap().1;
    assert_eq!((entry.count, entry.until), (1, p.now + 300 * SECOND));
    expect_ruled_out(&mut p, Verdict::Dropped);
    // The trial after it has no second try.
    p.skip(300_000);
    lost(&mut p);
    assert_eq!(p.stack.path_cache().verdicts().next().unwrap().1.count, 2);
}

/// The doubt is the listener's, like the verdict; that SYN data passes is the path's.
#[test]
fn each_port_has_its_own_second_try() {
    let mut p = client(Config::default());
    accepted(&mut p);
    p.remote.set_port(40_001);
    lost(&mut p);
    assert_eq!(verdict(&p), None);
    p.remote.set_port(40_000);
    accepted(&mut p);
    lost(&mut p);
    assert_eq!(verdict(&p), None);
    p.remote.set_port(40_001);
    lost(&mut p);
    assert_eq!(verdict(&p), Some(Verdict::Dropped));
    p.remote.set_port(40_000);
    assert_eq!(verdict(&p), None);
    // A FIN on the SYN is another matter: what drops it does so always.
    let options = ConnectOptions { fin: true, syn_fin: true, ..auto(b"hello") };
    p.connect(options);
    p.expect("SF 0:5");
    p.expect_after(100, "S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("FPA 1:6 ack 1");
    assert!(p.stack.path_cache().syn_fin_verdict_active(p.now, &verdict_key(&p)));
}

#[test]
fn a_request_that_brings_no_cookie_is_stripped() {
    let mut p = Peer::ours();
    let id = p.connect(auto(b"hello"));
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO>");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:6 ack 1");
    assert_eq!(verdict(&p), Some(Verdict::Stripped));
    p.stack.abort(p.now, id);
    p.expect("RA 6 ack 1");
    expect_ruled_out(&mut p, Verdict::Stripped);
    // When it has run out the old format is tried, and then the new one for ever.
    for format in ["FOEXP", "FO", "FO"] {
        let until = p.stack.path_cache().verdicts().next().unwrap().1.until;
        p.skip(until.since(p.now).as_millis() as u64);
        let id = p.connect(auto(b"hello"));
        p.expect(&format!("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,{format}>"));
        p.send("SA 0 ack 1 <mss 1460>");
        p.expect("PA 1:6 ack 1");
        p.stack.abort(p.now, id);
        p.expect("RA 6 ack 1");
    }
}

/// Linux asks on every connect: kind 34, once 254, then 34 again.
#[test]
fn linux_keeps_no_verdicts() {
    let mut p = Peer::new(linux());
    for format in ["FO", "FOEXP", "FO", "FO"] {
        let id = p.connect(auto(b"hello"));
        p.expect(&format!("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,{format}>"));
        p.send("SA 0 ack 1 <mss 1460>");
        p.expect("PA 1:6 ack 1");
        assert_eq!(p.stack.outcome(id), Some(Outcome::CookieRequested { granted: false }));
        p.stack.abort(p.now, id);
        p.expect("RA 6 ack 1");
    }
    let mut p = client(linux());
    for _ in 0..3 {
        refused(&mut p);
    }
    assert_eq!(counters(&p.stack), [("ActiveFail", 3), ("SynDataRejectedBytes", 81)], "every time");
    assert_eq!(p.stack.path_cache().verdicts().count(), 0);
}

#[test]
fn a_reset_of_the_fast_open_syn_only() {
    let mut p = client(Config::default());
    ask(&mut p);
    p.send("RA 0 ack 28");
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:28 ack 1");
    assert_eq!(verdict(&p), Some(Verdict::Reset));
    expect_ruled_out(&mut p, Verdict::Reset);
    let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
    assert_eq!(path.syn_drops, 0, "nothing was dropped");
}

/// Accepted, and then nothing more is acknowledged: three time-outs without progress.
#[test]
fn stalled_after_the_handshake() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.skip(40);
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    p.write(id, &pattern(28, 100));
    p.expect("PA 28:128 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_after_exactly(rto, "PA 28:128 ack 1");
    p.expect_after_exactly(2 * rto, "PA 28:128 ack 1");
    assert_eq!(verdict(&p), None);
    p.expect_after_exactly(4 * rto, "PA 28:128 ack 1");
    assert_eq!(verdict(&p), Some(Verdict::Stalled));
    // Another handshake that works disproves nothing; data that is acknowledged does.
    let options = ConnectOptions {
        fast_open: FastOpen::Force,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    };
    let id = p.connect(options);
    p.expect("S 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    assert_eq!(verdict(&p), Some(Verdict::Stalled));
    p.write(id, &pattern(28, 100));
    p.expect("PA 28:128 ack 1");
    p.send("A 1 ack 128");
    assert_eq!(verdict(&p), None);
}

#[test]
fn time_outs_of_a_connection_without_fast_open_are_no_evidence() {
    let mut p = client(Config::default());
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1 ack 1");
    p.write(id, b"hello");
    p.skip(30_000);
    assert!(p.stack.counters().timeouts > 3);
    assert_eq!(p.stack.path_cache().verdicts().count(), 0);
    assert_eq!(counters(&p.stack), []);
}

/// Nobody answers the plain SYN either: the host is down, which says nothing about Fast Open.
#[test]
fn a_dead_peer_is_no_evidence() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.skip(200_000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
    assert_eq!(verdict(&p), None);
}

#[test]
fn the_key_is_network_peer_and_port() {
    let mut p = client(Config::default());
    refused(&mut p);
    // Another port of the same peer: the cookie is per address, the verdict is not.
    p.remote.set_port(40_001);
    assert_eq!(verdict(&p), None);
    ask(&mut p);
    p.remote.set_port(40_000);
    // Another address of ours in the same network: no cookie of its own, and the verdict holds.
    p.stack.add_address("10.0.0.3".parse().unwrap(), 24);
    p.local = "10.0.0.3:0".parse().unwrap();
    let from = |local| ConnectOptions { local: Some(local), ..auto(b"hello") };
    let id = p.connect(from(p.local));
    assert_eq!(p.stack.outcome(id), Some(Outcome::Skipped(Skipped::Verdict(Verdict::NotAcknowledged))));
    p.expect("S 0");
    // Another network: everything is open again.
    p.stack.add_address("192.168.7.1".parse().unwrap(), 16);
    let id = p.connect(from("192.168.7.1:0".parse().unwrap()));
    assert_eq!(p.stack.outcome(id), Some(Outcome::Pending));
    p.expect("S 0");
    // Another family too.
    let mut p = p.v6();
    let id = p.connect(auto(b"hello"));
    assert_eq!(p.stack.outcome(id), Some(Outcome::Pending));
    assert!(p.expect("S 0").options.fast_open.is_some());
}

#[test]
fn force_ignores_verdicts() {
    let mut p = client(Config::default());
    refused(&mut p);
    p.connect(ConnectOptions { fast_open: FastOpen::Force, ..auto(b"hello") });
    p.expect("S 0:5");
}

/// 5 minutes, then one trial; if it fails 10, 20, …
#[test]
fn verdicts_back_off_and_success_clears_them() {
    let mut p = client(Config::default());
    for minutes in [5, 10, 20] {
        refused(&mut p);
        let given = p.now;
        p.skip(60_000 * minutes - 1);
        expect_ruled_out(&mut p, Verdict::NotAcknowledged);
        p.skip(1);
        assert_eq!(p.now.since(given), 60 * minutes as u32 * SECOND);
    }
    // This is the trial; others wait for its outcome.
    let trial = ask(&mut p);
    let other = p.connect(auto(b"hello"));
    assert_eq!(p.stack.outcome(other), Some(Outcome::Skipped(Skipped::Verdict(Verdict::NotAcknowledged))));
    p.stack.abort(p.now, other);
    p.expect_nothing();
    p.local = p.stack.info(trial).unwrap().local;
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    assert_eq!(p.stack.path_cache().verdicts().count(), 0, "success forgets all of it");
    p.stack.abort(p.now, trial);
    p.expect("RA 28 ack 1");
    accepted(&mut p);
    refused(&mut p);
    assert_eq!(verdict(&p), None, "SYN data has passed before: a full queue is as likely");
    refused(&mut p);
    let entry = *p.stack.path_cache().verdicts().next().unwrap().1;
    assert_eq!((entry.count, entry.until), (1, p.now + 300 * SECOND));
}

#[test]
fn an_old_failure_weighs_less() {
    let mut p = client(Config::default());
    refused(&mut p);
    p.skip(300_000);
    refused(&mut p);
    // 10 minutes, and twice as long without a word: the count is gone.
    p.skip(600_000 + 2 * 600_000);
    refused(&mut p);
    assert_eq!(p.stack.path_cache().verdicts().next().unwrap().1.count, 1);
}

#[test]
fn a_fin_on_the_syn_has_its_own_verdict() {
    let with_fin = || ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        fin: true,
        syn_fin: true,
        ..ConnectOptions::default()
    };
    let ruled_out = |p: &Peer| p.stack.path_cache().syn_fin_verdict_active(p.now, &verdict_key(p));
    // Dropped, as a Linux listener does.
    let mut p = client(Config::default());
    p.connect(with_fin());
    p.expect("SF 0:27");
    p.expect_after(100, "S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("FPA 1:28 ack 1");
    assert_eq!((ruled_out(&p), verdict(&p)), (true, None));
    p.skip(10);
    p.connect(with_fin());
    p.expect("S 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("FA 28 ack 1");
    assert_eq!(verdict(&p), None);
    // Reset: first the FIN is suspected.
    let mut p = client(Config::default());
    p.connect(with_fin());
    p.expect("SF 0:27");
    p.send("RA 0 ack 29");
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("FPA 1:28 ack 1");
    assert_eq!((ruled_out(&p), verdict(&p)), (true, None));
    // The data is taken, the FIN is not.
    let mut p = client(Config::default());
    let id = p.connect(with_fin());
    p.expect("SF 0:27");
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("FA 28 ack 1");
    assert_eq!(p.stack.outcome(id), Some(Outcome::Accepted));
    assert_eq!((ruled_out(&p), verdict(&p)), (true, None));
    // Both are taken: all is well.
    let mut p = client(Config::default());
    let (now, key) = (p.now, verdict_key(&p));
    p.stack.path_cache_mut().record_verdict(now, key, Verdict::SynFin);
    p.skip(300_000);
    let id = p.connect(with_fin());
    p.expect("SF 0:27");
    p.send("SA 0 ack 29 <mss 1460>");
    p.expect("A 29 ack 1");
    assert_eq!(p.state(id), State::FinWait2);
    assert_eq!(p.stack.path_cache().verdicts().count(), 0);
}

/// Linux's `fo_syn_drops`: how often in a row, and when last.
#[test]
fn dropped_syns_are_counted_until_one_arrives() {
    let mut p = client(linux());
    for drops in [1, 2] {
        let id = ask(&mut p);
        p.expect_after(1000, "S 0");
        p.send("SA 0 ack 1 <mss 1460>");
        p.expect("PA 1:28 ack 1");
        let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
        assert_eq!((path.syn_drops, path.last_syn_drop), (drops, Some(p.now)));
        p.stack.abort(p.now, id);
        p.expect("RA 28 ack 1");
    }
    accepted(&mut p);
    let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
    assert_eq!(path.syn_drops, 0);
}
