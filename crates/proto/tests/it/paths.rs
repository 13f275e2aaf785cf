//! The memory of paths: what connections leave, what later ones make of it, and that it outlives a restart.

use crate::pair::*;
use crate::peer::*;
use core::time::Duration;
use proto::fast_open::PathEntry;
use proto::*;

const HOUR: u64 = 3_600_000;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn path(stack: &Stack) -> Option<PathEntry> {
    stack.path_cache().iter().next().map(|(_, _, entry)| entry.clone())
}

/// The server sends `len` bytes and closes; the client reads all and closes. Milliseconds from the SYN to the last byte.
fn transfer(pair: &mut Pair, listener: ListenerId, len: usize) -> u64 {
    let start = pair.now;
    let id = pair.connect(ConnectOptions::default());
    let mut child = None;
    let mut written = 0;
    let mut got = 0;
    let data = vec![7; 1 << 16];
    while got < len {
        pair.run(1);
        child = child.or_else(|| pair.accept(listener));
        while let Some(child) = child
            && written < len
        {
            let part = &data[..data.len().min(len - written)];
            match pair.stacks[SERVER].write(pair.now, child, part) {
                Ok(taken) => written += taken,
                Err(_) => break,
            }
        }
        got += pair.read(CLIENT, id).map_or(0, |data| data.len());
    }
    let took = pair.ms_since(start);
    let now = pair.now;
    pair.stacks[SERVER].close(now, child.unwrap());
    pair.run(500);
    let now = pair.now;
    pair.stacks[CLIENT].close(now, id);
    pair.run(5000);
    took
}

#[test]
fn both_ends_remember_the_round_trip_when_they_close() {
    for config in both_profiles() {
        let at_once = config.path_rtt_at_once;
        let mut pair = Pair::new(config.clone(), config, 20);
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        pair.run(100);
        let child = pair.accept(listener).unwrap();
        assert_eq!(path(&pair.stacks[CLIENT]).and_then(|path| path.rtt()), at_once.then_some(ms(40)));
        let now = pair.now;
        pair.stacks[CLIENT].close(now, id);
        pair.run(100);
        let now = pair.now;
        pair.stacks[SERVER].close(now, child);
        pair.run(100);
        // One in TIME-WAIT, the other CLOSED from LAST-ACK.
        for stack in &pair.stacks {
            let path = path(stack).unwrap();
            assert_eq!((path.rtt(), path.cwnd, path.ssthresh), (Some(ms(40)), Some(10), None));
        }
    }
}

#[test]
fn nothing_is_left_where_nothing_shall_be_and_by_what_is_aborted() {
    for (save, abort) in [(true, false), (false, true)] {
        let config = Config::default().tcp_no_metrics_save(save).path_rtt_at_once(false);
        let mut pair = Pair::new(config.clone(), config, 20);
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        pair.run(100);
        let child = pair.accept(listener).unwrap();
        let now = pair.now;
        match abort {
            true => pair.stacks[CLIENT].abort(now, id),
            false => pair.stacks[CLIENT].close(now, id),
        }
        pair.run(100);
        let now = pair.now;
        pair.stacks[SERVER].close(now, child);
        pair.run(100);
        assert_eq!(path(&pair.stacks[SERVER]).and_then(|path| path.rtt()), None);
        assert_eq!(path(&pair.stacks[CLIENT]).and_then(|path| path.rtt()), None);
    }
}

