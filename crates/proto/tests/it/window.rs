//! The congestion window as rounds of a conversation: the textbook's figure, initial windows, decay when it is not used.

use crate::peer::*;
use core::time::Duration;
use proto::*;

/// Established in 100 ms, with segments of 1000 bytes; nobody sends SACK.
fn established(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    (p, id)
}

fn with(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    config
}

/// Acknowledges segment by segment what is in flight, and what is sent in answer flies; returns the window in segments.
struct Rounds {
    p: Peer,
    id: ConnId,
    /// Acknowledged so far, bytes.
    acked: u32,
    written: u32,
}

impl Rounds {
    fn new(p: Peer, id: ConnId) -> Rounds {
        Rounds { p, id, acked: 0, written: 0 }
    }

    fn cwnd(&self) -> u32 {
        self.p.stack.info(self.id).unwrap().cwnd / 1000
    }

    /// There is always more to send.
    fn feed(&mut self) {
        while self.written < self.acked + 100_000 {
            self.p.write(self.id, &pattern(1 + self.written, 10_000));
            self.written += 10_000;
        }
    }

    /// Everything that may be sent now; its size in segments is what is in flight.
    fn fly(&mut self) -> u32 {
        self.feed();
        self.p.expect_only_data();
        let info = self.p.stack.info(self.id).unwrap();
        let flight = info.flight_size + info.tcp_info.retrans - info.tcp_info.lost - info.tcp_info.sacked;
        assert_eq!(flight % 1000, 0);
        flight / 1000
    }

    /// One round trip: each segment in flight is acknowledged.
    fn round(&mut self) -> u32 {
        let flight = self.fly();
        self.p.now = self.p.now + Duration::from_millis(100);
        for _ in 0..flight {
            self.acked += 1000;
            self.p.send(&format!("A 1 ack {} win 65535", 1 + self.acked));
            self.fly();
        }
        flight
    }

    fn rounds(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.round()).collect()
    }

    /// Everything in flight is lost.
    fn time_out(&mut self) -> u32 {
        let flight = self.fly();
        let rto = self.p.stack.info(self.id).unwrap().rto;
        self.p.now = self.p.now + rto;
        self.p.stack.handle_timeout(self.p.now);
        flight
    }

    /// The first segment in flight is lost; the others, and the two that limited transmit sends, call forth a duplicate ACK each; then
    /// the lost one's repetition arrives.
    fn three_duplicates(&mut self) -> u32 {
        let flight = self.fly();
        let before_repetition = flight + 2;
        for _ in 1..before_repetition {
            self.p.send(&format!("A 1 ack {} win 65535", 1 + self.acked));
            self.feed();
            self.p.expect_only_data();
        }
        self.acked += before_repetition * 1000;
        self.p.send(&format!("A 1 ack {} win 65535", 1 + self.acked));
        flight
    }
}

/// One acknowledgement for all of a round, as behind GRO, is worth as much as one for each segment; with RFC 9406's and RFC 3465's limits
/// slow start is no longer one.
#[test]
fn slow_start_doubles_however_the_peer_acknowledges() {
    for (algorithm, limit, flights) in [
        ("cubic", "0", &[10, 20, 40, 80, 50][..]),
        ("reno", "0", &[10, 20, 40, 80, 50]),
        ("cubic", "8", &[10, 18, 26, 34, 42, 50, 20]),
        ("reno", "2", &[10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 10]),
    ] {
        let control = ("net.ipv4.tcp_congestion_control", algorithm);
        let mut p = Peer::new(with(&[control, ("firstbyte.abc_limit", limit)]));
        let listener = p.listen();
        p.send("S 0 win 65535 <mss 1000,wscale 4>");
        p.expect("SA 0 ack 1");
        p.now = p.now + Duration::from_millis(100);
        p.send("A 1 ack 1 win 65535");
        let id = p.accept(listener);
        p.write(id, &pattern(1, 200_000));
        let mut acked = 0;
        for (round, flight) in flights.iter().enumerate() {
            assert_eq!(p.sent_now().len(), *flight, "{algorithm}, limit {limit}, round {round}");
            acked += *flight as u32 * 1000;
            p.now = p.now + Duration::from_millis(100);
            p.send(&format!("A 1 ack {} win 65535", 1 + acked));
        }
        assert_eq!(acked, 200_000);
    }
}

