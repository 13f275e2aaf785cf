//! The payload of a segment, where it lies in its packet until somebody keeps it.

use bytes::Bytes;
use core::ops::{Deref, Range};
use wire::Arrival;

/// A payload that has not been taken out of its packet; once it has been, it is empty.
#[derive(Debug)]
pub(crate) struct Payload<'p, 'd> {
    packet: &'p mut Arrival<'d>,
    place: Range<usize>,
}

impl<'p, 'd> Payload<'p, 'd> {
    /// The bytes at `place` in the packet; one that is not there is empty.
    pub(crate) fn new(packet: &'p mut Arrival<'d>, place: Range<usize>) -> Payload<'p, 'd> {
        Payload { packet, place }
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.place.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Bytes of the packet before it: the IP header and TCP's.
    pub(crate) fn headers(&self) -> u16 {
        self.place.start as u16
    }

    /// Other bytes of its packet; those that are not there are none.
    pub(crate) fn beside(&self, place: Range<usize>) -> &[u8] {
        self.packet.data.get(place).unwrap_or_default()
    }

    /// Memory it pins when it is kept.
    pub(crate) fn truesize(&self) -> usize {
        self.packet.truesize
    }

    /// Payload bytes per original segment when merged, else 0.
    pub(crate) fn gso_size(&self) -> u16 {
        self.packet.gso_size
    }

    /// Packets of which its was merged, where it has `len` bytes before any is taken (Linux's `gso_segs`).
    pub(crate) fn packets(&self, len: u32) -> u32 {
        if self.gso_size() == 0 { 1 } else { len.div_ceil(self.gso_size().into()).max(1) }
    }

    /// The packet, and the place in it.
    pub(crate) fn parts(self) -> (&'p mut Arrival<'d>, Range<usize>) {
        (self.packet, self.place)
    }

    /// The payload by itself, which leaves an empty one here.
    pub(crate) fn take(&mut self) -> Payload<'_, 'd> {
        let place = self.place.clone();
        self.place.end = self.place.start;
        Payload { packet: self.packet, place }
    }

    /// The bytes, to be kept: copied, unless the packet's memory may be shared.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.packet.data.take(self.place)
    }

    /// Leaves out the first `count` bytes.
    pub(crate) fn advance(&mut self, count: usize) {
        self.place.start += count.min(self.len());
    }

    /// Leaves out all but the first `count` bytes.
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
