//! Merging of consecutive frames into one packet (GRO, Linux's `tcp_gro_receive`).

use super::frames::Frames;
use super::headers::put_checksum;
use super::queue::Traveller;
use bytes::Bytes;
use smallvec::SmallVec;
use wire::{IpHeader, RxChecksum, RxPacket, TcpHeader};

/// Frames in the process of merging, by flow, within one poll.
pub(super) struct Merger {
    /// Rows of frames; a flow is always in the same bucket.
    buckets: [Vec<Row>; BUCKETS],
    merged: u64,
    /// Memory of merged packets.
    frames: Frames,
}

/// Packets for the stack, in order.
pub(super) type Merged = SmallVec<[RxPacket; 1]>;

struct Row {
    first: Traveller,
    layout: Layout,
    /// Payloads of the frames merged so far.
    others: SmallVec<[Bytes; 4]>,
    /// FIN and PSH of the last frame.
    ending: u8,
    /// Length of the merged packet.
    len: usize,
    /// Sequence number of the next expected frame.
    next_seq: u32,
}

/// Offsets of the parts of a frame.
#[derive(Clone, Copy)]
struct Layout {
    ip_len: usize,
    header_len: usize,
    text_len: usize,
    seq: u32,
    ports: [u8; 4],
}

/// Linux's `GRO_HASH_BUCKETS`, and the maximum flows merged at once in one bucket (`MAX_GRO_SKBS`).
const BUCKETS: usize = 8;
const ROWS_MAX: usize = 8;
/// Maximum length of a packet: the field has sixteen bits.
const LENGTH_MAX: usize = 65_535;
const FIN_OR_PSH: u8 = 0x09;
const ACK: u8 = 0x10;

impl Merger {
    pub(super) fn new(frames: Frames) -> Merger {
        Merger { buckets: Default::default(), merged: 0, frames }
    }

    /// Returns the number of frames merged into an earlier one.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// Takes a frame. `out` receives the packets that cannot wait. A frame with a wrong checksum is
    /// left to TCP.
    pub(super) fn take(&mut self, frame: Traveller, out: &mut Merged) {
        let Some(layout) = Layout::of(&frame.bytes).filter(|layout| layout.is_sound(&frame)) else {
            self.flush(out);
            return out.push(frame.into_received());
        };
        let rows = &mut self.buckets[layout.bucket()];
        if let Some(index) = rows.iter().position(|row| row.is_of_flow(&frame.bytes, layout)) {
            let row = &mut rows[index];
            if row.takes(&frame.bytes, layout) {
                self.merged += 1;
                row.append(&frame.bytes, layout);
                if row.is_full(layout) {
                    out.push(rows.remove(index).into_packet(&self.frames));
                }
                return;
            }
            out.push(rows.remove(index).into_packet(&self.frames));
        }
        let is_plain = frame.bytes[layout.ip_len + 13] == ACK && layout.text_len > 0;
        if !is_plain {
            return out.push(frame.into_received());
        }
        if rows.len() == ROWS_MAX {
            // The oldest row makes room (`gro_flush_oldest`).
            out.push(rows.remove(0).into_packet(&self.frames));
        }
        rows.push(Row::begin(frame, layout));
    }

    /// Ends a poll: all packets continue.
    pub(super) fn flush(&mut self, out: &mut Merged) {
        let rows = self.buckets.iter_mut().flat_map(|rows| rows.drain(..));
        out.extend(rows.map(|row| row.into_packet(&self.frames)));
    }
}

impl Layout {
    fn of(frame: &[u8]) -> Option<Layout> {
        let (ip_len, is_tcp, whole) = match frame.first()? >> 4 {
            4 => {
                let header = frame.get(..20)?;
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
                let whole = usize::from(u16::from_be_bytes([header[2], header[3]]));
                (20, header[0] == 0x45 && header[9] == 6 && !is_fragment, whole)
            }
            6 => {
                let header = frame.get(..40)?;
                (40, header[6] == 6, 40 + usize::from(u16::from_be_bytes([header[4], header[5]])))
            }
            _ => return None,
        };
        let tcp = frame.get(ip_len..).filter(|tcp| is_tcp && tcp.len() >= 20 && whole == frame.len())?;
        let header_len = ip_len + usize::from(tcp[12] >> 4) * 4;
        let text_len = frame.len().checked_sub(header_len).filter(|_| header_len >= ip_len + 20)?;
        Some(Layout {
            ip_len,
            header_len,
            text_len,
            seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            ports: [tcp[0], tcp[1], tcp[2], tcp[3]],
        })
    }

