//! What acknowledgements wait for: `ack_habit` in both its forms, `TCP_QUICKACK`, `TCP_DELACK_MAX_US`.

use crate::peer::*;
use core::time::Duration;
use proto::*;

/// A connection with 100 ms of round trip, and full-sized segments of 1000 bytes.
fn established(config: Config, socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.skip(100);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    (p, id)
}

fn linux() -> (Peer, ConnId) {
    established(Config::linux(), SocketOptions::default())
}

/// The first sixteen segments, each acknowledged at once. Returns the number of the next byte.
fn quick_phase(p: &mut Peer, id: ConnId) -> u32 {
    for number in 0..16 {
        let seq = 1 + number * 1000;
        p.send(&format!("A {seq}:{} ack 1", seq + 1000));
        p.expect(&format!("A 1 ack {}", seq + 1000));
        p.read(id).unwrap();
    }
    16_001
}

/// A time-out of the delay doubles it, the time between segments pulls it along, the round trip bounds it.
#[test]
fn quickstart_adapts_the_delay() {
    let (mut p, id) = linux();
    let seq = quick_phase(&mut p, id);
    p.send(&format!("A {seq}:{} ack 1", seq + 500));
    p.expect_after(40, &format!("A 1 ack {}", seq + 500));
    // Now 80 ms; 40 ms after the last data: 80/2 + 40.
    p.send(&format!("A {}:{} ack 1", seq + 500, seq + 1000));
    p.expect_after(80, &format!("A 1 ack {}", seq + 1000));
    // 160/2 + 80 would be 160, but the round trip is 100.
    p.send(&format!("A {}:{} ack 1", seq + 1000, seq + 1500));
    p.expect_after(100, &format!("A 1 ack {}", seq + 1500));
    assert_eq!(p.stack.counters().delayed_acks, 3);
    // More than a segment, and room for what comes: at once.
    p.read(id).unwrap();
    p.send(&format!("A {}:{} ack 1", seq + 1500, seq + 2500));
    p.send(&format!("A {}:{} ack 1", seq + 2500, seq + 2600));
    p.expect(&format!("A 1 ack {}", seq + 2600));
}

/// `tcp_cleanup_rbuf`: who has read all that was pushed has nothing more to wait for, unless answers carry the ACKs.
#[test]
fn quickstart_acknowledges_what_was_pushed_and_read() {
    let (mut p, id) = linux();
    let seq = quick_phase(&mut p, id);
    p.send(&format!("PA {seq}:{} ack 1", seq + 10));
    p.expect_nothing_for(10);
    p.read(id).unwrap();
    p.expect(&format!("A 1 ack {}", seq + 10));
    p.send(&format!("PA {}:{} ack 1", seq + 10, seq + 20));
    p.write(id, b"answer");
    p.expect(&format!("PA 1:7 ack {}", seq + 20));
    p.send(&format!("PA {}:{} ack 7", seq + 20, seq + 30));
    p.read(id).unwrap();
    p.expect_after(40, &format!("A 7 ack {}", seq + 30));
    // The answer did not come: the delay was in vain, and pingpong is over.
    p.send(&format!("PA {}:{} ack 7", seq + 30, seq + 40));
    p.read(id).unwrap();
    p.expect(&format!("A 7 ack {}", seq + 40));
}

#[test]
fn tcp_pingpong_thresh_counts_answers() {
    let mut config = Config::linux();
    config.set("net.ipv4.tcp_pingpong_thresh", "2").unwrap();
    let (mut p, id) = established(config, SocketOptions::default());
    p.send("PA 1:11 ack 1");
    p.expect("A 1 ack 11");
    p.write(id, b"one");
    p.expect("PA 1:4 ack 11");
    p.send("PA 11:21 ack 4");
    p.expect("A 4 ack 21");
    p.write(id, b"two");
    p.expect("PA 4:7 ack 21");
    p.send("PA 21:31 ack 7");
    p.expect_after(40, "A 7 ack 31");
}

/// What comes twice is acknowledged at once, and so is what comes next.
#[test]
fn duplicates_begin_a_quick_phase_in_quickstart() {
    let (mut p, id) = linux();
    let seq = quick_phase(&mut p, id);
    p.send("A 1:1001 ack 1");
    p.expect(&format!("A 1 ack {seq}"));
    p.send(&format!("A {seq}:{} ack 1", seq + 10));
    p.expect(&format!("A 1 ack {}", seq + 10));
}

#[test]
fn tcp_quickack_ends_the_wait() {
    for config in both_profiles() {
        let habit = config.ack_habit;
        let (mut p, id) = established(config, SocketOptions::default());
        p.send("PA 1:11 ack 1");
        p.write(id, b"answer");
        p.expect("PA 1:7 ack 11");
        p.send("PA 11:21 ack 7");
        p.expect_nothing_for(5);
        if habit == AckHabit::QuickStart {
            // Linux waits for the reader.
            p.stack.set_option(p.now, id, SocketOption::QuickAck(true)).unwrap();
            p.expect_nothing();
            p.read(id).unwrap();
        }
        p.stack.set_option(p.now, id, SocketOption::QuickAck(true)).unwrap();
        p.expect("A 7 ack 21");
        p.send("PA 21:31 ack 7");
        p.expect("A 7 ack 31");
        // An answer soon after is held to be the rule again.
        p.write(id, b"answer");
        p.expect("PA 7:13 ack 31");
        p.send("PA 31:41 ack 13");
        p.expect_after(40, "A 13 ack 41");
    }
}

