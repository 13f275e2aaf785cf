//! Counters: every one counts something, and a test says what; `tcp_info`'s of one connection.

use crate::pair::*;
use crate::peer::*;
use core::time::Duration;
use proto::*;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

fn text_of(folder: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    sources(&root).iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// The table that must stay complete: (field, Linux's name) of every counter, each named by a test of this folder, by field or by name,
/// and changed somewhere in the engine.
#[test]
fn every_counter_is_counted_and_tested() {
    let (engine, tests) = (text_of("../src"), text_of("it"));
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/counters.rs")).unwrap();
    let rows =
        table.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix("\";")?.split_once(" = \""));
    let mut count = 0;
    for (field, name) in rows {
        let changed = engine
            .split(&format!("counters.{field}"))
            .skip(1)
            .any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        assert!(changed, "nothing changes {field}");
        let tested = tests.contains(&format!(".{field}")) || tests.contains(&format!("\"{name}\""));
        assert!(tested, "no test names {field} ({name})");
        count += 1;
    }
    assert_eq!(count, Counters::default().all().count());
}

/// What changed, by Linux's name.
fn grown(p: &mut Peer, run: impl FnOnce(&mut Peer)) -> Vec<(&'static str, u64)> {
    let before = p.stack.counters().clone();
    run(p);
    let after = p.stack.counters().all();
    after
        .zip(before.all())
        .map(|((name, after), (_, before))| (name, after - before))
        .filter(|(_, n)| *n > 0)
        .collect()
}

fn established(config: Config, syn: &str) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, syn);
    p.expect_nothing();
    (p, id)
}

const SACK: &str = "S 0 win 65535 <mss 1000,sackOK,wscale 7>";
const PLAIN: &str = "S 0 win 65535 <mss 1000,wscale 7>";

#[test]
fn an_active_open_counts_segments_both_ways() {
    let mut p = Peer::ours();
    let counts = grown(&mut p, |p| {
        p.connect(ConnectOptions::default());
        p.expect("S 0");
        p.send("SA 0 ack 1 win 65535 <mss 1460>");
        p.expect("A 1 ack 1");
    });
    assert_eq!(counts, [("ActiveOpens", 1), ("InSegs", 1), ("OutSegs", 2), ("TCPDelivered", 1)]);
}

#[test]
fn fast_open_counts_what_the_client_and_the_server_did() {
    let mut pair = Pair::ours();
    let listener = pair.listen(16);
    pair.obtain_cookie(listener);
    let fast = || ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: pattern(1, 10).into(),
        ..Default::default()
    };
    pair.connect(fast());
    pair.run(100);
    let get = |pair: &Pair, side: usize, name: &str| pair.stacks[side].counters().get(name).unwrap();
    assert_eq!(
        (get(&pair, SERVER, "TCPFastOpenCookieReqd"), get(&pair, CLIENT, "TCPFastOpenActive")),
        (1, 1)
    );
    // Another key, with the old one as backup; then without.
    let old = pair.stacks[SERVER].fast_open_key().primary();
    for (ring, name, side) in [
        (
            fast_open::KeyRing::with_backup(fast_open::Key::from_bytes([7; 16]), old),
            "TCPFastOpenPassiveAltKey",
            SERVER,
        ),
        (fast_open::KeyRing::new(fast_open::Key::from_bytes([8; 16])), "TCPFastOpenActiveFail", CLIENT),
    ] {
        pair.stacks[SERVER].set_fast_open_key(ring);
        pair.connect(fast());
        pair.run(100);
        assert_eq!(get(&pair, side, name), 1, "{name}");
    }
}

#[test]
fn a_closed_window_is_probed() {
    let (mut p, id) = established(Config::default(), "S 0 win 0 <mss 1000>");
    p.send("A 1 ack 1 win 0");
    p.write(id, &pattern(1, 10));
    let counts = grown(&mut p, |p| p.skip(1000));
    assert!(counts.iter().any(|(name, n)| *name == "TCPWinProbe" && *n > 0), "{counts:?}");
    assert!(p.stack.info(id).unwrap().tcp_info.probes > 0);
}

#[test]
fn refusals_count_by_their_reason() {
    let (mut p, _) = established(Config::default(), "S 0 win 65535 <mss 1000,TS 1000 0,wscale 7>");
    p.send("PA 1:11 ack 1 win 512 <TS 1001 0>");
    p.expect_nothing();
    let counts = grown(&mut p, |p| {
        for _ in 0..9 {
            p.send("A 11 ack 1 win 512 <TS 10 0>");
        }
    });
    let of = |name| counts.iter().find(|(found, _)| *found == name).map_or(0, |(_, n)| *n);
    assert_eq!(of("PAWSEstab"), 9);
    assert!(of("TCPACKSkippedPAWS") > 0, "{counts:?}");
}

#[test]
fn old_and_early_segments_count() {
    let (mut p, id) = established(Config::default(), SACK);
    p.send("A 1:1001 ack 1 win 512");
    let counts = grown(&mut p, |p| {
        p.send("A 2001:3001 ack 1 win 512");
        p.send("A 1:1001 ack 1 win 512");
    });
    assert!(counts.contains(&("TCPOFOQueue", 1)) && counts.contains(&("DelayedACKLost", 1)), "{counts:?}");
    assert_eq!(p.stack.info(id).unwrap().tcp_info.rcv_ooopack, 1);
}

