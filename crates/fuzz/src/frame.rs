//! Frames as a TUN interface hands them over, into a stack.
use bytes::Bytes;
use core::time::Duration;
use device::tun::Frame;
use proto::{Capabilities, Config, Instant, ListenOptions, RxPacket, Stack};

const MERGING: Capabilities = Capabilities { mtu: 1500, gso_max_size: 65_000, tx_checksum: true };
/// Frames in one input.
const FRAMES_MAX: usize = 64;

/// Gives frames to a stack with a listener. Two bytes before each frame hold its length (lower 12
/// bits) and the time that passes before it (upper 4 bits: powers of two of a millisecond).
pub fn frames(data: &[u8]) {
    let mut stack = Stack::new(Config::default(), MERGING, [1; 32]);
    stack.add_address("10.0.0.2".parse().expect("an address"), 24);
    stack.add_address("fd00::2".parse().expect("an address"), 64);
    stack.fix_isn(Some(0));
    let mut now = Instant::ZERO + Duration::from_secs(1);
    for address in ["10.0.0.2:80", "[fd00::2]:80"] {
        let options = ListenOptions { fast_open: Some(16), ..ListenOptions::default() };
        let _ =
            stack.listen(now, address.parse().expect("an address"), options).expect("nobody else listens");
    }
    let mut rest = data;
    for _ in 0..FRAMES_MAX {
        let Some((length, behind)) = rest.split_first_chunk::<2>() else { break };
        let length = u16::from_be_bytes(*length);
        let (frame, behind) = behind.split_at(behind.len().min(usize::from(length & 0xfff)));
        rest = behind;
        now = now + Duration::from_millis((1 << (length >> 12)) / 2);
        stack.handle_timeout(now);
        if let Some(Frame { packet, checksum, gso_size }) = Frame::parse(frame) {
            assert!(packet.len() >= 20, "an IP header is there");
            let data = Bytes::copy_from_slice(packet);
            let _ = stack.handle_packet(now, RxPacket { checksum, gso_size, ..RxPacket::new(data) });
        }
        drain(&mut stack, now);
    }
}

fn drain(stack: &mut Stack, now: Instant) {
    let mut sent = 0;
    while let Some(packet) = stack.poll_transmit(now) {
        assert!(packet.segments().iter().all(|segment| segment.len() <= MERGING.mtu), "it fits the wire");
        sent += 1;
        assert!(sent < 1000, "output does not end");
    }
    while stack.poll_event().is_some() {}
}
