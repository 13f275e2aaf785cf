//! Segments signed by MD5 (RFC 2385): who has a key for a peer takes nothing else from it, and says nothing without.

use crate::pair::{CLIENT, Pair, SERVER, ethernet};
use crate::peer::{Peer, pattern};
use crate::random::Random;
use proto::*;
use std::net::IpAddr;

fn keys(peer: &str, prefix_len: u8, secret: &str) -> SocketOptions {
    let mut md5_keys = Md5Keys::default();
    let address = peer.parse().unwrap();
    md5_keys.insert(Md5Key { address, prefix_len, of_domain: false, secret: secret.as_bytes().into() });
    SocketOptions { md5_keys, ..SocketOptions::default() }
}

fn listen(pair: &mut Pair, socket: SocketOptions) -> ListenerId {
    let options = ListenOptions { socket, fast_open: Some(9), ..ListenOptions::default() };
    pair.stacks[SERVER].listen(pair.now, pair.server, options).unwrap()
}

fn connect(pair: &mut Pair, socket: SocketOptions) -> ConnId {
    pair.connect(ConnectOptions { socket, fast_open: FastOpen::Auto, ..ConnectOptions::default() })
}

/// A listener and a signed connection to it: the client's end, and the server's.
fn signed() -> (Pair, ListenerId, ConnId, ConnId) {
    let mut pair = Pair::ours();
    let listener = listen(&mut pair, keys("10.0.0.1", 32, "one"));
    let id = connect(&mut pair, keys("10.0.0.2", 32, "one"));
    pair.run(200);
    let child = pair.accept(listener).unwrap();
    (pair, listener, id, child)
}

/// Bytes both ways over a path that loses and reorders, from SYN to TIME-WAIT: every packet is signed, and rightly.
fn exchange(seed: u64) {
    let mut random = Random(seed);
    let mut config = || {
        if random.chance(50) { Config::linux() } else { Config::default() }
            .tcp_timestamps(random.chance(70).into())
            .tcp_sack(random.chance(70))
    };
    let mut pair = Pair::new(config(), config(), 20);
    let v6 = random.chance(50);
    let (wide, client, server) =
        if v6 { ("fd00::", "fd00::1", "fd00::2") } else { ("10.0.0.0", "10.0.0.1", "10.0.0.2") };
    pair.server.set_ip(server.parse::<IpAddr>().unwrap());
    let loss = random.below(6);
    let mut dice = Random(seed ^ 0x5eed);
    pair.filter = Box::new(move |sent| {
        assert!(sent.header.options.md5, "unsigned: {:?}", sent.header);
        sent.len == 0 || !dice.chance(loss)
    });
    let by_prefix = random.chance(50);
    let (own, whole) = if by_prefix { (wide, 8) } else { (client, if v6 { 128 } else { 32 }) };
    let listener = listen(&mut pair, keys(own, whole, "secret"));
    let id = connect(&mut pair, keys(server, if v6 { 128 } else { 32 }, "secret"));
    pair.run(4000);
    let child = pair.accept(listener).expect("accepted");
    let data = pattern(1, 60_000);
    let (mut written, mut heard) = ([0; 2], [Vec::new(), Vec::new()]);
    let begun = pair.now;
    while heard.iter().any(|heard| heard.len() < data.len()) {
        let now = pair.now;
        for (side, id) in [(CLIENT, id), (SERVER, child)] {
            written[side] += pair.stacks[side].write(now, id, &data[written[side]..]).unwrap_or(0);
        }
        pair.run(10);
        for (side, id) in [(CLIENT, id), (SERVER, child)] {
            heard[side].extend(pair.read(side, id).unwrap_or_default());
        }
        assert!(pair.ms_since(begun) < 600_000, "seed {seed}: stuck");
    }
    assert!(heard.iter().all(|heard| *heard == data), "seed {seed}");
    let now = pair.now;
    pair.stacks[CLIENT].close(now, id);
    pair.run(5000);
    let now = pair.now;
    pair.stacks[SERVER].close(now, child);
    pair.run(200_000);
    for stack in &pair.stacks {
        let counters = stack.counters();
        let wrong = (counters.md5_not_found, counters.md5_unexpected, counters.md5_failure);
        assert_eq!((wrong, stack.table_sizes().connections), ((0, 0, 0), 0), "seed {seed}");
    }
}

