//! Answers to a Fast Open SYN that say nothing about Fast Open: those of an older connection, ICMP errors, full queues. They are not held
//! against the path, and where another SYN follows at once it carries cookie and data again.

use super::*;
use crate::icmp::error_about;
use std::net::IpAddr;
use wire::{FastOpenOption, Flags, IcmpError};

/// Opens with 27 bytes; the SYN with the cookie leaves now.
fn ask(p: &mut Peer) -> ConnId {
    let options = ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    };
    let id = p.connect(options);
    expect_request(p, 0);
    id
}

/// Expects the SYN with cookie and data within `ms`, equal to the first one except for the time.
fn expect_request(p: &mut Peer, ms: u64) {
    let wait = Duration::from_millis(ms);
    let sent = p.expect_after_exactly(wait, "S 0:27");
    let expected = FastOpenOption { kind: FastOpenKind::Standard, cookie: Cookie::new(&[0xc0; 8]) };
    assert_eq!(sent.options.fast_open, Some(expected));
    assert_eq!((sent.options.mss, sent.options.window_scale), (Some(mss(p)), Some(7)));
    assert_eq!((sent.options.sack_permitted, sent.flags), (true, Flags::SYN));
}

/// Expects the SYN without data and option within `ms`.
fn expect_plain(p: &mut Peer, ms: u64) {
    assert_eq!(p.expect_after(ms, "S 0").options.fast_open, None);
}

fn accept(p: &mut Peer, id: ConnId) {
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect("A 28 ack 1");
    assert_eq!(p.stack.outcome(id), Some(Outcome::Accepted));
}

/// The plain SYN is answered, and the data goes with the ACK.
fn open_plain(p: &mut Peer, id: ConnId, why: NotAcknowledged) {
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
    assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(why)));
}

/// Checks that nothing is remembered against the peer: the next connection carries cookie and data.
fn expect_nothing_remembered(p: &mut Peer) {
    assert_eq!(p.stack.path_cache().verdicts().count(), 0);
    let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
    assert_eq!(path.syn_drops, 0);
    let id = ask(p);
    p.stack.abort(p.now, id);
    p.expect_nothing();
}

/// Both IP versions.
fn clients() -> [Peer; 2] {
    let v6 = client_knowing(Peer::new(Config::default()).v6(), Some(1440), Some(40));
    [client(Config::default()), v6]
}

/// TIME-WAIT, or a half-open connection, answers with its own numbers (RFC 9293 §3.5.1, RFC 5961 §4.2). The reset ends it.
#[test]
fn a_challenge_ack_brings_the_request_again() {
    for answer in ["A 77 ack 5000", "A 77 ack 4294960000", "PA 77:99 ack 5000", "FA 77 ack 5000"] {
        for mut p in clients() {
            let id = ask(&mut p);
            p.expect_nothing_for(40);
            p.send(answer);
            p.expect(&format!("R {}", answer.rsplit(' ').next().unwrap()));
            expect_request(&mut p, 2);
            p.expect_nothing_for(40);
            accept(&mut p, id);
            assert_eq!(counters(&p.stack), [("Active", 1)]);
            let counted = p.stack.counters();
            assert_eq!((counted.syn_retrans, counted.timeouts, counted.out_rsts), (1, 0, 1));
            let info = p.stack.info(id).unwrap();
            let cwnd = 10 * u32::from(mss(&p));
            assert_eq!((info.syn_data_len, info.syn_data_acked, info.cwnd), (27, 27, cwnd));
            expect_nothing_remembered(&mut p);
        }
    }
}

/// The timestamp tells that the second SYN was answered.
#[test]
fn the_round_trip_is_that_of_the_repeated_request() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.expect_nothing_for(40);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_request(&mut p, 2);
    p.expect_nothing_for(30);
    p.send("SA 0 ack 28 <mss 1460,TS 700 42>");
    p.expect("A 28 ack 1");
    assert_eq!(p.stack.info(id).unwrap().srtt, Some(Duration::from_millis(30)));
}

/// A SYN-ACK of an older SYN, and a reset that acknowledges something else, which is not answered (RFC 9293 §3.10.7.3).
#[test]
fn what_acknowledges_another_syn_brings_the_request_again() {
    for (answer, reset) in [("SA 9 ack 5000 <mss 1460>", Some("R 5000")), ("RA 0 ack 5000", None)] {
        for mut p in clients() {
            let id = ask(&mut p);
            p.expect_nothing_for(40);
            p.send(answer);
            if let Some(reset) = reset {
                p.expect(reset);
            }
            expect_request(&mut p, 2);
            accept(&mut p, id);
            expect_nothing_remembered(&mut p);
        }
    }
}

