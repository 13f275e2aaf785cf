//! Bursts that the device cuts: how large (`tcp_tso_autosize`), and when they wait (`tcp_tso_should_defer`).

use crate::pair::ethernet;
use crate::peer::*;
use proto::*;

/// Segments of 1000 bytes, and so much round trip.
fn established(config: Config, rtt_ms: u64) -> (Peer, ConnId) {
    let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
    established_by(Peer::with(config, device), rtt_ms)
}

fn established_by(mut p: Peer, rtt_ms: u64) -> (Peer, ConnId) {
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.skip(rtt_ms);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    (p, id)
}

fn bursts(p: &mut Peer) -> Vec<usize> {
    std::iter::from_fn(|| p.stack.poll_transmit(p.now)).map(|packet| packet.payload_len()).collect()
}

fn set(name: &str, value: &str) -> Config {
    let mut config = Config::default();
    config.set(&format!("net.ipv4.tcp_{name}"), value).unwrap();
    config
}

/// Ten segments in 100 ms, twice that in slow start, are 200 bytes in 2⁻¹⁰ s: far below the least burst.
#[test]
fn a_slow_path_gets_small_bursts() {
    let sizes = |config: Config, rtt_ms: u64| {
        let (mut p, id) = established(config, rtt_ms);
        p.write(id, &pattern(1, 10_000));
        bursts(&mut p)
    };
    assert_eq!(sizes(Config::default(), 100), [2000; 5]);
    assert_eq!(sizes(set("min_tso_segs", "4"), 100), [4000, 4000, 2000]);
    assert_eq!(sizes(set("pacing_ss_ratio", "1000"), 20), [4000, 4000, 2000], "5 MB/s in 2⁻¹⁰ s: 4882 bytes");
    // No longer in slow start, as far as anybody knows: 120 % are too few, 1000 % as above.
    let known = |config: Config| config.initial_ssthresh(10);
    assert_eq!(sizes(known(set("pacing_ss_ratio", "1000")), 20), [2000; 5]);
    assert_eq!(sizes(known(set("pacing_ca_ratio", "1000")), 20), [4000, 4000, 2000]);
    // Four halvings of 64 KiB by 2 ms: 8 segments at least; and 20000 bytes in 2 ms are 9765 in 2⁻¹⁰ s.
    assert_eq!(sizes(Config::default(), 2), [10_000]);
    // 2^20 µs have not passed: a near peer.
    assert_eq!(sizes(set("tso_rtt_log", "20"), 100), [10_000]);
}

/// An ACK lets two segments go, and the next ACK is due: both leave as one burst.
#[test]
fn a_small_burst_waits_for_the_ack_that_is_due() {
    let (mut p, id) = established(Config::default(), 1);
    p.write(id, &pattern(1, 30_000));
    assert_eq!(bursts(&mut p), [10_000]);
    p.skip(1);
    p.send("A 1 ack 1001");
    assert_eq!(bursts(&mut p), [0; 0], "2000 of a window of 11000");
    p.send("A 1 ack 3001");
    assert_eq!(bursts(&mut p), [6000], "6000 of 13000");
    // A millisecond later nobody waits.
    p.skip(2);
    p.send("A 1 ack 4001");
    assert_eq!(bursts(&mut p), [2000]);
}

/// A lone segment that waits for its burst fills the window as if it had left: Linux's `is_cwnd_limited`. At a window of
/// ten segments nine are in flight and the tenth waits, at each ACK.
#[test]
fn a_window_grows_whose_last_segment_waits_for_its_burst() {
    let mut config = set("congestion_control", "reno");
    config.set("firstbyte.initial_ssthresh", "7").unwrap();
    config.set("firstbyte.burst_rules", "kernel").unwrap();
    let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
    let mut p = Peer::with(config, device);
    assert!(p.stack.set_route(p.now, "10.0.0.1/32".parse().unwrap(), "initcwnd 7".parse().unwrap()));
    let (mut p, id) = established_by(p, 20);
    p.write(id, &pattern(1, 60_000));
    assert_eq!(bursts(&mut p), [2000, 2000, 2000, 1000]);
    for ack in (2001..=34_001).step_by(2000) {
        p.skip(5);
        p.send(&format!("A 1 ack {ack}"));
        bursts(&mut p);
    }
    assert_eq!(p.stack.info(id).unwrap().cwnd, 11_000, "one segment per round trip");
}

