//! TUN (Linux): an IP interface whose link is this process.
//!
//! The kernel sees an interface with an address, such as 10.0.0.1/24. The stack behind [`Tun`] is
//! another host of that subnet, such as 10.0.0.2.
//!
//! - [`Builder`]: creates or attaches an interface, with addresses, routes, MTU (`tun/builder.rs`).
//! - [`Tun`]: the [`Device`]. With the virtio header (the default), the kernel and this process
//!   exchange TCP segments merged up to 64 KiB, with their checksum not computed, so that one
//!   system call moves up to 45 packets. Without it, packets are segmented and completed here.
//! - `tun/single.rs`: receives without the virtio header.
//! - [`Frame`]: a frame received with it.
//! - `tun/virtio.rs`: the header; `tun/ioctl.rs`: the ioctls that set up a device; `tun/error.rs`:
//!   errors with advice.
//!
//! ```no_run
//! let tun = firstbyte_device::tun::Tun::builder()
//!     .name("tun0")
//!     .address("10.0.0.1".parse().unwrap(), 24)
//!     .address("fd00::1".parse().unwrap(), 64)
//!     .open()?;
//! # Ok::<(), std::io::Error>(())
//! ```
mod builder;
mod error;
mod frame;
#[expect(unsafe_code, reason = "TUN devices are set up by ioctls, and rustix has no safe ones for them")]
mod ioctl;
mod single;
mod virtio;

pub use builder::Builder;
pub use error::TunError;
pub use frame::Frame;

use crate::ring::{Ring, SMALL};
use crate::{Device, IP_PACKET_MAX, Stats, arrived, fits, is_ip};
use bytes::{Bytes, BytesMut};
use rustix::io::Errno;
use single::Singles;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use virtio::{HEADER_LEN, TCP_CWR, TCP_FLAGS_OFFSET, VirtioNetHeader};
use wire::{Capabilities, MAX_HEADER, RxBatch, RxPacket, TxChecksum, TxPacket};

/// Size of the largest merged frame: virtio header, IPv6 header, 65535 bytes after it.
const MERGED_MAX: usize = HEADER_LEN + 40 + 65_535;
/// Shorter packets are copied out of a buffer for merged frames; longer ones keep the buffer. A
/// quarter of the buffer, so that no packet pins more than about four times its length.
const COPY_MAX: usize = MERGED_MAX / 4;
/// Number of buffers for merged frames kept for reuse: two megabytes.
const MERGED_KEPT: usize = 32;
/// Most slices of one writev (UIO_MAXIOV).
const SLICES_MAX: usize = 1024;

/// A TUN interface, or one queue of it.
///
/// An interface that is not persistent disappears when its last queue is dropped.
pub struct Tun {
    fd: OwnedFd,
    name: String,
    index: u32,
    flags: ioctl::Flags,
    capabilities: Capabilities,
    /// The buffer for frames; given away with packets that are not copied.
    buffer: BytesMut,
    ring: Ring,
    singles: Singles,
    /// The buffer in which packets are completed that the kernel does not complete.
    finished: Vec<u8>,
    stats: Stats,
}

impl Tun {
    /// Returns a builder that creates or attaches an interface.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the interface's index, for [`crate::interface`].
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the counters of this queue.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Opens another queue of this interface, which must have been opened with
    /// [`Builder::multi_queue`]. The kernel spreads flows over the queues, and follows the queue
    /// that a flow's packets come from.
    ///
    /// # Errors
    /// [`TunError`], with EINVAL if the interface is not multi-queue.
    pub fn queue(&self) -> io::Result<Tun> {
        let (fd, _) = builder::attach(&self.name, self.flags)?;
        Ok(Tun::from_parts(fd, self.name.clone(), self.index, self.flags, self.capabilities.mtu))
    }