#[test]
fn a_cookie_request_is_repeated_too() {
    for (answer, granted, held) in [
        ("SA 0 ack 1 <mss 1460,FO 0102030405060708>", true, None),
        ("SA 0 ack 1 <mss 1460>", false, Some(Verdict::Stripped)),
    ] {
        let mut p = Peer::ours();
        let id = p.connect(auto(b"hello"));
        p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO>");
        p.send("A 77 ack 5000");
        p.expect("R 5000");
        p.expect_after(2, "S 0 <mss 1460,sackOK,TS 2 0,wscale 7,FO>");
        p.send(answer);
        p.expect("PA 1:6 ack 1");
        assert_eq!(p.stack.outcome(id), Some(Outcome::CookieRequested { granted }));
        assert_eq!(verdict(&p), held);
    }
    // The repeated request is not answered, the plain SYN is: the older connection may still be there.
    let mut p = Peer::ours();
    p.connect(auto(b"hello"));
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO>");
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    p.expect_after(2, "S 0 <mss 1460,sackOK,TS 2 0,wscale 7,FO>");
    expect_plain(&mut p, 1000);
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("PA 1:6 ack 1");
    assert_eq!(p.stack.path_cache().verdicts().count(), 0);
}

#[test]
fn a_cookie_alone_and_a_fin_are_repeated_too() {
    let mut p = client(Config::default());
    let options = ConnectOptions { fast_open: FastOpen::Auto, data_less: true, ..ConnectOptions::default() };
    let id = p.connect(options);
    p.expect(&format!("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO {COOKIE}>"));
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    p.expect_after(2, &format!("S 0 <mss 1460,sackOK,TS 2 0,wscale 7,FO {COOKIE}>"));
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1 ack 1");
    assert_eq!(p.stack.outcome(id), Some(Outcome::Accepted));

    let mut p = client(Config::default());
    let options = ConnectOptions { fin: true, syn_fin: true, ..auto(b"hello") };
    let id = p.connect(options);
    p.expect("SF 0:5");
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    p.expect_after(2, "SF 0:5");
    p.send("SA 0 ack 7 <mss 1460>");
    p.expect("A 7 ack 1");
    assert_eq!((p.stack.outcome(id), p.state(id)), (Some(Outcome::Accepted), State::FinWait2));
    expect_nothing_remembered(&mut p);
}

/// Data written in the meantime waits: the retransmitted SYN carries no more than the first one.
#[test]
fn the_repeated_request_carries_no_more_than_the_first() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.write(id, &pattern(28, 100));
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_request(&mut p, 2);
    p.send("SA 0 ack 28 <mss 1460>");
    p.expect_bytes("PA 28:128 ack 1", &pattern(28, 100));
}

/// The network delivers the challenge twice, or the peer's limit lets two through.
#[test]
fn two_challenges_bring_one_request() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    for _ in 0..2 {
        p.send("A 77 ack 5000");
        p.expect("R 5000");
    }
    expect_request(&mut p, 2);
    accept(&mut p, id);
    expect_nothing_remembered(&mut p);
}

/// The reset was lost, or the peer ignores resets in TIME-WAIT (`tcp_rfc1337`): the next SYN is plain, and the one after it waits.
#[test]
fn a_second_challenge_brings_the_plain_syn() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_request(&mut p, 2);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_plain(&mut p, 2);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_plain(&mut p, 2);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_plain(&mut p, 1000);
    open_plain(&mut p, id, NotAcknowledged::OldConnection);
    expect_nothing_remembered(&mut p);
}

/// The repeated request is lost: the plain SYN follows as after any other, and nobody knows why.
#[test]
fn no_answer_to_the_repeated_request() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_request(&mut p, 2);
    expect_plain(&mut p, 100);
    open_plain(&mut p, id, NotAcknowledged::OldConnection);
    assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("SynDataRejectedBytes", 27)]);
    expect_nothing_remembered(&mut p);
    // It was only slow.
    let id = ask(&mut p);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_request(&mut p, 2);
    expect_plain(&mut p, 100);
    accept(&mut p, id);
}

/// The challenge comes after the fallback: the SYN that is repeated is the plain one.
#[test]
fn a_late_challenge() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    expect_plain(&mut p, 100);
    p.expect_nothing_for(5);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_plain(&mut p, 2);
    open_plain(&mut p, id, NotAcknowledged::OldConnection);
    expect_nothing_remembered(&mut p);
}