/// Bursts are of two segments here, and the peer acknowledges pairs: an odd segment is acknowledged with the next round trip's first. What
/// the window grows by leaves at once; where the least bursts wait it would wait for as long.
#[test]
fn on_a_slow_path_what_the_window_grows_by_leaves_at_once() {
    let flights = |rules: &str| {
        let mut config = set("congestion_control", "reno");
        config.set("firstbyte.initial_ssthresh", "7").unwrap();
        config.set("firstbyte.burst_rules", rules).unwrap();
        let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
        let mut p = Peer::with(config, device);
        assert!(p.stack.set_route(p.now, "10.0.0.1/32".parse().unwrap(), "initcwnd 7".parse().unwrap()));
        let (mut p, id) = established_by(p, 20);
        p.write(id, &pattern(1, 60_000));
        let mut sent: usize = bursts(&mut p).iter().sum();
        let mut acked = 0;
        let mut flight_after_round = || {
            p.skip(20);
            let arrived = sent;
            while acked + 2000 <= arrived {
                acked += 2000;
                p.send(&format!("A 1 ack {}", acked + 1));
                sent += bursts(&mut p).iter().sum::<usize>();
            }
            (sent - acked) / 1000
        };
        [(); 5].map(|()| flight_after_round())
    };
    assert_eq!(flights("careful"), [7, 8, 9, 10, 11]);
    assert_eq!(flights("kernel"), [7, 7, 9, 9, 11]);
}

#[test]
fn without_a_divisor_more_than_three_segments_are_worth_a_burst() {
    let (mut p, id) = established(set("tso_win_divisor", "0"), 1);
    p.write(id, &pattern(1, 30_000));
    assert_eq!(bursts(&mut p), [10_000]);
    p.skip(1);
    p.send("A 1 ack 1001");
    assert_eq!(bursts(&mut p), [0; 0]);
    p.send("A 1 ack 2001");
    assert_eq!(bursts(&mut p), [4000]);
}

/// What nothing can join does not wait for company.
#[test]
fn the_end_of_the_stream_does_not_wait() {
    let (mut p, id) = established(Config::default(), 1);
    p.write(id, &pattern(1, 11_500));
    p.stack.shutdown(p.now, id).unwrap();
    assert_eq!(bursts(&mut p), [10_000]);
    p.skip(1);
    p.send("A 1 ack 1001");
    assert_eq!(bursts(&mut p), [1500]);
}

/// Linux's `tcp_cwnd_test`, and the PSH of its `__tcp_transmit_skb`: two bursts are in flight, and the end of each is pushed.
#[test]
fn half_of_the_window_makes_a_burst_and_bursts_are_pushed() {
    let habits = set("min_tso_segs", "10").burst_rules(BurstRules::Kernel);
    let (mut p, id) = established(habits.clone(), 100);
    p.write(id, &pattern(1, 26_000));
    assert_eq!(bursts(&mut p), [5000, 5000]);
    let (mut p, id) = established(habits, 100);
    p.write(id, &pattern(1, 26_000));
    for first in [1, 5001] {
        for seq in (first..first + 4000).step_by(1000) {
            p.expect(&format!("A {seq}:{} ack 1", seq + 1000));
        }
        p.expect(&format!("PA {}:{} ack 1", first + 4000, first + 5000));
    }
    p.expect_nothing();
}

/// Bursts of two are lost whole, and half of another. What was not sent together is retransmitted together if the burst rules let it
/// (unlike Linux's `tcp_xmit_retransmit_queue`).
#[test]
fn a_lost_burst_is_retransmitted_as_a_burst() {
    for (burst_rules, expected) in [(BurstRules::Kernel, [1000, 2000]), (BurstRules::Careful, [2000, 1000])] {
        let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
        let mut p = Peer::with(Config::default().burst_rules(burst_rules), device);
        let listener = p.listen();
        p.send("S 0 win 65535 <mss 1000,sackOK>");
        p.expect("SA 0 ack 1");
        p.skip(100);
        p.send("A 1 ack 1 win 65535");
        let id = p.accept(listener);
        p.write(id, &pattern(1, 10_000));
        assert_eq!(bursts(&mut p), [2000; 5]);
        p.skip(100);
        p.send("A 1 ack 1001 <sack 4001:10001>");
        assert_eq!(bursts(&mut p), expected, "of 1001:4001");
    }
}

/// The peer has taken back a part of its window: of a lost burst that it ends in, what it still takes goes.
#[test]
fn a_burst_is_retransmitted_as_far_as_the_window_goes() {
    for config in both_profiles() {
        let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
        let mut p = Peer::with(config, device);
        let listener = p.listen();
        p.send("S 0 win 65535 <mss 1000,sackOK>");
        p.expect("SA 0 ack 1");
        p.skip(100);
        p.send("A 1 ack 1 win 65535");
        let id = p.accept(listener);
        p.write(id, &pattern(1, 10_000));
        assert_eq!(bursts(&mut p).iter().sum::<usize>(), 10_000);
        p.skip(100);
        p.send("A 1 ack 1001 win 3000 <sack 2001:3001 7001:10001>");
        assert_eq!(bursts(&mut p), [1000, 1000], "1001:2001, and of 3001:7001 what lies before 4001");
    }
}