#[test]
fn every_packet_of_a_signed_connection_is_signed() {
    (0..30).for_each(exchange);
}

/// The client's SYN is dropped and counted, in each of the three ways to be wrong; nobody answers.
#[test]
fn what_is_not_signed_as_due_is_not_answered() {
    let client =
        |secret: Option<&str>| secret.map_or(SocketOptions::default(), |secret| keys("10.0.0.2", 32, secret));
    for (server, secret, counted) in [
        (keys("10.0.0.1", 32, "right"), None, (1, 0, 0)),
        (SocketOptions::default(), Some("right"), (0, 1, 0)),
        (keys("10.0.0.9", 32, "right"), Some("right"), (0, 1, 0)),
        (keys("10.0.0.1", 32, "right"), Some("wrong"), (0, 0, 1)),
    ] {
        let mut pair = Pair::ours();
        listen(&mut pair, server);
        let id = connect(&mut pair, client(secret));
        pair.run(100);
        let counters = pair.stacks[SERVER].counters();
        let wrong = (counters.md5_not_found, counters.md5_unexpected, counters.md5_failure);
        assert_eq!((wrong, pair.ladder().len()), (counted, 1), "{secret:?}");
        assert_eq!(pair.stacks[CLIENT].state(id), Some(State::SynSent));
    }
    // Where nobody listens who signs is not reset, who does not is.
    for (secret, packets) in [(Some("right"), 1), (None, 2)] {
        let mut pair = Pair::ours();
        pair.connect(ConnectOptions { socket: client(secret), ..ConnectOptions::default() });
        pair.run(100);
        assert_eq!(pair.ladder().len(), packets, "{secret:?}");
    }
}

/// A signature takes 20 bytes of every segment; a key that changes on one side ends what is understood until the other one's does.
#[test]
fn keys_change_under_a_connection() {
    let (mut pair, _, id, child) = signed();
    // 1460, with timestamps given up for SACK.
    assert_eq!(pair.stacks[CLIENT].info(id).unwrap().snd_mss, 1440);
    let now = pair.now;
    pair.stacks[CLIENT].set_md5_keys(now, id, keys("10.0.0.2", 32, "two").md5_keys).unwrap();
    pair.write(CLIENT, id, b"hello");
    pair.run(1000);
    assert_eq!(pair.read(SERVER, child), Err(ReadError::Blocked));
    assert!(pair.stacks[SERVER].counters().md5_failure > 0);
    let now = pair.now;
    pair.stacks[SERVER].set_md5_keys(now, child, keys("10.0.0.1", 32, "two").md5_keys).unwrap();
    pair.run(5000);
    assert_eq!(pair.read(SERVER, child), Ok(b"hello".to_vec()));
    let now = pair.now;
    for (side, id) in [(CLIENT, id), (SERVER, child)] {
        pair.stacks[side].set_md5_keys(now, id, Md5Keys::default()).unwrap();
    }
    assert_eq!(pair.stacks[CLIENT].info(id).unwrap().snd_mss, 1460);
    pair.write(CLIENT, id, b"plain");
    pair.run(1000);
    assert_eq!(pair.read(SERVER, child), Ok(b"plain".to_vec()));
    assert!(!pair.log.last().unwrap().header.options.md5);
}