/// Every SYN carried cookie and data, so the answer is about them; and a reset of the repeated request is one as any other.
#[test]
fn the_answer_to_the_repeated_request_counts() {
    for (answer, why, held) in [
        ("SA 0 ack 1 <mss 1460>", NotAcknowledged::Ignored, Some(Verdict::NotAcknowledged)),
        ("SA 0 ack 1 <mss 1460,FO 0102030405060708>", NotAcknowledged::StaleCookie, None),
        ("SA 0 ack 1 <mss 1460,FO c0c0c0c0c0c0c0c0>", NotAcknowledged::Busy, None),
    ] {
        let mut p = client(Config::default());
        let id = ask(&mut p);
        p.send("A 77 ack 5000");
        p.expect("R 5000");
        expect_request(&mut p, 2);
        p.send(answer);
        p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
        assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(why)));
        assert_eq!(verdict(&p), held);
    }
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_request(&mut p, 2);
    p.send("RA 0 ack 28");
    expect_plain(&mut p, 0);
    open_plain(&mut p, id, NotAcknowledged::Reset);
    assert_eq!(verdict(&p), Some(Verdict::Reset));
}

/// Linux's client sends the plain SYN after 2 ms (`tcp_rcv_synsent_state_process`, `TCP_TIMEOUT_MIN`), and counts a lost SYN.
#[test]
fn linux_goes_on_with_the_plain_syn() {
    let mut p = client(linux());
    let id = ask(&mut p);
    p.expect_nothing_for(40);
    p.send("A 77 ack 5000");
    p.expect("R 5000");
    expect_plain(&mut p, 2);
    open_plain(&mut p, id, NotAcknowledged::OldConnection);
    assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("SynDataRejectedBytes", 27)]);
    let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
    assert_eq!(path.syn_drops, 1);
}

/// RFC 7323 §3.2: the SYN-ACK acknowledges our SYN but echoes a time at which none was sent. It is reset, and the plain SYN follows.
#[test]
fn an_echo_of_another_time() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.expect_nothing_for(40);
    p.send("SA 0 ack 28 <mss 1460,TS 5 4000>");
    p.expect("R 28");
    expect_plain(&mut p, 60);
    open_plain(&mut p, id, NotAcknowledged::OldConnection);
    expect_nothing_remembered(&mut p);
}

/// Nobody listens: the reset acknowledges the data, and the plain SYN is refused too.
#[test]
fn a_closed_port() {
    for mut p in clients() {
        let id = ask(&mut p);
        p.expect_nothing_for(40);
        p.send("RA 0 ack 28 win 0");
        expect_plain(&mut p, 0);
        p.expect_nothing_for(40);
        p.send("RA 0 ack 1 win 0");
        assert_eq!(p.stack.close_reason(id), Some(CloseReason::Refused));
        expect_nothing_remembered(&mut p);
    }
}

#[test]
fn unreachable_ends_the_attempt_at_once() {
    for (error, reason) in [
        (IcmpError::HostUnreachable, CloseReason::HostUnreachable),
        (IcmpError::Prohibited, CloseReason::Prohibited),
        (IcmpError::PortUnreachable, CloseReason::PortUnreachable),
        (IcmpError::ProtocolUnreachable, CloseReason::PortUnreachable),
        (IcmpError::TimeExceeded, CloseReason::HostUnreachable),
    ] {
        let mut p = client(Config::default());
        let options = ConnectOptions {
            fast_open: FastOpen::Auto,
            first_bytes: first_bytes(27),
            ..ConnectOptions::default()
        };
        let id = p.connect(options);
        let syn = p.take_packet().unwrap();
        p.expect_nothing_for(40);
        error_about(&mut p, &syn, error);
        assert_eq!(p.stack.close_reason(id), Some(reason));
        p.expect_nothing_for(2000);
        expect_nothing_remembered(&mut p);
    }
}

/// The path takes smaller packets only: the plain SYN goes at once, and the next request is shorter.
#[test]
fn too_big_for_the_path() {
    let mut p = client(Config::default());
    let options = || ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(1400),
        ..ConnectOptions::default()
    };
    let id = p.connect(options());
    let syn = p.take_packet().unwrap();
    p.expect_nothing_for(40);
    error_about(&mut p, &syn, IcmpError::PacketTooBig { mtu: 1000 });
    expect_plain(&mut p, 0);
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1:961 ack 1");
    p.expect("PA 961:1401 ack 1");
    assert_eq!(p.stack.outcome(id), Some(Outcome::NotAcknowledged(NotAcknowledged::TooBig)));
    assert_eq!(p.stack.path_cache().verdicts().count(), 0);
    p.connect(options());
    p.expect("S 0:928");
}

