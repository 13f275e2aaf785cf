//! The path's MTU found by sending (RFC 4821): probes, their loss, and paths that drop large packets without a word.

use crate::icmp::error_about;
use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use core::time::Duration;
use proto::*;
use wire::IcmpError;

fn config() -> Config {
    Config::default()
        .tcp_mtu_probing(2)
        .tcp_base_mss(1000)
        .tcp_slow_start_after_idle(false)
        .tcp_congestion_control(CongestionControl::Reno)
}

/// Segments of 1000 bytes get through, of which twenty may be in flight; none is, and 10 000 bytes are acknowledged. RTT 100 ms.
fn searching(config: Config, syn: &str) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send(syn);
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 10_000));
    assert_eq!(p.sent_now().len(), 10);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 10001");
    assert_eq!(cwnd_and_mss(&p, id), (20_000, 1000));
    (p, id)
}

fn cwnd_and_mss(p: &Peer, id: ConnId) -> (u32, u16) {
    let info = p.stack.info(id).unwrap();
    (info.cwnd, info.snd_mss)
}

fn judged(p: &Peer) -> (u64, u64) {
    (p.stack.counters().mtup_success, p.stack.counters().mtup_fail)
}

/// Between 1040, which get through, and 1500, which the peer takes, lie 1270: 1230 of payload. The window of twenty segments, less one for
/// what the probe had beyond others, is one of fifteen.
#[test]
fn an_acknowledged_probe_makes_segments_larger() {
    let (mut p, id) = searching(config(), "S 0 win 65535 <mss 1460,sackOK>");
    p.write(id, &pattern(10_001, 7000));
    p.expect("A 10001:11231 ack 1");
    for from in [11_231, 12_231, 13_231, 14_231, 15_231] {
        p.expect(&format!("A {from}:{} ack 1", from + 1000));
    }
    p.expect("PA 16231:17001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 17001");
    assert_eq!((cwnd_and_mss(&p, id), judged(&p)), ((18_450, 1230), (1, 0)));
    p.write(id, &pattern(17_001, 8000));
    p.expect("A 17001:18346 ack 1");
    p.expect("A 18346:19576 ack 1");
}

/// Less than the probe and the four segments whose duplicates would show its loss, and nothing is risked.
#[test]
fn a_probe_needs_company() {
    let (mut p, id) = searching(config(), "S 0 win 65535 <mss 1460,sackOK>");
    p.write(id, &pattern(10_001, 5229));
    p.expect("A 10001:11001 ack 1");
    p.expect_range(11001..15230);
    p.send("A 1 ack 15230");
    p.write(id, &pattern(15_230, 5230));
    p.expect("A 15230:16460 ack 1");
}

#[test]
fn the_loss_of_a_probe_is_no_congestion_without_sack_either() {
    let (mut p, id) = searching(config(), "S 0 win 65535 <mss 1460>");
    p.write(id, &pattern(10_001, 7000));
    p.expect("A 10001:11231 ack 1");
    assert_eq!(p.sent_now().len(), 6);
    p.now = p.now + Duration::from_millis(100);
    for _ in 0..2 {
        p.send("A 1 ack 10001");
        p.expect_nothing();
    }
    p.send("A 1 ack 10001");
    p.expect("A 10001:11001 ack 1");
    p.expect("A 11001:11231 ack 1");
    p.expect_nothing();
    p.send("A 1 ack 17001");
    assert_eq!((cwnd_and_mss(&p, id), judged(&p)), ((20_000, 1000), (0, 1)));
    assert_eq!(p.stack.counters().reno_recovery, 0);
    // Until more than what had been sent is acknowledged the repetition may call forth duplicates. (1269 + 1040) / 2.
    p.write(id, &pattern(17_001, 1000));
    p.expect("PA 17001:18001 ack 1");
    p.send("A 1 ack 18001");
    p.write(id, &pattern(18_001, 7000));
    p.expect("A 18001:19115 ack 1");
}

/// A retransmission tells nothing of the path: it may have been congestion.
#[test]
fn a_timeout_tells_nothing_of_a_probe() {
    let (mut p, id) = searching(config(), "S 0 win 65535 <mss 1460>");
    p.write(id, &pattern(10_001, 7000));
    p.expect("A 10001:11231 ack 1");
    assert_eq!(p.sent_now().len(), 6);
    p.expect_after(250, "A 10001:11001 ack 1");
    p.send("A 1 ack 17001");
    assert_eq!((cwnd_and_mss(&p, id).1, judged(&p)), (1000, (0, 0)));
}

