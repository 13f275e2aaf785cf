//! No answer to the Fast Open SYN: when the plain one follows, and what comes after it.

use super::*;
use wire::{Icmp, IcmpError, IpHeader};

/// A SYN with cookie and 27 bytes has left towards a peer at this SRTT.
fn asked(config: Config, srtt_ms: Option<u64>) -> (Peer, ConnId) {
    let mut p = client_knowing(Peer::new(config), Some(1460), srtt_ms);
    let options = ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    };
    let id = p.connect(options);
    p.expect("S 0:27");
    (p, id)
}

const PLAIN: &str = "S 0 <mss 1460,sackOK";

/// The repeated SYN: same number, no data, no Fast Open option.
fn expect_plain(p: &mut Peer, wait: Duration) {
    let sent = p.expect_after_exactly(wait, "S 0");
    assert_eq!(sent.options.fast_open, None);
}

#[test]
fn the_plain_syn_follows_after_100_ms_or_two_and_a_half_round_trips() {
    assert!(PLAIN.starts_with("S 0"));
    for (srtt, wait) in [
        (Some(1), 100),
        (Some(40), 100),
        (Some(41), 102),
        (Some(100), 250),
        (Some(170), 425),
        (Some(900), 1000),
        (None, 1000),
    ] {
        let (mut p, id) = asked(Config::default(), srtt);
        let wait =
            if srtt == Some(41) { Duration::from_micros(102_500) } else { Duration::from_millis(wait) };
        expect_plain(&mut p, wait);
        assert_eq!(p.stack.outcome(id), Some(Outcome::Pending));
    }
}

#[test]
fn a_cookie_request_falls_back_too() {
    let mut p = Peer::ours();
    let path = p.stack.path_cache_mut().entry(p.now, p.local.ip().into(), p.remote.ip().into());
    path.set_rtt(Some(Duration::from_millis(60)));
    p.connect(auto(b"hello"));
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO>");
    expect_plain(&mut p, Duration::from_millis(150));
}

/// After the fallback: the usual time-outs, four of a second and then doubling, as for a plain SYN.
#[test]
fn the_schedule_after_the_fallback_is_the_usual_one() {
    let (mut p, id) = asked(Config::default(), Some(40));
    for secs in [0, 1, 1, 1, 1, 1, 2, 4, 8, 16, 32] {
        let wait = if secs == 0 { Duration::from_millis(100) } else { Duration::from_secs(secs) };
        expect_plain(&mut p, wait);
    }
    p.expect_nothing_for(63_999);
    assert_eq!(p.stack.close_reason(id), None);
    p.expect_nothing_for(1);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

/// Linux waits its initial time-out, which counts as one.
#[test]
fn linux_waits_a_second_every_time() {
    let (mut p, id) = asked(linux(), Some(40));
    for secs in [1, 1, 1, 1, 1, 2, 4, 8, 16, 32] {
        expect_plain(&mut p, Duration::from_secs(secs));
    }
    p.expect_nothing_for(63_999);
    assert_eq!(p.stack.close_reason(id), None);
    p.expect_nothing_for(1);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

#[test]
fn a_plain_connection_does_not_fall_back() {
    let mut p = client(Config::default());
    p.connect(ConnectOptions::default());
    p.expect("S 0");
    expect_plain(&mut p, Duration::from_secs(1));
}

#[test]
fn the_fallback_is_no_congestion_loss() {
    for (srtt, wait) in [(Some(40), 100), (None, 1000)] {
        let (mut p, id) = asked(Config::default(), srtt);
        expect_plain(&mut p, Duration::from_millis(wait));
        p.send("SA 0 ack 1 <mss 1460,TS 700 0>");
        p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
        let info = p.stack.info(id).unwrap();
        assert_eq!((info.cwnd, info.ssthresh), (14_480, u32::MAX));
        assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::Lost)));
        assert_eq!(verdict(&p), Some(Verdict::Dropped));
        assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("SynDataRejectedBytes", 27)]);
        assert_eq!(p.stack.counters().syn_retrans, 1);
        let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
        assert_eq!((path.syn_drops, path.last_syn_drop), (1, Some(p.now)));
    }
}

/// The first SYN-ACK was lost or slow: the data had been accepted all the same.
#[test]
fn a_late_acceptance_is_an_acceptance() {
    for config in both_profiles() {
        let (mut p, id) = asked(config, Some(400));
        expect_plain(&mut p, Duration::from_secs(1));
        p.send("SA 0 ack 28 <mss 1460>");
        p.expect("A 28 ack 1");
        assert_eq!(p.stack.outcome(id), Some(Outcome::Accepted));
        assert_eq!(counters(&p.stack), [("Active", 1)]);
        assert_eq!(verdict(&p), None);
    }
}

/// Without data only an answer, or a first SYN-ACK, shows that the cookie was seen.
#[test]
fn a_data_less_syn_lost() {
    let options =
        || ConnectOptions { fast_open: FastOpen::Auto, data_less: true, ..ConnectOptions::default() };
    let mut p = client(Config::default());
    let id = p.connect(options());
    p.expect("S 0");
    expect_plain(&mut p, Duration::from_millis(100));
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1 ack 1");
    assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::Lost)));
    assert_eq!((verdict(&p), counters(&p.stack)), (Some(Verdict::Dropped), vec![]));
    let mut p = client(Config::default());
    let id = p.connect(options());
    p.expect("S 0");
    expect_plain(&mut p, Duration::from_millis(100));
    p.send_bytes("SPA 0 ack 1 <mss 1460>", b"220 ready");
    p.expect("A 1 ack 10");
    assert_eq!(p.stack.outcome(id), Some(Outcome::Accepted));
    assert_eq!(verdict(&p), None);
}