/// Of a long write segments leave while it goes on; they are still there when the connection has ended.
#[test]
fn what_leaves_amid_a_write_is_signed_although_its_connection_ends() {
    let mut pair = Pair::new(Config::linux(), Config::linux(), 20);
    pair.filter = Box::new(|sent| {
        assert!(sent.header.options.md5, "unsigned: {:?}", sent.header);
        true
    });
    listen(&mut pair, keys("10.0.0.1", 32, "one"));
    let id = connect(&mut pair, keys("10.0.0.2", 32, "one"));
    pair.run(200);
    let (now, before) = (pair.now, pair.log.len());
    pair.stacks[CLIENT].write(now, id, &pattern(1, 8000)).unwrap();
    pair.stacks[CLIENT].abort(now, id);
    pair.run(200);
    let texts = pair.log[before..].iter().filter(|sent| sent.len > 0).count();
    assert!(texts > 0, "nothing left amid the write");
}

/// A listener's reset of what it does not know is signed; one of ours that ends a connection, too.
#[test]
fn resets_are_signed() {
    let (mut pair, listener, id, child) = signed();
    let now = pair.now;
    pair.stacks[CLIENT].abort(now, id);
    pair.run(200);
    assert_eq!(pair.read(SERVER, child), Err(ReadError::Closed(CloseReason::Reset)));
    let id = connect(&mut pair, keys("10.0.0.2", 32, "one"));
    pair.run(200);
    let child = pair.accept(listener).unwrap();
    let now = pair.now;
    pair.stacks[SERVER].discard(now, child);
    pair.write(CLIENT, id, b"who?");
    pair.run(200);
    assert_eq!(pair.read(CLIENT, id), Err(ReadError::Closed(CloseReason::Reset)));
}

/// An ACK with a signature nobody asked for does not complete a handshake; the plain one behind it does.
#[test]
fn a_signature_that_nobody_expects_is_dropped() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    let mut signed = TxPacket::new(&p.packet("A 1 ack 1"), Default::default());
    assert!(signed.sign(b"a key"));
    p.send_rx(RxPacket::new(signed.segments().pop().unwrap()));
    p.expect_nothing();
    assert_eq!(p.stack.counters().md5_unexpected, 1);
    assert!(p.stack.accept(p.now, listener).is_err());
    p.send("A 1 ack 1");
    p.accept(listener);
}

/// A stack that takes up a signed connection need not have had a socket with a key before.
#[test]
fn a_signed_connection_goes_on_in_another_stack() {
    let (mut pair, _, id, child) = signed();
    let now = pair.now;
    let saved = pair.stacks[SERVER].save_connection(now, child).unwrap();
    pair.stacks[SERVER] = Stack::new(Config::default(), ethernet(), [3; 32]);
    pair.stacks[SERVER].add_address("10.0.0.2".parse().unwrap(), 24);
    let options = keys("10.0.0.1", 32, "one");
    let child = pair.stacks[SERVER].restore_connection(now, &saved, options).unwrap();
    for (side, id) in [(CLIENT, id), (SERVER, child)] {
        pair.write(side, id, b"hello");
    }
    pair.run(200);
    assert_eq!(pair.read(CLIENT, id), Ok(b"hello".to_vec()));
    assert_eq!(pair.read(SERVER, child), Ok(b"hello".to_vec()));
}

/// Nobody has a key for the tuple any more when it leaves.
#[test]
fn the_reset_that_ends_a_connection_is_signed_although_nobody_listens() {
    let (mut pair, listener, id, child) = signed();
    let now = pair.now;
    pair.stacks[SERVER].close_listener(now, listener);
    pair.stacks[SERVER].close(now, child);
    pair.write(CLIENT, id, b"who reads this?");
    pair.run(200);
    assert_eq!(pair.read(CLIENT, id), Err(ReadError::Closed(CloseReason::Reset)));
}

