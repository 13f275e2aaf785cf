//! Initial sequence numbers (RFC 6528) and timestamp offsets (RFC 7323 §7.1), both from one secret.
//!
//! ISN = M + F(local, local port, peer, peer port, secret): M is a clock of 64 ns ticks, F is SipHash-2-4. Each tuple has
//! a number space of its own that only rises (for 4.5 minutes, longer than any segment lives), so that old segments fall behind a new connection, and
//! who does not know the secret cannot guess the numbers of another tuple.
//!
//! The timestamp offset hides the host's uptime. It is a tuple's, as in Linux 6.18 (`secure_tcp_seq_and_ts_off`): over the connections of
//! a tuple TSval rises, which is what lets a SYN end a TIME-WAIT (RFC 6191).

use crate::Instant;
use crate::tuple::FourTuple;
use core::cell::Cell;
use siphasher::sip::SipHasher24;
use wire::{Addr, SeqNum};

/// One tick of the ISN's clock, nanoseconds. RFC 9293 §3.4.1 says roughly 4 µs, of a time of slower hosts; 64 ns, as Linux's
/// `seq_scale`, let a connection follow one of the same tuple after microseconds.
const TICK_NANOS: u64 = 64;

/// Keyed generator of initial sequence numbers and timestamp offsets.
pub(crate) struct IsnGenerator {
    key: (u64, u64),
    /// The last answers.
    tuple: Cell<Option<(FourTuple, u64)>>,
    port: Cell<Option<(Addr, Addr, u16, u64)>>,
}

impl IsnGenerator {
    /// `key` must be secret and drawn once per stack.
    pub(crate) fn new(key: (u64, u64)) -> IsnGenerator {
        IsnGenerator { key, tuple: Cell::new(None), port: Cell::new(None) }
    }

    /// The ISN of a connection opened now.
    pub(crate) fn isn(&self, now: Instant, tuple: &FourTuple) -> SeqNum {
        let ticks = now.as_nanos() / TICK_NANOS;
        SeqNum(ticks.wrapping_add(self.of_tuple(tuple)) as u32)
    }

    /// Where the search for a local port towards this destination begins (RFC 6056 §3.3.4's F).
    pub(crate) fn port_hash(&self, local: Addr, peer: Addr, peer_port: u16) -> u64 {
        match self.port.get() {
            Some((last_local, last, port, hash))
                if last == peer && last_local == local && port == peer_port =>
            {
                hash
            }
            _ => {
                let hash = self.hash(*b"port", local, peer, u32::from(peer_port).to_be_bytes());
                self.port.set(Some((local, peer, peer_port, hash)));
                hash
            }
        }
    }

    /// What is added to the millisecond clock for TSval: of each connection something else (RFC 7323 §7.1), so that one who connects to us
    /// does not learn from it what others are told.
    pub(crate) fn timestamp_offset(&self, tuple: &FourTuple) -> u32 {
        (self.of_tuple(tuple) >> 32) as u32
    }

    /// The lower half is the sequence number's, the upper the timestamp's; who opens a connection asks for both.
    fn of_tuple(&self, tuple: &FourTuple) -> u64 {
        match self.tuple.get() {
            Some((last, hash)) if last == *tuple => hash,
            _ => {
                let ports = u32::from(tuple.local_port) << 16 | u32::from(tuple.peer_port);
                let hash = self.hash(*b"isn ", tuple.local, tuple.peer, ports.to_be_bytes());
                self.tuple.set(Some((*tuple, hash)));
                hash
            }
        }
    }

    fn hash(&self, purpose: [u8; 4], local: Addr, peer: Addr, ports: [u8; 4]) -> u64 {
        let hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        if let (Some(local), Some(peer)) = (local.v4_bytes(), peer.v4_bytes()) {
            return hasher.hash([purpose, local, peer, ports].as_flattened());
        }
        let mut bytes = [0; 40];
        bytes[..4].copy_from_slice(&purpose);
        bytes[4..20].copy_from_slice(&local.0);
        bytes[20..36].copy_from_slice(&peer.0);
        bytes[36..].copy_from_slice(&ports);
        hasher.hash(&bytes)
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
        IsnGenerator::new((3, 4)).isn(Instant::ZERO + at, &tuple(addr(1), local_port, addr(2), peer_port))
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
        let other_secret = IsnGenerator::new((3, 5)).isn(Instant::ZERO, &tuple(addr(1), 1, addr(2), 2));
        assert_ne!(other_secret, start);
        let generator = IsnGenerator::new((3, 4));
        assert_ne!(generator.isn(Instant::ZERO, &tuple(addr(2), 1, addr(1), 2)), start);
    }

    #[test]
    fn offsets_depend_on_the_tuple_and_the_secret() {
        let one = tuple(addr(1), 1, addr(2), 2);
        let generator = IsnGenerator::new((3, 4));
        let offset = generator.timestamp_offset(&one);
        assert_eq!(IsnGenerator::new((3, 4)).timestamp_offset(&one), offset);
        for other in
            [tuple(addr(1), 1, addr(3), 2), tuple(addr(3), 1, addr(2), 2), tuple(addr(1), 3, addr(2), 2)]
        {
            assert_ne!(generator.timestamp_offset(&other), offset);
        }
        assert_ne!(IsnGenerator::new((4, 4)).timestamp_offset(&one), offset);
        assert_eq!(generator.timestamp_offset(&one), offset);
    }
}