#[test]
fn a_late_cookie_is_cached() {
    for config in both_profiles() {
        let mut p = Peer::new(config);
        let id = p.connect(auto(b"hello"));
        p.expect("S 0");
        expect_plain(&mut p, Duration::from_secs(1));
        p.send("SA 0 ack 1 <mss 1460,FO 0102030405060708>");
        p.expect("PA 1:6 ack 1");
        assert_eq!(p.stack.outcome(id), Some(Outcome::CookieRequested { granted: true }));
        assert_eq!(cached_cookie(&p).as_deref(), Some("0102030405060708"));
        assert_eq!(verdict(&p), None);
    }
}

/// Only the timestamp tells which SYN was answered (RFC 7323 §4.1).
#[test]
fn the_round_trip_after_a_fallback_comes_from_the_timestamp() {
    for (echo, srtt) in [(0, 220), (200, 20)] {
        let (mut p, id) = asked(Config::default(), Some(80));
        expect_plain(&mut p, Duration::from_millis(200));
        p.expect_nothing_for(20);
        p.send(&format!("SA 0 ack 28 <mss 1460,TS 700 {echo}>"));
        assert_eq!(p.stack.info(id).unwrap().srtt, Some(Duration::from_millis(srtt)));
    }
    let (mut p, id) = asked(Config::default(), Some(80));
    expect_plain(&mut p, Duration::from_millis(200));
    p.send("SA 0 ack 28 <mss 1460>");
    assert_eq!(p.stack.info(id).unwrap().srtt, None, "ambiguous (Karn)");
}

fn too_big(p: &mut Peer, quote: &[u8], mtu: u32) {
    let protocol = if p.local.is_ipv4() { wire::protocol::ICMP } else { wire::protocol::ICMPV6 };
    let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), protocol);
    let packet = wire::build_icmp_packet(&ip, &Icmp::Error { error: IcmpError::PacketTooBig { mtu }, quote });
    p.send_rx(RxPacket::new(packet));
}

#[test]
fn fragmentation_needed_brings_the_plain_syn_at_once() {
    for config in both_profiles() {
        let mut p = client(config);
        let id = p.connect(ConnectOptions {
            fast_open: FastOpen::Auto,
            first_bytes: first_bytes(1400),
            ..ConnectOptions::default()
        });
        let syn = p.take_packet().unwrap();
        assert_eq!(syn.len(), 20 + 52 + 1400);
        p.expect_nothing_for(5);
        too_big(&mut p, &syn[..28], 1000);
        expect_plain(&mut p, Duration::ZERO);
        p.send("SA 0 ack 1 <mss 1460>");
        p.expect_bytes("A 1:961 ack 1", &pattern(1, 960));
        p.expect("PA 961:1401 ack 1");
        assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::TooBig)));
        // The size was the reason, not Fast Open: next time the SYN is smaller.
        assert_eq!(verdict(&p), None);
        p.skip(10);
        p.connect(ConnectOptions {
            fast_open: FastOpen::Auto,
            first_bytes: first_bytes(1400),
            ..ConnectOptions::default()
        });
        let syn = p.take_packet().unwrap();
        assert!(syn.len() <= 1000 && syn.len() > 900, "{}", syn.len());
    }
}

#[test]
fn a_reset_is_met_with_one_plain_try() {
    // The plain SYN works: the reset was about Fast Open.
    let (mut p, id) = asked(Config::default(), Some(40));
    p.expect_nothing_for(40);
    p.send("RA 0 ack 28");
    expect_plain(&mut p, Duration::ZERO);
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
    assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::Reset)));
    assert_eq!(verdict(&p), Some(Verdict::Reset));
    // The plain SYN is refused too: nobody listens.
    let (mut p, id) = asked(Config::default(), Some(40));
    p.send("RA 0 ack 28");
    expect_plain(&mut p, Duration::ZERO);
    p.send("RA 0 ack 1");
    p.expect_nothing_for(10_000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Refused));
    assert_eq!(verdict(&p), None, "no evidence against Fast Open");
    // Linux believes the first.
    let (mut p, id) = asked(linux(), Some(40));
    p.send("RA 0 ack 28");
    p.expect_nothing_for(10_000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Refused));
    // So does a plain connection.
    let mut p = client(Config::default());
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("RA 0 ack 1");
    p.expect_nothing_for(10_000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Refused));
}

/// The fallback was quicker than the reset of the first SYN: the answer to the plain one is still to come.
#[test]
fn a_late_reset_of_the_first_syn() {
    let (mut p, id) = asked(Config::default(), Some(40));
    expect_plain(&mut p, Duration::from_millis(100));
    p.send("RA 0 ack 28");
    p.expect_nothing_for(20);
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
    assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::Reset)));
    assert_eq!(verdict(&p), Some(Verdict::Reset));
}

#[test]
fn a_reset_after_the_fallback_is_final() {
    let (mut p, id) = asked(Config::default(), Some(40));
    expect_plain(&mut p, Duration::from_millis(100));
    p.send("RA 0 ack 1");
    p.expect_nothing_for(10_000);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Refused));
}

/// The answer overtook the lost SYN-ACK: in SYN-SENT it is thrown away.
#[test]
fn data_without_a_syn_is_ignored_in_syn_sent() {
    for config in both_profiles() {
        let (mut p, id) = asked(config, Some(40));
        p.send("PA 1:11 ack 28");
        p.expect_nothing();
        assert_eq!(p.state(id), State::SynSent);
        assert_eq!(p.read(id), Err(ReadError::Blocked));
    }
}
