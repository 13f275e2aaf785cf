//! GRO runs are taken as far as they go, and leave behind what their packets would one by one.

use super::*;
use crate::{AckHabit, Config, ConnId, ConnectOptions, ListenOptions, SocketOption};
use alloc::string::String;
use alloc::vec::Vec;
use wire::{Capabilities, RxChecksum, RxPacket};

const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn stack(address: [u8; 4], config: &Config) -> Stack {
    let capabilities = Capabilities { mtu: 1500, gso_max_size: 65_000, tx_checksum: true };
    let mut stack = Stack::new(config.clone(), capabilities, [address[3]; 32]);
    stack.add_address(address.into(), 24);
    stack
}

/// What `from` sends, as it arrives.
fn sent(from: &mut Stack) -> Vec<RxPacket> {
    let mut packets = Vec::new();
    while let Some(packet) = from.poll_transmit(NOW) {
        packets.extend(packet.segments().into_iter().map(RxPacket::new));
    }
    packets
}

/// A server that is about to receive ten full segments, and those.
fn ten_segments() -> (Stack, ConnId, Vec<RxPacket>) {
    ten_segments_for(&Config::default())
}

fn ten_segments_for(config: &Config) -> (Stack, ConnId, Vec<RxPacket>) {
    let (mut client, mut server) = (stack([10, 0, 0, 1], config), stack([10, 0, 0, 2], config));
    let address = ([10, 0, 0, 2], 80).into();
    let listener = server.listen(NOW, address, ListenOptions::default()).unwrap();
    let id = client.connect(NOW, address, ConnectOptions::default()).unwrap();
    for _ in 0..2 {
        server.handle_packets(NOW, &mut sent(&mut client).into_iter().collect());
        client.handle_packets(NOW, &mut sent(&mut server).into_iter().collect());
    }
    let (accepted, _) = server.accept(NOW, listener).unwrap();
    client.write(NOW, id, &[7; 14_480]).unwrap();
    let segments = sent(&mut client);
    assert_eq!(segments.len(), 10);
    (server, accepted, segments)
}

fn follow(server: &mut Stack, segments: &[RxPacket]) -> usize {
    let [first, rest @ ..] = segments else { return 0 };
    let run = GroRun::between(&first.data, &rest[0].data).expect("a run");
    let receiver = server.run_receiver(&run).expect("a connection");
    assert!(server.handle_packet(NOW, first.clone()).is_none());
    server.handle_run(NOW, &run, receiver, &mut rest.iter().cloned().collect(), 0)
}

#[test]
fn none_begins_behind_a_copy() {
    let (mut server, _, segments) = ten_segments();
    assert!(server.handle_packet(NOW, segments[0].clone()).is_none());
    assert_eq!(follow(&mut server, &segments), 0);
}

#[test]
fn all_that_follow_are_taken_together() {
    let (mut server, id, segments) = ten_segments();
    assert_eq!(follow(&mut server, &segments), 9);
    assert_eq!(server.read(NOW, id, &mut [0; 20_000]), Ok(14_480));
    assert_eq!(server.counters().in_segs, 12);
}

#[test]
fn text_of_a_batch_has_the_time_of_its_arrival() {
    let (mut server, id, segments) = ten_segments();
    server.set_option(NOW, id, SocketOption::ReceiveTimes(true)).unwrap();
    let mut buf = [0; 20_000];
    for (seconds, segments) in (1..).zip(segments.chunks(5)) {
        let now = NOW + core::time::Duration::from_secs(seconds);
        server.handle_packets(now, &mut segments.iter().cloned().collect());
        assert_eq!(server.read(now, id, &mut buf), Ok(7_240));
        assert_eq!(server.arrived_at(id, 0), Some(now));
    }
}

#[test]
fn what_goes_on_behind_a_packet_that_is_dropped_is_heard_when_it_comes() {
    let (mut server, id, segments) = ten_segments();
    assert!(server.handle_packet(NOW, segments[0].clone()).is_none());
    let later = NOW + core::time::Duration::from_secs(1);
    // It comes again, and not whole: what is behind it is what comes next all the same.
    let mut again = segments[0].data.to_vec();
    again[100] ^= 1;
    let again = RxPacket::new(again.into());
    let rest = segments[1..3].iter().cloned();
    server.handle_packets(later, &mut core::iter::once(again).chain(rest).collect());
    assert_eq!(server.counters().in_csum_errors, 1);
    assert_eq!(server.read(later, id, &mut [0; 20_000]), Ok(3 * 1_448));
    assert_eq!(server.info(id).unwrap().tcp_info.last_ack_recv, Some(later));
}

#[test]
fn a_gap_or_a_bad_checksum_ends_it() {
    let (mut server, _, mut segments) = ten_segments();
    segments.remove(4);
    assert_eq!(follow(&mut server, &segments), 3);
    let (mut server, _, mut segments) = ten_segments();
    let mut damaged = segments[6].data.to_vec();
    damaged[100] ^= 1;
    segments[6].data = damaged.into();
    assert_eq!(follow(&mut server, &segments), 5);
}

