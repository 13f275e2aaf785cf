//! Numbers that were true two gigabytes ago look like the future; nothing old may count.

use crate::peer::*;
use bytes::Bytes;
use proto::*;

/// A device that takes 60 kB at a time and computes checksums, so that gigabytes cost nothing.
fn established() -> (Peer, ConnId) {
    let device = Capabilities { mtu: 1500, gso_max_size: 60_000, tx_checksum: true };
    let mut p = Peer::with(Config::default(), device);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,wscale 10>");
    (p, id)
}

/// Sends full segments until relative number `end`, each burst acknowledged at once.
fn send_until(p: &mut Peer, id: ConnId, mut at: u32, end: u32) {
    let chunk = Bytes::from(vec![0; 60_000]);
    while at < end {
        let mut data = chunk.slice(..(end - at).min(60_000) as usize);
        let len = data.len() as u32;
        assert_eq!(p.stack.write_bytes(p.now, id, &mut data), Ok(len as usize));
        let before = at;
        while at < before + len {
            let sent: usize =
                std::iter::from_fn(|| p.stack.poll_transmit(p.now)).map(|tx| tx.payload_len()).sum();
            assert!(sent > 0);
            at += sent as u32;
            p.send(&format!("A 1 ack {at} win 65535"));
        }
    }
}

const TWO_GIGABYTES: u32 = (1 << 31) / 1000 * 1000 + 5000;

#[test]
fn a_small_segment_of_long_ago_does_not_hold_another_back() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 100));
    p.expect("PA 1:101 ack 1");
    p.send("A 1 ack 101");
    send_until(&mut p, id, 101, 101 + TWO_GIGABYTES);
    p.write(id, b"x");
    p.expect(&format!("PA {}:{} ack 1", 101 + TWO_GIGABYTES, 102 + TWO_GIGABYTES));
}

#[test]
fn a_timeout_of_long_ago_does_not_silence_duplicates() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_after(200, "PA 1:1001 ack 1");
    p.send("A 1 ack 1001");
    let next = 1001 + TWO_GIGABYTES;
    send_until(&mut p, id, 1001, next);
    p.write(id, &pattern(1, 4000));
    assert_eq!(p.sent_now().len(), 4);
    for _ in 0..3 {
        p.send(&format!("A 1 ack {next}"));
    }
    p.expect(&format!("A {next}:{} ack 1", next + 1000));
}

#[test]
fn what_is_lost_after_two_gigabytes_is_sent_again_from_there() {
    let (mut p, id) = established();
    let next = 1 + TWO_GIGABYTES;
    send_until(&mut p, id, 1, next);
    p.write(id, &pattern(1, 1000));
    p.expect(&format!("PA {next}:{} ack 1", next + 1000));
    assert_eq!(p.stack.info(id).unwrap().flight_size, 1000);
    p.expect_after(200, &format!("PA {next}:{} ack 1", next + 1000));
    p.send(&format!("A 1 ack {}", next + 1000));
    p.close(id);
    p.expect(&format!("FA {} ack 1", next + 1000));
}

/// The window was reduced, for a packet that the queue before the device refused, and was ever larger since.
#[test]
fn a_reduction_of_long_ago_does_not_excuse_a_loss() {
    let device = Capabilities { mtu: 1500, gso_max_size: 60_000, tx_checksum: true };
    let mut p = Peer::with(Config::default(), device);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK,wscale 10>");
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.queue_is_full = true;
    p.write(id, &pattern(1001, 1000));
    p.expect_nothing();
    assert_eq!(p.refused, 1);
    p.queue_is_full = false;
    p.send("A 1 ack 1001");
    p.expect("PA 1001:2001 ack 1");
    p.send("A 1 ack 2001");
    let next = 2001 + TWO_GIGABYTES;
    send_until(&mut p, id, 2001, next);
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 2000);
    p.write(id, &pattern(next, 10_000));
    while p.stack.poll_transmit(p.now).is_some() {}
    p.send(&format!("A 1 ack {next} <sack {}:{}>", next + 1000, next + 10_000));
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 7000, "of what was in flight");
}

/// The pointer of an urgent byte, acknowledged long ago, is not on what is sent two gigabytes later.
#[test]
fn an_urgent_byte_of_long_ago_is_not_told_of_again() {
    let (mut p, id) = established();
    assert_eq!(p.stack.write_with(p.now, id, &pattern(1, 100), WriteFlags::URGENT), Ok(100));
    p.expect("UPA 1:101 ack 1");
    p.send("A 1 ack 101");
    let next = 101 + TWO_GIGABYTES;
    send_until(&mut p, id, 101, next);
    p.write(id, b"x");
    p.expect(&format!("PA {next}:{} ack 1", next + 1));
}

/// Nor is one that was read two gigabytes ago announced to the reader, who would lose an ordinary byte for it another two later.
#[test]
fn an_urgent_byte_of_long_ago_does_not_come_again() {
    const TEXT: u32 = 60_000;
    let mut p = Peer::new(Config::default());
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,wscale 10>");
    let mut urgent = p.packet("UPA 1:3 ack 1").to_vec();
    urgent[39] = 1;
    p.send_rx(RxPacket { checksum: wire::RxChecksum::Trusted, ..RxPacket::new(urgent.into()) });
    assert_eq!(p.stack.urgent_mark(id), Some(0));
    assert_eq!(p.read(id).unwrap(), pattern(1, 2));
    let text = p.packet(&format!("A 3:{} ack 1", 3 + TEXT)).to_vec();
    let first = u32::from_be_bytes(text[24..28].try_into().unwrap());
    let mut buf = vec![0; TEXT as usize];
    for at in (0..TWO_GIGABYTES).step_by(TEXT as usize) {
        let mut packet = text.clone();
        packet[24..28].copy_from_slice(&(first.wrapping_add(at)).to_be_bytes());
        p.send_rx(RxPacket { checksum: wire::RxChecksum::Trusted, ..RxPacket::new(packet.into()) });
        assert_eq!(p.stack.read(p.now, id, &mut buf), Ok(buf.len()));
        while p.stack.poll_transmit(p.now).is_some() {}
    }
    assert_eq!(p.stack.urgent_mark(id), None);
}
