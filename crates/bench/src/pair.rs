//! Two hosts in one process, joined by in-memory links.

use crate::exchange::{Application, serve_events};
use crate::link::{self, Link};
use crate::meter;
use crate::report::Failure;
use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;
use proto::{Config, Instant, Stack, TxPacket};

/// The client's address.
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 80, 0, 1));
/// The server's address.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 80, 0, 2));
/// Longest time without a packet before a run is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// One host: its stack, and the link its packets leave by.
pub struct End {
    /// The stack.
    pub stack: Stack,
    link: Link,
    packet: TxPacket,
}

/// Both hosts.
pub struct Pair {
    /// Opens connections.
    pub client: End,
    /// Accepts them.
    pub server: End,
    last_packet: Instant,
}

/// Packets a stack may put on the link before the other end takes them: a batch as a driver has it.
pub const BATCH: usize = 64;

impl End {
    fn new(config: &Config, mtu: usize, has_checksums: bool, address: IpAddr, seed: u8) -> End {
        let mut stack = Stack::new(config.clone(), link::capabilities(mtu), [seed; 32]);
        stack.add_address(address, 24);
        End { stack, link: Link::new(mtu, has_checksums), packet: TxPacket::default() }
    }

    /// Time, and the packets that have come over `link`.
    #[inline]
    fn take(&mut self, now: Instant, link: &mut Link) {
        self.stack.handle_timeout(now);
        let batch = link.arrived();
        if !batch.is_empty() {
            self.stack.handle_packets(now, batch);
            batch.clear();
        }
    }

    /// Puts what the stack has to send on the link, up to a batch; returns how many packets.
    fn give(&mut self, now: Instant) -> usize {
        let mut count = 0;
        while count < BATCH && self.stack.poll_transmit_into(now, &mut self.packet) {
            count += self.link.send(&self.packet);
        }
        count
    }
}

impl Pair {
    /// Two fresh hosts. The seeds are fixed: each run is the same, except for the clock.
    pub fn new(client: &Config, server: &Config, mtu: usize, has_checksums: bool) -> Pair {
        Pair {
            client: End::new(client, mtu, has_checksums, CLIENT, 1),
            server: End::new(server, mtu, has_checksums, SERVER, 2),
            last_packet: meter::now(),
        }
    }

    /// Packets of both ends since the beginning.
    pub fn packets(&self) -> u64 {
        self.client.link.packets() + self.server.link.packets()
    }

    /// Frees the buffers of the links, which are no part of the hosts.
    pub fn drop_buffers(&mut self) {
        self.client.link.drop_buffers();
        self.server.link.drop_buffers();
    }

    /// One round: each host takes what has come, lets its application run, and sends. Returns the
    /// packets that moved.
    ///
    /// # Errors
    /// The applications', or that nothing has moved for ten seconds.
    pub fn round(
        &mut self,
        now: Instant,
        client: &mut impl Application,
        server: &mut impl Application,
    ) -> Result<usize, Failure> {
        let Pair { client: here, server: there, last_packet } = self;
        here.take(now, &mut there.link);
        serve_events(&mut here.stack, now, client)?;
        let mut moved = here.give(now);
        there.take(now, &mut here.link);
        serve_events(&mut there.stack, now, server)?;
        moved += there.give(now);
        if moved > 0 {
            *last_packet = now;
        } else if now.since(*last_packet) > IDLE_TIMEOUT {
            return Err(format!("nothing has moved for {IDLE_TIMEOUT:?}").into());
        }
        Ok(moved)
    }
}
