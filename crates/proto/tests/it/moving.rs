//! Connections that go from one stack to another, or are put together by hand, without a packet that tells of it.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use crate::random::Random;
use core::time::Duration;
use proto::*;

/// The peer's stack knows nothing of it; the new one has what the old one had.
fn another(p: &mut Peer) -> Stack {
    let wire = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let mut stack = Stack::new(p.stack.config().clone(), wire, [9; 32]);
    for address in p.stack.addresses().collect::<Vec<_>>() {
        stack.add_address(address, 24);
    }
    std::mem::replace(&mut p.stack, stack)
}

const SYN: &str = "S 0 win 64240 <mss 1000,sackOK,TS 500 0,wscale 7>";

/// Text that was sent and lost, text that waits for the window, text that was not read: all of it goes along. The new stack asks where the
/// peer is, and what was lost is retransmitted after a time-out.
#[test]
fn what_was_sent_and_what_was_not_goes_along() {
    let mut p = Peer::new(Config::linux().tcp_early_retrans(0));
    let listener = p.listen();
    let id = p.establish_with(listener, SYN);
    p.send("PA 1:101 ack 1 win 20 <TS 510 0>");
    p.skip(50);
    p.send("A 101 ack 1 win 20 <TS 510 0>");
    let text = pattern(1, 4000);
    p.write(id, &text);
    // 20 << 7 bytes of window; segments of 988.
    p.expect("A 1:989 ack 101");
    p.expect("A 989:1977 ack 101");
    p.expect_nothing();
    let before = p.stack.info(id).unwrap();
    let saved = p.stack.save_connection(p.now, id).unwrap();
    assert_eq!((&saved.unacknowledged[..], saved.unsent), (&text[..], 4000 - 1976));
    assert_eq!(saved.unread, pattern(1, 100));
    assert_eq!((saved.peer_mss, saved.window_scale, saved.sack), (1000, Some((7, 10)), true));
    assert_eq!((saved.windows.snd_wnd, saved.windows.max_window), (20 << 7, 65_535 << 7));
    p.stack.discard(p.now, id);
    p.expect_nothing();
    assert_eq!((p.stack.state(id), p.sizes()), (None, (0, 0, 0)));

    let mut old = another(&mut p);
    let id = p.stack.restore_connection(p.now, &saved, SocketOptions::default()).unwrap();
    assert_eq!(
        p.stack.save_connection(p.now, id).unwrap(),
        SavedConnection {
            // The window counts from the peer's next answer.
            windows: Windows { snd_wl1: saved.rcv_nxt - 1, ..saved.windows },
            ..saved.clone()
        }
    );
    let after = p.stack.info(id).unwrap();
    assert_eq!((after.state, after.snd_mss), (State::Established, before.snd_mss));
    // A window probe: an old number.
    p.expect("A 0 ack 101");
    p.expect_nothing();
    assert_eq!(p.read(id).unwrap(), pattern(1, 100));
    // The peer has the first segment, and opens its window.
    p.send("A 101 ack 989 win 60 <TS 520 0>");
    p.expect("A 1977:2965 ack 101");
    p.expect("A 2965:3953 ack 101");
    p.expect("PA 3953:4001 ack 101");
    p.send("A 101 ack 989 win 60 <TS 530 0,sack 1977:4001>");
    p.expect("PA 989:1977 ack 101");
    p.send("A 101 ack 4001 win 60 <TS 540 0>");
    assert_eq!(p.stack.queues(id).unwrap().unacknowledged, 0);
    assert!(old.poll_transmit(p.now).is_none(), "the old one is silent");
}

