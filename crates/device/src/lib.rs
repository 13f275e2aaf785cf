//! Where packets enter and leave a stack.
//!
//! - [`Device`]: what a stack's driver asks of a device: batches in, batches out, never blocking.
//! - [`memory`]: two devices joined in memory, for tests, embedders and anything that is not a network.
//! - [`tun`] (Linux): a TUN interface with the kernel on the other side, with GSO, GRO and checksum offload.
//! - [`ring`]: receive buffers that are used again.
//! - [`tap`]: a pcapng writer, and a wrapper that captures what passes through any device.
//! - [`kernel_socket`] (Linux): what a program that opens the kernel's own sockets needs and rustix does not have.
//! - [`interface`] (Linux): addresses, routes, MTU and state of a kernel interface, over netlink.
//!
//! Packets are in [`wire::RxBatch`]es, or [`wire::TxPacket`]s, from the IP header on. There is no Ethernet and no ARP here,
//! no clock (a tap is given one), and no queueing or link emulation: that is `qdisc`.
#![deny(unsafe_op_in_unsafe_fn)]
#[cfg(target_os = "linux")]
pub mod interface;
#[cfg(target_os = "linux")]
pub mod kernel_socket;
pub mod memory;
pub mod ring;
pub mod tap;
#[cfg(target_os = "linux")]
pub mod tun;

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use wire::{Arrival, Capabilities, RxBatch, TxPacket};

/// Something that carries IP packets.
///
/// Nothing here blocks. A driver that has nothing to do waits until [`Device::as_fd`] is readable (or writable, after
/// packets were left), or until the device's own notification where it has no descriptor.
pub trait Device {
    /// What the device does for the stack. Does not change while the device lives.
    fn capabilities(&self) -> Capabilities;

    /// Appends up to `max` packets to `batch` and returns how many; 0 = none is there now.
    ///
    /// # Errors
    /// The device is gone or broken. Packets received before the fault are returned first; the error comes with the next call.
    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize>;

    /// Sends from the front of `batch`, removes what it took, and returns how many that were. Packets that would block
    /// stay; one that the device had to cut may stay as its last segments. A packet that can never be sent (larger than the
    /// MTU, not IP) is taken, dropped and counted.
    ///
    /// # Errors
    /// The device is gone or broken. Packets sent before the fault are returned first; the error comes with the next call.
    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize>;

    /// The descriptor to wait on, if there is one. It stays the same while the device lives.
    fn as_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Sets what a device without a descriptor calls when `recv` or `send` may get further. Does nothing where
    /// [`as_fd`](Device::as_fd) is enough.
    fn set_notify(&mut self, notify: Arc<dyn Fn() + Send + Sync>) {
        let _ = notify;
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        (**self).recv(batch, max)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        (**self).send(batch)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        (**self).as_fd()
    }

    fn set_notify(&mut self, notify: Arc<dyn Fn() + Send + Sync>) {
        (**self).set_notify(notify);
    }
}

/// What passed through a device, and what it refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Packets received; one merged by GRO counts once.
    pub rx_packets: u64,
    /// Bytes of those.
    pub rx_bytes: u64,
    /// Of those, packets merged from several segments.
    pub rx_merged: u64,
    /// Frames from the other side that are not an IP packet or whose offload header makes no sense.
    pub rx_invalid: u64,
    /// Packets dropped because too many waited to be received (a device in memory with a backlog).
    pub rx_dropped: u64,
    /// Packets sent; one to be segmented by the other side counts once.
    pub tx_packets: u64,
    /// Bytes of those.
    pub tx_bytes: u64,
    /// Of those, packets sent with a `gso_size`.
    pub tx_gso: u64,
    /// Packets dropped because they (or a segment of them) are longer than the MTU.
    pub tx_oversize: u64,
    /// Packets dropped because they are not IP or the other side refused them as malformed.
    pub tx_invalid: u64,
    /// Packets dropped because the other side had no memory for them.
    pub tx_no_memory: u64,
}

impl Stats {
    fn count_rx(&mut self, packet: &Arrival<'_>) {
        self.rx_packets += 1;
        self.rx_bytes += packet.data.len() as u64;
        self.rx_merged += u64::from(packet.gso_size != 0);
    }

    fn count_tx(&mut self, len: usize, gso_size: u16) {
        self.tx_packets += 1;
        self.tx_bytes += len as u64;
        self.tx_gso += u64::from(gso_size != 0);
    }
}

/// Packets of `batch` from the `first`th on.
fn arrived(batch: &mut RxBatch, first: usize, mut see: impl FnMut(Arrival<'_>)) {
    for at in first..batch.len() {
        batch.get_mut(at).into_iter().for_each(&mut see);
    }
}

/// Does `packet`, or each segment of it, fit into `mtu`, and the whole into an IP packet?
fn fits(packet: &TxPacket, mtu: usize) -> bool {
    let largest = match usize::from(packet.gso_size) {
        0 => packet.len(),
        gso_size => packet.header().len() + gso_size.min(packet.payload_len()),
    };
    largest <= mtu && packet.len() <= IP_PACKET_MAX
}

/// Longest IPv4 packet, bytes (RFC 791 §3.1); the limit here for IPv6 too.
const IP_PACKET_MAX: usize = 65_535;

/// Does it begin like an IP packet?
fn is_ip(header: &[u8]) -> bool {
    match header.first().map(|byte| byte >> 4) {
        Some(4) => header.len() >= 20,
        Some(6) => header.len() >= 40,
        _ => false,
    }
}