/// The figure of every textbook: slow start to 16, one more per round to 24, time-out; slow start to half of it, one more per round
/// to 16, three duplicate ACKs; on from half of that.
#[test]
fn the_textbook_figure() {
    let (p, id) = established(with(&[
        ("net.ipv4.tcp_congestion_control", "reno"),
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_frto", "0"),
        ("firstbyte.initcwnd", "1"),
        ("firstbyte.initial_ssthresh", "16"),
    ]));
    let mut it = Rounds::new(p, id);
    assert_eq!(it.rounds(12), [1, 2, 4, 8, 16, 17, 18, 19, 20, 21, 22, 23]);
    assert_eq!(it.time_out(), 24);
    assert_eq!(it.p.stack.info(id).unwrap().ssthresh, 12_000);
    assert_eq!(it.rounds(8), [1, 2, 4, 8, 12, 13, 14, 15]);
    assert_eq!(it.three_duplicates(), 16);
    assert_eq!(it.p.stack.info(id).unwrap().ssthresh, 8000);
    assert_eq!(it.rounds(3), [8, 9, 10]);
    let counters = it.p.stack.counters();
    assert_eq!(counters.timeouts, 1);
}

/// Three duplicate ACKs under Tahoe: the missing segment goes at once and alone; from there slow start leads to half of what was in
/// flight, whether the peer reports what it holds or not.
#[test]
fn tahoe_starts_over() {
    for syn in ["<mss 1000>", "<mss 1000,sackOK>"] {
        let mut p = Peer::new(with(&[
            ("net.ipv4.tcp_congestion_control", "tahoe"),
            ("firstbyte.initcwnd", "1"),
            ("firstbyte.initial_ssthresh", "16"),
            ("firstbyte.abc_limit", "1"),
        ]));
        let listener = p.listen();
        p.send(&format!("S 0 win 65535 {syn}"));
        p.expect("SA 0 ack 1");
        p.now = p.now + Duration::from_millis(100);
        p.send("A 1 ack 1 win 65535");
        let id = p.accept(listener);
        let mut it = Rounds::new(p, id);
        assert_eq!(it.rounds(8), [1, 2, 4, 8, 16, 17, 18, 19]);
        assert_eq!(it.fly(), 20);
        let missing = 1 + it.acked;
        let sacked = |to: u32| match syn.contains("sackOK") {
            true => format!(" <sack {}:{}>", missing + 1000, missing + to),
            false => String::new(),
        };
        for segments in [2, 3] {
            it.p.send(&format!("A 1 ack {missing} win 65535{}", sacked(segments * 1000)));
            it.p.expect_sent(1);
        }
        it.p.send(&format!("A 1 ack {missing} win 65535{}", sacked(4000)));
        it.p.expect(&format!("A {missing}:{} ack 1", missing + 1000));
        it.p.expect_nothing();
        assert_eq!((it.cwnd(), it.p.stack.info(id).unwrap().ssthresh), (1, 10_000));
        // All that was sent has arrived beside it.
        it.acked += 22_000;
        it.p.send(&format!("A 1 ack {} win 65535", 1 + it.acked));
        assert_eq!(it.rounds(6), [2, 4, 8, 10, 11, 12]);
    }
}