#[test]
fn syns_that_cross() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    p.expect_nothing_for(40);
    p.send("S 0 <mss 1460>");
    p.expect("SA 0 ack 1");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
    assert_eq!(p.stack.outcome(id), Some(Outcome::Skipped(Skipped::Simultaneous)));
    expect_nothing_remembered(&mut p);
}

/// Linux's SYN cookies, and its full Fast Open queue, acknowledge the SYN alone and bring no cookie: so does a server with Fast Open off. Where
/// it worked before, one such answer rules nothing out; two in a row do.
#[test]
fn syn_cookies_and_full_queues() {
    let mut p = client(Config::default());
    let id = ask(&mut p);
    accept(&mut p, id);
    for _ in 0..3 {
        let id = ask(&mut p);
        open_plain(&mut p, id, NotAcknowledged::Ignored);
        assert_eq!(verdict(&p), None);
        let id = ask(&mut p);
        accept(&mut p, id);
    }
    assert_eq!(p.stack.path_cache().verdicts().count(), 0, "success forgets the doubt");
    for held in [None, Some(Verdict::NotAcknowledged)] {
        let id = ask(&mut p);
        open_plain(&mut p, id, NotAcknowledged::Ignored);
        assert_eq!(verdict(&p), held);
    }
}

/// The queue before our own device was full: the SYN with data never left.
#[test]
fn our_own_queue_is_full() {
    let mut p = client(Config::default());
    p.queue_is_full = true;
    let options = ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    };
    let id = p.connect(options);
    p.expect_nothing();
    assert_eq!(p.refused, 1);
    p.queue_is_full = false;
    expect_plain(&mut p, 100);
    open_plain(&mut p, id, NotAcknowledged::Lost);
    expect_nothing_remembered(&mut p);
}

/// A client with other secrets, as after a restart, which knows the cookie and no more.
fn restarted(p: &mut Pair, config: &Config, seed: u8) {
    let mut stack = Stack::new(config.clone(), ethernet(), [seed; 32]);
    stack.add_address("10.0.0.1".parse().unwrap(), 24);
    let (local, peer) = ("10.0.0.1".parse::<IpAddr>().unwrap().into(), p.server.ip().into());
    let cookie = p.stacks[CLIENT].path_cache().lookup(local, peer).unwrap().cookie.unwrap();
    stack.path_cache_mut().entry(p.now, local, peer).store_cookie(cookie, FastOpenKind::Standard);
    p.stacks[CLIENT] = stack;
}

/// One exchange that the server ends first, so that it keeps TIME-WAIT.
fn exchange(p: &mut Pair, listener: ListenerId) -> Outcome {
    let id = p.connect(auto(b"hello"));
    p.run(200);
    let child = p.accept(listener).unwrap();
    assert_eq!(p.read(SERVER, child), Ok(b"hello".to_vec()));
    p.stacks[SERVER].close(p.now, child);
    p.run(100);
    let outcome = p.stacks[CLIENT].outcome(id).unwrap();
    p.stacks[CLIENT].close(p.now, id);
    p.run(100);
    outcome
}

/// New secrets make numbers and timestamps that may look old to the server's TIME-WAIT. Fast Open works on each of the four ports all the same.
#[test]
fn a_client_that_restarts_meets_its_own_time_wait() {
    let config = Config::default().port_low(40_000).port_high(40_003);
    let mut p = Pair::new(config.clone(), linux(), 20);
    let listener = p.listen(16);
    p.obtain_cookie(listener);
    let mut challenged = 0;
    for seed in 1..=8 {
        restarted(&mut p, &config, seed);
        p.log.clear();
        let outcomes: Vec<Outcome> = (0..4).map(|_| exchange(&mut p, listener)).collect();
        assert_eq!(outcomes, [Outcome::Accepted; 4], "seed {seed}: {:?}", p.ladder());
        assert_eq!(p.stacks[CLIENT].path_cache().verdicts().count(), 0);
        challenged += p.log.iter().filter(|sent| sent.header.flags == Flags::RST).count();
    }
    assert!((4..=24).contains(&challenged), "{challenged} of 28 SYNs were challenged");
}
