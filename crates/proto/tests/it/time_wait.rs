//! TIME-WAIT cut short by a connect (L-ST-7): when, and what keeps the old connection's segments out of the new one.

use crate::peer::*;
use proto::*;

/// A client with a single port, whose connection from there has just entered TIME-WAIT.
fn client(config: Config, options: &str) -> Peer {
    let mut p = Peer::new(config.port_low(50_000).port_high(50_000));
    p.remote.set_port(80);
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send(&format!("SA 0 ack 1 <mss 1000{}>", if options.is_empty() { "" } else { ",TS 100 0" }));
    p.expect("A 1 ack 1");
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send(&format!("FA 1 ack 2 <{options}>"));
    p.expect("A 2 ack 2");
    assert_eq!(p.sizes(), (0, 0, 1));
    p
}

fn connect(p: &mut Peer) -> Result<ConnId, ConnectError> {
    p.stack.connect(p.now, p.remote, ConnectOptions::default())
}

/// The table rounds ends up to 2.1 ms.
#[test]
fn after_a_second_a_connect_may_take_its_tuple() {
    let mut p = client(Config::default(), "TS 110 0");
    p.expect_nothing_for(1000);
    assert_eq!(connect(&mut p), Err(ConnectError::NoPorts));
    p.expect_nothing_for(3);
    let old_end = p.isn(80) + 2;
    connect(&mut p).unwrap();
    let syn = p.expect_syn();
    assert!(syn.since(old_end) >= 65_536 && syn.since(old_end) < 1 << 31, "the numbers go on");
    assert_eq!((p.sizes(), p.stack.counters().time_wait_recycled), ((1, 0, 0), 1));
}

#[test]
fn who_names_the_port_gets_it_too() {
    let mut p = client(Config::default(), "TS 110 0");
    let local = Some(p.local);
    let open =
        |p: &mut Peer| p.stack.connect(p.now, p.remote, ConnectOptions { local, ..Default::default() });
    assert_eq!(open(&mut p), Err(ConnectError::AddrInUse));
    p.expect_nothing_for(1003);
    assert!(open(&mut p).is_ok());
}

/// In Linux's profile at once, and whatever `tcp_tw_reuse` says; without timestamps not.
#[test]
fn who_names_the_port_may_get_it_at_once() {
    for (options, gets_it) in [("TS 110 0", true), ("", false)] {
        let mut p = client(Config::linux().tcp_tw_reuse(0), options);
        let named = ConnectOptions { local: Some(p.local), ..Default::default() };
        assert_eq!(connect(&mut p), Err(ConnectError::NoPorts));
        let old_end = p.isn(80) + 2;
        match p.stack.connect(p.now, p.remote, named) {
            Ok(_) => assert!(gets_it && p.expect_syn().since(old_end) >= 65_536),
            Err(error) => assert!(!gets_it && error == ConnectError::AddrInUse),
        }
    }
}

#[test]
fn without_timestamps_it_lasts_its_minute() {
    let mut p = client(Config::default(), "");
    p.expect_nothing_for(59_900);
    assert_eq!(connect(&mut p), Err(ConnectError::NoPorts));
    p.expect_nothing_for(110);
    assert!(connect(&mut p).is_ok());
}

#[test]
fn tcp_tw_reuse_delay_counts_milliseconds() {
    let mut p = client(Config::default().tcp_tw_reuse_delay(5000), "TS 110 0");
    p.expect_nothing_for(4900);
    assert_eq!(connect(&mut p), Err(ConnectError::NoPorts));
    p.expect_nothing_for(110);
    assert!(connect(&mut p).is_ok());
}

/// Linux's default is 2: loopback only.
#[test]
fn the_setting_may_forbid_it() {
    for (tcp_tw_reuse, allowed) in [(0, false), (1, true), (2, false)] {
        for config in both_profiles() {
            let mut p = client(config.tcp_tw_reuse(tcp_tw_reuse), "TS 110 0");
            p.expect_nothing_for(50_000);
            assert_eq!(connect(&mut p).is_ok(), allowed);
            assert_eq!(p.stack.counters().time_wait_recycled, u64::from(allowed));
        }
    }
}

/// A free port is always preferred.
#[test]
fn a_time_wait_is_the_last_resort() {
    let mut p = client(Config::default(), "TS 110 0");
    p.expect_nothing_for(2000);
    p.stack.set(p.now, "firstbyte.ip_local_port_high", "50001").unwrap();
    let first = connect(&mut p).unwrap();
    assert_eq!((p.stack.info(first).unwrap().local.port(), p.sizes()), (50_001, (1, 0, 1)));
    let second = connect(&mut p).unwrap();
    assert_eq!((p.stack.info(second).unwrap().local.port(), p.sizes()), (50_000, (2, 0, 0)));
    assert_eq!(connect(&mut p), Err(ConnectError::NoPorts));
}
