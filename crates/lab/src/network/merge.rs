//! Frames that follow each other become one packet (GRO, Linux's `tcp_gro_receive`).

use bytes::Bytes;
use wire::{RxChecksum, RxPacket};

/// What is being merged: of each flow of a poll, the frames so far.
#[derive(Default)]
pub(super) struct Merger {
    rows: Vec<Row>,
    merged: u64,
}

struct Row {
    packet: Vec<u8>,
    layout: Layout,
    /// Where the next frame begins.
    next_seq: u32,
    /// Text of the first frame: none after it is longer.
    size: usize,
    frames: u16,
}

/// Where the parts of a frame are.
#[derive(Clone, Copy)]
struct Layout {
    ip_len: usize,
    header_len: usize,
    text_len: usize,
    seq: u32,
}

/// Flows that are merged at the same time (`MAX_GRO_SKBS` of each bucket).
const ROWS_MAX: usize = 8;
/// A packet's length has sixteen bits.
const LENGTH_MAX: usize = 65_535;
const FIN_OR_PSH: u8 = 0x09;
const ACK: u8 = 0x10;

impl Merger {
    /// Frames that went on in another.
    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// Takes a frame; gives what can wait no longer.
    pub(super) fn take(&mut self, frame: Bytes) -> Vec<RxPacket> {
        let Some(layout) = Layout::of(&frame) else {
            let mut out = self.flush();
            out.push(RxPacket::new(frame));
            return out;
        };
        let mut out = Vec::new();
        if let Some(index) = self.rows.iter().position(|row| row.is_of_flow(&frame, layout)) {
            if self.rows[index].takes(&frame, layout) {
                self.merged += 1;
                let row = &mut self.rows[index];
                row.append(&frame, layout);
                if row.is_full(&frame, layout) {
                    out.push(self.rows.remove(index).into_packet());
                }
                return out;
            }
            out.push(self.rows.remove(index).into_packet());
        }
        let is_plain = frame[layout.ip_len + 13] == ACK && layout.text_len > 0;
        if !is_plain || self.rows.len() >= ROWS_MAX {
            out.push(RxPacket::new(frame));
            return out;
        }
        let next_seq = layout.seq.wrapping_add(layout.text_len as u32);
        self.rows.push(Row { packet: frame.to_vec(), layout, next_seq, size: layout.text_len, frames: 1 });
        out
    }

    /// A poll is over: everything goes on.
    pub(super) fn flush(&mut self) -> Vec<RxPacket> {
        self.rows.drain(..).map(Row::into_packet).collect()
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
        })
    }
}

impl Row {
    fn is_of_flow(&self, frame: &[u8], layout: Layout) -> bool {
        let addresses = if self.layout.ip_len == 20 { 12..24 } else { 8..44 };
        self.layout.ip_len == layout.ip_len && self.packet[addresses.clone()] == frame[addresses]
    }

    /// Has `frame` this packet's acknowledgement, window, flags and options, and the very next text, no longer than the first?
    fn takes(&self, frame: &[u8], layout: Layout) -> bool {
        let at = layout.ip_len;
        let flags = |packet: &[u8]| packet[at + 13] & !FIN_OR_PSH;
        layout.header_len == self.layout.header_len
            && layout.seq == self.next_seq
            && (1..=self.size).contains(&layout.text_len)
            && self.packet.len() + layout.text_len <= LENGTH_MAX
            && frame[1] == self.packet[1]
            && frame[at + 8..at + 12] == self.packet[at + 8..at + 12]
            && flags(frame) == flags(&self.packet)
            && frame[at + 14..at + 16] == self.packet[at + 14..at + 16]
            && frame[at + 20..layout.header_len] == self.packet[at + 20..layout.header_len]
    }

    fn append(&mut self, frame: &[u8], layout: Layout) {
        self.packet.extend_from_slice(&frame[layout.header_len..]);
        self.packet[layout.ip_len + 13] |= frame[layout.ip_len + 13] & FIN_OR_PSH;
        self.next_seq = self.next_seq.wrapping_add(layout.text_len as u32);
        self.frames += 1;
    }

    /// A short frame, a push or a FIN ends a row.
    fn is_full(&self, frame: &[u8], layout: Layout) -> bool {
        layout.text_len < self.size || frame[layout.ip_len + 13] & FIN_OR_PSH != 0
    }

    fn into_packet(mut self) -> RxPacket {
        if self.frames == 1 {
            return RxPacket::new(self.packet.into());
        }
        let len = self.packet.len();
        if self.layout.ip_len == 20 {
            self.packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            self.packet[10..12].fill(0);
            let mut sum = wire::Checksum::new();
            sum.add(&self.packet[..20]);
            let sum = sum.finish();
            self.packet[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            self.packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        }
        let gso_size = self.size as u16;
        // The card has verified the sums of the frames.
        RxPacket { checksum: RxChecksum::Trusted, gso_size, ..RxPacket::new(self.packet.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Addr, Flags, IpHeader, SeqNum, TcpHeader, protocol};

    fn frame(seq: u32, len: usize, flags: Flags) -> Bytes {
        let addr = |last| Addr::from(core::net::IpAddr::from([192, 0, 2, last]));
        let mut tcp = TcpHeader::new(80, 5000);
        (tcp.seq, tcp.flags, tcp.window) = (SeqNum(seq), flags, 1000);
        wire::build_tcp_packet(&IpHeader::new(addr(1), addr(2), protocol::TCP), &tcp, &vec![7; len])
    }

    fn lengths(packets: &[RxPacket]) -> Vec<(usize, u16)> {
        packets.iter().map(|packet| (packet.data.len() - 40, packet.gso_size)).collect()
    }

    #[test]
    fn what_follows_is_merged_until_the_poll_ends() {
        let mut merger = Merger::default();
        for n in 0..3 {
            assert!(merger.take(frame(n * 1000, 1000, Flags::ACK)).is_empty());
        }
        let out = merger.flush();
        assert_eq!((lengths(&out), merger.merged()), (vec![(3000, 1000)], 2));
        assert!(IpHeader::parse(&out[0].data).is_ok());
    }

    #[test]
    fn a_hole_a_push_and_a_short_one_end_a_row() {
        let mut merger = Merger::default();
        assert!(merger.take(frame(0, 1000, Flags::ACK)).is_empty());
        let out = merger.take(frame(2000, 1000, Flags::ACK));
        assert_eq!(lengths(&out), [(1000, 0)], "what came before the hole");
        let out = merger.take(frame(3000, 400, Flags::ACK | Flags::PSH));
        assert_eq!(lengths(&out), [(1400, 1000)]);
        assert!(merger.flush().is_empty());
        assert_eq!(lengths(&merger.take(frame(0, 0, Flags::ACK))), [(0, 0)]);
        assert_eq!(lengths(&merger.take(frame(0, 0, Flags::SYN))), [(0, 0)]);
    }
}