    fn from_parts(fd: OwnedFd, name: String, index: u32, flags: ioctl::Flags, mtu: usize) -> Tun {
        let offload = flags.contains(ioctl::Flags::VNET_HDR);
        // Without offload, packets are segmented and completed here: once per burst is less work
        // than once per segment in the stack.
        let capabilities = Capabilities { mtu, gso_max_size: IP_PACKET_MAX - MAX_HEADER, tx_checksum: true };
        let mut ring = if offload { Ring::new(MERGED_MAX, MERGED_KEPT) } else { single::ring(mtu) };
        let buffer = ring.take();
        let singles = Singles::new(mtu);
        let (finished, stats) = (Vec::new(), Stats::default());
        Tun { fd, name, index, flags, capabilities, buffer, ring, singles, finished, stats }
    }

    fn has_offload(&self) -> bool {
        self.flags.contains(ioctl::Flags::VNET_HDR)
    }

    /// Reads one frame to offset `at` of the buffer, at most `most` bytes, and returns its length.
    /// Returns `None` if no frame is available.
    fn read_frame(&mut self, at: usize, most: usize) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.fd, &mut self.buffer[at..at + most]) {
                Ok(len) => return Ok(Some(len)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(TunError::new("receive from", &self.name, errno).into()),
            }
        }
    }

    /// Adds the packet in the first `len` bytes of the buffer, behind its virtio header, to the
    /// batch. Returns `None` if it is invalid.
    fn take_merged(&mut self, len: usize, batch: &mut RxBatch) -> Option<()> {
        let Frame { packet, checksum, gso_size } = Frame::parse(&self.buffer[..len])?;
        if packet.len() <= SMALL {
            batch.copy(packet, checksum, gso_size);
            return Some(());
        }
        let (data, truesize) = if packet.len() < COPY_MAX {
            (Bytes::copy_from_slice(packet), packet.len())
        } else {
            let buffer = std::mem::replace(&mut self.buffer, self.ring.take());
            let truesize = buffer.len();
            (self.ring.lend(buffer).slice(HEADER_LEN..len), truesize)
        };
        batch.push(RxPacket { data, truesize, checksum, gso_size });
        Some(())
    }

    /// Sends the first packet of the batch. Returns `false` if it would block and stays.
    fn send_front(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<bool> {
        let Some(packet) = batch.front() else { return Ok(false) };
        if !is_ip(packet.header()) {
            self.stats.tx_invalid += 1;
        } else if !fits(packet, self.capabilities.mtu) {
            self.stats.tx_oversize += 1;
        } else if let Some(header) = self.offload_header(packet) {
            match self.write_packet(header, packet)? {
                Written::Whole => self.stats.count_tx(packet.len(), packet.gso_size),
                Written::Refused => {}
                Written::WouldBlock => return Ok(false),
            }
        } else {
            return self.finish_front(batch);
        }
        batch.pop_front();
        Ok(true)
    }

    /// Sends like [`send_front`](Self::send_front), for a packet that the kernel does not complete:
    /// each segment is copied once, with its checksums. If a segment would block or fails, it and
    /// the following ones stay.
    fn finish_front(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<bool> {
        let Some(packet) = batch.pop_front() else { return Ok(false) };
        let mut finished = std::mem::take(&mut self.finished);
        finished.resize(self.capabilities.mtu.max(finished.len()), 0);
        let mut segments = packet.cut();
        let mut sent = 0;
        let outcome = loop {
            let len = match &mut segments {
                Some(segments) => segments.write_next(&mut finished),
                None => (sent == 0).then(|| packet.copy_into(&mut finished)),
            };
            let Some(len) = len else { break Ok(true) };
            match self.write_finished(&finished[..len]) {
                Ok(Written::Whole) => self.stats.count_tx(len, 0),
                Ok(Written::Refused) => {}
                Ok(Written::WouldBlock) => break Ok(false),
                Err(error) => break Err(error),
            }
            sent += 1;
        };
        self.finished = finished;
        if !matches!(outcome, Ok(true)) {
            packet
                .segments()
                .into_iter()
                .skip(sent)
                .rev()
                .for_each(|rest| batch.push_front(whole(&packet, rest)));
        }
        outcome
    }

    /// Returns the virtio header that makes the kernel complete this packet; `None` if it must be
    /// completed here.
    fn offload_header(&self, packet: &TxPacket) -> Option<VirtioNetHeader> {
        let gso_size = usize::from(packet.gso_size);
        let is_cut = gso_size != 0 && packet.payload_len() > gso_size;
        match packet.checksum {
            _ if !self.has_offload() => None,
            TxChecksum::Complete if is_cut => None,
            // When Linux segments packets from a TUN, it leaves CWR only on the first segment
            // (`tcp_gso_segment`).
            _ if is_cut && packet.repeats_cwr && has_cwr(packet) => None,
            TxChecksum::Complete => Some(VirtioNetHeader::default()),
            TxChecksum::Partial { start, offset } => {
                Some(VirtioNetHeader::for_partial(packet.header(), start, offset, packet.gso_size, is_cut))
            }
        }
    }

    /// Writes virtio header, packet header and payload with one writev.
    fn write_packet(&mut self, header: VirtioNetHeader, packet: &TxPacket) -> io::Result<Written> {
        let header = header.emit();
        if packet.shared.len() + 3 > SLICES_MAX {
            let parts = std::iter::once(packet.header()).chain(packet.slices());
            let copy: Vec<u8> = parts.flatten().copied().collect();
            return self.write(&[IoSlice::new(&header), IoSlice::new(&copy)]);
        }
        let mut slices: SmallVec<[IoSlice<'_>; 6]> = SmallVec::new();
        slices.push(IoSlice::new(&header));
        slices.push(IoSlice::new(packet.header()));
        slices.extend(packet.slices().map(IoSlice::new));
        self.write(&slices)
    }

    fn write_finished(&mut self, packet: &[u8]) -> io::Result<Written> {
        let header = VirtioNetHeader::default().emit();
        if self.has_offload() {
            return self.write(&[IoSlice::new(&header), IoSlice::new(packet)]);
        }
        self.write(&[IoSlice::new(packet)])
    }

    /// Writes one frame.
    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Written> {
        loop {
            let written = match slices {
                [whole] => rustix::io::write(&self.fd, whole),
                slices => rustix::io::writev(&self.fd, slices),
            };
            match written {
                Ok(_) => return Ok(Written::Whole),
                Err(Errno::AGAIN) => return Ok(Written::WouldBlock),
                Err(Errno::INTR) => {}
                Err(Errno::INVAL | Errno::MSGSIZE) => {
                    self.stats.tx_invalid += 1;
                    return Ok(Written::Refused);
                }
                Err(Errno::NOMEM | Errno::NOBUFS) => {
                    self.stats.tx_no_memory += 1;
                    return Ok(Written::Refused);
                }
                Err(errno) => return Err(TunError::new("send to", &self.name, errno).into()),
            }
        }
    }
}

/// Result of writing a frame.
enum Written {
    Whole,
    /// The kernel rejected the frame, which is counted.
    Refused,
    WouldBlock,
}

/// True for a TCP packet with CWR.
fn has_cwr(packet: &TxPacket) -> bool {
    let TxChecksum::Partial { start, .. } = packet.checksum else { return false };
    let flags = packet.header().get(usize::from(start) + TCP_FLAGS_OFFSET).copied().unwrap_or(0);
    flags & TCP_CWR != 0
}

/// Returns a complete segment of `packet`.
fn whole(packet: &TxPacket, segment: Bytes) -> TxPacket {
    let header_len = packet.header().len();
    let payload = (segment.len() > header_len).then(|| segment.slice(header_len..));
    TxPacket::new(&segment[..header_len], payload.into_iter().collect())
}

impl Device for Tun {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        if !self.has_offload() {
            return self.recv_singles(batch, max);
        }
        let (first, mut count) = (batch.len(), 0);
        while count < max {
            let len = match self.read_frame(0, MERGED_MAX) {
                Ok(Some(len)) => len,
                Ok(None) => break,
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            };
            match self.take_merged(len, batch) {
                Some(()) => count += 1,
                None => self.stats.rx_invalid += 1,
            }
        }
        arrived(batch, first, |packet| self.stats.count_rx(&packet));
        Ok(count)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        let mut count = 0;
        while !batch.is_empty() {
            match self.send_front(batch) {
                Ok(true) => count += 1,
                Ok(false) => break,
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}