/// A listener's choice holds for the connections it accepts, a client's from its SYN on.
#[test]
fn tcp_quickack_is_kept_by_a_handshake() {
    let socket = SocketOptions { quickack: Some(true), ..SocketOptions::default() };
    for (socket, quick) in [(socket, true), (SocketOptions::default(), false)] {
        let mut p = Peer::ours();
        let listener = p.listen_with(ListenOptions { socket: socket.clone(), ..ListenOptions::default() });
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
        p.send("A 1 ack 1");
        p.accept(listener);
        p.send("PA 1:11 ack 1");
        assert_eq!(p.sent_now().len(), usize::from(quick));

        let mut p = Peer::ours();
        p.connect(ConnectOptions { socket, ..ConnectOptions::default() });
        p.expect("S 0");
        p.send("SA 0 ack 1 <mss 1000>");
        p.expect("A 1 ack 1");
        p.send("PA 1:11 ack 1");
        assert_eq!(p.sent_now().len(), usize::from(quick));
    }
}

/// Switched off before connecting, even the ACK of the handshake waits: the request takes it along, for one packet less.
#[test]
fn without_quick_acks_the_request_completes_the_handshake() {
    let socket = SocketOptions { quickack: Some(false), ..SocketOptions::default() };
    let connect = || {
        let mut p = Peer::ours();
        let options = ConnectOptions { socket: socket.clone(), ..ConnectOptions::default() };
        let id = p.connect(options);
        p.expect("S 0");
        p.send("SA 0 ack 1 <mss 1000>");
        (p, id)
    };
    let (mut p, id) = connect();
    p.expect_nothing_for(50);
    p.write(id, b"request");
    p.expect("PA 1:8 ack 1");
    let (mut p, _) = connect();
    p.expect_after(200, "A 1 ack 1");
}

#[test]
fn tcp_delack_max_shortens_the_delay() {
    let socket = SocketOptions { delack_max: Some(Duration::from_millis(5)), ..SocketOptions::default() };
    for config in both_profiles() {
        let (mut p, id) = established(config, socket.clone());
        p.send("PA 1:11 ack 1");
        p.write(id, b"answer");
        p.expect("PA 1:7 ack 11");
        p.send("PA 11:21 ack 7");
        p.expect_after(5, "A 7 ack 21");
    }
}

/// Less than the least time-out that the peer may have, where it is like ours.
#[test]
fn the_delay_stays_below_the_least_timeout() {
    let socket = SocketOptions { rto_min: Some(Duration::from_millis(10)), ..SocketOptions::default() };
    let (mut p, id) = established(Config::default(), socket);
    p.send("PA 1:11 ack 1");
    p.write(id, b"answer");
    p.expect("PA 1:7 ack 11");
    p.send("PA 11:21 ack 7");
    p.expect_after(9, "A 7 ack 21");
}

/// No text has come, so there is no delay to go by: Linux's timer of no time fires at the next tick.
#[test]
fn a_fin_before_any_text_is_acknowledged_at_the_next_tick() {
    let (mut p, _) = linux();
    p.send("FA 1 ack 1");
    p.expect_nothing();
    p.expect_after(1, "A 1 ack 2");
}

/// Linux's `__tcp_ack_snd_check`: a FIN begins to wait for the close, but more than a segment does not wait with it.
#[test]
fn only_a_segment_waits_with_its_fin() {
    let (mut p, id) = linux();
    let seq = quick_phase(&mut p, id);
    p.send(&format!("FA {seq}:{} ack 1", seq + 2000));
    p.expect(&format!("A 1 ack {}", seq + 2001));
    let (mut p, id) = linux();
    let seq = quick_phase(&mut p, id);
    p.send(&format!("FA {seq}:{} ack 1", seq + 900));
    p.expect_after(40, &format!("A 1 ack {}", seq + 901));
}

/// Linux's `__tcp_ack_snd_check`: a reader who leaves more than a segment to be read will bring the acknowledgement about, unless the
/// window keeps its edge.
#[test]
fn what_shrinks_the_window_is_acknowledged_late() {
    let socket = SocketOptions { recv_buffer: Some(8000), quickack: Some(false), ..SocketOptions::default() };
    let (mut p, id) = established(Config::linux(), socket);
    p.send("A 1:1001 ack 1");
    p.send("A 1001:3001 ack 1");
    p.expect_after(40, "A 1 ack 3001");
    p.read(id).unwrap();
    p.send("A 3001:5001 ack 1");
    p.expect("A 1 ack 5001");
}
