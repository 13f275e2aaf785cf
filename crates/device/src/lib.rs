//! Devices that carry packets to and from a stack.
//!
//! - [`Device`]: the interface to a stack's driver: batches in, batches out, never blocking.
//! - [`memory`]: two devices joined in memory, for tests, embedders and anything that is not a
//!   network.
//! - [`tun`] (Linux): a TUN interface with the kernel on the other side, with GSO, GRO and checksum
//!   offload.
//! - [`ring`]: reusable receive buffers.
//! - [`tap`]: a pcapng writer, and a wrapper that captures the packets of any device.
//! - [`kernel_socket`] (Linux, macOS, FreeBSD): options of the kernel's own sockets that rustix
//!   lacks.
//! - [`interface`] (Linux): addresses, routes, MTU and state of a kernel interface, over netlink.
//!
//! Packets are [`wire::RxBatch`]es or [`wire::TxPacket`]s and start with the IP header. There is no
//! Ethernet, no ARP, no clock (a tap is given one), and no queueing or link emulation: those are in
//! `qdisc`.
#![deny(unsafe_op_in_unsafe_fn)]
#[cfg(target_os = "linux")]
pub mod interface;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
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

/// A device that carries IP packets.
///
/// No method blocks. An idle driver waits until [`Device::as_fd`] is readable (or writable, after
/// packets were left), or for the device's own notification if it has no descriptor.
pub trait Device {
    /// Returns the offloads of the device. They do not change while the device lives.
    fn capabilities(&self) -> Capabilities;

    /// Appends up to `max` packets to `batch`. Returns their number, 0 if none is available.
    ///
    /// # Errors
    /// The device is gone or broken. Packets received before the error are returned first; the next
    /// call returns the error.
    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize>;

    /// Sends packets from the front of `batch` and removes them. Returns their number. Packets that
    /// would block stay; a packet that the device had to segment may stay as its last segments. A
    /// packet that can never be sent (larger than the MTU, not IP) is removed, dropped and counted.
    ///
    /// # Errors
    /// The device is gone or broken. Packets sent before the error are counted first; the next call
    /// returns the error.
    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize>;

    /// Returns the descriptor to wait on, if there is one. It does not change while the device
    /// lives.
    fn as_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Sets the hook that a device without a descriptor calls when `recv` or `send` may progress.
    /// Does nothing if [`as_fd`](Device::as_fd) is enough.
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

/// Counters of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Packets received; one merged by GRO counts once.
    pub rx_packets: u64,
    /// Bytes of `rx_packets`.
    pub rx_bytes: u64,
    /// Packets of `rx_packets` that were merged from several segments.
    pub rx_merged: u64,
    /// Frames from the other side that are not IP packets, or have an invalid offload header.
    pub rx_invalid: u64,
    /// Packets dropped because the backlog was full (a device in memory with a backlog).
    pub rx_dropped: u64,
    /// Packets sent; one that the other side segments counts once.
    pub tx_packets: u64,
    /// Bytes of `tx_packets`.
    pub tx_bytes: u64,
    /// Packets of `tx_packets` with a `gso_size`.
    pub tx_gso: u64,
    /// Packets dropped because they, or their segments, are longer than the MTU.
    pub tx_oversize: u64,
    /// Packets dropped because they are not IP, or the other side rejected them as malformed.
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

/// Calls `see` for the packets of `batch` from index `first` on.
fn arrived(batch: &mut RxBatch, first: usize, mut see: impl FnMut(Arrival<'_>)) {
    for at in first..batch.len() {
        batch.get_mut(at).into_iter().for_each(&mut see);
    }
}

/// True if `packet`, or each segment of it, fits into `mtu`, and the whole into an IP packet.
fn fits(packet: &TxPacket, mtu: usize) -> bool {
    let largest = match usize::from(packet.gso_size) {
        0 => packet.len(),
        gso_size => packet.header().len() + gso_size.min(packet.payload_len()),
    };
    largest <= mtu && packet.len() <= IP_PACKET_MAX
}

/// Longest IPv4 packet, bytes (RFC 791 §3.1); the limit here for IPv6 too.
const IP_PACKET_MAX: usize = 65_535;

/// True if it begins like an IP packet.
fn is_ip(header: &[u8]) -> bool {
    match header.first().map(|byte| byte >> 4) {
        Some(4) => header.len() >= 20,
        Some(6) => header.len() >= 40,
        _ => false,
    }
}
