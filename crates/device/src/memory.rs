//! Two devices joined in memory: each receives the packets that the other sends.
//!
//! Each direction is a bounded queue. A full queue blocks the sender, or drops new packets
//! ([`with_backlog`](MemoryDevice::with_backlog)). The two ends may live in two threads. A packet
//! with a `gso_size` arrives merged if the receiving end accepts GSO packets of that size;
//! otherwise it is segmented. There is no loss, delay or rate: those are in `qdisc`.
//!
//! ```
//! use firstbyte_device::{Device, memory};
//! use std::collections::VecDeque;
//! use wire::{Capabilities, RxBatch, TxPacket};
//!
//! let capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
//! let (mut a, mut b) = memory::pair(capabilities);
//! let mut header = [0; 20];
//! header[0] = 0x45;
//! let mut out = VecDeque::from([TxPacket::new(&header, Default::default())]);
//! assert_eq!(a.send(&mut out)?, 1);
//! let mut batch = RxBatch::default();
//! assert_eq!(b.recv(&mut batch, 64)?, 1);
//! # Ok::<(), std::io::Error>(())
//! ```
use crate::{Device, Stats, arrived, fits, is_ip};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use sync::atomic::{AtomicU32, Ordering::Relaxed};
use sync::{Mutex, MutexGuard, PoisonError};
use wire::{Capabilities, RxBatch, RxChecksum, RxPacket, TxChecksum, TxPacket};

/// Default length of the queue in each direction, packets; [`pair_with`] sets another.
pub const QUEUE_LEN: usize = 1024;

/// A hook that is called when there may be something to do.
type Notify = Arc<dyn Fn() + Send + Sync>;

/// Creates two joined devices with these capabilities and queues of [`QUEUE_LEN`].
pub fn pair(capabilities: Capabilities) -> (MemoryDevice, MemoryDevice) {
    pair_with(capabilities, capabilities, QUEUE_LEN)
}

/// Creates two joined devices, each with its capabilities, and queues of `queue_len` packets (at
/// least 1).
pub fn pair_with(a: Capabilities, b: Capabilities, queue_len: usize) -> (MemoryDevice, MemoryDevice) {
    let [a, b] = [a, b].map(|capabilities| Arc::new(End::new(capabilities, queue_len.max(1))));
    let device = |own: &Arc<End>, peer: &Arc<End>| MemoryDevice {
        own: Arc::clone(own),
        peer: Arc::clone(peer),
        stats: Stats::default(),
    };
    (device(&a, &b), device(&b, &a))
}

/// Creates a device that receives the packets it sends. A host behind it talks to its own
/// addresses.
pub fn loopback(capabilities: Capabilities) -> MemoryDevice {
    let end = Arc::new(End::new(capabilities, QUEUE_LEN));
    MemoryDevice { own: Arc::clone(&end), peer: end, stats: Stats::default() }
}

/// One end of a [`pair`]. It calls the hook of [`set_notify`](Device::set_notify) when packets have
/// arrived, when there is room again after a send that left packets, and when the other end is
/// dropped. The hook runs in the other end's thread without a lock, and must not block.
pub struct MemoryDevice {
    own: Arc<End>,
    peer: Arc<End>,
    stats: Stats,
}

/// State of one end: the queue of packets for it, and its hook.
struct End {
    capabilities: Capabilities,
    queue_len: usize,
    /// Most packets in the queue before more are dropped; 0: none are dropped.
    backlog: AtomicU32,
    inbox: Mutex<Inbox>,
    notify: Mutex<Option<Notify>>,
}

#[derive(Default)]
struct Inbox {
    packets: VecDeque<RxPacket>,
    /// Packets dropped because the backlog was full.
    dropped: u64,
    /// True if the other end found no room, and waits for a notification.
    sender_waits: bool,
    /// True if the other end was dropped.
    sender_gone: bool,
}

impl MemoryDevice {
    /// Limits the receive queue to `packets` and drops and counts others ([`Stats::rx_dropped`]),
    /// like Linux's queue of a CPU (`net.core.netdev_max_backlog`). 0: none are dropped, and the
    /// sender blocks.
    #[must_use]
    pub fn with_backlog(self, packets: u32) -> MemoryDevice {
        self.own.backlog.store(packets, Relaxed);
        self
    }

    /// Returns the number of packets in the receive queue.
    pub fn backlog(&self) -> usize {
        lock(&self.own.inbox).packets.len()
    }

    /// Returns the counters of this end.
    pub fn stats(&self) -> Stats {
        Stats { rx_dropped: lock(&self.own.inbox).dropped, ..self.stats }
    }

