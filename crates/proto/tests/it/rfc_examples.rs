//! What the documents on loss recovery work out themselves, as conversations. Each test is named by document and section.
//!
//! RFC 6937's are with `prr`, RFC 9438's tables with `cubic`, RFC 2883's shapes with `scoreboard`, all beside the code.

use crate::peer::*;
use crate::sack::established_with;
use core::time::Duration;
use proto::*;

/// SRTT 100 ms; segments of 1000 bytes; `segments` of them in flight for 100 ms.
fn in_flight(config: Config, segments: u32) -> (Peer, ConnId) {
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, segments as usize * 1000));
    assert_eq!(p.sent_now().len(), segments as usize);
    p.expect_nothing_for(100);
    (p, id)
}

/// Bytes (delivered out of order, held to be lost, retransmitted).
fn marks(p: &Peer, id: ConnId) -> (u32, u32, u32) {
    let info = p.stack.info(id).unwrap().tcp_info;
    (info.sacked, info.lost, info.retrans)
}

fn counting() -> Config {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_recovery", "0").unwrap();
    config.set("net.ipv4.tcp_early_retrans", "0").unwrap();
    config
}

/// RFC 6675 has rules instead of examples. §4 IsLost: DupThresh runs beyond it, or more than (DupThresh − 1) · SMSS bytes; §5 step 4.3:
/// the first missing segment goes at once; SetPipe: HighACK to HighData without what is there, and without what is lost unless it
/// was retransmitted; NextSeg: lost ones in order (rule 1), then new ones (rule 2). Rules 3 and 4, which send what is not known to be
/// lost, are RFC 8985's probe here.
#[test]
fn rfc6675_section_4_pipe_and_next_segment() {
    let (mut p, id) = in_flight(counting(), 10);
    p.write(id, &pattern(10_001, 10_000));
    // 2000 bytes are not more than (3 − 1) · 1000, and two runs are not three: limited transmit (§5 step 3.3 of RFC 5681).
    p.send("A 1 ack 1 <sack 2001:3001>");
    p.expect("A 10001:11001 ack 1");
    p.send("A 1 ack 1 <sack 4001:5001 2001:3001>");
    p.expect("A 11001:12001 ack 1");
    assert_eq!(marks(&p, id), (2000, 0, 0));
    // The third run: 0 and 1 are lost; 3 has only two runs beyond it.
    p.send("A 1 ack 1 <sack 6001:7001 4001:5001 2001:3001>");
    p.expect("A 1:1001 ack 1");
    p.expect_nothing();
    assert_eq!(marks(&p, id), (3000, 2000, 1000));
    // A fourth run makes 3 a loss. PRR's half of what is delivered has no room for another yet.
    p.send("A 1 ack 1 <sack 8001:9001 6001:7001 4001:5001 2001:3001>");
    p.expect_nothing();
    assert_eq!(marks(&p, id), (4000, 3000, 1000));
    // 3000 bytes beyond 5: lost. Pipe 12 − 5 − 4 + 1 = 4, so one goes: 1 before 3 and 5.
    p.send("A 1 ack 1 <sack 8001:10001 6001:7001 4001:5001>");
    p.expect("A 1001:2001 ack 1");
    p.expect_nothing();
    assert_eq!(marks(&p, id), (5000, 4000, 2000));
    // And beyond 7. Pipe 12 − 6 − 5 + 2 = 3: two go.
    p.send("A 1 ack 1 <sack 8001:11001 6001:7001 4001:5001>");
    p.expect("A 3001:4001 ack 1");
    p.expect("A 5001:6001 ack 1");
    p.expect_nothing();
    assert_eq!(marks(&p, id), (6000, 5000, 4000));
    p.send("A 1 ack 1 <sack 8001:12001 6001:7001 4001:5001>");
    p.expect("A 7001:8001 ack 1");
    p.expect_nothing();
    // HighACK moves to 5, whose repetition and 7's are all that is in the network: new ones, for nothing lost is left to send.
    p.send("A 1 ack 5001 <sack 8001:12001 6001:7001>");
    assert_eq!(marks(&p, id), (5000, 2000, 2000));
    for number in 12..15 {
        p.expect(&format!("A {}:{} ack 1", 1 + number * 1000, 1001 + number * 1000));
    }
    p.expect_nothing();
    assert_eq!(p.stack.counters().sack_recovery, 1);
    // RecoveryPoint was 12001 (§5 step 4.1): up to it the recovery goes on, with it ends.
    p.send("A 1 ack 8001 <sack 8001:12001>");
    assert_eq!(p.stack.info(id).unwrap().tcp_info.ca_state, CaState::Recovery);
    p.send("A 1 ack 12001");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.tcp_info.ca_state, info.cwnd), (CaState::Open, 5000));
    assert_eq!(marks(&p, id), (0, 0, 0));
}

