//! Packets as they arrive, where they lie: in memory of the driver's, which it uses again, or each in memory that may be shared.
//!
//! A driver fills an [`RxBatch`] and a stack empties it. Counting who shares a small packet would cost more than a copy of what is kept of
//! it: such packets lie in the batch's own memory, one behind the other, until the next batch.

use super::{RxChecksum, RxPacket};
use alloc::vec::Vec;
use bytes::{Buf, Bytes};
use core::ops::{Deref, Range};

/// A received IP packet, for as long as somebody looks at it.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// From the IP header on.
    pub data: RxData<'a>,
    /// See [`RxPacket`].
    pub truesize: usize,
    /// Checksum state.
    pub checksum: RxChecksum,
    /// See [`RxPacket`].
    pub gso_size: u16,
}

impl<'a> Arrival<'a> {
    /// One of shared memory whose checksum is right.
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

/// A packet's bytes.
#[derive(Debug)]
pub enum RxData<'a> {
    /// They lie there for now: what is to stay is copied.
    Lent(&'a [u8]),
    /// What is to stay is taken out of them.
    Shared(&'a mut Bytes),
}

impl RxData<'_> {
    /// Is nothing to be copied?
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        matches!(self, RxData::Shared(_))
    }

    /// A part of them, to be kept; the last that is asked of them. One that is not there is empty.
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

/// Packets that have arrived, in their order.
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
    /// An empty one with room for `packets`.
    pub fn with_capacity(packets: usize) -> RxBatch {
        RxBatch { packets: Vec::with_capacity(packets), ..RxBatch::default() }
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Appends a packet that lies elsewhere.
    #[inline]
    pub fn push(&mut self, packet: RxPacket) {
        self.packets.push(Place::Elsewhere(packet));
    }

    /// Appends a copy of a packet; for small ones. `gso_size`: see [`RxPacket`].
    pub fn copy(&mut self, packet: &[u8], checksum: RxChecksum, gso_size: u16) {
        self.append(packet.len(), checksum, gso_size, |place| place.copy_from_slice(packet));
    }

    /// Appends a packet that `write` makes where it lies: all of its `len` bytes, which mean nothing before.
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

    /// Puts a packet that lies elsewhere in the place of one that is there.
    pub fn set(&mut self, at: usize, packet: RxPacket) {
        if let Some(place) = self.packets.get_mut(at) {
            *place = Place::Elsewhere(packet);
        }
    }

    /// The bytes of a packet.
    #[inline(always)]
    pub fn data(&self, at: usize) -> Option<&[u8]> {
        match self.packets.get(at)? {
            Place::Here { start, len, .. } => self.memory.get(*start as usize..)?.get(..*len as usize),
            Place::Elsewhere(packet) => Some(&packet.data),
        }
    }

    /// A packet. What is taken of its data is not there any more.
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
    /// If one of them is not there.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.packets.swap(a, b);
    }

    /// Forgets all packets but the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.packets.truncate(len);
        if self.packets.is_empty() {
            self.end = 0;
        }
    }

    /// Forgets all packets. Their memory stays.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Takes all packets, each in memory of its own.
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
