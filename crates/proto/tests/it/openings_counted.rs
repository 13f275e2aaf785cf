//! What Linux counts of openings and endings, seen from its counters: how often, and under which name.

use crate::peer::*;
use core::time::Duration;
use proto::*;

const SACK: &str = "S 0 win 65535 <mss 1000,sackOK>";
/// With the key that `fast_open` tests use, any cookie: none is needed here.
const NO_COOKIE: u32 = 0x203;

fn established(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, SACK);
    p.expect_nothing();
    (p, id)
}

/// A Fast Open child with 10 bytes, not yet acknowledged.
fn child() -> (Peer, ListenerId) {
    let mut p = Peer::new(Config::linux().tcp_fastopen(NO_COOKIE));
    let options = ListenOptions { fast_open: Some(5), ..ListenOptions::default() };
    let listener = p.listen_with(options);
    p.send("S 0:10 win 65535 <mss 1000,sackOK>");
    p.expect("SA 0 ack 11");
    (p, listener)
}

/// A repeated SYN-ACK is a segment sent and one retransmitted; what the IP layer sends it only once.
#[test]
fn a_repeated_syn_ack_counts_twice() {
    let mut p = Peer::new(Config::linux());
    p.listen();
    p.send(SACK);
    p.expect("SA 0 ack 1");
    p.expect_after(1000, "SA 0 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.out_segs, counters.retrans_segs, counters.syn_ack_retrans), (2, 1, 1));
    let packets = counters.nstat().find(|(name, _)| name == "IpOutRequests").unwrap().1;
    assert_eq!(packets, 2);
}

/// A repeated SYN-ACK of a Fast Open child counts as sent and as retransmitted; the child's own count of segments knows no SYN-ACK, like
/// any passive open's.
#[test]
fn a_childs_syn_ack_is_none_of_its_segments() {
    let (mut p, listener) = child();
    let id = p.accept(listener);
    p.expect_after(1000, "SA 0 ack 11");
    assert_eq!((p.stack.counters().out_segs, p.stack.counters().syn_ack_retrans), (2, 1));
    let info = p.stack.info(id).unwrap().tcp_info;
    assert_eq!((info.segs_in, info.data_segs_in, info.segs_out), (1, 1, 0));
    assert_eq!((info.total_retrans, info.total_rto, info.total_rto_recoveries), (1, 1, 1));
    assert!(info.fast_open_child);
}

/// The SYN of a passive open came, too; how often its SYN-ACK went is not forgotten.
#[test]
fn a_passive_open_begins_with_its_syn() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    p.send(SACK);
    p.expect("SA 0 ack 1");
    p.expect_after(1000, "SA 0 ack 1");
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    let info = p.stack.info(id).unwrap().tcp_info;
    assert_eq!((info.segs_in, info.segs_out), (2, 0));
    assert_eq!((info.total_retrans, info.total_rto, info.total_rto_recoveries), (1, 1, 1));
    assert_eq!(info.total_rto_time, Duration::from_secs(1));
}

/// A FIN that goes alone is data, sent and delivered; with text it is not.
#[test]
fn a_fin_alone_is_a_segment_of_data() {
    let (mut p, id) = established(Config::linux());
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    let counters = p.stack.counters();
    assert_eq!((counters.orig_data_sent, counters.delivered), (1, 1));
    let info = p.stack.info(id).unwrap().tcp_info;
    assert!(info.fin_delivered);
    assert_eq!(info.controls_acked, 1);

    let (mut p, id) = established(Config::linux());
    p.stack.set_option(p.now, id, SocketOption::Cork(true)).unwrap();
    p.write(id, &pattern(1, 10));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 1:11 ack 1");
    p.send("A 1 ack 12");
    let counters = p.stack.counters();
    assert_eq!((counters.orig_data_sent, counters.delivered), (1, 1));
    assert!(!p.stack.info(id).unwrap().tcp_info.fin_delivered);
}

/// From ESTABLISHED and CLOSE-WAIT to CLOSED, by whichever end; not from other states.
#[test]
fn every_end_of_an_established_connection_is_a_reset() {
    let (mut p, id) = established(Config::linux());
    p.send("PA 1:11 ack 1");
    p.expect("A 1 ack 11");
    p.close(id);
    p.expect("RA 1 ack 11");
    assert_eq!(p.stack.counters().estab_resets, 1);

    let (mut p, id) = established(Config::linux());
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1 ack 1");
    p.send("R 1");
    assert_eq!(p.stack.counters().estab_resets, 0);
}

/// Nobody answers a SYN-ACK: Linux counts no attempt that failed.
#[test]
fn a_request_that_expires_is_no_failed_attempt() {
    let mut p = Peer::new(Config::linux().tcp_synack_retries(0));
    p.listen();
    p.send(SACK);
    p.expect("SA 0 ack 1");
    p.expect_nothing_for(2000);
    assert_eq!((p.sizes(), p.stack.counters().attempt_fails), ((0, 0, 0), 0));
}