/// RFC 6675 §5.1: after a time-out what was reported stays known, and only the rest is retransmitted.
#[test]
fn rfc6675_section_5_1_timeout() {
    let (mut p, id) = in_flight(counting(), 10);
    p.send("A 1 ack 1 <sack 4001:6001>");
    p.expect_after(200, "A 1:1001 ack 1");
    assert_eq!(marks(&p, id), (2000, 8000, 1000));
    p.send("A 1 ack 4001 <sack 4001:6001>");
    assert_eq!(marks(&p, id), (2000, 4000, 0));
}

/// RFC 8985 §3.4, figure 1: P0 to P3, of which P1 to P3 are dropped. A probe repeats P3; its SACK shows that P1 and P2 are lost; the
/// repetition of P1 is dropped as well, and P2's SACK shows it. One recovery, and no time-out.
///
/// The example leaves congestion control out: BBR's window lets P1 and P2 go at its pace, proportional rate reduction would
/// let one go per acknowledgement.
#[test]
fn rfc8985_section_3_4_fast_recovery() {
    let mut p = Peer::ours();
    let socket = SocketOptions { congestion: Some(CongestionControl::Bbr), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000,sackOK>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 4000));
    assert_eq!(p.sent_now().len(), 4);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1001");
    p.expect_after(202, "PA 3001:4001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 1001 <sack 3001:4001>");
    p.expect("A 1001:2001 ack 1");
    p.expect("A 2001:3001 ack 1");
    assert_eq!(marks(&p, id), (1000, 2000, 2000));
    p.expect_nothing_for(100);
    p.send("A 1 ack 1001 <sack 2001:4001>");
    p.expect("A 1001:2001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 4001");
    p.expect_nothing_for(10_000);
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.lost_retransmit, counters.sack_recovery), (1, 1, 1));
    assert_eq!((counters.timeouts, counters.retrans_segs), (0, 4));
}

/// RFC 8985 §3.3 and §6.2 step 4: a segment that later ones overtook gets a quarter of the least round trip as long as nothing else tells
/// of a loss, none while recovering, and a quarter more for each round with a D-SACK once the path has been seen to reorder.
#[test]
fn rfc8985_section_6_2_reordering_window() {
    let (mut p, id) = in_flight(Config::default(), 4);
    // The first is overtaken and comes in time: the path reorders.
    p.send("A 1 ack 1 <sack 1001:2001>");
    p.expect_nothing_for(24);
    p.send("A 1 ack 2001");
    assert_eq!(p.stack.counters().sack_reorder, 1);
    // The third is retransmitted 25 ms after the fourth was delivered, and had only been later still.
    p.send("A 1 ack 2001 <sack 3001:4001>");
    p.expect_after(25, "A 2001:3001 ack 1");
    p.send("A 1 ack 4001 <sack 2001:3001>");
    p.expect_nothing();
    p.write(id, &pattern(4001, 6000));
    assert_eq!(p.sent_now().len(), 6);
    p.expect_nothing_for(100);
    p.send("A 1 ack 4001 <sack 5001:10001>");
    p.expect_after(50, "A 4001:5001 ack 1");
}