/// Of three clients that believe themselves connected the last found the queue full.
#[test]
fn resets_of_a_listener_that_closes_are_signed() {
    let mut pair = Pair::ours();
    let options =
        ListenOptions { socket: keys("10.0.0.1", 32, "one"), backlog: 1, ..ListenOptions::default() };
    let listener = pair.stacks[SERVER].listen(pair.now, pair.server, options).unwrap();
    let ids = [200, 0, 200].map(|ms| {
        let id = connect(&mut pair, keys("10.0.0.2", 32, "one"));
        pair.run(ms);
        id
    });
    assert_eq!(pair.stacks[SERVER].table_sizes().requests, 1);
    let now = pair.now;
    pair.stacks[SERVER].close_listener(now, listener);
    pair.run(200);
    for id in ids {
        assert_eq!(pair.read(CLIENT, id), Err(ReadError::Closed(CloseReason::Reset)));
    }
}

/// A client whose port is always the same.
fn connect_again(pair: &mut Pair, socket: SocketOptions) -> ConnId {
    let local = Some("10.0.0.1:5000".parse().unwrap());
    pair.connect(ConnectOptions { socket, local, ..ConnectOptions::default() })
}

/// It closes first, so that the server keeps TIME-WAIT; the server's end.
fn close_at_server(pair: &mut Pair, listener: ListenerId, id: ConnId) {
    pair.run(200);
    let child = pair.accept(listener).expect("accepted");
    let now = pair.now;
    pair.stacks[SERVER].close(now, child);
    pair.run(200);
    let now = pair.now;
    pair.stacks[CLIENT].close(now, id);
    pair.run(200);
    assert_eq!(pair.stacks[SERVER].table_sizes().time_wait, 1);
}

/// Who comes by way of TIME-WAIT comes to the listener, and must sign as everybody.
#[test]
fn a_syn_into_time_wait_is_signed_as_the_listener_asks() {
    let mut pair = Pair::ours();
    let listener = listen(&mut pair, keys("10.0.0.1", 32, "one"));
    let id = connect_again(&mut pair, keys("10.0.0.2", 32, "one"));
    close_at_server(&mut pair, listener, id);
    let before = pair.log.len();
    let id = connect_again(&mut pair, SocketOptions::default());
    pair.run(200);
    let sizes = pair.stacks[SERVER].table_sizes();
    assert_eq!((sizes.requests, sizes.time_wait, pair.log.len() - before), (0, 1, 1));
    assert_eq!(pair.stacks[SERVER].counters().md5_not_found, 1);
    let now = pair.now;
    pair.stacks[CLIENT].abort(now, id);
    connect_again(&mut pair, keys("10.0.0.2", 32, "one"));
    pair.run(200);
    assert!(pair.accept(listener).is_some());
}

/// The next connection of a tuple in TIME-WAIT may have no key, and then its TIME-WAIT has none.
#[test]
fn time_wait_forgets_the_key_of_an_earlier_connection() {
    let mut pair = Pair::ours();
    let listener = listen(&mut pair, keys("10.0.0.1", 32, "one"));
    let id = connect_again(&mut pair, keys("10.0.0.2", 32, "one"));
    close_at_server(&mut pair, listener, id);
    let now = pair.now;
    assert!(pair.stacks[SERVER].set_listen_options(now, listener, ListenOptions::default()));
    let id = connect_again(&mut pair, SocketOptions::default());
    close_at_server(&mut pair, listener, id);
    let answer = pair.log.last().unwrap();
    assert_eq!((answer.from, answer.short().as_str(), answer.header.options.md5), (SERVER, "A", false));
}

/// A connection has the key that its listener had when the handshake ended, whatever becomes of that (`tcp_v4_syn_recv_sock`).
#[test]
fn a_connection_keeps_the_key_of_its_handshake() {
    let mut pair = Pair::ours();
    let listener = listen(&mut pair, keys("10.0.0.0", 8, "one"));
    let id = connect(&mut pair, keys("10.0.0.2", 32, "one"));
    pair.run(200);
    let now = pair.now;
    let options = ListenOptions { socket: keys("10.0.0.0", 8, "two"), ..ListenOptions::default() };
    assert!(pair.stacks[SERVER].set_listen_options(now, listener, options));
    let child = pair.accept(listener).unwrap();
    assert_eq!(pair.stacks[SERVER].options(child).unwrap().md5_keys, keys("10.0.0.1", 32, "one").md5_keys);
    pair.write(CLIENT, id, b"hello");
    pair.run(200);
    assert_eq!(pair.read(SERVER, child), Ok(b"hello".to_vec()));
}

