//! One end of a path in real time: a TUN device, and the packets that wait for room in it.
use bytes::Bytes;
use firstbyte::device::Device;
use firstbyte::device::interface;
use firstbyte::device::tun::{Builder, Tun};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};
use wire::{RxBatch, TxPacket};

/// Most packets read from one end before the other gets its turn.
const BURST: usize = 64;
/// Most packets that wait for room in a device; more are dropped, as in a full ring.
const WAITING_MAX: usize = 1000;
/// Length of the kernel's queue to the device, packets. The default of 500 drops packets of a large
/// window, which the emulated path did not.
const QUEUE_LEN: u32 = 20_000;
/// Length of an IPv4 header without options, bytes.
const HEADER: usize = 20;

/// One end.
pub(crate) struct End<D = Tun> {
    device: D,
    batch: RxBatch,
    waiting: VecDeque<TxPacket>,
    waiting_max: usize,
}

/// Opens the device of an end in the current network namespace; `addressed` sets its addresses and
/// routes.
///
/// # Errors
/// The device cannot be opened, or its queue cannot be made longer.
pub(crate) fn open(mtu: usize, addressed: impl FnOnce(Builder) -> Builder) -> io::Result<Tun> {
    let tun = addressed(Tun::builder().name("link0").mtu(mtu).offload(false)).open()?;
    interface::set_queue_len(tun.index(), QUEUE_LEN)?;
    Ok(tun)
}

impl<D: Device> End<D> {
    /// Wraps a device.
    pub(crate) fn new(device: D) -> End<D> {
        End { device, batch: RxBatch::default(), waiting: VecDeque::new(), waiting_max: WAITING_MAX }
    }

    /// Returns the packets that the kernel has sent.
    pub(crate) fn read(&mut self) -> io::Result<Vec<Bytes>> {
        self.batch.clear();
        self.device.recv(&mut self.batch, BURST)?;
        let packets = (0..self.batch.len()).filter_map(|at| self.batch.data(at));
        Ok(packets.map(Bytes::copy_from_slice).collect())
    }

    /// Sends a packet to the kernel. Skips a packet that is too short. Returns false if the queue
    /// is full even after a flush; the packet is lost then.
    pub(crate) fn give(&mut self, packet: &Bytes) -> io::Result<bool> {
        if self.waiting.len() >= self.waiting_max {
            self.flush()?;
        }
        if self.waiting.len() >= self.waiting_max {
            return Ok(false);
        }
        let whole = |header| TxPacket::new(header, [packet.slice(HEADER..)].into_iter().collect());
        self.waiting.extend(packet.get(..HEADER).map(whole));
        Ok(true)
    }

    /// Sends a packet like [`give`](End::give), but waits for room. Returns false if the device
    /// accepted nothing for `most`.
    pub(crate) fn give_within(&mut self, packet: &Bytes, most: Duration) -> io::Result<bool> {
        let begun = Instant::now();
        while !self.give(packet)? {
            let Some(left) = most.checked_sub(begun.elapsed()) else { return Ok(false) };
            let mut room: Vec<_> = self
                .device
                .as_fd()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT))
                .into_iter()
                .collect();
            wait(&mut room, Some(left))?;
        }
        Ok(true)
    }

    /// Sends waiting packets while the device accepts them.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.device.send(&mut self.waiting)?;
        Ok(())
    }

    /// Returns the descriptor to poll.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let room = if self.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        self.device.as_fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN | room))
    }
}

/// Waits for events, at most for `most`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use firstbyte::device::Capabilities;
    use std::os::fd::BorrowedFd;

    /// A device with little room.
    struct Narrow {
        room: usize,
        taken: usize,
    }

    impl Device for Narrow {
        fn capabilities(&self) -> Capabilities {
            Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false }
        }

        fn recv(&mut self, _batch: &mut RxBatch, _max: usize) -> io::Result<usize> {
            Ok(0)
        }

        fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
            let taken = batch.len().min(self.room - self.taken);
            batch.drain(..taken);
            self.taken += taken;
            Ok(taken)
        }

        fn as_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    fn end(room: usize) -> End<Narrow> {
        End { waiting_max: 2, ..End::new(Narrow { room, taken: 0 }) }
    }

    /// A burst, as after a pause of the process, is delivered.
    #[test]
    fn a_burst_of_more_than_may_wait_is_handed_over() {
        let mut end = end(100);
        for n in 0..100 {
            assert!(end.give(&Bytes::from_static(&[0x45; 40])).unwrap(), "packet {n}");
        }
        end.flush().unwrap();
        assert_eq!(end.device.taken, 100);
    }

    #[test]
    fn a_device_that_takes_nothing_for_a_time_is_told() {
        let mut end = end(1);
        let packet = Bytes::from_static(&[0x45; 40]);
        let given: Vec<bool> =
            (0..4).map(|_| end.give_within(&packet, Duration::from_millis(5)).unwrap()).collect();
        assert_eq!(given, [true, true, true, false], "one is taken, two wait");
    }
}