    /// Returns the bucket, by ports. Linux uses the card's hash of the flow.
    fn bucket(self) -> usize {
        usize::from(self.ports[1] ^ self.ports[3]) % BUCKETS
    }

    /// Returns whether the frame is unaltered or its checksums are correct.
    fn is_sound(self, frame: &Traveller) -> bool {
        let is_right = || {
            let (ip, _) = IpHeader::parse(&frame.bytes).ok()?;
            TcpHeader::parse(&frame.bytes[self.ip_len..], Some((ip.src, ip.dst))).ok()
        };
        frame.checksum == RxChecksum::Trusted || is_right().is_some()
    }
}

impl Row {
    fn begin(first: Traveller, layout: Layout) -> Row {
        let (len, next_seq) = (first.bytes.len(), layout.seq.wrapping_add(layout.text_len as u32));
        Row { first, layout, others: SmallVec::new(), ending: 0, len, next_seq }
    }

    fn is_of_flow(&self, frame: &[u8], layout: Layout) -> bool {
        let addresses = if self.layout.ip_len == 20 { 12..20 } else { 8..40 };
        (self.layout.ports, self.layout.ip_len) == (layout.ports, layout.ip_len)
            && self.first.bytes[addresses.clone()] == frame[addresses]
    }

    /// Returns whether `frame` continues this row: same acknowledgment, window, flags and options,
    /// the next sequence number, and no longer than the first.
    fn takes(&self, frame: &[u8], layout: Layout) -> bool {
        let (at, first) = (layout.ip_len, &self.first.bytes);
        let flags = |packet: &[u8]| packet[at + 13] & !FIN_OR_PSH;
        layout.header_len == self.layout.header_len
            && layout.seq == self.next_seq
            && (1..=self.layout.text_len).contains(&layout.text_len)
            && self.len + layout.text_len <= LENGTH_MAX
            && frame[1] == first[1]
            && frame[at + 8..at + 12] == first[at + 8..at + 12]
            && flags(frame) == flags(first)
            && frame[at + 14..at + 16] == first[at + 14..at + 16]
            && frame[at + 20..layout.header_len] == first[at + 20..layout.header_len]
    }

    fn append(&mut self, frame: &Bytes, layout: Layout) {
        self.others.push(frame.slice(layout.header_len..));
        self.ending = frame[layout.ip_len + 13] & FIN_OR_PSH;
        self.len += layout.text_len;
        self.next_seq = self.next_seq.wrapping_add(layout.text_len as u32);
    }

    /// Returns whether the last frame ends a row: a short frame, a push or a FIN.
    fn is_full(&self, last: Layout) -> bool {
        last.text_len < self.layout.text_len || self.ending != 0
    }