/// A SYN of an established connection is an error too, where that of another state is only challenged.
#[test]
fn a_syn_of_an_established_connection_is_an_error() {
    let (mut p, id) = established(Config::linux());
    p.send("S 200");
    p.expect("A 1 ack 1");
    let seen = |p: &Peer| (p.stack.counters().in_errs, p.stack.counters().syn_challenge);
    assert_eq!(seen(&p), (1, 1));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1 ack 1");
    p.send("S 200");
    assert_eq!(seen(&p), (1, 2));
}

/// Only what an established connection gets that lies beyond its window, and no SYN, is `BeyondWindow`.
#[test]
fn a_syn_beyond_the_window_is_only_challenged() {
    let (mut p, _) = established(Config::linux());
    p.send("S 2000000");
    assert_eq!((p.stack.counters().beyond_window, p.stack.counters().syn_challenge), (0, 1));
}

/// A probe is no fast retransmission, and a time-out's own retransmission none in slow start; the second time-out finds that lost.
#[test]
fn probes_and_timeouts_count_for_themselves() {
    let (mut p, id) = established(Config::linux());
    p.write(id, &pattern(1, 100));
    p.expect("PA 1:101 ack 1");
    for _ in 0..3 {
        p.skip_until_sent();
    }
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.timeouts, counters.retrans_segs), (1, 2, 3));
    assert_eq!((counters.fast_retrans, counters.slow_start_retrans, counters.lost_retransmit), (0, 0, 1));
}

/// A FIN ahead of what is missing is out of order, one that came before is a sign of a lost ACK.
#[test]
fn a_fin_out_of_order_counts_as_text_would() {
    let (mut p, id) = established(Config::linux());
    p.send("FA 101 ack 1");
    p.expect("A 1 ack 1");
    assert_eq!(p.stack.counters().ofo_queue, 1);
    assert_eq!(p.stack.info(id).unwrap().tcp_info.rcv_ooopack, 1);
    p.send("PA 1:102 ack 1");
    p.expect("A 1 ack 102");
    p.send("FA 50 ack 1");
    assert_eq!(p.stack.counters().delayed_ack_lost, 1);
}

/// A SYN in the window of a Fast Open child: whoever sent it is reset, the child is not.
#[test]
fn another_syn_does_not_harm_a_child() {
    let (mut p, listener) = child();
    p.send("S 50");
    let told = p.sent_now();
    assert!(
        matches!(&told[..], [one] if one.starts_with("RA ") && one.contains(" ack 51 win 0")),
        "{told:?}"
    );
    assert_eq!((p.stack.counters().attempt_fails, p.stack.counters().syn_challenge), (1, 0));
    p.send("A 11 ack 1");
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap(), pattern(0, 10));
}

/// A reset ends a child, which is an attempt that failed, twice as Linux counts; older timestamps or numbers end nothing.
#[test]
fn a_reset_ends_a_child() {
    let (mut p, listener) = child();
    p.send("R 5");
    p.expect_nothing();
    p.send("R 11");
    assert_eq!((p.stack.counters().attempt_fails, p.stack.counters().estab_resets), (2, 0));
    let id = p.accept(listener);
    assert_eq!(p.state(id), State::Closed);
}

/// FIN-WAIT-2 that nobody holds counts like TIME-WAIT, or apart where it is brief; that its FIN comes does not count again.
#[test]
fn what_is_kept_of_a_connection_counts_by_its_time() {
    for (secs, counted) in [(60, (1, 0)), (2, (0, 1))] {
        let mut p = Peer::new(Config::linux().tcp_fin_timeout(Duration::from_secs(secs)));
        let listener = p.listen();
        let id = p.establish_with(listener, SACK);
        p.close(id);
        p.expect("FA 1 ack 1");
        p.send("A 1 ack 2");
        let seen = |p: &Peer| (p.stack.counters().time_wait, p.stack.counters().time_wait_killed);
        assert_eq!(seen(&p), counted);
        p.send("FA 1 ack 2");
        p.expect("A 2 ack 2");
        assert_eq!(seen(&p), counted);
    }
}

/// Each time-out of a SYN after the first finds that lost which the one before had sent.
#[test]
fn a_syn_that_is_lost_again_is_a_lost_retransmission() {
    let mut p = Peer::new(Config::linux());
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    for _ in 0..3 {
        p.skip_until_sent();
    }
    assert_eq!(p.stack.counters().lost_retransmit, 2);
    assert_eq!(p.stack.info(id).unwrap().tcp_info.total_rto, 3);
}