/// The next segment of an open connection, with the window as it was: data hits, and so does an ACK that makes progress. What Linux's
/// slow path takes counts only if it is a pure ACK.
#[test]
fn what_header_prediction_would_take_counts() {
    let (mut p, id) = established(Config::default(), SACK);
    p.send("A 1 ack 1 win 512");
    p.write(id, &pattern(1, 3000));
    p.expect_range(1..3001);
    let predicted = |p: &mut Peer, segment: &str| {
        let before = p.stack.counters();
        let before = [before.hp_hits, before.hp_acks, before.pure_acks];
        p.send(segment);
        let after = p.stack.counters();
        [after.hp_hits - before[0], after.hp_acks - before[1], after.pure_acks - before[2]]
    };
    assert_eq!(predicted(&mut p, "PA 1:11 ack 1 win 512"), [1, 0, 0]);
    assert_eq!(predicted(&mut p, "PA 11:21 ack 1001 win 512"), [1, 1, 0]);
    assert_eq!(predicted(&mut p, "A 21 ack 2001 win 512"), [0, 1, 0]);
    assert_eq!(predicted(&mut p, "A 21 ack 2001 win 512"), [0, 0, 1], "no progress");
    assert_eq!(predicted(&mut p, "A 21 ack 3001 win 513"), [0, 0, 1], "another window");
    assert_eq!(predicted(&mut p, "A 31:41 ack 3001 win 513"), [0, 0, 0], "not the next");
    assert_eq!(predicted(&mut p, "A 21:31 ack 3001 win 513"), [0, 0, 0], "something else is missing");
    assert_eq!(predicted(&mut p, "FA 41 ack 3001 win 513"), [0, 0, 0]);
    assert_eq!(predicted(&mut p, "A 42 ack 3001 win 513"), [0, 0, 1], "the connection is closing");
}

#[test]
fn a_duplicate_of_something_out_of_order_is_reported_and_believed() {
    let (mut p, id) = established(Config::default(), SACK);
    p.write(id, &pattern(1, 5000));
    p.expect_range(1..5001);
    p.send("A 1 ack 1 win 512 <sack 1001:4001>");
    assert_eq!(p.sent_now().len(), 1, "the first is retransmitted");
    let counts = grown(&mut p, |p| p.send("A 1 ack 1 win 512 <sack 2001:3001 1001:4001>"));
    assert!(counts.contains(&("TCPDSACKOfoRecv", 1)), "{counts:?}");
    assert!(counts.contains(&("TCPDSACKRecvSegs", 1)), "{counts:?}");
    let counts = grown(&mut p, |p| p.send("A 1 ack 4001 win 512 <sack 1:1001>"));
    assert!(counts.contains(&("TCPDSACKRecv", 1)), "{counts:?}");
    assert_eq!(p.stack.info(id).unwrap().tcp_info.dsack_dups, 2);
}

/// RFC 3708 §2: what arrives twice though it was sent once is the network's doing, and tells nothing of our retransmissions.
#[test]
fn more_duplicates_than_were_sent_again_are_not_believed() {
    let (mut p, id) = established(Config::default(), SACK);
    p.write(id, &pattern(1, 5000));
    p.expect_range(1..5001);
    let counts = grown(&mut p, |p| p.send("A 1 ack 2001 win 512 <sack 1:1001>"));
    assert!(counts.contains(&("TCPDSACKIgnoredDubious", 1)), "{counts:?}");
    assert!(counts.iter().all(|(name, _)| *name != "TCPDSACKRecvSegs"), "{counts:?}");
    assert_eq!(p.stack.info(id).unwrap().tcp_info.dsack_dups, 1);
}

#[test]
fn icmp_that_quotes_nothing_in_flight_is_counted() {
    let (mut p, id) = established(Config::default(), PLAIN);
    p.write(id, &pattern(1, 100));
    let packet = p.take_packet().unwrap();
    p.send("A 1 ack 101 win 512");
    let counts = grown(&mut p, |p| {
        crate::icmp::error_about(p, &packet, wire::IcmpError::HostUnreachable);
    });
    let icmp = [("IcmpInMsgs", 1), ("IcmpInDestUnreachs", 1)];
    assert_eq!(counts, [&[("OutOfWindowIcmps", 1)], &icmp[..]].concat());
}

#[test]
fn ends_by_reset_count_by_their_reason() {
    let (mut p, id) = established(Config::default(), PLAIN);
    p.send("PA 1:11 ack 1 win 512");
    let counts = grown(&mut p, |p| p.close(id));
    assert!(counts.contains(&("TCPAbortOnClose", 1)), "unread data: {counts:?}");

    let mut p = Peer::ours();
    let socket = SocketOptions { linger: Some(Duration::ZERO), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, PLAIN);
    let counts = grown(&mut p, |p| p.close(id));
    assert!(
        counts.iter().any(|(name, _)| *name == "TCPAbortOnLinger" || *name == "TCPAbortOnData"),
        "{counts:?}"
    );
}

