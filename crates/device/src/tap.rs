//! Captures: a pcapng writer, and a device that records the packets of another.
//!
//! - [`PcapngWriter`]: packets with nanosecond times, direction and comments, for Wireshark, tshark
//!   and tcpdump.
//! - [`Capture`]: a [`Device`] around a device.
//!
//! A capture shows packets as the stack and the device exchange them, like a capture on a Linux
//! host. A packet that the device will segment, or that GRO has merged, is one record with a
//! comment that gives the number of segments. Checksums left to the device are completed in the
//! record, so that tools do not report them as wrong.
mod checksum;
mod pcapng;

pub use checksum::complete_checksum;
pub use pcapng::{Captured, Direction, InterfaceId, PcapngWriter};

use crate::{Device, arrived};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{Capabilities, IpHeader, RxBatch, RxChecksum, TcpHeader, TxPacket, protocol};

/// A writer shared by several captures, each with its own interface.
pub type SharedWriter<W> = Arc<Mutex<PcapngWriter<W>>>;

/// Returns the time of a record: nanoseconds since 1970-01-01 00:00 UTC (or since the start, in
/// virtual time).
pub type Clock = Box<dyn FnMut() -> u64 + Send>;

/// A device that captures the packets of another device.
///
/// Packets are recorded one by one, each with its time. A write error does not disturb the traffic:
/// capturing stops, and [`Capture::fault`] returns the reason.
pub struct Capture<D, W: Write> {
    device: D,
    writer: SharedWriter<W>,
    interface: InterfaceId,
    clock: Clock,
    fault: Option<io::Error>,
}

impl<D: Device, W: Write> Capture<D, W> {
    /// Captures to a new writer, with one interface called `name`.
    ///
    /// # Errors
    /// The interface cannot be written.
    pub fn new(
        device: D,
        name: &str,
        mut writer: PcapngWriter<W>,
        clock: Clock,
    ) -> io::Result<Capture<D, W>> {
        let interface = writer.add_interface(name, "")?;
        Ok(Capture::shared(device, interface, Arc::new(Mutex::new(writer)), clock))
    }

    /// Captures to a shared writer, with an interface that was added to it before.
    pub fn shared(device: D, interface: InterfaceId, writer: SharedWriter<W>, clock: Clock) -> Capture<D, W> {
        Capture { device, writer, interface, clock, fault: None }
    }

    /// Returns the inner device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the inner device.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the writer, to flush it or to add other records.
    pub fn writer(&self) -> &SharedWriter<W> {
        &self.writer
    }

    /// Returns why capturing stopped, if it did.
    pub fn fault(&self) -> Option<&io::Error> {
        self.fault.as_ref()
    }

    fn record_received(&mut self, batch: &mut RxBatch, first: usize) {
        if batch.len() == first {
            return;
        }
        let at = (self.clock)();
        arrived(batch, first, |packet| {
            let completed = match packet.checksum {
                RxChecksum::Trusted => complete_checksum(&packet.data),
                RxChecksum::Verify => None,
            };
            let data = completed.as_deref().unwrap_or(&packet.data);
            let comment = merged_comment("GRO", packet.gso_size, tcp_payload_len(data).unwrap_or(0));
            self.record(at, Direction::Inbound, data, comment);
        });
    }

    fn record_sent(&mut self, at: u64, packet: &TxPacket) {
        let data = packet.to_bytes();
        let comment = merged_comment("GSO", packet.gso_size, packet.payload_len());
        self.record(at, Direction::Outbound, &data, comment);
    }

    fn record(&mut self, at: u64, direction: Direction, data: &[u8], comment: Option<String>) {
        if self.fault.is_some() {
            return;
        }
        let record = Captured {
            interface: self.interface,
            at,
            direction: Some(direction),
            comments: comment.as_slice(),
            data,
        };
        let written = lock(&self.writer).write_packet(&record);
        self.fault = written.err();
    }
}

impl<D: Device, W: Write> Device for Capture<D, W> {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        let before = batch.len();
        let received = self.device.recv(batch, max);
        self.record_received(batch, before);
        received
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        let mut count = 0;
        let mut one = VecDeque::with_capacity(1);
        while self.fault.is_none()
            && let Some(packet) = batch.pop_front()
        {
            // The time before the send: the reply of a fast peer must not come first.
            let at = (self.clock)();
            one.push_back(packet.clone());
            let sent = self.device.send(&mut one);
            let sent_count = *sent.as_ref().unwrap_or(&0);
            count += sent_count;
            if one.is_empty() {
                self.record_sent(at, &packet);
                continue;
            }
            // Segmented by the device; possibly only the first segments were sent.
            let segments = packet.segments();
            let left: usize = one.iter().map(|rest| rest.segments().len()).sum();
            for segment in segments.iter().take(segments.len().saturating_sub(left)) {
                self.record(at, Direction::Outbound, segment, None);
            }
            one.drain(..).rev().for_each(|rest| batch.push_front(rest));
            return if count > 0 { Ok(count) } else { sent };
        }
        match self.device.send(batch) {
            Err(_) if count > 0 => Ok(count),
            rest => Ok(count + rest?),
        }
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.device.as_fd()
    }

    fn set_notify(&mut self, notify: Arc<dyn Fn() + Send + Sync>) {
        self.device.set_notify(notify);
    }
}

/// Formats "GSO: 3 segments of up to 1448 bytes" for a packet of several segments.
fn merged_comment(what: &str, gso_size: u16, payload_len: usize) -> Option<String> {
    let size = usize::from(gso_size);
    (size != 0 && payload_len > size)
        .then(|| format!("{what}: {} segments of up to {size} bytes", payload_len.div_ceil(size)))
}

/// Returns the number of bytes after the TCP header; `None` if it is not TCP.
fn tcp_payload_len(packet: &[u8]) -> Option<usize> {
    let (ip, transport) = IpHeader::parse(packet).ok()?;
    if ip.protocol != protocol::TCP {
        return None;
    }
    let (_, payload) = TcpHeader::parse(&packet[transport], None).ok()?;
    Some(payload.len())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