/// CUBIC after such a loss: down to seven tenths, and up again along the cubic function, which at 100 ms is faster than Reno.
#[test]
fn cubic_loses_less_and_returns_sooner() {
    let rounds_after_loss = |algorithm| {
        let (p, id) = established(with(&[
            ("net.ipv4.tcp_congestion_control", algorithm),
            ("firstbyte.initcwnd", "40"),
            ("firstbyte.initial_ssthresh", "40"),
        ]));
        let mut it = Rounds::new(p, id);
        assert_eq!(it.three_duplicates(), 40);
        (0..14)
            .map(|_| {
                it.round();
                it.cwnd()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(rounds_after_loss("reno"), (21..=34).collect::<Vec<_>>());
    // K = ∛(12 / 0.4) = 3.1 s: there it would be at 40 again.
    assert_eq!(rounds_after_loss("cubic"), [28, 29, 30, 31, 32, 33, 33, 34, 35, 35, 36, 36, 37, 37]);
}

/// `TCP_CONGESTION`: a socket's own choice goes before the stack's.
#[test]
fn a_socket_chooses_for_itself() {
    let ssthresh_after_timeout = |own| {
        let mut p = Peer::new(Config::default());
        let socket = SocketOptions { congestion: own, ..SocketOptions::default() };
        let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
        let id = p.establish(listener);
        let mut it = Rounds::new(p, id);
        assert_eq!(it.time_out(), 10);
        it.p.stack.info(id).unwrap().ssthresh
    };
    assert_eq!(ssthresh_after_timeout(None), 7000);
    assert_eq!(ssthresh_after_timeout(Some(CongestionControl::Cubic)), 7000);
    assert_eq!(ssthresh_after_timeout(Some(CongestionControl::Reno)), 5000);
}

#[test]
fn the_initial_window_is_a_setting() {
    for (initcwnd, segments) in [("10", 10), ("1", 1), ("30", 30), ("0", 4)] {
        let (mut p, id) = established(with(&[("firstbyte.initcwnd", initcwnd)]));
        p.write(id, &pattern(1, 60_000));
        assert_eq!(p.sent_now().len(), segments, "initcwnd {initcwnd}");
    }
}

/// Reno in slow start to 40 segments, everything acknowledged.
fn forty(settings: &[(&str, &str)]) -> (Peer, ConnId) {
    let mut all = vec![("net.ipv4.tcp_congestion_control", "reno"), ("firstbyte.abc_limit", "2")];
    all.extend_from_slice(settings);
    let (p, id) = established(with(&all));
    let mut it = Rounds::new(p, id);
    assert_eq!(it.rounds(2), [10, 20]);
    assert_eq!(it.cwnd(), 40);
    while it.acked < it.written {
        it.p.expect_only_data();
        it.acked += it.p.stack.info(id).unwrap().flight_size;
        it.p.send(&format!("A 1 ack {} win 65535", 1 + it.acked));
    }
    (it.p, it.id)
}

/// Correction C-21: halved for every RTO of silence, not below the initial window; ssthresh remembers three quarters.
#[test]
fn an_idle_window_halves_for_every_rto() {
    for (rtos, cwnd) in [(0, 44_000), (1, 22_000), (2, 11_000), (3, 10_000)] {
        let (mut p, id) = forty(&[]);
        let before = p.stack.info(id).unwrap();
        assert_eq!(before.cwnd, 44_000);
        p.now = p.now + before.rto * rtos + Duration::from_millis(1);
        p.write(id, b"x");
        p.expect("PA 130001:130002 ack 1");
        assert_eq!(p.stack.info(id).unwrap().cwnd, cwnd, "{rtos} time-outs and a millisecond");
    }
    let (mut p, id) = forty(&[]);
    p.now = p.now + Duration::from_secs(3600);
    p.write(id, b"x");
    p.expect("PA 130001:130002 ack 1");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (10_000, u32::MAX));
}

/// RFC 5681 §3.1 as Linux has it: after two lost SYNs or SYN-ACKs the window begins with one segment, after one with ten; not where the
/// echo shows that the first had arrived.
#[test]
fn lost_syns_leave_one_segment_of_initial_window() {
    for (losses, setting, segments) in [(1, "2", 10), (2, "2", 1), (2, "0", 10), (1, "1", 1)] {
        let config = with(&[("firstbyte.syn_losses_initcwnd", setting)]);
        let mut p = Peer::new(config.clone());
        let listener = p.listen();
        p.send("S 0 win 65535 <mss 1000>");
        p.expect("SA 0 ack 1");
        (0..losses).for_each(|n| {
            p.expect_after(1000 << n, "SA 0 ack 1");
        });
        p.send("A 1 ack 1 win 65535");
        let id = p.accept(listener);
        assert_eq!(p.stack.info(id).unwrap().cwnd, segments * 1000, "passive, {losses} lost");
        let mut p = Peer::new(config);
        let id = p.connect(ConnectOptions::default());
        p.expect("S 0");
        (0..losses).for_each(|_| {
            p.expect_after(1000, "S 0");
        });
        p.send("SA 0 ack 1 win 65535 <mss 1000>");
        assert_eq!(p.stack.info(id).unwrap().cwnd, segments * 1000, "active, {losses} lost");
    }
}

/// The plain SYN that follows one of Fast Open early is no loss; where it waits for the time-out it is.
#[test]
fn a_lost_fast_open_syn_counts_unless_the_plain_one_came_early() {
    for (early, segments) in [("1", 10), ("0", 1)] {
        let mut p = Peer::new(with(&[("firstbyte.fast_fallback", early)]));
        let id = p.connect(ConnectOptions { fast_open: FastOpen::Auto, ..ConnectOptions::default() });
        p.expect("S 0");
        (0..2).for_each(|_| {
            p.expect_after(1000, "S 0");
        });
        p.send("SA 0 ack 1 win 65535 <mss 1000>");
        assert_eq!(p.stack.info(id).unwrap().cwnd, segments * 1000, "early: {early}");
    }
}

#[test]
fn slow_start_after_idle_can_be_off() {
    let (mut p, id) = forty(&[("net.ipv4.tcp_slow_start_after_idle", "0")]);
    let before = p.stack.info(id).unwrap();
    p.now = p.now + Duration::from_secs(3600);
    p.write(id, b"x");
    p.expect("PA 130001:130002 ack 1");
    assert_eq!(p.stack.info(id).unwrap().cwnd, before.cwnd);
}

/// RFC 2861: an application that uses a little of the window for a whole time-out loses half of the rest. At first the 18 segments
/// count that were in flight when the window was last not full, then only the initial window.
#[test]
fn a_window_used_a_little_decays_towards_its_use() {
    let (mut p, id) = forty(&[]);
    let mut cwnds = vec![p.stack.info(id).unwrap().cwnd];
    let mut seq = 1 + p.stack.info(id).unwrap().bytes_acked as u32;
    for _ in 0..20 {
        p.write(id, &pattern(seq, 100));
        p.expect_range(seq..seq + 100);
        seq += 100;
        p.now = p.now + Duration::from_millis(50);
        p.send(&format!("A 1 ack {seq} win 65535"));
        cwnds.push(p.stack.info(id).unwrap().cwnd);
    }
    cwnds.dedup();
    assert_eq!(cwnds, [44_000, 31_000, 20_500, 15_250, 12_625]);
}

fn delivery(p: &Peer, id: ConnId) -> (Option<u64>, bool) {
    let info = p.stack.info(id).unwrap();
    (info.delivery_rate, info.delivery_rate_app_limited)
}

/// Ten segments per round trip of 100 ms, marked as app-limited as long as it has only begun; then an app-limited phase, which may only raise
/// the rate.
#[test]
fn the_delivery_rate_is_the_paths_not_the_applications() {
    let (mut p, id) = established(with(&[("firstbyte.abc_limit", "8")]));
    assert_eq!(delivery(&p, id), (None, false));
    p.write(id, &pattern(1, 40_000));
    assert_eq!(p.sent_now().len(), 10);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 10001 win 65535");
    assert_eq!(delivery(&p, id), (Some(100_000), true));
    assert_eq!(p.sent_now().len(), 18);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 28001 win 65535");
    assert_eq!(delivery(&p, id), (Some(180_000), false));
    assert_eq!(p.sent_now().len(), 12, "everything");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 40001 win 65535");
    assert_eq!(delivery(&p, id), (Some(120_000), false), "these were sent before it became app-limited");
    for _ in 0..3 {
        p.write(id, b"x");
        p.expect_sent(1);
        p.now = p.now + Duration::from_millis(100);
        let acked = p.stack.info(id).unwrap().bytes_acked;
        p.send(&format!("A 1 ack {} win 65535", acked + 2));
    }
    assert_eq!(delivery(&p, id), (Some(120_000), false), "single bytes do not count");
}

/// What rode on the SYN-ACK is a sample, too.
#[test]
fn data_on_the_syn_ack_is_measured_from_there() {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions {
        fast_open: Some(10),
        fast_open_no_cookie: true,
        ..ListenOptions::default()
    });
    p.send("S 0:10 win 65535 <mss 1000>");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 996));
    p.expect("SPA 0:996 ack 11");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 11 ack 997 win 65535");
    assert_eq!(delivery(&p, id), (Some(9_960), true));
}

/// A thin stream's time-outs do not double at first (`tcp_thin_linear_timeouts`). A closed window is no loss that a quick retransmission mends.
#[test]
fn a_thin_stream_waits_longer_and_longer_for_a_closed_window() {
    let config = Config::default().tcp_thin_linear_timeouts(true).peer_window_rules(PeerWindowRules::Kernel);
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 <mss 1460,sackOK>");
    p.write(id, &pattern(1, 10));
    p.expect("PA 1:11 ack 1");
    p.send("A 1 ack 1 win 0");
    for wait in [200, 200, 400, 800, 1600, 3200, 6400, 12_800] {
        p.expect_after(wait, "PA 1:11 ack 1");
    }
}
