//! Initial sequence numbers (RFC 6528) and timestamp offsets (RFC 7323 §7.1), both from one secret.
//!
//! ISN = M + F(local, local port, peer, peer port, secret): M is a clock of 64 ns ticks, F is
//! SipHash-2-4. Each tuple has its own increasing number space (for 4.5 minutes, longer than any
//! segment lives). Old segments therefore fall behind a new connection, and the numbers of another
//! tuple cannot be guessed without the secret.
//!
//! The timestamp offset hides the uptime of the host. It belongs to a tuple, as in Linux 6.18
//! (`secure_tcp_seq_and_ts_off`): over the connections of a tuple TSval increases, which lets a SYN
//! end a TIME-WAIT (RFC 6191).

use crate::Instant;
use crate::tuple::FourTuple;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;
use wire::{Addr, SeqNum};

/// One tick of the ISN's clock, nanoseconds. RFC 9293 §3.4.1 says roughly 4 µs, of a time of slower hosts; 64 ns, as Linux's
/// `seq_scale`, let a connection follow one of the same tuple after microseconds.
const TICK_NANOS: u64 = 64;

/// For so long the search for a port towards a destination begins where the hash says; then another holds (Linux's
/// `EPHEMERAL_PORT_SHUFFLE_PERIOD`), so that nobody has long to find out which destinations share a counter.
const SHUFFLE_NANOS: u64 = 10_000_000_000;

/// Keyed generator of initial sequence numbers and timestamp offsets.
pub(crate) struct IsnGenerator {
    key: (u64, u64),
    /// The last answer.
    port: Option<LastPort>,
}

struct LastPort {
    local: Addr,
    peer: Addr,
    peer_port: u16,
    period: u64,
    hash: u64,
}

/// F of a tuple: the lower half is for the sequence number, the upper for the timestamp; who opens a connection needs both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TupleSecret(u64);

impl TupleSecret {
    /// The ISN of a connection opened now.
    pub(crate) fn isn(self, now: Instant) -> SeqNum {
        let ticks = now.as_nanos() / TICK_NANOS;
        SeqNum(ticks.wrapping_add(self.0) as u32)
    }

    /// What tells the tuple from all others. Its peer may learn it by the numbers that we begin with, but none of another tuple's.
    pub(crate) fn identity(self) -> u64 {
        self.0
    }

    /// What is added to the millisecond clock for TSval: of each connection something else (RFC 7323 §7.1), so that one who connects to us
    /// does not learn from it what others get.
    pub(crate) fn timestamp_offset(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl IsnGenerator {
    /// `key` must be secret and drawn once per stack.
    pub(crate) fn new(key: (u64, u64)) -> IsnGenerator {
        IsnGenerator { key, port: None }
    }

    /// Where the search for a local port towards this destination begins now (RFC 6056 §3.3.4's F, and in its other half G).
    pub(crate) fn port_hash(&mut self, now: Instant, local: Addr, peer: Addr, peer_port: u16) -> u64 {
        let period = now.as_nanos() / SHUFFLE_NANOS;
        match &self.port {
            Some(last)
                if last.peer == peer
                    && last.local == local
                    && last.peer_port == peer_port
                    && last.period == period =>
            {
                last.hash
            }
            _ => self.another_port_hash(period, local, peer, peer_port),
        }
    }

    /// What a connection of this tuple begins with. (Its input has another length than a port's, so the two tell nothing of each other.)
    pub(crate) fn of_tuple(&self, tuple: &FourTuple) -> TupleSecret {
        let ports = u32::from(tuple.local_port) << 16 | u32::from(tuple.peer_port);
        let (Some(local), Some(peer)) = (tuple.local.v4_bytes(), tuple.peer.v4_bytes()) else {
            return self.of_v6_tuple(tuple, ports);
        };
        // By words: that is straight code.
        let mut hasher = self.hasher();
        hasher.write_u32(u32::from_le_bytes(local));
        hasher.write_u32(u32::from_le_bytes(peer));
        hasher.write_u32(ports);
        TupleSecret(hasher.finish())
    }

    #[inline(never)]
    fn of_v6_tuple(&self, tuple: &FourTuple, ports: u32) -> TupleSecret {
        let mut hasher = self.hasher();
        hasher.write(&tuple.local.0);
        hasher.write(&tuple.peer.0);
        hasher.write_u32(ports);
        TupleSecret(hasher.finish())
    }

    #[cold]
    fn another_port_hash(&mut self, period: u64, local: Addr, peer: Addr, peer_port: u16) -> u64 {
        let mut hasher = self.hasher();
        hasher.write_u64(period);
        hasher.write(&local.0);
        hasher.write(&peer.0);
        hasher.write_u16(peer_port);
        let hash = hasher.finish();
        self.port = Some(LastPort { local, peer, peer_port, period, hash });
        hash
    }

    fn hasher(&self) -> SipHasher24 {
        SipHasher24::new_with_keys(self.key.0, self.key.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use core::time::Duration;

    fn addr(last: u8) -> Addr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn tuple(local: Addr, local_port: u16, peer: Addr, peer_port: u16) -> FourTuple {
        FourTuple { local, local_port, peer, peer_port }
    }

    fn isn(at: Duration, local_port: u16, peer_port: u16) -> SeqNum {
        let tuple = tuple(addr(1), local_port, addr(2), peer_port);
        IsnGenerator::new((3, 4)).of_tuple(&tuple).isn(Instant::ZERO + at)
    }

    #[test]
    fn the_clock_ticks_every_64_nanoseconds() {
        let start = isn(Duration::ZERO, 1, 2);
        assert_eq!(isn(Duration::from_nanos(63), 1, 2), start);
        assert_eq!(isn(Duration::from_nanos(64), 1, 2), start + 1);
        assert_eq!(isn(Duration::from_secs(1), 1, 2), start + 15_625_000);
        let around = Duration::from_nanos(64 << 32);
        assert_eq!(isn(around, 1, 2), start);
    }

    #[test]
    fn each_tuple_and_each_secret_has_its_own_space() {
        let start = isn(Duration::ZERO, 1, 2);
        assert_ne!(isn(Duration::ZERO, 2, 1), start);
        assert_ne!(isn(Duration::ZERO, 1, 3), start);
        let isn = |generator: &IsnGenerator, tuple| generator.of_tuple(&tuple).isn(Instant::ZERO);
        assert_ne!(isn(&IsnGenerator::new((3, 5)), tuple(addr(1), 1, addr(2), 2)), start);
        assert_ne!(isn(&IsnGenerator::new((3, 4)), tuple(addr(2), 1, addr(1), 2)), start);
    }

    #[test]
    fn offsets_depend_on_the_tuple_and_the_secret() {
        let one = tuple(addr(1), 1, addr(2), 2);
        let of = |key, tuple: &FourTuple| IsnGenerator::new(key).of_tuple(tuple).timestamp_offset();
        let offset = of((3, 4), &one);
        for other in
            [tuple(addr(1), 1, addr(3), 2), tuple(addr(3), 1, addr(2), 2), tuple(addr(1), 3, addr(2), 2)]
        {
            assert_ne!(of((3, 4), &other), offset);
        }
        assert_ne!(of((4, 4), &one), offset);
        assert_eq!(of((3, 4), &one), offset);
    }
}
