//! One direction of an in-memory link: whole packets in a queue.
//!
//! A packet is copied once, from the sender's slices into a buffer of the receiver's ring, as a
//! network card would. There is no loss and no delay. That copy also cuts what is larger than the
//! MTU, and with checksums it computes them (work that a stack leaves to a device that can), and
//! the receiver verifies them in software; without, neither happens.

use bytes::BytesMut;
use core::ops::Range;
use device::ring::{Ring, SMALL};
use proto::{Capabilities, RxBatch, RxPacket, TxPacket};
use wire::{MAX_HEADER, RxChecksum, Segments};

/// Buffers the ring keeps for use again.
const RING: usize = 1024;
/// Smallest buffer, bytes.
const BUFFER_MIN: usize = 2048;
/// What a burst is cut into lies in one buffer of this size, or a few, each packet from a cache
/// line on.
const BURST: usize = 96 * 1024;
const CACHE_LINE: usize = 64;

/// Packets on their way.
pub struct Link {
    queue: RxBatch,
    ring: Ring,
    bursts: Ring,
    /// Where in a buffer the packets of a burst lie.
    cut: Vec<Range<usize>>,
    has_checksums: bool,
    packets: u64,
}

/// Capabilities of a stack on such a link.
pub fn capabilities(mtu: usize) -> Capabilities {
    Capabilities { mtu, gso_max_size: usize::from(u16::MAX) - MAX_HEADER, tx_checksum: true }
}

impl Link {
    /// An empty link for packets of up to `mtu` bytes.
    pub fn new(mtu: usize, has_checksums: bool) -> Link {
        let ring = Ring::new(mtu.next_multiple_of(BUFFER_MIN), RING);
        let bursts = Ring::new(BURST, RING);
        Link { queue: RxBatch::default(), ring, bursts, cut: Vec::new(), has_checksums, packets: 0 }
    }

    /// Packets sent since the beginning.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Puts a packet, or what it is to be cut into, on the link; returns how many packets that
    /// were.
    pub fn send(&mut self, packet: &TxPacket) -> usize {
        let len = packet.len();
        if len <= SMALL && packet.gso_size == 0 {
            self.send_small(packet, len);
            return 1;
        }
        self.send_large(packet)
    }

    #[inline]
    fn send_small(&mut self, packet: &TxPacket, len: usize) {
        let has_checksums = self.has_checksums;
        self.packets += 1;
        self.queue.place(len, self.checksum(), |place| {
            copy(packet, place, has_checksums);
        });
    }

    #[inline(never)]
    fn send_large(&mut self, packet: &TxPacket) -> usize {
        let before = self.packets;
        if let Some(segments) = packet.cut() {
            let mut segments = if self.has_checksums { segments } else { segments.without_sums() };
            while segments.next_len().is_some() {
                self.push_burst(&mut segments);
            }
        } else {
            let mut buffer = self.ring.take();
            let len = copy(packet, &mut buffer, self.has_checksums);
            self.push(buffer, len);
        }
        (self.packets - before) as usize
    }

    fn checksum(&self) -> RxChecksum {
        if self.has_checksums { RxChecksum::Verify } else { RxChecksum::Trusted }
    }

    fn push(&mut self, buffer: BytesMut, len: usize) {
        self.packets += 1;
        let checksum = self.checksum();
        let truesize = buffer.len();
        let mut data = self.ring.lend(buffer);
        data.truncate(len);
        self.queue.push(RxPacket { data, truesize, checksum, gso_size: 0 });
    }

    /// As many packets as one buffer holds.
    fn push_burst(&mut self, segments: &mut Segments<'_>) {
        let mut buffer = self.bursts.take();
        let mut end = 0;
        while segments.next_len().is_some_and(|len| end + len <= buffer.len()) {
            let len = segments.write_next(&mut buffer[end..]).unwrap_or_default();
            self.cut.push(end..end + len);
            end += len.next_multiple_of(CACHE_LINE);
        }
        let (whole, checksum) = (self.bursts.lend(buffer), self.checksum());
        self.packets += self.cut.len() as u64;
        self.queue.extend(self.cut.drain(..).map(|place| {
            let truesize = place.len().next_multiple_of(CACHE_LINE);
            RxPacket { data: whole.slice(place), truesize, checksum, gso_size: 0 }
        }));
    }

    /// Everything that has arrived.
    #[inline]
    pub fn arrived(&mut self) -> &mut RxBatch {
        &mut self.queue
    }

    /// Frees what the ring keeps.
    pub fn drop_buffers(&mut self) {
        self.ring.clear();
        self.bursts.clear();
    }
}

#[inline(always)]
fn copy(packet: &TxPacket, buffer: &mut [u8], has_checksums: bool) -> usize {
    if has_checksums { packet.copy_into(buffer) } else { copy_raw(packet, buffer) }
}

/// Copies a packet as it is: the checksum field keeps what the stack left there.
fn copy_raw(packet: &TxPacket, buffer: &mut [u8]) -> usize {
    let header = packet.header();
    buffer[..header.len()].copy_from_slice(header);
    let mut at = header.len();
    for slice in packet.slices() {
        buffer[at..at + slice.len()].copy_from_slice(slice);
        at += slice.len();
    }
    at
}