/// RFC 8985 §3.5: a segment whose acknowledgement is late, and two more right before its time-out. The time-out repeats the first alone;
/// when its acknowledgement comes, the other two are not repeated but given a time-out of their own.
#[test]
fn rfc8985_section_3_5_timeout() {
    let config = Config::default().tcp_early_retrans(0);
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_nothing_for(299);
    p.write(id, &pattern(1001, 2000));
    p.expect("A 1001:2001 ack 1");
    p.expect("PA 2001:3001 ack 1");
    p.expect_after(1, "PA 1:1001 ack 1");
    p.expect_nothing();
    assert_eq!(marks(&p, id), (0, 1000, 1000));
    p.send("A 1 ack 1001");
    p.expect_nothing_for(100);
    assert_eq!(marks(&p, id), (0, 0, 0));
    p.send("A 1 ack 3001");
    p.expect_nothing_for(10_000);
    let counters = p.stack.counters();
    assert_eq!((counters.timeouts, counters.retrans_segs), (1, 1));
}

/// RFC 8985 §6.3: at a time-out only the first segment is lost, and what was sent at least a round trip ago; what was sent lately is left
/// its time. P0 is dropped; P1 to P9 follow 250 ms later. The time-out after 300 ms repeats P0 alone, with a window of one segment
/// beside those on their way.
#[test]
fn rfc8985_section_6_3_timeout_spares_what_was_sent_lately() {
    // Neither a probe before the time-out nor F-RTO's undoing after it.
    let config = Config::default().tcp_early_retrans(0).tcp_frto(0);
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_nothing_for(250);
    p.write(id, &pattern(1001, 20_000));
    assert_eq!(p.sent_now().len(), 9);
    p.expect_after(50, "PA 1:1001 ack 1");
    p.expect_nothing();
    assert_eq!(marks(&p, id), (0, 1000, 1000));
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh, info.flight_size), (10_000, 5000, 10_000));
    // All of P1 to P9 had arrived: nothing but P0 is retransmitted, and new segments follow at once.
    p.now = p.now + Duration::from_millis(50);
    p.send("A 1 ack 1 <sack 1001:5001>");
    assert_eq!(p.sent_now().len(), 4);
    p.send("A 1 ack 1 <sack 1001:10001>");
    p.expect_range(14001..19001);
    p.now = p.now + Duration::from_millis(50);
    p.send("A 1 ack 10001");
    let counters = p.stack.counters();
    assert_eq!((counters.timeouts, counters.retrans_segs), (1, 1));
    // Without RACK all that was sent is held to be lost (RFC 6675 §5.1).
    let (mut p, id) = established_with(counting());
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_nothing_for(250);
    p.write(id, &pattern(1001, 4000));
    p.expect_range(1001..5001);
    p.expect_after(50, "PA 1:1001 ack 1");
    assert_eq!((marks(&p, id), p.stack.info(id).unwrap().cwnd), ((0, 5000, 1000), 1000));
}

/// RFC 8985 §6.3 with a FIN: it was sent with the last segment, which is spared, and is not retransmitted either.
#[test]
fn rfc8985_section_6_3_a_fin_that_was_sent_lately() {
    let config = Config::default().tcp_early_retrans(0);
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_nothing_for(250);
    p.write(id, &pattern(1001, 1000));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 1001:2001 ack 1");
    p.expect_after(50, "PA 1:1001 ack 1");
    p.expect_nothing_for(50);
    p.send("A 1 ack 1 <sack 1001:2002>");
    p.expect_nothing_for(50);
    p.send("A 1 ack 2002");
    p.expect_nothing_for(1000);
    assert_eq!(p.state(id), State::FinWait2);
    assert_eq!(p.stack.counters().retrans_segs, 1);
}
