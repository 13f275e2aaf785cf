//! Settings that no mechanism's own tests show: those that hold for all connections what a socket may also ask for itself, and thresholds.

use crate::peer::{Peer, pattern};
use crate::sack::established_with;
use core::time::Duration;
use proto::{Config, ConnectOptions, ListenOptions, SocketOptions};

/// Five segments beyond a hole mean a loss; four are waited for, a quarter of the least round trip.
#[test]
fn tcp_reordering_is_what_means_a_loss() {
    for (end, wait) in [(5001, 25), (6001, 0)] {
        let (mut p, id) = established_with(Config { tcp_reordering: 5, ..Config::default() });
        p.write(id, &pattern(1, 10_000));
        assert_eq!(p.sent_now().len(), 10);
        p.now = p.now + Duration::from_millis(100);
        p.send(&format!("A 1 ack 1 <sack 1001:{end}>"));
        p.expect_after(wait, "A 1:1001 ack 1");
    }
}

/// Whatever the socket says; six time-outs do not double.
#[test]
fn tcp_thin_linear_timeouts_holds_for_all() {
    let config = Config { tcp_thin_linear_timeouts: true, tcp_early_retrans: 0, ..Config::default() };
    let (mut p, id) = established_with(config);
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [300, 300, 300, 300, 300, 300, 300, 600] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
}

/// Of a socket that only switches it on.
#[test]
fn keepalive_asks_as_the_settings_say() {
    let mut p = Peer::new(Config {
        tcp_keepalive_time: Duration::from_secs(10),
        tcp_keepalive_intvl: Duration::from_secs(3),
        tcp_keepalive_probes: 2,
        ..Config::default()
    });
    let socket = SocketOptions { keepalive: true, ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.establish(listener);
    p.expect_after(10_000, "A 0 ack 1");
    p.expect_after(3000, "A 0 ack 1");
    p.expect_after(3000, "RA 1 ack 1");
}

/// RFC 7323 §7.1's offset is of `tcp_timestamps` 1 alone; with 2 all connections tell the same clock, SYN cookies' but for their low bits.
#[test]
fn tcp_timestamps_may_tell_the_plain_clock() {
    for (tcp_timestamps, tcp_syncookies, plain) in [(1, 0, false), (2, 0, true), (3, 2, true)] {
        let config = Config { tcp_timestamps, tcp_syncookies, ..Config::default() };
        let mut p = Peer::new(config.clone());
        p.now = p.now + Duration::from_millis(12_345);
        p.connect(ConnectOptions::default());
        let syn = p.expect("S 0").options.timestamps.unwrap();
        let mut p = Peer::new(config);
        p.listen();
        p.now = p.now + Duration::from_millis(12_345);
        p.send("S 0 <mss 1460,TS 100 0>");
        let syn_ack = p.expect("SA 0 ack 1").options.timestamps.unwrap();
        let clock = p.now.as_millis() as u32;
        assert_eq!(syn.tsval == clock, plain);
        assert_eq!(clock.wrapping_sub(syn_ack.tsval) < 64, plain);
    }
}
