//! A device made of a packet socket pair: our stack at one end, the path at the other.
use bytes::Bytes;
use device::Device;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use wire::{Capabilities, RxBatch, RxPacket, TxPacket};

/// Room for one packet.
const PACKET_MAX: usize = 65_535;

/// A device without any offload whose packets appear at a descriptor of packet semantics, one by
/// one.
#[derive(Debug)]
pub struct SocketDevice {
    socket: OwnedFd,
    mtu: usize,
    buffer: Vec<u8>,
}

impl SocketDevice {
    /// The device, and the descriptor at which its packets appear.
    pub fn new(mtu: usize) -> (SocketDevice, OwnedFd) {
        let (socket, other) = pair();
        (SocketDevice { socket, mtu, buffer: vec![0; PACKET_MAX] }, other)
    }
}

/// Two descriptors of packet semantics, joined; neither blocks.
pub(crate) fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket pair")
}

impl Device for SocketDevice {
    fn capabilities(&self) -> Capabilities {
        Capabilities { mtu: self.mtu, gso_max_size: 0, tx_checksum: false }
    }

    fn recv(&mut self, batch: &mut RxBatch, max: usize) -> io::Result<usize> {
        for received in 0..max {
            match rustix::io::read(&self.socket, &mut self.buffer) {
                Ok(0) if received > 0 => return Ok(received),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => batch.push(RxPacket::new(Bytes::copy_from_slice(&self.buffer[..len]))),
                Err(Errno::AGAIN) => return Ok(received),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(max)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        let mut sent = 0;
        while let Some(packet) = batch.front() {
            match rustix::io::write(&self.socket, &packet.to_bytes()) {
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
            batch.pop_front();
            sent += 1;
        }
        Ok(sent)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