/// A time-out counts by what came before it.
#[test]
fn a_recovery_that_fails_counts_by_its_kind() {
    let failed = |config: Config, syn: &str, before: &[&str]| {
        let (mut p, id) = established(config, syn);
        p.write(id, &pattern(1, 10_000));
        p.expect_range(1..10001);
        for segment in before {
            p.send(segment);
            p.expect_at_most(1);
        }
        let counts = grown(&mut p, |p| p.skip(2000));
        let kinds = [
            "TCPSackRecoveryFail",
            "TCPRenoRecoveryFail",
            "TCPSackFailures",
            "TCPRenoFailures",
            "TCPLossFailures",
        ];
        counts.into_iter().map(|(name, _)| name).filter(|name| kinds.contains(name)).collect::<Vec<_>>()
    };
    let no_probe = || Config::default().tcp_early_retrans(0);
    let counting = || no_probe().tcp_recovery(0);
    assert_eq!(failed(no_probe(), SACK, &[]), [""; 0]);
    assert_eq!(failed(counting(), SACK, &["A 1 ack 1 win 512 <sack 1001:2001>"]), ["TCPSackFailures"]);
    assert_eq!(failed(counting(), SACK, &["A 1 ack 1 win 512 <sack 1001:5001>"]), ["TCPSackRecoveryFail"]);
    assert_eq!(failed(no_probe(), PLAIN, &["A 1 ack 1 win 512"; 2]), ["TCPRenoFailures"]);
    assert_eq!(failed(no_probe(), PLAIN, &["A 1 ack 1 win 512"; 4]), ["TCPRenoRecoveryFail"]);
}

#[test]
fn a_second_row_of_timeouts_before_the_first_is_repaired_is_a_loss_failure() {
    let (mut p, id) = established(Config::default().tcp_early_retrans(0).tcp_frto(0), SACK);
    p.write(id, &pattern(1, 10_000));
    p.expect_range(1..10001);
    p.expect_after(200, "A 1:1001 ack 1");
    let counts = grown(&mut p, |p| {
        p.send("A 1 ack 1001 win 512");
        p.skip(3000);
    });
    assert!(counts.contains(&("TCPLossFailures", 1)), "{counts:?}");
    let info = p.stack.info(id).unwrap().tcp_info;
    assert_eq!((info.ca_state, info.total_rto_recoveries), (CaState::Loss, 2));
    assert!(info.total_rto > 2 && info.retransmits > 0 && info.backoff > 0, "{info:?}");
}

/// Both ends of a transfer that loses one segment: exact figures under `tcp_info`'s names.
#[test]
fn tcp_info_adds_up() {
    let mut pair = Pair::ours();
    pair.one_by_one = true;
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    pair.run(100);
    let child = pair.accept(listener).unwrap();
    let mut data = 0;
    pair.filter = Box::new(move |sent| {
        data += usize::from(sent.len > 0);
        data != 3 || sent.len == 0
    });
    pair.write(SERVER, child, &[7; 14_480]);
    pair.run(1000);
    assert_eq!(pair.read(CLIENT, id).unwrap().len(), 14_480);
    let sent = pair.log.iter().filter(|sent| sent.from == SERVER).count() as u32;
    let server = pair.stacks[SERVER].info(child).unwrap();
    let info = server.tcp_info;
    assert_eq!((info.data_segs_out, info.segs_out), (11, sent - 1), "the SYN-ACK was the request's");
    assert_eq!((info.bytes_sent, info.bytes_retrans, info.total_retrans), (14_480 + 1448, 1448, 1));
    assert_eq!((server.bytes_acked, info.notsent_bytes, info.total_rto), (14_480, 0, 0));
    assert_eq!((info.ca_state, info.lost, info.sacked, info.retrans), (CaState::Open, 0, 0, 0));
    assert_eq!((info.advmss, info.pmtu, info.reordering), (1460, 1500, 3));
    let client = pair.stacks[CLIENT].info(id).unwrap().tcp_info;
    assert_eq!((client.data_segs_in, client.rcv_ooopack, client.rcv_mss), (10, 7, 1448));
    assert_eq!(
        client.segs_in,
        pair.log.iter().filter(|sent| sent.from == SERVER && sent.delivered).count() as u32
    );
    assert_eq!((client.data_segs_out, client.last_data_sent), (0, None));
    assert_eq!(client.last_data_recv, info.last_data_sent.map(|at| at + pair.delay));
}

#[test]
fn time_wait_refuses_old_timestamps() {
    let (mut p, id) = established(Config::default(), "S 0 win 65535 <mss 1000,TS 1000 0,wscale 7>");
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send("FA 1 ack 2 win 512 <TS 1001 0>");
    p.expect("A 2 ack 2");
    assert_eq!(p.sizes(), (0, 0, 1));
    let counts = grown(&mut p, |p| p.send("A 2 ack 2 win 512 <TS 10 0>"));
    assert!(counts.contains(&("PAWSTimewait", 1)), "{counts:?}");
}
