//! Packets that the queue before the device refuses: they have not been sent.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use crate::random::Random;
use crate::transfer::Transfer;
use core::time::Duration;
use proto::*;

fn established(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish(listener);
    (p, id)
}

fn linux() -> (Peer, ConnId) {
    let mut config = Config::linux();
    config.set("net.ipv4.tcp_timestamps", "0").unwrap();
    established(config)
}

/// With SACK, for loss probes.
fn linux_with_sack() -> (Peer, ConnId) {
    let mut config = Config::linux();
    config.set("net.ipv4.tcp_timestamps", "0").unwrap();
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK>");
    (p, id)
}

/// Nothing is in flight: a timer tries, first after the time-out, then every 500 ms.
#[test]
fn text_is_tried_again_by_a_timer() {
    for (mut p, id) in [established(Config::default()), linux()] {
        p.queue_is_full = true;
        p.write(id, &pattern(1, 2500));
        p.expect_nothing();
        assert_eq!(p.refused, 1, "the rest is not tried, nor is this at once");
        let info = p.stack.info(id).unwrap();
        assert_eq!((info.flight_size, p.stack.counters().orig_data_sent), (0, 0));
        for (wait, probes) in [(199, 0), (2, 1), (498, 1), (2, 2), (498, 2)] {
            p.expect_nothing_for(wait);
            p.expect_nothing();
            assert_eq!(p.refused, 1 + probes, "{wait} ms later");
        }
        p.queue_is_full = false;
        p.pass(2);
        p.expect("PA 1:1001 ack 1");
        p.send("A 1 ack 1001");
        p.expect("A 1001:2001 ack 1");
        p.expect("PA 2001:2501 ack 1");
    }
}

/// It is not a loss that doubles the time-out.
#[test]
fn what_a_time_out_repeats_is_tried_again_soon() {
    for (mut p, id) in [established(Config::default()), linux()] {
        p.write(id, &pattern(1, 100));
        p.expect("PA 1:101 ack 1");
        p.queue_is_full = true;
        p.expect_nothing_for(201);
        p.expect_nothing();
        assert_eq!((p.refused, p.stack.counters().retrans_fail), (1, 1));
        p.expect_nothing_for(300);
        // The application's next word leaves the timer as it is.
        p.write(id, &pattern(101, 100));
        p.expect_nothing_for(197);
        p.queue_is_full = false;
        p.pass(4);
        assert!(p.sent_now()[0].starts_with("PA 1:"));
        p.send("A 1 ack 101");
        p.expect_at_most(1);
        p.send("A 1 ack 201");
        assert_eq!(p.stack.poll_timeout(), None, "all is acknowledged");
    }
}

#[test]
fn a_refused_loss_probe_is_none() {
    let (mut p, id) = linux_with_sack();
    p.skip(50);
    p.write(id, &pattern(1, 2000));
    p.expect_range(1..2001);
    p.queue_is_full = true;
    p.skip(199);
    let probes = p.refused;
    assert!(probes > 0, "it was tried");
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.retrans_fail, counters.fast_retrans), (0, 1, 0));
}

/// A fast retransmission waits for the next acknowledgement, and does not count as one.
#[test]
fn a_refused_retransmission_stays_lost() {
    let (mut p, id) = linux_with_sack();
    p.write(id, &pattern(1, 8000));
    p.expect_range(1..8001);
    p.skip(20);
    p.queue_is_full = true;
    p.send("A 1 ack 1 <sack 1001:5001>");
    p.expect_nothing();
    let info = p.stack.info(id).unwrap();
    assert_eq!((p.refused, info.tcp_info.lost, info.tcp_info.retrans), (1, 1000, 0));
    p.queue_is_full = false;
    p.write(id, &pattern(8001, 100));
    p.expect("PA 8001:8101 ack 1");
    p.send("A 1 ack 1 <sack 1001:6001>");
    p.expect("A 1:1001 ack 1");
    let counters = p.stack.counters();
    assert_eq!(
        (counters.fast_retrans, counters.retrans_fail, counters.retrans_segs),
        (1, 1, 3),
        "an attempt is counted as sent again, too"
    );
}

/// Local congestion is congestion: the window comes down once, and does not come back.
#[test]
fn a_refusal_shrinks_the_window() {
    let (mut p, id) = linux_with_sack();
    p.write(id, &pattern(1, 2000));
    p.expect_range(1..2001);
    p.queue_is_full = true;
    p.write(id, &pattern(2001, 3000));
    p.expect_nothing();
    let ssthresh = p.stack.info(id).unwrap().ssthresh;
    assert_eq!(ssthresh, 7000);
    p.write(id, &pattern(5001, 1000));
    p.expect_nothing();
    assert_eq!(p.stack.info(id).unwrap().ssthresh, ssthresh);
    p.queue_is_full = false;
    p.send("A 1 ack 2001");
    p.expect_range(2001..5001);
    p.send("A 1 ack 5001");
    assert_eq!(p.stack.info(id).unwrap().cwnd, ssthresh);
}

/// Whatever is refused, every byte arrives, in order, and connections end.
#[test]
fn transfers_survive_refusals() {
    for (seed, config) in both_profiles().iter().cycle().take(40).enumerate() {
        let mut pair = Pair::new(config.clone(), config.clone(), 10);
        let seed = seed as u64;
        pair.trouble(seed, [2, 2, 2]);
        let mut dice = Random(seed);
        pair.refuses = Box::new(move |_, _| dice.chance(10 + seed % 20));
        let mut transfer = Transfer::new(pair, SocketOptions::default(), SocketOptions::default());
        transfer.total = 200_000;
        transfer.run_to(200_000);
        let (now, sender, receiver) = (transfer.pair.now, transfer.sender, transfer.receiver);
        transfer.pair.stacks[CLIENT].close(now, sender);
        transfer.pair.stacks[SERVER].close(now, receiver);
        transfer.pair.run(300_000);
        for stack in &transfer.pair.stacks {
            assert_eq!(stack.table_sizes().connections, 0, "seed {seed}");
        }
    }
}

