//! Received packets, either in memory that the driver reuses, or each in memory that can be shared.
//!
//! A driver fills an [`RxBatch`] and a stack empties it. For a small packet, a reference count
//! would cost more than a copy. Small packets are therefore stored in the batch's own memory, one
//! after another, until the next batch.

use super::{RxChecksum, RxPacket};
use alloc::vec::Vec;
use bytes::{Buf, Bytes};
use core::ops::{Deref, Range};

/// A received IP packet, borrowed from its batch.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Bytes, starting with the IP header.
    pub data: RxData<'a>,
    /// See [`RxPacket`].
    pub truesize: usize,
    /// Checksum state.
    pub checksum: RxChecksum,
    /// See [`RxPacket`].
    pub gso_size: u16,
}

impl<'a> Arrival<'a> {
    /// Creates a packet in shared memory with a valid checksum.
    pub fn shared(data: &'a mut Bytes, truesize: usize, gso_size: u16) -> Arrival<'a> {
        Arrival { data: RxData::Shared(data), truesize, checksum: RxChecksum::Trusted, gso_size }
    }
}

impl<'a> From<&'a mut RxPacket> for Arrival<'a> {
    #[inline(always)]
    fn from(packet: &'a mut RxPacket) -> Arrival<'a> {
        let RxPacket { data, truesize, checksum, gso_size } = packet;
        Arrival { data: RxData::Shared(data), truesize: *truesize, checksum: *checksum, gso_size: *gso_size }
    }
}

/// The bytes of a packet.
#[derive(Debug)]
pub enum RxData<'a> {
    /// Borrowed bytes. To keep them, copy them.
    Lent(&'a [u8]),
    /// Shared bytes. To keep a part, take a slice.
    Shared(&'a mut Bytes),
}

impl RxData<'_> {
    /// Returns whether a part can be kept without a copy.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        matches!(self, RxData::Shared(_))
    }

    /// Returns a part to keep. Must be the last access. Returns nothing for a part that does not
    /// exist.
    #[inline(always)]
    pub fn take(&mut self, part: Range<usize>) -> Bytes {
        match self {
            RxData::Lent(_) if part.is_empty() => Bytes::new(),
            RxData::Lent(data) => Bytes::copy_from_slice(data.get(part).unwrap_or_default()),
            RxData::Shared(data) => {
                let mut data = core::mem::take(*data);
                data.truncate(part.end);
                let behind = part.start.min(data.len());
                data.advance(behind);
                data
            }
        }
    }
}

impl Deref for RxData<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            RxData::Lent(data) => data,
            RxData::Shared(data) => data,
        }
    }
}

/// Received packets in their order.
#[derive(Clone, Debug, Default)]
pub struct RxBatch {
    packets: Vec<Place>,
    /// As long as it ever had to be; what lies beyond `end` means nothing.
    memory: Vec<u8>,
    end: usize,
}

/// Where a packet is.
#[derive(Clone, Debug)]
enum Place {
    Here { start: u32, len: u32, checksum: RxChecksum, gso_size: u16 },
    Elsewhere(RxPacket),
}

/// Memory that a batch takes at first, bytes: it has room for the small packets of an ordinary one.
const FIRST_MEMORY: usize = 8192;

impl RxBatch {
    /// Creates an empty batch with room for `packets`.
    pub fn with_capacity(packets: usize) -> RxBatch {
        RxBatch { packets: Vec::with_capacity(packets), ..RxBatch::default() }
    }

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet in its own memory.
    #[inline]
    pub fn push(&mut self, packet: RxPacket) {
        self.packets.push(Place::Elsewhere(packet));
    }

    /// Appends a copy of a packet; for small ones. `gso_size`: see [`RxPacket`].
    pub fn copy(&mut self, packet: &[u8], checksum: RxChecksum, gso_size: u16) {
        self.append(packet.len(), checksum, gso_size, |place| place.copy_from_slice(packet));
    }

    /// Appends a packet of `len` bytes that `write` fills in place. The bytes are undefined before.
    #[inline]
    pub fn place(&mut self, len: usize, checksum: RxChecksum, write: impl FnOnce(&mut [u8])) {
        self.append(len, checksum, 0, write);
    }

    #[inline(always)]
    fn append(&mut self, len: usize, checksum: RxChecksum, gso_size: u16, write: impl FnOnce(&mut [u8])) {
        let (start, end) = (self.end, self.end + len);
        if end > self.memory.len() {
            self.grow(end);
        }
        write(&mut self.memory[start..end]);
        self.end = end;
        self.packets.push(Place::Here { start: start as u32, len: len as u32, checksum, gso_size });
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        self.memory.resize(least.next_power_of_two().max(FIRST_MEMORY), 0);
    }

    /// Replaces a packet by one in its own memory.
    pub fn set(&mut self, at: usize, packet: RxPacket) {
        if let Some(place) = self.packets.get_mut(at) {
            *place = Place::Elsewhere(packet);
        }
    }

    /// Returns the bytes of a packet.
    #[inline(always)]
    pub fn data(&self, at: usize) -> Option<&[u8]> {
        match self.packets.get(at)? {
            Place::Here { start, len, .. } => self.memory.get(*start as usize..)?.get(..*len as usize),
            Place::Elsewhere(packet) => Some(&packet.data),
        }
    }

    /// Returns a packet. Data taken from it is then gone from the batch.
    #[inline(always)]
    pub fn get_mut(&mut self, at: usize) -> Option<Arrival<'_>> {
        match self.packets.get_mut(at)? {
            Place::Here { start, len, checksum, gso_size } => {
                let data = self.memory.get(*start as usize..)?.get(..*len as usize)?;
                let (truesize, checksum, gso_size) = (data.len(), *checksum, *gso_size);
                Some(Arrival { data: RxData::Lent(data), truesize, checksum, gso_size })
            }
            Place::Elsewhere(packet) => Some(packet.into()),
        }
    }

    /// Exchanges two packets.
    ///
    /// # Panics
    /// Panics if one of them does not exist.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.packets.swap(a, b);
    }

    /// Drops all packets except the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.packets.truncate(len);
        if self.packets.is_empty() {
            self.end = 0;
        }
    }

    /// Drops all packets and keeps their memory.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes all packets, each in its own memory.
    pub fn drain(&mut self) -> impl Iterator<Item = RxPacket> {
        self.end = 0;
        let memory = &self.memory;
        self.packets.drain(..).map(|place| match place {
            Place::Here { start, len, checksum, gso_size } => {
                let data = Bytes::copy_from_slice(&memory[start as usize..][..len as usize]);
                RxPacket { checksum, gso_size, ..RxPacket::new(data) }
            }
            Place::Elsewhere(packet) => packet,
        })
    }
}

impl Extend<RxPacket> for RxBatch {
    fn extend<T: IntoIterator<Item = RxPacket>>(&mut self, packets: T) {
        self.packets.extend(packets.into_iter().map(Place::Elsewhere));
    }
}

impl FromIterator<RxPacket> for RxBatch {
    fn from_iter<T: IntoIterator<Item = RxPacket>>(packets: T) -> RxBatch {
        RxBatch { packets: packets.into_iter().map(Place::Elsewhere).collect(), ..RxBatch::default() }
    }
}
