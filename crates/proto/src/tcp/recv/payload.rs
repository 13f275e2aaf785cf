//! The payload of a segment, within its packet.

use bytes::Bytes;
use core::ops::{Deref, Range};
use wire::Arrival;

/// A payload within its packet. It is empty once it was taken.
#[derive(Debug)]
pub(crate) struct Payload<'p, 'd> {
    packet: &'p mut Arrival<'d>,
    place: Range<usize>,
}

impl<'p, 'd> Payload<'p, 'd> {
    /// Returns the bytes at `place` in the packet. A place outside of it is empty.
    pub(crate) fn new(packet: &'p mut Arrival<'d>, place: Range<usize>) -> Payload<'p, 'd> {
        Payload { packet, place }
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.place.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Returns the length of the IP and TCP headers before it.
    pub(crate) fn headers(&self) -> u16 {
        self.place.start as u16
    }

    /// Returns other bytes of its packet. A place outside of it is empty.
    pub(crate) fn beside(&self, place: Range<usize>) -> &[u8] {
        self.packet.data.get(place).unwrap_or_default()
    }

    /// Returns the memory that it pins if it is kept.
    pub(crate) fn truesize(&self) -> usize {
        self.packet.truesize
    }

    /// Returns the payload size of the original packets if it was merged, else 0.
    pub(crate) fn gso_size(&self) -> u16 {
        self.packet.gso_size
    }

    /// Returns how many packets were merged into it; `len` is its length before any byte is taken
    /// (Linux's `gso_segs`).
    pub(crate) fn packets(&self, len: u32) -> u32 {
        if self.gso_size() == 0 { 1 } else { len.div_ceil(self.gso_size().into()).max(1) }
    }

    /// Splits it into the packet and the place in it.
    pub(crate) fn parts(self) -> (&'p mut Arrival<'d>, Range<usize>) {
        (self.packet, self.place)
    }

    /// Takes the payload, and leaves an empty one.
    pub(crate) fn take(&mut self) -> Payload<'_, 'd> {
        let place = self.place.clone();
        self.place.end = self.place.start;
        Payload { packet: self.packet, place }
    }

    /// Returns the bytes, to be kept. Copies them unless the packet's memory may be shared.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.packet.data.take(self.place)
    }

    /// Drops the first `count` bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        self.place.start += count.min(self.len());
    }

    /// Keeps only the first `count` bytes.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.place.end = self.place.start + count.min(self.len());
    }
}

impl Deref for Payload<'_, '_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.packet.data.get(self.place.clone()).unwrap_or_default()
    }
}