/// What was read just before opened the window, of which nobody has told: the new stack does, even where the text that would go instead of its
/// question is kept back.
#[test]
fn a_window_that_was_opened_before_is_told_behind() {
    let mut p = Peer::new(Config::default());
    let socket = SocketOptions { recv_buffer: Some(0), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000>");
    p.send("A 1:577 ack 1");
    p.send("A 577:1153 ack 1");
    p.expect("A 1 ack 1153 win 0");
    assert_eq!(p.read(id).unwrap().len(), 1152);
    let saved = p.stack.save_connection(p.now, id).unwrap();
    p.stack.discard(p.now, id);
    another(&mut p);
    let options = SocketOptions { recv_buffer: Some(0), ..SocketOptions::default() };
    let id = p.stack.restore_connection(p.now, &saved, options).unwrap();
    for (text, flags) in [(&b"more "[..], WriteFlags::empty()), (b"follows", WriteFlags::MORE)] {
        assert_eq!(p.stack.write_with(p.now, id, text, flags), Ok(text.len()));
    }
    p.expect("A 1 ack 1153 win 1152");
    p.expect_nothing();
}

/// Nobody answers: what was sent before is retransmitted after the first time-out, a second, and no round trip is measured by what the peer
/// acknowledges then.
#[test]
fn without_an_answer_a_time_out_repeats_what_was_sent() {
    let mut p = Peer::new(Config::linux().tcp_early_retrans(0));
    let listener = p.listen();
    let id = p.establish_with(listener, SYN);
    p.write(id, &pattern(1, 500));
    p.expect("PA 1:501 ack 1");
    let saved = p.stack.save_connection(p.now, id).unwrap();
    p.stack.discard(p.now, id);
    another(&mut p);
    let id = p.stack.restore_connection(p.now, &saved, SocketOptions::default()).unwrap();
    p.expect("A 0 ack 1");
    p.expect_after(1000, "PA 1:501 ack 1");
    p.skip(30);
    p.send("A 1 ack 501 win 500");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.flight_size, info.srtt), (0, None));
}

/// What cannot be moved, and where it cannot go.
#[test]
fn only_established_connections_move_and_only_to_free_names() {
    let mut p = Peer::new(Config::default());
    let listener = p.listen();
    let id = p.establish_with(listener, SYN);
    let saved = p.stack.save_connection(p.now, id).unwrap();
    let options = SocketOptions::default;
    assert_eq!(p.stack.restore_connection(p.now, &saved, options()), Err(ConnectError::AddrInUse));
    let elsewhere = SavedConnection { local: "192.0.2.1:80".parse().unwrap(), ..saved.clone() };
    assert_eq!(p.stack.restore_connection(p.now, &elsewhere, options()), Err(ConnectError::AddrNotAvailable));
    let nobody = SavedConnection { peer: "10.0.0.9:0".parse().unwrap(), ..saved.clone() };
    assert_eq!(p.stack.restore_connection(p.now, &nobody, options()), Err(ConnectError::InvalidPeer));
    p.stack.shutdown(p.now, id).unwrap();
    assert_eq!(p.stack.save_connection(p.now, id), None, "its FIN is on its way");
    p.stack.discard(p.now, id);
    p.expect_nothing();
    assert_eq!(p.stack.save_connection(p.now, id), None, "it is gone");
    // The listener of the same name is in nobody's way.
    let id = p.stack.restore_connection(p.now, &saved, options()).unwrap();
    assert_eq!(p.state(id), State::Established);
    assert_eq!(p.stack.repair(p.now, id, Repair::Mss(500)), Ok(()));
    p.stack.abort(p.now, id);
    assert_eq!(p.stack.repair(p.now, id, Repair::Sack), Err(WriteError::NotFound));
}

/// Values that no stack would save: whatever they say, nothing panics, and what follows is a connection like others.
#[test]
fn nonsense_is_borne() {
    for (scale, mss, wnd) in [(Some((200, 200)), 0, u32::MAX), (Some((0, 14)), 1, 0), (None, u16::MAX, 1)] {
        let mut p = Peer::new(Config::default());
        let saved = SavedConnection {
            local: p.local,
            peer: p.remote,
            snd_una: SeqNum(u32::MAX - 2),
            unacknowledged: pattern(1, 3000).into(),
            unsent: 10_000,
            rcv_nxt: SeqNum(1),
            unread: pattern(1, 300_000).into(),
            peer_mss: mss,
            window_scale: scale,
            sack: true,
            timestamps: Some((7, 0)),
            windows: Windows { snd_wnd: wnd, rcv_wnd: wnd, ..Windows::default() },
        };
        let id = p.stack.restore_connection(p.now, &saved, SocketOptions::default()).unwrap();
        assert_eq!(p.read(id).unwrap().len(), 300_000);
        p.skip(120_000);
        p.stack.handle_timeout(p.now + Duration::from_secs(4000));
    }
}

/// No shift is larger than 14 (RFC 7323 §2.3).
#[test]
fn shifts_beyond_the_largest_are_taken_for_it() {
    let (mut p, id) = established(SocketOptions::default());
    p.stack.repair(p.now, id, Repair::WindowScale(200, 200)).unwrap();
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.snd_wscale, info.rcv_wscale), (14, 14));
    p.send("PA 1:101 ack 1 win 1");
    p.expect_only_acks();
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 1 << 14);
}