#[test]
fn a_path_that_says_no_to_a_probe_loses_it_alone() {
    let (mut p, id) = searching(config(), "S 0 win 65535 <mss 1460,sackOK>");
    p.write(id, &pattern(10_001, 7000));
    let probe = p.take_packet().unwrap();
    assert_eq!(probe.len(), 1270);
    assert_eq!(p.sent_now().len(), 6);
    error_about(&mut p, &probe, IcmpError::PacketTooBig { mtu: 1200 });
    p.expect("A 10001:11001 ack 1");
    p.expect("A 11001:11231 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 17001");
    assert_eq!(cwnd_and_mss(&p, id), (20_000, 1000));
    // (1200 + 1040) / 2.
    p.write(id, &pattern(17_001, 7000));
    p.expect("A 17001:18081 ack 1");
}

/// With `tcp_probe_threshold` 400 one failure ends the search; `tcp_probe_interval` later another begins.
#[test]
fn the_search_is_repeated_after_an_interval() {
    let config = config().tcp_probe_threshold(400);
    let (mut p, id) = searching(config, "S 0 win 65535 <mss 1460,sackOK>");
    p.write(id, &pattern(10_001, 7000));
    p.expect("A 10001:11231 ack 1");
    assert_eq!(p.sent_now().len(), 6);
    for end in [12_231, 13_231, 14_231] {
        p.send(&format!("A 1 ack 10001 <sack 11231:{end}>"));
    }
    assert_eq!((p.sent_now().len(), judged(&p)), (2, (0, 1)));
    p.send("A 1 ack 17001");
    p.write(id, &pattern(17_001, 8000));
    p.expect("A 17001:18001 ack 1");
    assert_eq!(p.sent_now().len(), 7);
    p.send("A 1 ack 25001");
    p.skip(600_000);
    p.write(id, &pattern(25_001, 8000));
    p.expect("A 25001:26001 ack 1");
    p.expect("A 26001:27231 ack 1");
}

/// A megabyte over a path of 40 ms that drops whatever has more than 1200 bytes of payload, and says nothing. Milliseconds until it is
/// there, and the size of segments then; `None`: it is not within two minutes.
fn through_a_black_hole(probing: u32, is_signed: bool) -> Option<(u64, u16)> {
    const BYTES: usize = 1_000_000;
    let config = Config::default().tcp_mtu_probing(probing);
    let mut pair = Pair::new(config, Config::default(), 20);
    pair.filter = Box::new(|sent| sent.len <= 1200);
    let socket = |peer: &str| {
        let mut md5_keys = Md5Keys::default();
        let (address, secret) = (peer.parse().unwrap(), b"a key"[..].into());
        if is_signed {
            md5_keys.insert(Md5Key { address, prefix_len: 32, of_domain: false, secret });
        }
        SocketOptions { md5_keys, ..SocketOptions::default() }
    };
    let options = ListenOptions { socket: socket("10.0.0.1"), ..ListenOptions::default() };
    let listener = pair.stacks[SERVER].listen(pair.now, pair.server, options).unwrap();
    let id = pair.connect(ConnectOptions { socket: socket("10.0.0.2"), ..ConnectOptions::default() });
    pair.run(500);
    let child = pair.accept(listener).unwrap();
    let data = pattern(1, BYTES);
    let begun = pair.now;
    let (mut written, mut heard) = (0, Vec::new());
    while heard.len() < BYTES && pair.ms_since(begun) < 120_000 {
        let now = pair.now;
        written += pair.stacks[CLIENT].write(now, id, &data[written..]).unwrap_or(0);
        pair.run(10);
        heard.extend(pair.read(SERVER, child).unwrap_or_default());
    }
    assert!(heard[..] == data[..heard.len()], "the bytes are not those sent");
    let mss = pair.stacks[CLIENT].info(id).unwrap().snd_mss;
    (heard.len() == BYTES).then(|| (pair.ms_since(begun), mss))
}

/// Our default finds the way, and nearly the largest segments that get through. Without probing the connection would hang.
#[test]
fn a_path_that_swallows_large_packets_is_found_out() {
    let (took, mss) =
        through_a_black_hole(Config::default().tcp_mtu_probing, false).expect("all of it arrives");
    assert!(took < 20_000, "{took} ms");
    assert!((1190..=1200).contains(&mss), "{mss}");
    assert_eq!(through_a_black_hole(0, false), None);
    let (took, mss) = through_a_black_hole(2, false).expect("all of it arrives");
    assert!(took < 2000, "{took} ms: no time-out");
    assert!((1190..=1200).contains(&mss), "{mss}");
}

/// A signature, which takes 20 bytes of every packet, is no obstacle: a probe is one packet all the same.
#[test]
fn probes_of_a_signed_connection_are_as_large_as_they_say() {
    let (took, mss) = through_a_black_hole(2, true).expect("all of it arrives");
    assert!(took < 2000, "{took} ms: no time-out");
    assert!((1190..=1200).contains(&mss), "{mss}");
}
