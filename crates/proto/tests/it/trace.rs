//! The trace: which events, in which order, at which times; and that a buffer that is full loses them visibly.

use crate::pair::*;
use crate::peer::*;
use proto::*;

/// Every waiting event as a line, without the addresses.
fn lines(stack: &mut Stack) -> Vec<String> {
    std::iter::from_fn(|| stack.poll_trace())
        .map(|event| {
            let ends = event.ends.map(|(local, peer)| format!("{local} {peer} ")).unwrap_or_default();
            event.to_string().replace(&ends, "")
        })
        .collect()
}

const CHANGES: TraceMask = TraceMask::all().difference(TraceMask::RECEIVED).difference(TraceMask::SENT);

#[test]
fn an_exchange_is_told_in_the_order_of_time() {
    let mut pair = Pair::ours();
    pair.stacks[CLIENT].set_trace(CHANGES);
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions { first_bytes: pattern(1, 100).into(), ..Default::default() });
    pair.run(100);
    let child = pair.accept(listener).unwrap();
    pair.read(SERVER, child).unwrap();
    let now = pair.now;
    pair.stacks[CLIENT].close(now, id);
    pair.run(100);
    let now = pair.now;
    pair.stacks[SERVER].close(now, child);
    pair.run(100);
    assert_eq!(
        lines(&mut pair.stacks[CLIENT]),
        [
            "1000.000000 state SynSent",
            "1000.000000 limited by nothing -> the handshake",
            "1000.040000 state SynSent -> Established",
            "1000.040000 srtt 40.000ms rttvar 20.000ms rto 200.000ms",
            "1000.040000 limited by the handshake -> the application",
            "1000.085000 srtt 40.625ms rttvar 16.250ms rto 200.000ms",
            "1000.085000 limited by the application -> nothing",
            "1000.100000 state Established -> FinWait1",
            "1000.100000 limited by nothing -> the application",
            "1000.145000 state FinWait1 -> FinWait2",
        ]
    );
}

#[test]
fn segments_show_raw_and_scaled_windows() {
    let mut p = Peer::ours();
    p.stack.set_trace(TraceMask::RECEIVED | TraceMask::SENT);
    p.listen();
    p.send("S 0 win 65535 <mss 1460>");
    p.expect("SA 0 ack 1");
    let told = lines(&mut p.stack);
    assert!(told[0].ends_with("in  [S] seq 4294967040 len 0 win 65535 no wscale"), "{told:?}");
    assert!(told[1].ends_with("ack 4294967041 win 64240 no wscale"), "{told:?}");

    let mut p = Peer::ours();
    p.stack.set_trace(TraceMask::RECEIVED | TraceMask::SENT);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,wscale 7>");
    p.send("A 1 ack 1 win 512");
    let told = lines(&mut p.stack);
    assert!(
        told[0].ends_with("win 65535 wscale 7") && told.last().unwrap().ends_with("win 512 = 65536"),
        "{told:?}"
    );
    p.write(id, &pattern(1, 5));
    p.expect("PA 1:6 ack 1");
    let told = lines(&mut p.stack);
    assert!(told[0].contains("out [P.] ") && told[0].contains(" len 5 "), "{told:?}");
    p.send("A 1 ack 6 win 0");
    assert!(lines(&mut p.stack)[0].ends_with("win 0 (zero window)"));
}

/// A loss found by SACK, one found by the timer, a handshake repeated: each with its reason, and what it does to the windows.
#[test]
fn retransmissions_say_why() {
    let mut p = Peer::ours();
    p.stack.set_trace(CHANGES.difference(TraceMask::LIMITED).difference(TraceMask::RTT));
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK,wscale 7>");
    p.write(id, &pattern(1, 10_000));
    p.expect_range(1..10001);
    p.now = p.now + core::time::Duration::from_millis(10);
    p.send("A 1 ack 1 win 512 <sack 1001:5001>");
    p.expect("A 1:1001 ack 1");
    p.send("A 1 ack 10001 win 512");
    p.write(id, &pattern(10_001, 1000));
    p.expect("PA 10001:11001 ack 1");
    let told: Vec<String> = lines(&mut p.stack)
        .iter()
        .map(|line| {
            line.split(' ').filter(|word| word.len() < 10 || word.contains('.')).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "1000.000000 state",
            "1000.010000 ca_state Open -> Recovery",
            "1000.010000 cwnd 10000 -> 7000",
            "1000.010000 ssthresh none -> 7000",
            "1000.010000 again seq len 1000: lost",
            "1000.010000 ca_state Recovery -> Open",
            "1000.010000 cwnd 7000 -> 7453",
        ]
    );
    p.skip(3000);
    let told = lines(&mut p.stack);
    assert!(told.iter().any(|line| line.ends_with("len 1000: tail loss probe")), "{told:?}");
    assert!(told.iter().any(|line| line.ends_with("len 1000: time-out")), "{told:?}");
    assert!(told.iter().any(|line| line.ends_with("ca_state Open -> Loss")), "{told:?}");
    assert!(told.iter().any(|line| line.ends_with("cwnd 7453 -> 1000")), "{told:?}");

    let mut p = Peer::ours();
    p.stack.set_trace(TraceMask::RETRANSMITTED);
    p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.skip(1000);
    assert!(lines(&mut p.stack)[0].ends_with("len 0: no answer to the handshake"));
}

