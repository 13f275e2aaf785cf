//! One end of a path in real time: a TUN device, and what waits for room in it.
use bytes::Bytes;
use firstbyte::device::Device;
use firstbyte::device::tun::Tun;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use wire::{RxBatch, TxPacket};

/// At most so many packets are read from one end before the other has its turn.
const BURST: usize = 64;
/// Packets that wait for room in a device; more are lost, as in a full ring.
const WAITING_MAX: usize = 1000;
/// Of an IPv4 header without options; a packet's other bytes are its text, whatever they are.
const HEADER: usize = 20;

/// An end.
pub(crate) struct End {
    device: Tun,
    batch: RxBatch,
    waiting: VecDeque<TxPacket>,
}

impl End {
    /// With this device.
    pub(crate) fn new(device: Tun) -> End {
        End { device, batch: RxBatch::default(), waiting: VecDeque::new() }
    }

    /// What the kernel has sent.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Bytes>> {
        self.batch.clear();
        self.device.recv(&mut self.batch, BURST)?;
        let packets = (0..self.batch.len()).filter_map(|at| self.batch.data(at));
        Ok(packets.map(Bytes::copy_from_slice).collect())
    }

    /// A packet for the kernel; one that is too short to be one is left out. False: too many wait, and it is lost.
    pub(crate) fn give(&mut self, packet: &Bytes) -> bool {
        if self.waiting.len() == WAITING_MAX {
            return false;
        }
        let whole = |header| TxPacket::new(header, [packet.slice(HEADER..)].into_iter().collect());
        self.waiting.extend(packet.get(..HEADER).map(whole));
        true
    }

    /// Hands over what waits, as far as there is room.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.device.send(&mut self.waiting)?;
        Ok(())
    }

    /// What to wait for.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let room = if self.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        self.device.as_fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN | room))
    }
}

/// Until something comes, or so long.
pub(crate) fn wait(descriptors: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<()> {
    let most = most.map(|most| Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: most.subsec_nanos().into(),
    });
    match rustix::event::poll(descriptors, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