/// What is in flight stays as many segments, where segments are counted, though each becomes smaller.
#[test]
fn what_is_in_flight_is_counted_anew_with_a_key() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    let id = p.establish(listener);
    p.write(id, &pattern(1, 10_000));
    p.expect_sent(10);
    let sizes = |p: &Peer| {
        let info = p.stack.info(id).unwrap();
        (info.snd_mss, info.tcp_info.unacked)
    };
    assert_eq!(sizes(&p), (1000, 10 * 1000));
    p.stack.set_md5_keys(p.now, id, keys("10.0.0.1", 32, "one").md5_keys).unwrap();
    assert_eq!(sizes(&p), (980, 10 * 980));
}

/// The cookie of a SYN that waits leaves no room for the signature.
#[test]
fn a_key_makes_a_syn_plain() {
    let mut pair = Pair::ours();
    let listener = listen(&mut pair, SocketOptions::default());
    pair.obtain_cookie(listener);
    let now = pair.now;
    let options = ListenOptions { socket: keys("10.0.0.1", 32, "one"), ..ListenOptions::default() };
    assert!(pair.stacks[SERVER].set_listen_options(now, listener, options));
    let first_bytes = b"hello"[..].into();
    let fast_open = FastOpen::Auto;
    let id = pair.connect(ConnectOptions { first_bytes, fast_open, ..ConnectOptions::default() });
    pair.stacks[CLIENT].set_md5_keys(now, id, keys("10.0.0.2", 32, "one").md5_keys).unwrap();
    pair.run(200);
    let syn = &pair.log[0];
    assert_eq!((syn.at, syn.short().as_str(), syn.header.options.fast_open), (now, "S", None));
    let child = pair.accept(listener).unwrap();
    assert_eq!(pair.read(SERVER, child), Ok(b"hello".to_vec()));
    assert_eq!(pair.stacks[CLIENT].outcome(id), Some(Outcome::Skipped(Skipped::NotAsked)));
}

/// A SYN-ACK with a cookie, which waited when its listener got a key: it cannot be signed, and is not sent.
#[test]
fn what_cannot_be_signed_is_a_counted_drop() {
    let mut p = Peer::ours();
    let options = |socket| ListenOptions { socket, fast_open: Some(9), ..ListenOptions::default() };
    let listener = p.listen_with(options(SocketOptions::default()));
    p.send("S 0 <mss 1460,sackOK,TS 1 0,wscale 7,FO>");
    assert!(p.stack.set_listen_options(p.now, listener, options(keys("10.0.0.1", 32, "one"))));
    p.expect_nothing();
    assert_eq!(p.stack.drops().get(DropReason::Signature), 1);
}

/// The application gives a key to a Fast Open child before its answer has left: the signature takes its place from the answer.
#[test]
fn a_signed_syn_ack_with_an_answer_fits_into_the_mtu() {
    for peer_mss in [1460, 1400] {
        let mut p = Peer::ours();
        let listener = p.listen_with(ListenOptions {
            fast_open: Some(9),
            fast_open_no_cookie: true,
            ..ListenOptions::default()
        });
        p.send(&format!("S 0:10(10) win 65535 <mss {peer_mss},sackOK,TS 1 0,wscale 7>"));
        let id = p.accept(listener);
        p.stack.set_md5_keys(p.now, id, keys("10.0.0.1", 32, "one").md5_keys).unwrap();
        p.write(id, &pattern(1, 5000));
        let packet = p.take_packet().unwrap();
        let (_, header, text) = wire::parse_tcp_packet(&packet).unwrap();
        assert!(header.options.md5 && !text.is_empty(), "{header:?}");
        assert_eq!(packet.len(), 40 + peer_mss);
    }
}
