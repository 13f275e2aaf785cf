//! Copies of a SYN with data: made by the network, or retransmitted later (RFC 7413 §6.1).

use super::*;

/// A payment arrives in a SYN, is answered, and the client closes first: the server keeps nothing of the connection.
fn paid(config: Config) -> (Peer, ListenerId) {
    let mut p = server(config);
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
    pay(&mut p);
    p.expect("SA 0 ack 8");
    let id = p.accept(listener);
    assert_eq!(p.read(id), Ok(b"PAY 100".to_vec()));
    p.send("A 8 ack 1");
    p.send("FA 8 ack 1");
    p.close(id);
    p.expect("FA 1 ack 9");
    p.send("A 9 ack 2");
    assert_eq!(p.sizes(), (0, 0, 0), "the client closed first: no TIME-WAIT here");
    (p, listener)
}

fn pay(p: &mut Peer) {
    p.send_bytes(&format!("S 0 <mss 1000,FO {}>", cookie(p)), b"PAY 100");
}

#[test]
fn linux_delivers_a_replay_twice_and_the_guard_does_not() {
    let (mut p, listener) = paid(linux());
    pay(&mut p);
    p.expect("SA 0 ack 8");
    let id = p.accept(listener);
    assert_eq!(p.read(id), Ok(b"PAY 100".to_vec()), "delivered again");
    assert_eq!(p.stack.counters().tcp_fastopen_passive, 2);

    let (mut p, listener) = paid(Config::default());
    pay(&mut p);
    let cookie = cookie(&p);
    p.expect(&format!("SA 0 ack 1 <mss 1460,FO {cookie}>"));
    assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
    assert_eq!(counters(&p.stack), [("Passive", 1), ("ReplayGuardHits", 1)]);
    // Somebody who is there can still finish the handshake; he who forged the SYN cannot.
    p.send("R 1");
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn a_copy_before_the_final_ack_is_not_delivered_twice() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
        pay(&mut p);
        p.expect("SA 0 ack 8");
        pay(&mut p);
        p.expect("SA 0 ack 8 <mss 1460>");
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(b"PAY 100".to_vec()));
        assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
        assert_eq!(counters(&p.stack), [("Passive", 1)]);
    }
}

#[test]
fn a_copy_after_the_final_ack_is_challenged() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
        pay(&mut p);
        p.expect("SA 0 ack 8");
        p.send("A 8 ack 1");
        let id = p.accept(listener);
        pay(&mut p);
        p.expect("A 1 ack 8");
        assert_eq!(p.read(id), Ok(b"PAY 100".to_vec()));
    }
}

/// The server closed first: TIME-WAIT answers, nothing is delivered, in either profile.
#[test]
fn a_copy_in_time_wait_is_acknowledged_only() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
        pay(&mut p);
        p.expect("SA 0 ack 8");
        let id = p.accept(listener);
        p.read(id).unwrap();
        p.close(id);
        p.expect("FA 1 ack 8");
        p.send("FA 8 ack 2");
        p.expect("A 2 ack 9");
        pay(&mut p);
        p.expect("A 2 ack 9");
        assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
        assert_eq!(counters(&p.stack), [("Passive", 1)]);
    }
}

/// The SYN with data was slow, its client fell back to a plain SYN, and all of the exchange is over when it comes at last.
#[test]
fn a_syn_overtaken_by_its_own_fallback() {
    for (config, delivered_again) in [(Config::default(), false), (linux(), true)] {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
        p.send_bytes("FPA 1 ack 1", b"PAY 100");
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(b"PAY 100".to_vec()));
        p.close(id);
        p.expect("FA 1 ack 9");
        p.send("A 9 ack 2");
        assert_eq!(p.sizes(), (0, 0, 0));
        pay(&mut p);
        p.expect(if delivered_again { "SA 0 ack 8" } else { "SA 0 ack 1" });
        assert_eq!(p.stack.accept(p.now, listener).is_ok(), delivered_again);
        assert_eq!(p.stack.counters().replay_guard_hits, u64::from(!delivered_again));
    }
}

/// A SYN with data comes after its plain fallback where the server closed first and neither side uses timestamps: it is no sign of a new
/// connection.
#[test]
fn a_syn_overtaken_by_its_own_fallback_meets_time_wait() {
    for config in both_profiles() {
        let mut p = server(config.tcp_timestamps(0));
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
        p.send("S 0 <mss 1000,TS 20 0>");
        p.expect("SA 0 ack 1 <mss 1460>");
        p.send_bytes("PA 1 ack 1", b"PAY 100");
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(b"PAY 100".to_vec()));
        p.close(id);
        p.expect("FA 1 ack 8");
        p.send("FA 8 ack 2");
        p.expect("A 2 ack 9");
        p.send_bytes(&format!("S 0 <mss 1000,TS 10 0,FO {}>", cookie(&p)), b"PAY 100");
        p.expect("A 2 ack 9");
        assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
    }
}