/// The header of a packet whose data offset was damaged is no longer than the offset says: nothing behind it may pass for text.
#[test]
fn a_damaged_data_offset_begins_no_run() {
    for offset in 0..5 {
        let (mut server, id, segments) = ten_segments();
        let mut damaged = segments[0].data.to_vec();
        damaged[20 + 12] = offset << 4 | damaged[20 + 12] & 0xf;
        assert!(GroRun::between(&damaged, &segments[0].data).is_none());
        let mut batch: RxBatch = [RxPacket::new(damaged.into()), segments[0].clone()].into_iter().collect();
        server.handle_packets(NOW, &mut batch);
        let mut text = [0; 20_000];
        assert_eq!(server.read(NOW, id, &mut text), Ok(1448), "offset {offset}");
        assert_eq!(text[..1448], [7; 1448]);
    }
}

#[test]
fn fragments_make_no_run() {
    let (_, _, segments) = ten_segments();
    let mut fragment = segments[0].data.to_vec();
    fragment[7] = 3;
    assert!(GroRun::between(&fragment, &fragment.clone()).is_none());
}

#[test]
fn what_would_bring_pressure_comes_one_by_one() {
    let (mut server, _, segments) = ten_segments();
    let size = segments[1].truesize;
    // Room for the first, and for four behind it.
    let pages = (5 * size / 4096) as u32;
    server.set(NOW, "net.ipv4.tcp_mem", &format!("{pages} {pages} 1000")).unwrap();
    let most = pages as usize * 4096 / size - 1;
    assert!((1..9).contains(&most), "{most}");
    assert_eq!(follow(&mut server, &segments), most);
    assert_eq!(server.counters().memory_pressures, 0);
}

#[test]
fn a_packet_shorter_than_its_headers_ends_it() {
    let (mut server, _, mut segments) = ten_segments();
    segments[3].data.truncate(20);
    assert_eq!(follow(&mut server, &segments), 2);
}

#[test]
fn a_hole_before_it_prevents_it() {
    let (mut server, _, mut segments) = ten_segments();
    segments.remove(0);
    assert_eq!(follow(&mut server, &segments), 0);
}

/// What can be seen of a server after these packets: what the application reads, what is sent, when it wants to be called, and counts.
fn outcome(config: &Config, packets: &[RxPacket], together: bool) -> String {
    let (mut server, id, _) = ten_segments_for(config);
    let unclaimed = if together {
        let mut batch = packets.iter().cloned().collect();
        server.handle_packets(NOW, &mut batch);
        batch.len()
    } else {
        packets.iter().filter_map(|packet| server.handle_packet(NOW, packet.clone())).count()
    };
    let sent: Vec<_> = sent(&mut server).into_iter().map(|packet| packet.data).collect();
    let (info, deadline, mut buf) = (server.info(id), server.poll_timeout(), [0; 20_000]);
    let read = server.read(NOW, id, &mut buf);
    format!(
        "{read:?} {sent:x?} {deadline:?} {info:?} {:?} {:?} {unclaimed}",
        server.counters(),
        server.drops()
    )
}

fn assert_no_difference(config: &Config, packets: &[RxPacket], what: &str) {
    assert_eq!(outcome(config, packets, true), outcome(config, packets, false), "{what}");
}

/// A packet of which somebody else has said that its checksum is right.
fn damaged(packet: &RxPacket, damage: impl FnOnce(&mut Vec<u8>)) -> RxPacket {
    let mut data = packet.data.to_vec();
    damage(&mut data);
    RxPacket { data: data.into(), checksum: RxChecksum::Trusted, ..packet.clone() }
}

#[test]
fn any_of_them_may_be_pushed() {
    const FLAGS: usize = 20 + 13;
    for ack_habit in [AckHabit::Merge, AckHabit::QuickStart] {
        let config = Config { ack_habit, ..Config::default() };
        let (_, _, segments) = ten_segments_for(&config);
        for pushed in 0..segments.len() {
            for count in 1..=segments.len() {
                let mut segments = segments[..count].to_vec();
                if let Some(segment) = segments.get_mut(pushed) {
                    *segment = damaged(segment, |data| data[FLAGS] |= 8);
                }
                assert_no_difference(&config, &segments, &format!("PSH on {pushed} of {count}"));
            }
        }
    }
}

#[test]
fn whatever_is_cut_off_behind_them_is_harmless() {
    let config = Config::default();
    let (_, _, segments) = ten_segments();
    for len in (0..80).chain(1490..1500) {
        for checksum in [RxChecksum::Verify, RxChecksum::Trusted] {
            let mut segments = segments.clone();
            segments[2].data.truncate(len);
            segments[2].checksum = checksum;
            assert_no_difference(&config, &segments, &format!("{len} bytes, {checksum:?}"));
        }
    }
}

#[test]
fn whatever_is_wrong_with_a_header_among_them_is_harmless() {
    let config = Config::default();
    let (_, _, segments) = ten_segments();
    for at in 0..52 {
        for bit in 0..8 {
            for place in [0, 1, 4] {
                let mut segments = segments.clone();
                segments[place] = damaged(&segments[place], |data| data[at] ^= 1 << bit);
                assert_no_difference(&config, &segments, &format!("bit {bit} of byte {at} of {place}"));
            }
        }
    }
}
