//! Frames without a virtio header, each one packet. A batch is read into one buffer, one frame
//! behind the other.
//!
//! A buffer that a batch fills well is given away with its packets, like a page of a driver, and is
//! usually followed by the one before it: a stream uses memory that stays in the CPU caches. Few
//! packets are copied, so that none pins much more than its length.

use super::Tun;
use crate::ring::{Ring, SMALL};
use crate::{arrived, is_ip};
use bytes::Bytes;
use core::ops::Range;
use std::io;
use wire::{RxBatch, RxChecksum, RxPacket};

/// The space of a frame is a multiple of this size, bytes.
const STEP: usize = 2048;
/// Size of a buffer: room for this many frames, or for one larger frame.
const BUFFER: usize = 64 * STEP;
/// Number of buffers kept for reuse: two megabytes.
const KEPT: usize = 16;
/// Packets keep the buffer if they fill at least one part in this many.
const DENSE: usize = 4;

/// Returns a ring for packets of up to `mtu` bytes.
pub(super) fn ring(mtu: usize) -> Ring {
    Ring::new(BUFFER.max(room(mtu)), KEPT)
}

fn room(mtu: usize) -> usize {
    mtu.next_multiple_of(STEP)
}

/// Packets of a batch that are still in the buffer.
pub(super) struct Singles {
    /// Index in the batch, and range in the buffer.
    places: Vec<(usize, Range<usize>)>,
    /// End of the last packet.
    end: usize,
    room: usize,
}

impl Singles {
    pub(super) fn new(mtu: usize) -> Singles {
        Singles { places: Vec::new(), end: 0, room: room(mtu) }
    }
}

impl Tun {
    /// Implements [`recv`](crate::Device::recv) without offload.
    pub(super) fn recv_singles(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        let first = batch.len();
        let outcome = loop {
            if batch.len() - first == max {
                break Ok(());
            }
            if self.singles.end + self.singles.room > self.buffer.len() {
                self.hand_over(batch);
            }
            match self.read_frame(self.singles.end, self.singles.room) {
                Ok(Some(len)) => self.take_single(len, batch),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.hand_over(batch);
        arrived(batch, first, |packet| self.stats.count_rx(&packet));
        match outcome {
            Err(error) if batch.len() == first => Err(error),
            _ => Ok(batch.len() - first),
        }
    }

    /// Reserves the place of the last frame in the batch; its data follows later.
    fn take_single(&mut self, len: usize, batch: &mut RxBatch) {
        let place = self.singles.end..self.singles.end + len;
        let packet = &self.buffer[place.clone()];
        if !is_ip(packet) {
            self.stats.rx_invalid += 1;
        } else if len <= SMALL {
            batch.copy(packet, RxChecksum::Verify, 0);
        } else {
            self.singles.places.push((batch.len(), place));
            self.singles.end += self.singles.room;
            batch.push(RxPacket::default());
        }
    }

    /// Fills in the data of the packets in the buffer.
    fn hand_over(&mut self, batch: &mut RxBatch) {
        let places = &mut self.singles.places;
        let used: usize = places.iter().map(|(_, place)| place.len()).sum();
        self.singles.end = 0;
        if used * DENSE < self.buffer.len() {
            for (at, place) in places.drain(..) {
                batch.set(at, RxPacket::new(Bytes::copy_from_slice(&self.buffer[place])));
            }
            return;
        }
        let buffer = std::mem::replace(&mut self.buffer, self.ring.take());
        let share = buffer.len().div_ceil(places.len().max(1));
        let whole = self.ring.lend(buffer);
        for (at, place) in places.drain(..) {
            batch.set(at, RxPacket { truesize: share, ..RxPacket::new(whole.slice(place)) });
        }
    }
}