#[test]
fn drops_say_why() {
    let mut p = Peer::ours();
    p.stack.set_trace(TraceMask::DROPPED);
    let listener = p.listen();
    p.establish_with(listener, "S 0 win 65535 <mss 1000,TS 1000 0,wscale 7>");
    p.send("A 1:11 ack 1 win 512 <TS 1001 0>");
    p.expect_nothing();
    lines(&mut p.stack);
    p.send("A 11:21 ack 1 win 512 <TS 10 0>");
    p.remote = "10.0.0.1:40001".parse().unwrap();
    p.send("R 5");
    let mut bad = p.packet("S 0").to_vec();
    bad[36] ^= 1;
    p.send_rx(RxPacket::new(bad.into()));
    p.send_rx(RxPacket::new(vec![0x45; 10].into()));
    let told: Vec<String> = lines(&mut p.stack).iter().map(|line| line[12..].to_owned()).collect();
    assert_eq!(
        told,
        ["dropped: PAWSEstab", "dropped: StrayReset", "dropped: TcpChecksum", "dropped: IpHeader"]
    );
}

#[test]
fn one_connection_can_be_traced_among_many() {
    let mut pair = Pair::ours();
    pair.listen(0);
    let ids: Vec<ConnId> = (0..3).map(|_| pair.connect(ConnectOptions::default())).collect();
    pair.stacks[CLIENT].trace_connection(ids[1], TraceMask::STATE);
    pair.run(100);
    let local = pair.stacks[CLIENT].info(ids[1]).unwrap().local;
    let told: Vec<_> = std::iter::from_fn(|| pair.stacks[CLIENT].poll_trace()).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(told[1].ends, told[0].ends);
    assert_eq!(told[0].ends.unwrap().0, local);
    assert_eq!(told[0].what, Traced::State { from: None, to: State::SynSent });
    assert_eq!(told[1].what, Traced::State { from: Some(State::SynSent), to: State::Established });
    pair.stacks[CLIENT].trace_connection(ids[1], TraceMask::empty());
    let now = pair.now;
    pair.stacks[CLIENT].close(now, ids[1]);
    pair.run(100);
    assert_eq!(pair.stacks[CLIENT].poll_trace(), None);
}

#[test]
fn a_full_buffer_counts_what_it_loses() {
    let mut p = Peer::ours();
    p.stack.set_trace(TraceMask::RECEIVED);
    for _ in 0..65_536 + 5 {
        p.stack.handle_packet(p.now, RxPacket::new(p.packet("R 5")));
    }
    assert_eq!((p.stack.take_trace_lost(), p.stack.take_trace_lost()), (5, 0));
    assert_eq!(lines(&mut p.stack).len(), 65_536);
    p.stack.set_trace(TraceMask::empty());
    p.send("R 5");
    assert_eq!(p.stack.poll_trace(), None);
}

/// A trace changes nothing: the same packets at the same times.
#[test]
fn packets_are_the_same_with_and_without_a_trace() {
    let run = |traced: bool| {
        let mut pair = Pair::ours();
        if traced {
            pair.stacks.iter_mut().for_each(|stack| stack.set_trace(TraceMask::all()));
        }
        let listener = pair.listen(16);
        pair.obtain_cookie(listener);
        let mut count = 0;
        pair.filter = Box::new(move |_| {
            count += 1;
            count % 7 != 0
        });
        let id = pair.connect(ConnectOptions {
            fast_open: FastOpen::Auto,
            first_bytes: pattern(1, 100).into(),
            ..Default::default()
        });
        pair.run(500);
        let child = pair.accept(listener).unwrap();
        pair.write(SERVER, child, &[7; 100_000]);
        pair.run(5000);
        pair.read(CLIENT, id).unwrap();
        pair.log.iter().map(|sent| (sent.at, sent.packet.clone())).collect::<Vec<_>>()
    };
    assert_eq!(run(false), run(true));
}