/// Nothing follows a FIN, either way.
#[test]
fn text_behind_a_fin_is_refused() {
    let (mut p, id) = established(SocketOptions::default());
    p.send("FA 1 ack 1");
    assert_eq!(p.stack.repair(p.now, id, Repair::Received(b"late")), Err(WriteError::Shutdown));
    p.expect_after(40, "A 1 ack 2");
    assert_eq!(p.stack.repair(p.now, id, Repair::Sent(&pattern(1, 10))), Ok(()));
    p.stack.shutdown(p.now, id).unwrap();
    assert_eq!(p.stack.repair(p.now, id, Repair::Sent(b"late")), Err(WriteError::Shutdown));
    p.expect("FA 11 ack 2");
    p.send("A 2 ack 12");
    p.expect_nothing();
    assert_eq!(p.state(id), State::Closed);
}

/// What waited when more is put behind it counts as sent, too (as Linux moves all that is queued).
#[test]
fn what_waits_before_text_that_was_sent_was_sent() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    let id = p.establish(listener);
    p.send("A 1 ack 1 win 0");
    p.write(id, &pattern(1, 2000));
    p.expect_nothing();
    p.stack.repair(p.now, id, Repair::Sent(&pattern(2001, 1000))).unwrap();
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.flight_size, info.tcp_info.unacked), (3000, 3000));
    p.send("A 1 ack 3001 win 65535");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.flight_size, info.tcp_info.unacked), (0, 0));
    p.write(id, &pattern(3001, 10));
    p.expect("PA 3001:3011 ack 1");
}

const SEEDS: u64 = 25;
const BYTES: usize = 150_000;

/// The connection is taken out of its stack and put back, as another stack would: what is on its way meanwhile arrives.
fn moved(pair: &mut Pair, side: usize, id: ConnId) -> ConnId {
    let (now, stack) = (pair.now, &mut pair.stacks[side]);
    let Some(saved) = stack.save_connection(now, id) else { return id };
    stack.discard(now, id);
    stack.restore_connection(now, &saved, SocketOptions::default()).unwrap()
}

/// Bytes both ways on a path that loses, reorders and duplicates, while either end moves again and again: each arrives once, in order.
fn exchange(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut config = || {
        if random.chance(50) { Config::linux() } else { Config::default() }
            .tcp_timestamps(random.chance(70).into())
            .tcp_sack(random.chance(70))
            .tcp_window_scaling(random.chance(80))
            .tcp_congestion_control(random.pick(CongestionControl::ALL))
    };
    let mut pair = Pair::new(config(), config(), 20);
    let (loss, reorder, duplicate) = (random.below(6), random.below(8), random.below(4));
    pair.trouble(seed, [loss, reorder, duplicate]);
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    pair.run(4000);
    let mut ids = [id, pair.accept(listener).expect("accepted")];
    let data = [pattern(1, BYTES), pattern(77, BYTES)];
    let (begun, mut moves) = (pair.now, 0);
    let (mut written, mut heard) = ([0; 2], [Vec::new(), Vec::new()]);
    while heard.iter().any(|heard| heard.len() < BYTES) {
        let now = pair.now;
        for side in [CLIENT, SERVER] {
            let rest = &data[side][written[side]..];
            written[side] += pair.stacks[side].write(now, ids[side], rest).unwrap_or(0);
            if random.chance(4) {
                ids[side] = moved(&mut pair, side, ids[side]);
                moves += 1;
            }
        }
        pair.run(10);
        for side in [CLIENT, SERVER] {
            // Sometimes what came is left where it is, and goes along.
            if random.chance(60) {
                heard[1 - side].extend(pair.read(side, ids[side]).unwrap_or_default());
            }
        }
        let got = heard.each_ref().map(Vec::len);
        assert!(pair.ms_since(begun) < 900_000, "seed {seed}: stuck at {got:?} of {BYTES}");
    }
    assert!(heard == data, "seed {seed}: the bytes are not those sent");
    pair.run(20_000);
    for side in [CLIENT, SERVER] {
        let info = pair.stacks[side].info(ids[side]).expect("still open");
        assert_eq!(
            (info.state, info.send_queue, info.flight_size),
            (State::Established, 0, 0),
            "seed {seed}"
        );
    }
    let now = pair.now;
    [CLIENT, SERVER].into_iter().for_each(|side| pair.stacks[side].close(now, ids[side]));
    pair.run(200_000);
    assert!(pair.stacks.iter().all(|stack| stack.table_sizes().connections == 0), "seed {seed}: still there");
    moves
}

#[test]
fn every_byte_arrives_once_however_often_either_end_moves() {
    let moves: u64 = (0..SEEDS).map(exchange).sum();
    assert!(moves > SEEDS, "{moves}");
}