/// It waits for `TCP_TX_DELAY`, is acknowledged (by who guesses what it will bring), and is refused only then: there is nothing to take back.
#[test]
fn what_is_acknowledged_before_it_could_leave_stays_acknowledged() {
    for (mut p, id) in [established(Config::default()), linux()] {
        p.stack.set_option(p.now, id, SocketOption::TxDelay(core::time::Duration::from_millis(100))).unwrap();
        p.write(id, &pattern(1, 100));
        p.expect_nothing();
        p.send("A 1 ack 101");
        p.queue_is_full = true;
        p.expect_nothing_for(101);
        assert_eq!(p.refused, 1);
        let (una, end) = p.stack.send_span(id).unwrap();
        assert_eq!(una, end, "nothing waits");
        p.queue_is_full = false;
        p.write(id, &pattern(101, 100));
        p.expect_after(100, "PA 101:201 ack 1");
    }
}

/// While `TCP_TX_DELAY` kept the SYN back its time-out came; then the SYN is refused, and the one that is due has no timer of its own yet.
#[test]
fn a_syn_whose_time_has_come_goes_though_the_one_before_is_refused() {
    let mut p = Peer::ours();
    let second = core::time::Duration::from_secs(1);
    let socket = SocketOptions { tx_delay: second, ..SocketOptions::default() };
    p.connect(ConnectOptions { socket, ..ConnectOptions::default() });
    p.queue_is_full = true;
    p.expect_nothing_for(1001);
    assert_eq!(p.refused, 1);
    p.queue_is_full = false;
    p.expect_after(999, "S 0");
}

/// The SYN that is refused after 3 s is not the last of those that wait to leave, and the attempt has all of its time.
#[test]
fn a_late_syn_that_is_refused_does_not_hasten_the_end() {
    let ms = Duration::from_millis;
    let socket = SocketOptions { tx_delay: ms(3000), syn_retries: Some(2), ..SocketOptions::default() };
    let mut p = Peer::new(Config::default().tcp_syn_linear_timeouts(0).tcp_rto_max_ms(1600));
    let id = p.connect(ConnectOptions { socket, ..ConnectOptions::default() });
    p.queue_is_full = true;
    p.expect_nothing_for(3001);
    assert_eq!(p.refused, 1);
    p.queue_is_full = false;
    p.expect_after(999, "S 0");
    assert_eq!(p.state(id), State::SynSent);
    p.expect_nothing_for(200);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

/// A reset that answers a stray ACK is not the connection's: that it was refused keeps back nothing.
#[test]
fn a_refused_reset_takes_no_turn() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.write(id, &pattern(1, 10));
    p.send("A 1 ack 5");
    let reset = p.stack.poll_transmit(p.now).unwrap();
    p.send("SA 0 ack 1 win 65535 <mss 1000>");
    p.stack.handle_refusal(p.now, &reset);
    p.expect("PA 1:11 ack 1");
}

/// A keepalive probe that waits behind an acknowledgement when that is refused is tried again soon, and is not counted before it was sent.
#[test]
fn a_probe_behind_a_refused_acknowledgement_is_tried_again() {
    let socket = SocketOptions {
        keepalive: true,
        keepalive_time: Some(Duration::from_secs(10)),
        keepalive_intvl: Some(Duration::from_secs(100)),
        ..SocketOptions::default()
    };
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.establish(listener);
    p.send("PA 0:1 ack 1");
    let ack = p.stack.poll_transmit(p.now).unwrap();
    p.now = p.now + Duration::from_secs(10);
    p.stack.handle_timeout(p.now);
    p.stack.handle_refusal(p.now, &ack);
    p.expect_nothing();
    p.expect_after(500, "A 0 ack 1");
}

/// Packets that `TCP_TX_DELAY` kept back are acknowledged before they are refused, and take the turn of what the window lets go now: nothing was
/// taken back that would have a timer, but the rest has one.
#[test]
fn what_waits_behind_refused_and_acknowledged_packets_goes_by_a_timer() {
    for (mut p, id) in [established(Config::default()), linux()] {
        p.stack.set_option(p.now, id, SocketOption::TxDelay(Duration::from_millis(100))).unwrap();
        p.write(id, &pattern(1, 20_000));
        p.expect_nothing();
        let sent = p.stack.info(id).unwrap().flight_size;
        p.now = p.now + Duration::from_millis(100);
        p.queue_is_full = true;
        p.send(&format!("A 1 ack {}", 1 + sent));
        p.expect_nothing();
        assert!(p.refused > 0);
        p.queue_is_full = false;
        p.pass(10_000);
        assert!(p.sent_now()[0].contains(&format!(" {}:", 1 + sent)), "the next segment");
    }
}

/// A FIN went with text; then it is to go alone, and that is refused. The one that went is acknowledged all the same.
#[test]
fn a_fin_that_went_with_text_stays_sent_when_its_repetition_is_refused() {
    let (mut p, id) = linux();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.write(id, &pattern(1001, 80));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 1001:1081 ack 1");
    p.queue_is_full = true;
    p.expect_nothing_for(201);
    p.expect_nothing();
    p.send("PA 1:2 ack 1");
    p.expect_nothing();
    p.queue_is_full = false;
    p.send("A 2 ack 1082");
    p.expect_nothing();
    assert_eq!(p.state(id), State::FinWait2);
}
