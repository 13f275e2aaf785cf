//! Batches, and in them trains: packets that only go on where the one before them ended are looked up, judged and settled once.
//!
//! Nothing can be told from outside but the time it takes: a train leaves the connection as its packets, one by one, would.

use super::Stack;
use crate::Instant;
use crate::tcp::input::Segment;
use crate::tuple::FourTuple;
use bytes::Buf;
use wire::{IpHeader, RxPacket, TcpHeader, Train};

impl Stack {
    /// A batch: acknowledgements are decided at its end. Packets nobody claims are left in it.
    pub fn handle_packets(&mut self, now: Instant, batch: &mut Vec<RxPacket>) {
        let (mut at, mut unclaimed) = (0, 0);
        while at < batch.len() {
            let train = match &batch[at..] {
                [first, second, ..] if self.shared.trace.is_none() => Train::between(first, second),
                _ => None,
            };
            let packet = std::mem::take(&mut batch[at]);
            at += 1;
            if let Some(packet) = self.handle_packet(now, packet) {
                batch[unclaimed] = packet;
                unclaimed += 1;
            } else if let Some(train) = train {
                at += self.handle_train(now, &train, &mut batch[at..]);
            }
        }
        batch.truncate(unclaimed);
    }

    /// Takes those of `packets` that go on with the train whose first packet has just been handled, and returns how many.
    fn handle_train(&mut self, now: Instant, train: &Train, packets: &mut [RxPacket]) -> usize {
        let (Some(mut segment), tuple) = (packets.first().and_then(segment_of), tuple_of(train)) else {
            return 0;
        };
        let Some(index) = self.find_connection(&tuple) else { return 0 };
        let Some(connection) = self.connections.get_mut(index) else { return 0 };
        if !connection.text_may_go_on(&segment.header) {
            return 0;
        }
        let mut taken = 0;
        // Memory is charged when the train has settled: what would put the stack under pressure comes one by one.
        let mut room = self.shared.memory.room();
        let mut cx = self.shared.context(now);
        for packet in packets {
            let Some(seq) = train.text(packet) else { break };
            let len = packet.data.len() - train.header_len;
            if !connection.takes_at_once(seq, len) {
                break;
            }
            let Some(left) = room.checked_sub(packet.truesize.max(len) as u64) else { break };
            room = left;
            let packet = std::mem::take(packet);
            segment.header.seq = seq;
            segment.payload = packet.data;
            segment.payload.advance(train.header_len);
            segment.truesize = packet.truesize;
            segment.gso_size = packet.gso_size;
            connection.text_goes_on(&mut cx, &mut segment);
            taken += 1;
        }
        self.shared.counters.in_segs += taken as u64;
        if taken > 0 {
            self.settle(now, index);
        }
        taken
    }
}

/// The segment without its payload, its checksum unseen.
fn segment_of(packet: &RxPacket) -> Option<Segment> {
    let (ip, range) = IpHeader::parse(&packet.data).ok()?;
    let (header, _) = TcpHeader::parse(packet.data.get(range)?, None).ok()?;
    Some(Segment { header, payload: Default::default(), truesize: 0, gso_size: 0, ecn: ip.ecn })
}

fn tuple_of(train: &Train) -> FourTuple {
    let ((peer, peer_port), (local, local_port)) = (train.src, train.dst);
    FourTuple { local, local_port, peer, peer_port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, ConnId, ConnectOptions, ListenOptions};
    use wire::Capabilities;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn stack(address: [u8; 4]) -> Stack {
        let capabilities = Capabilities { mtu: 1500, gso_max_size: 65_000, tx_checksum: true };
        let mut stack = Stack::new(Config::default(), capabilities, [address[3]; 32]);
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
        let (mut client, mut server) = (stack([10, 0, 0, 1]), stack([10, 0, 0, 2]));
        let address = ([10, 0, 0, 2], 80).into();
        let listener = server.listen(NOW, address, ListenOptions::default()).unwrap();
        let id = client.connect(NOW, address, ConnectOptions::default()).unwrap();
        for _ in 0..2 {
            server.handle_packets(NOW, &mut sent(&mut client));
            client.handle_packets(NOW, &mut sent(&mut server));
        }
        let (accepted, _) = server.accept(NOW, listener).unwrap();
        client.write(NOW, id, &[7; 14_480]).unwrap();
        let segments = sent(&mut client);
        assert_eq!(segments.len(), 10);
        (server, accepted, segments)
    }

    fn follow(server: &mut Stack, segments: &mut [RxPacket]) -> usize {
        let [first, rest @ ..] = segments else { return 0 };
        let train = Train::between(first, &rest[0]).expect("a train");
        assert!(server.handle_packet(NOW, std::mem::take(first)).is_none());
        server.handle_train(NOW, &train, rest)
    }

    #[test]
    fn all_that_follow_are_taken_together() {
        let (mut server, id, mut segments) = ten_segments();
        assert_eq!(follow(&mut server, &mut segments), 9);
        assert_eq!(server.read(NOW, id, &mut [0; 20_000]), Ok(14_480));
        assert_eq!(server.counters().in_segs, 12);
    }

    #[test]
    fn a_gap_or_a_bad_checksum_ends_it() {
        let (mut server, _, mut segments) = ten_segments();
        segments.remove(4);
        assert_eq!(follow(&mut server, &mut segments), 3);
        let (mut server, _, mut segments) = ten_segments();
        let mut damaged = segments[6].data.to_vec();
        damaged[100] ^= 1;
        segments[6].data = damaged.into();
        assert_eq!(follow(&mut server, &mut segments), 5);
    }

    #[test]
    fn what_would_bring_pressure_comes_one_by_one() {
        let (mut server, _, mut segments) = ten_segments();
        let size = segments[1].truesize;
        // Room for the first, and for four behind it.
        let pages = (5 * size / 4096) as u32;
        server.set(NOW, "net.ipv4.tcp_mem", &format!("{pages} {pages} 1000")).unwrap();
        let most = pages as usize * 4096 / size - 1;
        assert!((1..9).contains(&most), "{most}");
        assert_eq!(follow(&mut server, &mut segments), most);
        assert_eq!(server.counters().memory_pressures, 0);
    }

    #[test]
    fn a_packet_shorter_than_its_headers_ends_it() {
        let (mut server, _, mut segments) = ten_segments();
        segments[3].data.truncate(20);
        assert_eq!(follow(&mut server, &mut segments), 2);
    }

    #[test]
    fn a_hole_before_it_prevents_it() {
        let (mut server, _, mut segments) = ten_segments();
        segments.remove(0);
        assert_eq!(follow(&mut server, &mut segments), 0);
    }
}