    fn into_packet(self, frames: &Frames) -> RxPacket {
        if self.others.is_empty() {
            return self.first.into_received();
        }
        let packet = frames.joined(self.len, |packet| {
            packet.extend_from_slice(&self.first.bytes);
            self.others.iter().for_each(|text| packet.extend_from_slice(text));
            packet[self.layout.ip_len + 13] |= self.ending;
            if self.layout.ip_len == 20 {
                packet[2..4].copy_from_slice(&(self.len as u16).to_be_bytes());
                put_checksum(&mut packet[..20]);
            } else {
                packet[4..6].copy_from_slice(&((self.len - 40) as u16).to_be_bytes());
            }
        });
        let gso_size = self.layout.text_len as u16;
        RxPacket { checksum: RxChecksum::Trusted, gso_size, ..RxPacket::new(packet) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::PacketId;
    use qdisc::Packet as _;
    use wire::{Addr, Flags, SeqNum, protocol};

    fn frame(seq: u32, len: usize, flags: Flags) -> Traveller {
        frame_of(5000, seq, len, flags)
    }

    fn frame_of(port: u16, seq: u32, len: usize, flags: Flags) -> Traveller {
        let addr = |last| Addr::from(core::net::IpAddr::from([192, 0, 2, last]));
        let mut tcp = TcpHeader::new(80, port);
        (tcp.seq, tcp.flags, tcp.window) = (SeqNum(seq), flags, 1000);
        let ip = IpHeader::new(addr(1), addr(2), protocol::TCP);
        Traveller::new(PacketId(1), wire::build_tcp_packet(&ip, &tcp, &vec![7; len]))
    }

    fn taken(merger: &mut Merger, frame: Traveller) -> Merged {
        let mut out = Merged::new();
        merger.take(frame, &mut out);
        out
    }

    fn flushed(merger: &mut Merger) -> Merged {
        let mut out = Merged::new();
        merger.flush(&mut out);
        out
    }

    fn lengths(packets: &[RxPacket]) -> Vec<(usize, u16)> {
        packets.iter().map(|packet| (packet.data.len() - 40, packet.gso_size)).collect()
    }

    #[test]
    fn what_follows_is_merged_until_the_poll_ends() {
        let mut merger = Merger::new(Frames::new(true));
        for n in 0..3 {
            assert!(taken(&mut merger, frame(n * 1000, 1000, Flags::ACK)).is_empty());
        }
        let out = flushed(&mut merger);
        assert_eq!((lengths(&out), merger.merged()), (vec![(3000, 1000)], 2));
        assert!(IpHeader::parse(&out[0].data).is_ok());
    }

    #[test]
    fn a_hole_a_push_and_a_short_one_end_a_row() {
        let mut merger = Merger::new(Frames::new(true));
        assert!(taken(&mut merger, frame(0, 1000, Flags::ACK)).is_empty());
        let out = taken(&mut merger, frame(2000, 1000, Flags::ACK));
        assert_eq!(lengths(&out), [(1000, 0)], "what came before the hole");
        let out = taken(&mut merger, frame(3000, 400, Flags::ACK | Flags::PSH));
        assert_eq!(lengths(&out), [(1400, 1000)]);
        assert!(flushed(&mut merger).is_empty());
        assert_eq!(lengths(&taken(&mut merger, frame(0, 0, Flags::ACK))), [(0, 0)]);
        assert_eq!(lengths(&taken(&mut merger, frame(0, 0, Flags::SYN))), [(0, 0)]);
    }

    /// 64 flows with different ports, twice: each bucket holds eight, so all are merged. A ninth
    /// flow in a bucket flushes the oldest.
    #[test]
    fn sixty_four_flows_are_merged_at_once_and_a_full_bucket_sends_its_oldest_on() {
        let mut merger = Merger::new(Frames::new(true));
        for number in 0..2 {
            for port in 0..64 {
                assert!(taken(&mut merger, frame_of(port, number * 1000, 1000, Flags::ACK)).is_empty());
            }
        }
        let out = taken(&mut merger, frame_of(64, 0, 1000, Flags::ACK));
        assert_eq!(lengths(&out), [(2000, 1000)], "port 0 is of that bucket, too");
        assert_eq!((flushed(&mut merger).len(), merger.merged()), (64, 64));
    }

    #[test]
    fn a_frame_that_was_corrupted_is_left_to_tcp() {
        let mut merger = Merger::new(Frames::new(true));
        assert!(taken(&mut merger, frame(0, 1000, Flags::ACK)).is_empty());
        let mut corrupted = frame(1000, 1000, Flags::ACK);
        corrupted.flip_bit(8 * 500);
        let out = taken(&mut merger, corrupted);
        assert_eq!(lengths(&out), [(1000, 0), (1000, 0)]);
        assert_eq!(out[1].checksum, RxChecksum::Verify);
        let rewritten = Traveller::altered(PacketId(2), frame(2000, 1000, Flags::ACK).bytes);
        assert!(taken(&mut merger, rewritten).is_empty(), "whose checksum is right");
    }
}
