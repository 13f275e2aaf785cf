//! What goes to a Fast Open client before the handshake's ACK: somebody else may have sent the SYN in its name (RFC 7413 §5.2).

use super::*;

/// A server with this limit.
fn limited(factor: u32) -> Peer {
    server(Config::default().fast_open_amplification(factor))
}

/// The SYN of `len` bytes with a cookie, and its size as a packet.
fn knock(p: &mut Peer, len: usize) -> usize {
    let text = format!("S 0:{len} win 65535 <mss 1000,sackOK,TS 9 0,wscale 7,FO {}>", cookie(p));
    p.send(&text);
    p.packet(&text).len()
}

/// Sizes of the packets that go now.
fn sent(p: &mut Peer) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let Some(packet) = p.stack.poll_transmit(p.now) {
        sizes.extend(packet.segments().iter().map(Bytes::len));
    }
    sizes
}

/// All that goes until the server gives the client up, and how often the SYN-ACK was repeated.
fn sent_in_vain(p: &mut Peer) -> (usize, u64) {
    let mut sum = sent(p).iter().sum();
    while let Some(next) = p.stack.poll_timeout() {
        p.now = p.now.max(next);
        p.stack.handle_timeout(p.now);
        sum += sent(p).iter().sum::<usize>();
    }
    (sum, p.stack.counters().syn_ack_retrans)
}

#[test]
fn with_a_factor_of_zero_no_data_goes_before_the_handshakes_ack() {
    let mut p = limited(0);
    let listener = p.listen_with(qlen(4));
    p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
    p.expect("SA 0 ack 11");
    let id = p.accept(listener);
    assert_eq!(p.read(id), Ok(pattern(0, 10)), "the request is read at once");
    p.write(id, &pattern(1, 1500));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect_nothing_for(999);
    p.expect_after(1, "SA 0 ack 11");
    p.send("A 11 ack 1 win 65535");
    p.expect("A 1:1001 ack 11");
    p.expect("FPA 1001:1501 ack 11");
}

/// The FIN waits for the handshake's ACK, and a reset comes instead.
#[test]
fn a_fin_that_waits_does_not_go_after_a_reset() {
    let mut p = limited(925);
    let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(4) });
    p.send(&format!("S 0:10 win 65535 <mss 1000,sackOK,TS 9 0,wscale 7,FO {}>", cookie(&p)));
    p.expect("SA 0 ack 11");
    let id = p.accept(listener);
    p.stack.shutdown(p.now, id).unwrap();
    p.send("R 11");
    p.expect_nothing();
}

#[test]
fn a_short_answer_rides_on_the_syn_ack_within_the_factor() {
    let mut p = limited(3);
    let listener = p.listen_with(qlen(4));
    p.send(&format!("S 0:100 <mss 1000,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    assert_eq!(p.read(id), Ok(pattern(0, 100)));
    p.write(id, &pattern(1, 200));
    p.close(id);
    p.expect("FSPA 0:200 ack 101");
    p.send("FA 101 ack 202");
    p.expect("A 202 ack 102");
}

#[test]
fn a_longer_answer_goes_on_with_the_handshakes_ack() {
    let mut p = limited(3);
    let listener = p.listen_with(qlen(4));
    p.send(&format!("S 0:100 <mss 1000,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, &pattern(1, 1400));
    p.expect("SA 0:340 ack 101");
    p.expect_nothing();
    p.send("A 101 ack 341 win 65535");
    p.expect("A 341:1341 ack 101");
    p.expect("PA 1341:1401 ack 101");
}

/// Small writes, a FIN and everything else that an application may do make it no more.
#[test]
fn whatever_is_written_the_packets_keep_the_factor() {
    for v6 in [false, true] {
        for factor in [1, 3, 10] {
            for len in [1, 50, 500, 900] {
                for written in [1, 400, 2500, 100_000] {
                    let mut p = limited(factor);
                    p = if v6 { p.v6() } else { p };
                    let options = ListenOptions {
                        socket: SocketOptions { nodelay: true, ..SocketOptions::default() },
                        ..qlen(4)
                    };
                    let listener = p.listen_with(options);
                    let syn = knock(&mut p, len);
                    let id = p.accept(listener);
                    p.read(id).unwrap();
                    let mut sum = 0;
                    for _ in 0..5 {
                        p.stack.write(p.now, id, &pattern(1, written)).unwrap_or(0);
                        sum += sent(&mut p).iter().sum::<usize>();
                    }
                    p.close(id);
                    let (rest, repeated) = sent_in_vain(&mut p);
                    let bare = if v6 { 60 } else { 40 } + 24;
                    let most = (syn * factor as usize).max(bare) + repeated as usize * bare;
                    assert!(sum + rest <= most, "{factor} {len} {written}: {sum} + {rest} of {most}");
                }
            }
        }
    }
}

/// What a spoofed source can bring about without a limit: the initial window for one SYN.
#[test]
fn without_a_limit_the_initial_window_goes_to_an_address_that_has_shown_nothing() {
    let mut p = server(Config::default());
    let listener = p.listen_with(qlen(4));
    let syn = knock(&mut p, 10);
    let id = p.accept(listener);
    p.write(id, &pattern(1, 20_000));
    let (sum, _) = sent_in_vain(&mut p);
    assert!((100..150).contains(&(sum / syn)), "{sum} for {syn}");
}