/// The first time-out of data, where the handshake took `syn_rtt` and earlier connections 400 ms.
fn first_rto(remembered: Option<Duration>, syn_rtt: u64, age: u64) -> Duration {
    let mut p = Peer::ours();
    p.local = "10.0.0.2:0".parse().unwrap();
    let now = p.now;
    p.stack.path_cache_mut().entry(now, p.local.ip().into(), p.remote.ip().into()).set_rtt(remembered);
    p.now = p.now + ms(age);
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    let repeated = syn_rtt / 1000;
    for _ in 0..repeated {
        p.expect_after(1000, "S 0");
    }
    p.now = p.now + ms(syn_rtt % 1000);
    p.send("SA 0 ack 1 win 65535 <mss 1460>");
    p.expect("A 1 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.write(id, &pattern(1, 100));
    p.expect("PA 1:101 ack 1");
    p.now = p.now + ms(50);
    p.send("A 1 ack 101");
    let after = p.stack.info(id).unwrap().rto;
    assert!(after <= ms(400), "after a sample of data the RTO is its own: {after:?}");
    rto
}

/// Linux's `tcp_init_metrics`: R + max(2 R, least RTO), if R is longer than the handshake, or that gave no sample.
#[test]
fn the_remembered_round_trip_sets_the_first_timeout() {
    assert_eq!(first_rto(None, 40, 0), ms(200));
    assert_eq!(first_rto(Some(ms(400)), 40, 0), ms(1200));
    assert_eq!(first_rto(Some(ms(60)), 40, 0), ms(260));
    assert_eq!(first_rto(Some(ms(30)), 40, 0), ms(200));
    assert_eq!(first_rto(Some(ms(400)), 40, HOUR), ms(200), "too old");
    assert_eq!(first_rto(None, 1040, 0), ms(3000), "RFC 6298 §5.7");
    assert_eq!(first_rto(Some(ms(60)), 1040, 0), ms(260));
}

/// Row 115. One lossy transfer leaves an ssthresh of two segments, and every later transfer creeps; by default Linux and we do not use
/// it. 1 MB at a round trip of 100 ms.
#[test]
fn a_remembered_ssthresh_can_spoil_what_follows() {
    let times = |no_ssthresh: bool| {
        let config = Config::default()
            .tcp_no_ssthresh_metrics_save(no_ssthresh)
            .tcp_congestion_control(CongestionControl::Reno);
        let mut pair = Pair::new(config.clone(), config, 50);
        pair.one_by_one = true;
        let listener = pair.listen(0);
        let mut times = vec![transfer(&mut pair, listener, 1_000_000)];
        let mut count = 0;
        pair.filter = Box::new(move |sent| {
            count += usize::from(sent.len > 0);
            sent.len == 0 || !count.is_multiple_of(20)
        });
        transfer(&mut pair, listener, 1_000_000);
        pair.filter = Box::new(|_| true);
        let ssthresh = path(&pair.stacks[SERVER]).unwrap().ssthresh;
        times.extend((0..2).map(|_| transfer(&mut pair, listener, 1_000_000)));
        pair.stacks[SERVER].path_cache_mut().clear();
        times.push(transfer(&mut pair, listener, 1_000_000));
        (ssthresh, times)
    };
    let (unused, even) = times(true);
    assert_eq!((unused, even.iter().all(|time| *time == even[0])), (None, true), "{even:?}");
    let (kept, spoilt) = times(false);
    assert_eq!(kept, Some(3));
    // Measured when this was written: 800, 3100, 2600, and 800 once it is forgotten.
    assert!(spoilt[1] > 3 * spoilt[0] && spoilt[2] > 3 * spoilt[0] && spoilt[3] == spoilt[0], "{spoilt:?}");
}

#[test]
fn a_path_that_reordered_is_given_more_time() {
    let thresh = |reordering| {
        let mut p = Peer::new(Config::default().tcp_recovery(0));
        let now = p.now;
        p.stack.path_cache_mut().entry(now, p.local.ip().into(), p.remote.ip().into()).reordering =
            reordering;
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK,wscale 7>");
        p.write(id, &pattern(1, 9000));
        p.expect_range(1..9001);
        (2..9)
            .find(|n| {
                p.send(&format!("A 1 ack 1 win 512 <sack 1001:{}>", n * 1000 + 1));
                !p.sent_now().is_empty()
            })
            .map(|n| n - 1)
    };
    assert_eq!((thresh(None), thresh(Some(5))), (Some(3), Some(5)));
}

/// The next run of the same program, with another seed.
fn restart(pair: &mut Pair, text: &str, elapsed: Duration) {
    let mut stack = Stack::new(Config::default(), ethernet(), [9; 32]);
    stack.add_address("10.0.0.1".parse().unwrap(), 24);
    stack.import_paths(pair.now, &text.parse().unwrap(), elapsed);
    pair.stacks[CLIENT] = stack;
}

fn fast() -> ConnectOptions {
    ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: b"hello".as_slice().into(),
        ..ConnectOptions::default()
    }
}

