//! A receive buffer that is counted packet by packet, as Linux counts it: what each takes with all its bookkeeping, not what its payload does
//! ([`ReceiveAccounting::Packets`](crate::ReceiveAccounting)).
//!
//! Here is what is kept of each packet, and the sums. `window` is how large a window follows, `out_of_order` the packets beyond a gap and the
//! blocks reported of them, `prune` what gives way when there is too much, `rounds` how the buffer grows. The bytes themselves lie in
//! `receive_buffer` and `reassembly`. `input` is what happens when a segment comes.

mod advertise;
mod input;
mod memory;
mod out_of_order;
mod prune;
mod rounds;
mod window;

use memory::Allocation;
pub(crate) use out_of_order::Sacks;
pub(crate) use rounds::{Growth, Rounds};
pub(crate) use window::Seen;

use super::ordered::Ordered;
use crate::Instant;
use alloc::collections::{BTreeMap, VecDeque};
use wire::SeqNum;

/// What is charged, in pages (Linux's `sk_forward_alloc`).
const PAGE: i32 = 4096;

/// Places for packets that are kept while nothing waits to be read.
const KEPT: usize = 32;

/// A packet that waits to be read, or for what is missing before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    seq: SeqNum,
    /// Number behind it, FIN included.
    end: SeqNum,
    /// Memory it takes, bytes.
    pub(super) truesize: u32,
    /// Payload that fits behind its own, bytes.
    room: u16,
    fin: bool,
    /// Of all TCP packets this was the so many'th to come; 0: it was copied together.
    number: u32,
}

impl Packet {
    /// As a device hands over one of `len` bytes, headers and all.
    pub(crate) fn arriving(seq: SeqNum, end: SeqNum, fin: bool, len: u32, number: u32) -> Packet {
        let Allocation { truesize, room } = memory::of_arriving(len);
        Packet { seq, end, truesize, room, fin, number }
    }

    /// Bytes of payload.
    pub(crate) fn len(&self) -> u32 {
        self.end.since(self.seq) - u32::from(self.fin)
    }

    /// Nothing is copied behind its payload.
    pub(crate) fn without_room(self) -> Packet {
        Packet { room: 0, ..self }
    }

    /// Number behind its payload.
    fn text_end(&self) -> SeqNum {
        self.end - u32::from(self.fin)
    }

    /// Copies the next one behind its own payload, if that fits (Linux's `tcp_try_coalesce`: what a device hands over in memory of
    /// the kernel's own can not be taken over otherwise). Not while a tap holds it, which has `read` so many packets.
    fn takes(&mut self, next: &Packet, read: Option<u32>) -> bool {
        let held = read.is_some_and(|read| (read.wrapping_sub(self.number) as i32) < 0 && self.number > 0);
        let fits = !held && next.seq == self.end && next.len() <= self.room.into();
        if fits {
            self.room -= next.len() as u16;
            (self.end, self.fin) = (next.end, self.fin | next.fin);
        }
        fits
    }
}

/// Of one connection, for as long as it lasts.
#[derive(Debug)]
pub(crate) struct PacketSpace {
    /// Memory the packets may take, bytes.
    rcvbuf: u32,
    /// The application chose it.
    locked: bool,
    /// Payload per memory, in 256ths.
    ratio: u8,
    /// Greatest window, bytes.
    clamp: u32,
    /// The window does not grow beyond this for now.
    ssthresh: u32,
    /// Memory the packets take.
    allocated: u32,
    /// Memory set aside for more, bytes.
    forward: i32,
    /// Payload of the last small segment that was taken to be full-sized, or 0.
    last_len: u16,
    /// Segments in order may go the fast path (Linux's header prediction).
    pub(super) predicts: bool,
    /// The one that is being looked at does.
    predicted: bool,
    /// There was no memory for a packet: the next acknowledgement tells of a closed window.
    no_room: bool,
    /// In order, to be read.
    queue: VecDeque<Packet>,
    /// Beyond a gap, by their numbers.
    out_of_order: BTreeMap<Ordered, Packet>,
    /// Packets that copying together may look at.
    collapsible: u32,
    pub(super) sacks: Sacks,
    pub(super) rounds: Rounds,
    /// When a segment last came or went.
    stamp: Instant,
    /// TCP packets that a tap has read; `None`: there is no tap.
    tap_read: Option<u32>,
    pub(super) compression: Compression,
}