    /// Sends everything; drops the packets that the other end has no room for.
    fn send_or_drop(&mut self, batch: &mut VecDeque<TxPacket>, backlog: usize) -> usize {
        let mut arrived = Vec::with_capacity(batch.len());
        let taken = self.convert(batch, usize::MAX, &mut arrived);
        let mut inbox = lock(&self.peer.inbox);
        let room = backlog.saturating_sub(inbox.packets.len()).min(arrived.len());
        inbox.dropped += (arrived.len() - room) as u64;
        inbox.packets.extend(arrived.drain(..room));
        drop(inbox);
        if room > 0 {
            self.peer.call();
        }
        taken
    }

    /// Converts packets from the front of `batch` until `room` is used up. Returns their number.
    fn convert(&mut self, batch: &mut VecDeque<TxPacket>, room: usize, out: &mut Vec<RxPacket>) -> usize {
        let mut taken = 0;
        while out.len() < room
            && let Some(packet) = batch.pop_front()
        {
            taken += 1;
            if !is_ip(packet.header()) {
                self.stats.tx_invalid += 1;
            } else if !fits(&packet, self.own.capabilities.mtu) {
                self.stats.tx_oversize += 1;
            } else {
                self.stats.count_tx(packet.len(), packet.gso_size);
                arrive(&packet, self.peer.capabilities, out);
            }
        }
        taken
    }
}

impl Device for MemoryDevice {
    fn capabilities(&self) -> Capabilities {
        self.own.capabilities
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        let before = batch.len();
        let mut inbox = lock(&self.own.inbox);
        let count = inbox.packets.len().min(max);
        batch.extend(inbox.packets.drain(..count));
        let ended = inbox.sender_gone && count == 0 && max > 0;
        let wake_sender = count > 0 && std::mem::take(&mut inbox.sender_waits);
        drop(inbox);
        if ended {
            return Err(other_end_gone());
        }
        arrived(batch, before, |packet| self.stats.count_rx(&packet));
        if wake_sender {
            self.peer.call();
        }
        Ok(count)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        if batch.is_empty() {
            return Ok(0);
        }
        if lock(&self.own.inbox).sender_gone {
            return Err(other_end_gone());
        }
        let backlog = self.peer.backlog.load(Relaxed);
        if backlog > 0 {
            return Ok(self.send_or_drop(batch, backlog as usize));
        }
        let mut taken = 0;
        loop {
            // Only this end adds to the peer's inbox, so the room found here can only grow while
            // packets are converted.
            let room = self.peer.queue_len.saturating_sub(lock(&self.peer.inbox).packets.len());
            let mut arrived = Vec::with_capacity(room.min(batch.len()));
            taken += self.convert(batch, room, &mut arrived);
            let has_news = !arrived.is_empty();
            let mut inbox = lock(&self.peer.inbox);
            inbox.packets.extend(arrived);
            let is_full = inbox.packets.len() >= self.peer.queue_len;
            inbox.sender_waits = is_full && !batch.is_empty();
            drop(inbox);
            if has_news {
                self.peer.call();
            }
            if is_full || batch.is_empty() {
                return Ok(taken);
            }
        }
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn set_notify(&mut self, notify: Notify) {
        *lock(&self.own.notify) = Some(notify);
    }
}

impl Drop for MemoryDevice {
    fn drop(&mut self) {
        lock(&self.peer.inbox).sender_gone = true;
        self.peer.call();
    }
}

impl End {
    fn new(capabilities: Capabilities, queue_len: usize) -> End {
        End {
            capabilities,
            queue_len,
            backlog: AtomicU32::new(0),
            inbox: Mutex::default(),
            notify: Mutex::default(),
        }
    }

    fn call(&self) {
        let notify = lock(&self.notify).clone();
        if let Some(notify) = notify {
            notify();
        }
    }
}

/// Converts `packet` to the form in which the other side receives it.
fn arrive(packet: &TxPacket, peer: Capabilities, out: &mut Vec<RxPacket>) {
    let checksum = match packet.checksum {
        TxChecksum::Partial { .. } => RxChecksum::Trusted,
        TxChecksum::Complete => RxChecksum::Verify,
    };
    let payload_len = packet.payload_len();
    let is_cut = packet.gso_size != 0 && payload_len > usize::from(packet.gso_size);
    if is_cut && payload_len > peer.gso_max_size {
        out.extend(packet.segments().into_iter().map(|data| RxPacket { checksum, ..RxPacket::new(data) }));
    } else {
        let gso_size = if is_cut { packet.gso_size } else { 0 };
        out.push(RxPacket { checksum, gso_size, ..RxPacket::new(packet.to_bytes()) });
    }
}

fn other_end_gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the other end of the in-memory pair was dropped")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