#[test]
fn the_first_connection_after_a_restart_sends_fast_open_data() {
    let mut pair = Pair::ours();
    pair.now = pair.now + ms(48 * HOUR);
    let listener = pair.listen(16);
    pair.obtain_cookie(listener);
    let saved = pair.stacks[CLIENT].export_paths(pair.now);
    assert_eq!((saved.paths.len(), saved.paths[0].rtt, saved.paths[0].mss), (1, Some(ms(40)), Some(1460)));
    restart(&mut pair, &saved.to_string(), ms(HOUR * 24));
    let id = pair.connect(fast());
    pair.run(100);
    assert_eq!(pair.ladder()[0], "> S(5)");
    assert_eq!(pair.stacks[CLIENT].outcome(id), Some(Outcome::Accepted));
    // The cookie is a day old, and the round trip was forgotten and measured anew.
    assert_eq!(pair.stacks[CLIENT].export_paths(pair.now).paths[0].age, ms(59));
}

#[test]
fn ages_and_verdicts_go_on_counting_across_a_restart() {
    let text = "firstbyte paths 1\n\
                path 10.0.0.1 10.0.0.2 rtt 80ms age 1800 mtu 1400 mtu_age 300\n\
                verdict 10.0.0.0/24 10.0.0.2 80 dropped count 1 age 100 length 300\n";
    for (elapsed, rtt, mtu, skipped) in [
        (0, true, 1400, true),
        (199, true, 1400, true),
        (200, true, 1400, false),
        (301, true, 1500, false),
        (1800, false, 1500, false),
    ] {
        let mut pair = Pair::ours();
        pair.now = pair.now + Duration::from_secs(10_000);
        pair.listen(16);
        restart(&mut pair, text, Duration::from_secs(elapsed));
        let config = Config::default();
        let entry = path(&pair.stacks[CLIENT]).unwrap();
        assert_eq!(entry.fresh_rtt(pair.now, config.path_metrics_life).is_some(), rtt, "{elapsed}");
        assert_eq!(entry.fresh_path_mtu(pair.now, config.mtu_expires).unwrap_or(1500), mtu, "{elapsed}");
        let id = pair.connect(fast());
        let outcome = pair.stacks[CLIENT].outcome(id);
        assert_eq!(
            outcome == Some(Outcome::Skipped(Skipped::Verdict(Verdict::Dropped))),
            skipped,
            "{elapsed}"
        );
    }
}

#[test]
fn what_was_learnt_since_the_start_stays_and_the_memory_stays_bounded() {
    let mut stack = Stack::new(Config::default().path_cache_entries(3), ethernet(), [9; 32]);
    let now = Instant::ZERO + Duration::from_secs(1000);
    let addr = |last: u8| Addr::from(core::net::IpAddr::from([10, 0, 0, last]));
    stack.path_cache_mut().entry(now, addr(1), addr(2)).mss = Some(1000);
    let mut text = "firstbyte paths 1\n".to_owned();
    for peer in 2..9 {
        text += &format!("path 10.0.0.1 10.0.0.{peer} mss 1460\n");
        text += &format!("verdict 10.0.0.0/24 10.0.0.{peer} 80 reset length 300\n");
    }
    stack.import_paths(now, &text.parse().unwrap(), Duration::ZERO);
    assert_eq!(stack.path_cache().lookup(addr(1), addr(2)).unwrap().mss, Some(1000));
    assert_eq!((stack.path_cache().len(), stack.path_cache().verdicts().count()), (2, 3));
    let exported = stack.export_paths(now);
    assert_eq!(exported.paths[0].peer.to_string(), "10.0.0.3", "the first line was used last");
}
