//! A stack behind a TUN device that exists already; its peer is the kernel.

use crate::exchange::{Application, serve_events};
use crate::meter;
use crate::report::Failure;
use clap::Args;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use device::Device;
use device::tun::Tun;
use proto::{Config, Instant, RxBatch, Stack, TxPacket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;

/// Packets taken from the device, or given to it, at a time.
pub const BATCH: usize = 64;
/// Longest sleep while nothing happens.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// Where the device is, and who is on its other side.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// The device; it exists and is up.
    #[arg(long, default_value = "pftun")]
    pub dev: String,
    /// The stack's address.
    #[arg(long, default_value = "10.78.0.2")]
    pub ip: IpAddr,
    /// The kernel's address.
    #[arg(long, default_value = "10.78.0.1")]
    pub peer: IpAddr,
}

impl Place {
    /// The sixteen ports from 7000 on, of `address`.
    pub fn ports(address: IpAddr) -> Vec<SocketAddr> {
        (7000..7016).map(|port| SocketAddr::new(address, port)).collect()
    }
}

/// The stack and its device.
pub struct TunEnd {
    /// The stack.
    pub stack: Stack,
    device: Tun,
    received: RxBatch,
    waiting: VecDeque<TxPacket>,
}

impl TunEnd {
    /// Attaches to the device, with virtio headers if `has_offload`.
    ///
    /// # Errors
    /// The device is not there or is of another kind.
    pub fn open(place: &Place, has_offload: bool, config: &Config) -> Result<TunEnd, Failure> {
        let device = Tun::builder().name(&place.dev).offload(has_offload).open()?;
        let mut seed = [0; 32];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| format!("getrandom: {errno}"))?;
        let mut stack = Stack::new(config.clone(), device.capabilities(), seed);
        stack.add_address(place.ip, 24);
        Ok(TunEnd {
            stack,
            device,
            received: RxBatch::with_capacity(BATCH),
            waiting: VecDeque::with_capacity(BATCH),
        })
    }

    /// Packets in both directions since the beginning.
    pub fn packets(&self) -> u64 {
        let stats = self.device.stats();
        stats.rx_packets + stats.tx_packets
    }

    /// The device's MTU.
    pub fn mtu(&self) -> usize {
        self.device.capabilities().mtu
    }

    /// A batch in, time, the application, everything out; sleeps when there was nothing to do.
    ///
    /// # Errors
    /// The device's or the application's.
    pub fn step(&mut self, application: &mut impl Application) -> Result<(), Failure> {
        let mut moved = self.device.recv(&mut self.received, BATCH)?;
        let now = meter::now();
        self.stack.handle_timeout(now);
        if moved > 0 {
            self.stack.handle_packets(now, &mut self.received);
            // What nobody claims: the kernel's own chatter on a new interface.
            self.received.clear();
        }
        serve_events(&mut self.stack, now, application)?;
        moved += self.give(now)?;
        if moved == 0 { self.sleep(now) } else { Ok(()) }
    }

    fn give(&mut self, now: Instant) -> Result<usize, Failure> {
        let mut given = 0;
        loop {
            while self.waiting.len() < BATCH
                && let Some(packet) = self.stack.poll_transmit(now)
            {
                self.waiting.push_back(packet);
            }
            let taken = self.device.send(&mut self.waiting)?;
            given += taken;
            if taken == 0 {
                return Ok(given);
            }
        }
    }

    /// Until the device has something, or takes what it would not, or the stack's deadline.
    fn sleep(&mut self, now: Instant) -> Result<(), Failure> {
        let deadline = self.stack.poll_timeout().map_or(SLEEP_MAX, |deadline| deadline.since(now));
        let limit = deadline.min(SLEEP_MAX);
        let timeout = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        let Some(fd) = self.device.as_fd() else { return Ok(()) };
        let writable = if self.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN | writable)], Some(&timeout))
            .map_err(|errno| format!("poll: {errno}"))?;
        Ok(())
    }
}
