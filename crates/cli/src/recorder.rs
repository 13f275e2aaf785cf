//! Records the packets between a stack and its device, for the ladder of an exchange.
use bytes::Bytes;
use firstbyte::Instant;
use firstbyte::device::{Capabilities, Device, RxBatch, TxPacket};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// A recorded packet.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Time of the packet, since the recorder was created.
    pub(crate) at: Instant,
    /// Bytes from the IP header on.
    pub(crate) bytes: Bytes,
}

/// The recorded packets. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    start: std::time::Instant,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder { start: std::time::Instant::now(), seen: Arc::default() }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Records the packets that pass through `device`. The device must have no offloads, so that
    /// each packet is one on the wire.
    pub(crate) fn watch<D: Device>(&self, device: D) -> Watched<D> {
        Watched { device, recorder: self.clone() }
    }

    /// Returns the packets since the last call.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A recorded device.
pub(crate) struct Watched<D> {
    device: D,
    recorder: Recorder,
}

impl<D: Device> Device for Watched<D> {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        let before = batch.len();
        let received = self.device.recv(batch, max);
        let at = self.recorder.now();
        let packets = (before..batch.len()).filter_map(|packet| batch.data(packet));
        let seen = packets.map(|packet| Seen { at, bytes: Bytes::copy_from_slice(packet) });
        self.recorder.lock().extend(seen);
        received
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        let at = self.recorder.now();
        let copies: Vec<Seen> = batch.iter().map(|packet| Seen { at, bytes: packet.to_bytes() }).collect();
        let sent = self.device.send(batch)?;
        self.recorder.lock().extend(copies.into_iter().take(sent));
        Ok(sent)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.device.as_fd()
    }
}