/// Acknowledgements of packets out of order that wait to be sent as one (Linux's `tcp_comp_sack_*`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compression {
    /// How many of them wait.
    pub(super) waiting: u32,
    /// When they go.
    pub(super) at: Instant,
    /// Repeated acknowledgements sent at once since `rcv_nxt` was this.
    repeated: u8,
    rcv_nxt: SeqNum,
}

impl PacketSpace {
    pub(crate) fn rcvbuf(&self) -> u32 {
        self.rcvbuf
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Memory the packets take, bytes (Linux's `sk_rmem_alloc`).
    pub(crate) fn allocated(&self) -> u32 {
        self.allocated
    }

    /// Memory set aside for more, bytes.
    pub(crate) fn forward(&self) -> i32 {
        self.forward
    }

    pub(crate) fn nothing_waits(&self) -> bool {
        self.queue.is_empty()
    }

    /// May another packet come (Linux's `tcp_can_ingest`)?
    pub(crate) fn can_ingest(&self) -> bool {
        self.allocated <= self.rcvbuf
    }

    /// Sets memory aside for `size` bytes.
    pub(crate) fn schedule(&mut self, size: u32) {
        let lacking = size as i32 - self.forward;
        if lacking > 0 {
            self.forward += (lacking + PAGE - 1) / PAGE * PAGE;
        }
    }

    fn charge(&mut self, size: u32) {
        self.allocated += size;
        self.forward -= size as i32;
        self.collapsible = self.collapsible.saturating_add(prune::LOOKS_PER_PACKET);
    }

    fn release(&mut self, size: u32) {
        self.allocated = self.allocated.saturating_sub(size);
        self.forward += size as i32;
        self.reclaim();
    }

    /// Whole pages set aside are given back.
    pub(crate) fn reclaim(&mut self) {
        if self.forward >= PAGE {
            self.forward %= PAGE;
        }
    }

    /// Appends what is next.
    pub(crate) fn push(&mut self, packet: Packet) {
        let read = self.tap_read;
        if !self.queue.back_mut().is_some_and(|last| last.takes(&packet, read)) {
            self.charge(packet.truesize);
            self.queue.push_back(packet);
        }
    }

    /// The application has read up to `copied`.
    pub(crate) fn read_up_to(&mut self, copied: SeqNum, growth: &Growth) {
        while let Some(first) = self.queue.front().copied() {
            let upto = first.text_end().earliest(copied);
            if upto.after(self.rounds.copied()) {
                self.rounds.note_copied(upto);
                self.adjust(growth);
            }
            if first.text_end().after(copied) {
                break;
            }
            self.queue.pop_front();
            self.release(first.truesize);
        }
        if self.queue.is_empty() && self.queue.capacity() > KEPT {
            self.queue = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, SocketOptions};

    /// A backlog of packets was read: the memory that noted them does not stay with a connection at rest.
    #[test]
    fn a_queue_that_was_long_is_given_back() {
        let config = Config::linux();
        let mut space = PacketSpace::new(&config, &SocketOptions::default());
        let mut seq = SeqNum(1);
        for (packets, keeps) in [(10, true), (1000, false)] {
            for number in 1..=packets {
                space.push(Packet::arriving(seq, seq + 1000, false, 1040, number));
                seq += 1000;
            }
            assert_eq!((space.queue.len(), space.nothing_waits()), (packets as usize, false));
            space.read_up_to(seq, &Growth::new(&config, seq));
            assert!(space.nothing_waits());
            assert_eq!((space.queue.capacity() > 0, space.allocated()), (keeps, 0));
        }
    }
}