/// Ordinary connections take at most half of the guard, so that they cannot close it to Fast Open.
#[test]
fn ordinary_connections_leave_the_guard_room() {
    let mut p = server(Config::default().replay_guard_entries(4));
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
    for port in 41_000..41_010 {
        p.remote.set_port(port);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
        p.send("A 1 ack 1");
        p.accept(listener);
        p.send("R 1");
    }
    for port in 42_000..42_003 {
        p.remote.set_port(port);
        pay(&mut p);
        let accepted = port < 42_002;
        let (text, hits) = if accepted { ("SA 0 ack 8", 0) } else { ("SA 0 ack 1", 1) };
        p.expect(text);
        assert_eq!(p.stack.counters().replay_guard_full, hits);
    }
}

/// A client's port is used again, with a number beyond the old ones: TIME-WAIT gives way, and the new request is taken at once.
#[test]
fn a_new_request_from_time_wait_is_fresh() {
    for config in both_profiles() {
        let mut p = server(config);
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
        pay(&mut p);
        p.expect("SA 0 ack 8");
        let id = p.accept(listener);
        p.read(id).unwrap();
        p.close(id);
        p.expect("FA 1 ack 8");
        p.send("FA 8 ack 2");
        p.expect("A 2 ack 9");
        p.send_bytes(&format!("S 100000 <mss 1000,FO {}>", cookie(&p)), b"PAY 200");
        p.expect("SA 0 ack 100008");
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(b"PAY 200".to_vec()));
        assert_eq!(p.sizes(), (1, 0, 0));
    }
}

/// An entry lives for one to two generations of 120 s.
#[test]
fn the_guard_remembers_for_at_least_two_minutes() {
    for (wait_secs, again) in [(119, false), (239, false), (600, true)] {
        let (mut p, listener) = paid(Config::default());
        p.skip(wait_secs * 1000);
        // Another SYN now and then, as a busy server has.
        pay(&mut p);
        p.expect(if again { "SA 0 ack 8" } else { "SA 0 ack 1" });
        assert_eq!(p.stack.accept(p.now, listener).is_ok(), again, "after {wait_secs} s");
    }
}

#[test]
fn another_sequence_number_port_or_address_is_another_request() {
    let (mut p, listener) = paid(Config::default());
    p.remote.set_port(40_001);
    pay(&mut p);
    p.expect("SA 0 ack 8");
    p.accept(listener);
    p.remote.set_port(40_000);
    p.remote.set_ip("10.0.0.9".parse().unwrap());
    pay(&mut p);
    p.expect("SA 0 ack 8");
    p.accept(listener);
    assert_eq!(counters(&p.stack), [("Passive", 3)]);
}

#[test]
fn a_full_guard_refuses_what_it_could_not_remember() {
    let (mut p, _) = paid(Config::default().replay_guard_entries(1));
    p.remote.set_port(40_001);
    pay(&mut p);
    let cookie = cookie(&p);
    p.expect(&format!("SA 0 ack 1 <mss 1460,FO {cookie}>"));
    assert_eq!(counters(&p.stack), [("Passive", 1), ("ReplayGuardFull", 1)]);
    p.skip(120_000);
    p.remote.set_port(40_002);
    pay(&mut p);
    p.expect("SA 0 ack 8");
}

/// Refused SYNs are not remembered: the client may come again with the right cookie.
#[test]
fn the_guard_sees_only_good_cookies() {
    let mut p = server(Config::default().replay_guard_entries(1));
    p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
    for port in 41_000..41_010 {
        p.remote.set_port(port);
        p.send("S 0:10 <mss 1000,FO 0102030405060708>");
        p.expect("SA 0 ack 1");
    }
    p.remote.set_port(40_000);
    pay(&mut p);
    p.expect("SA 0 ack 8");
}

/// Without cookies everybody may send data, so the guard matters all the more.
#[test]
fn the_guard_works_without_cookies() {
    let mut p = server(Config::default().tcp_fastopen(0x203));
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(8) });
    p.send("S 0:10 <mss 1000>");
    p.expect("SA 0 ack 11");
    let id = p.accept(listener);
    p.stack.abort(p.now, id);
    p.expect("RA 1 ack 11");
    p.send("S 0:10 <mss 1000>");
    p.expect("SA 0 ack 1 <mss 1460>");
    assert_eq!(p.stack.counters().replay_guard_hits, 1);
}
