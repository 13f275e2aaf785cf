//! Cookie keys that change by the clock (`firstbyte.fast_open_key_rotation`).

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn rotating() -> Peer {
    let mut p = Peer::new(Config::default().fast_open_key_rotation(HOUR));
    p.stack.set_fast_open_key(ring(KEY));
    p
}

/// A client that asks for a cookie, or shows one, with ten bytes: whether they are taken, and which cookie it is given.
fn visit(p: &mut Peer, port: u16, cookie: &str) -> (bool, Option<String>) {
    let before = p.stack.counters().tcp_fastopen_passive;
    p.remote.set_port(port);
    let space = if cookie.is_empty() { "" } else { " " };
    p.send(&format!("S 0:10 <mss 1460,FO{space}{cookie}>"));
    let packet = loop {
        match p.take_packet() {
            Some(packet) => break packet,
            // The SYN-ACK may be held for an answer.
            None => p.now = p.stack.poll_timeout().unwrap(),
        }
        p.stack.handle_timeout(p.now);
    };
    let given = wire::parse_tcp_packet(&packet).unwrap().1.options.fast_open;
    let given = given.and_then(|option| option.cookie).map(|cookie| cookie.to_string());
    let taken = p.stack.counters().tcp_fastopen_passive > before;
    p.send(if taken { "R 11" } else { "R 1" });
    (taken, given)
}

/// A cookie is good for an interval, then by the backup key and renewed, then not at all. Where no cookie is asked for, nothing happens.
#[test]
fn a_cookie_lives_one_interval_at_least_and_two_at_most() {
    let mut p = rotating();
    p.listen_with(qlen(16));
    let taken = |p: &Peer| p.stack.counters().tcp_fastopen_passive;
    let begun = p.now;
    let (_, first) = visit(&mut p, 40_001, "");
    let first = first.unwrap();
    assert_eq!(p.stack.fast_open_key().to_string(), KEY, "the key that was set is the first");
    // To the last moment of the interval.
    p.now = begun + HOUR - Duration::from_nanos(1);
    assert_eq!(visit(&mut p, 40_002, &first), (true, None));
    p.now = begun + HOUR;
    let (_, second) = visit(&mut p, 40_003, &first);
    assert_eq!((taken(&p), p.stack.counters().tcp_fastopen_passive_alt_key), (2, 1));
    let second = second.expect("a cookie of the new key");
    assert_ne!(first, second);
    assert_eq!(visit(&mut p, 40_004, &second).1, None);
    // The first is worth nothing after two intervals, the second still something.
    p.now = begun + 2 * HOUR;
    let third = visit(&mut p, 40_005, &first).1.expect("a cookie of the newest key");
    assert_eq!((taken(&p), p.stack.counters().tcp_fastopen_passive_fail), (3, 1));
    assert_eq!(visit(&mut p, 40_006, &second).1, Some(third.clone()));
    assert_eq!(p.stack.counters().key_rotations, 2);
    // Nobody came for days: all of before is gone.
    p.now = begun + 100 * HOUR;
    visit(&mut p, 40_007, &third);
    assert_eq!((taken(&p), p.stack.counters().key_rotations), (4, 4));
    assert_eq!(p.stack.counters().get("FastOpenKeyRotations"), Some(4));
}

/// Equal seeds give equal keys; different seeds, different ones.
#[test]
fn keys_follow_from_the_seed() {
    let after_an_hour = |seed: u8| {
        let mut p = rotating();
        p.stack = Stack::new(p.stack.config().clone(), crate::pair::ethernet(), [seed; 32]);
        p.stack.add_address("10.0.0.2".parse().unwrap(), 24);
        p.stack.set_fast_open_key(ring(KEY));
        p.listen_with(qlen(16));
        visit(&mut p, 40_001, "");
        p.now = p.now + HOUR;
        visit(&mut p, 40_002, "");
        p.stack.fast_open_key().to_string()
    };
    let keys = after_an_hour(1);
    assert!(keys.ends_with(&format!(",{KEY}")), "the old key is the backup");
    assert_eq!(after_an_hour(1), keys);
    assert_ne!(after_an_hour(2), keys);
}

/// A listener with keys of its own keeps them; without an interval all do, and one may be set on the way.
#[test]
fn listeners_with_keys_of_their_own_keep_them_and_off_is_off() {
    let mut p = rotating();
    p.listen_with(ListenOptions { key: Some(ring(OTHER_KEY)), ..qlen(16) });
    let (_, cookie) = visit(&mut p, 40_001, "");
    p.now = p.now + 5 * HOUR;
    assert_eq!(visit(&mut p, 40_002, &cookie.unwrap()), (true, None));

    let mut p = Peer::ours();
    p.stack.set_fast_open_key(ring(KEY));
    p.listen_with(qlen(16));
    let (_, cookie) = visit(&mut p, 40_001, "");
    let cookie = cookie.unwrap();
    p.now = p.now + 500 * HOUR;
    assert_eq!(visit(&mut p, 40_002, &cookie), (true, None));
    assert_eq!(p.stack.set(p.now, "firstbyte.fast_open_key_rotation", "60s"), Ok(None));
    assert_eq!(visit(&mut p, 40_003, &cookie), (true, None), "counted from the first SYN behind");
    p.now = p.now + Duration::from_secs(60);
    assert!(visit(&mut p, 40_004, &cookie).1.is_some());
    assert_eq!(p.stack.counters().key_rotations, 1);
}
