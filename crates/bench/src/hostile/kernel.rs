//! Linux behind a TUN device, in the network namespace of the thread that makes it.
//!
//! A packet is written to the device and handled in that call, on this thread's CPU clock; so a
//! time has the system call in it, in the ordinary case as in all others.

use super::victim::Ours;
use super::victim::{BACKLOG, CLOSED_PORT, HOST, HOST_V6, PORT, Taken, Victim};
use crate::meter::Stopwatch;
use crate::report::Failure;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use device::Device;
use device::tun::Tun;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::os::fd::OwnedFd;

/// Bytes of the largest packet.
const PACKET_MAX: usize = 1 << 16;
/// Bytes that one read takes.
const READ_MAX: usize = 1 << 20;

/// The kernel, which listens.
pub struct Kernel {
    device: Tun,
    listener: OwnedFd,
    accepted: Vec<OwnedFd>,
    buffer: Vec<u8>,
}

impl Kernel {
    /// One with a device and a listener, in this thread's namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> Result<Kernel, Failure> {
        let device =
            Tun::builder().offload(false).address(HOST.into(), 8).address(HOST_V6.into(), 16).open()?;
        // Every listener serves Fast Open.
        std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1027")?;
        let listener = rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )
        .map_err(of)?;
        sockopt::set_socket_reuseaddr(&listener, true).map_err(of)?;
        rustix::net::bind(&listener, &SocketAddr::new(HOST.into(), PORT)).map_err(of)?;
        rustix::net::listen(&listener, BACKLOG as i32).map_err(of)?;
        debug_assert_ne!(PORT, CLOSED_PORT);
        let mut kernel = Kernel { device, listener, accepted: Vec::new(), buffer: vec![0; READ_MAX] };
        // What a new interface says of itself.
        kernel.answers()?;
        Ok(kernel)
    }

    fn answers(&mut self) -> Result<Vec<Bytes>, Failure> {
        let fd = self.device.as_fd().ok_or("a TUN device has a descriptor")?;
        let mut answers = Vec::new();
        loop {
            match rustix::io::read(fd, &mut self.buffer[..PACKET_MAX]) {
                Ok(len) => {
                    let packet = &self.buffer[..len];
                    let is_tcp = wire::parse_tcp_packet(packet).is_ok();
                    let is_v4 = packet.first().is_some_and(|byte| byte >> 4 == 4);
                    if is_tcp || is_v4 {
                        answers.push(Bytes::copy_from_slice(packet));
                    }
                }
                Err(Errno::AGAIN) => return Ok(answers),
                Err(errno) => return Err(of(errno)),
            }
        }
    }
}

impl Victim for Kernel {
    fn take(&mut self, packets: &[Bytes]) -> Result<Taken, Failure> {
        let fd = self.device.as_fd().ok_or("a TUN device has a descriptor")?;
        let watch = Stopwatch::start();
        for packet in packets {
            // It refuses what is no packet of IP.
            let _ = rustix::io::write(fd, packet);
        }
        let nanos = watch.nanos();
        Ok(Taken { nanos, answers: self.answers()? })
    }

    fn accept(&mut self) -> Result<usize, Failure> {
        let accepted = rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
        self.accepted.push(accepted.map_err(of)?);
        Ok(self.accepted.len() - 1)
    }

    fn accept_and_reset_all(&mut self) -> Result<(), Failure> {
        loop {
            match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).map_err(of)?;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(of(errno)),
            }
        }
    }

    fn write(&mut self, connection: usize, len: usize) -> Result<usize, Failure> {
        let socket = self.accepted.get(connection).ok_or("there is no such connection")?;
        let mut written = 0;
        while written < len {
            let part = &self.buffer[..self.buffer.len().min(len - written)];
            match rustix::io::write(socket, part) {
                Ok(taken) => written += taken,
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(of(errno)),
            }
        }
        Ok(written)
    }

    fn read(&mut self, connection: usize) -> Result<usize, Failure> {
        let socket = self.accepted.get(connection).ok_or("there is no such connection")?;
        let mut read = 0;
        while let Ok(len @ 1..) = rustix::io::read(socket, &mut self.buffer[..]) {
            read += len;
        }
        Ok(read)
    }

    /// Its clock is everybody's.
    fn wait(&mut self, _: Duration) {}

    fn ours(&mut self) -> Option<&mut Ours> {
        None
    }
}

fn of(errno: Errno) -> Failure {
    std::io::Error::from(errno).into()
}
