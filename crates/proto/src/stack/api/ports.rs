//! Selection of the local port of an active open (RFC 6056 §3.3.4: double hash), as on Linux since
//! 5.18 (`__inet_hash_connect`).
//!
//! The search starts at a keyed hash of the destination plus a counter shared by few destinations,
//! and proceeds upwards. The ports for one destination therefore reveal nothing about those for
//! others. An observer whose destination shares a counter with another could count the connections
//! to that one. Hence there are 2^16 counters, steps of random length, and a new hash every ten
//! seconds (Kol, Klein and Gilad, "Device Tracking via Linux's New TCP Source Port Selection
//! Algorithm", 2022).

use super::peer_time_wait::PASSED_OVER;
use crate::rng::Rng;
use crate::stack::Stack;
use crate::time_wait::ISN_DISTANCE;
use crate::tuple::FourTuple;
use crate::tuple::Name;
use crate::{ConnectError, Instant};
use alloc::boxed::Box;
use core::time::Duration;
use wire::{Addr, SeqNum};

/// Counters (Linux's `INET_TABLE_PERTURB_SIZE`).
const COUNTERS: usize = 1 << 16;
/// A counter moves on by fewer than so many ports beside the one that is taken, where all of those are free.
const STEPS: u64 = 8;
/// Bits of a random word that one step takes.
const STEP_BITS: u32 = STEPS.ilog2();

/// Where the search for a port begins.
pub(in crate::stack) struct PortCounters {
    /// Allocated with the first connection that asks for a port: 128 KiB, of which the system gives a page when one of its counters moves.
    counters: Box<[u16]>,
    rng: Rng,
    /// What is left of a random word, and for how many steps.
    random: u64,
    steps_left: u32,
}

impl PortCounters {
    pub(in crate::stack) fn new(rng: Rng) -> PortCounters {
        PortCounters { counters: Box::default(), rng, random: 0, steps_left: 0 }
    }

    /// The first offset for a destination with this hash.
    fn begin(&mut self, hash: u64) -> u32 {
        if self.counters.is_empty() {
            self.counters = vec![0; COUNTERS].into_boxed_slice();
        }
        let counter = u32::from(self.counters[hash as usize % COUNTERS]);
        ((hash >> 32) as u32).wrapping_add(counter)
    }

    /// A port was taken, so many offsets behind the first. The next search for this hash begins beyond it; and, unless many were in use, at a
    /// random distance.
    fn move_on(&mut self, hash: u64, passed: u32, step: u32) {
        let random = self.random_step() * step;
        let counter = &mut self.counters[hash as usize % COUNTERS];
        *counter = counter.wrapping_add((passed.max(random) + step) as u16);
    }

    fn random_step(&mut self) -> u32 {
        if self.steps_left == 0 {
            self.random = self.rng.next_u64();
            self.steps_left = u64::BITS / STEP_BITS;
        }
        self.steps_left -= 1;
        let step = self.random % STEPS;
        self.random >>= STEP_BITS;
        step as u32
    }
}

/// Who asks for a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack) enum Claim {
    /// A connection that begins.
    Opens,
    /// One that began elsewhere, perhaps at a listener of the same name.
    Takes,
}

impl Stack {
    /// The first local address of the peer's family.
    pub(in crate::stack) fn source_address(&self, peer: Addr) -> Option<Addr> {
        self.addresses.iter().copied().find(|addr| addr.is_v4() == peer.is_v4())
    }

    /// Chooses a tuple towards this peer: a free one (true), or one that a TIME-WAIT can give up.
    /// Free tuples in TIME-WAIT at the peer are chosen last.
    pub(in crate::stack) fn choose_port(
        &mut self,
        now: Instant,
        local: Addr,
        (peer, peer_port): (Addr, u16),
        range: Option<(u16, u16)>,
    ) -> Result<(Name, bool), ConnectError> {
        let (low, high) = self.port_range(range);
        let count = high.saturating_sub(low) + 1;
        let by_parity = self.shared.config.port_choice.by_parity() && range.is_none();
        let hash = self.isn.port_hash(now, local, peer, peer_port);
        let begin = self.ports.begin(hash);
        let (begin, step) = if by_parity { (begin & !1, 2) } else { (begin % count, 1) };
        let avoids = self.shared.config.port_choice.avoids_peer_time_wait();
        let (mut spare, mut waits_at_peer) = (None, None);
        for tried in 0..count {
            let offset = match by_parity {
                true => Stack::offset_by_parity(count, begin, tried),
                false if begin + tried < count => begin + tried,
                false => begin + tried - count,
            };
            let port = (low + offset) as u16;
            if self.shared.config.ip_local_reserved_ports.contains(port) {
                continue;
            }
            let name = self.name(FourTuple { local, local_port: port, peer, peer_port });
            if self.is_free(&name, Claim::Opens) {
                if !avoids || !self.peer_time_wait.contains(now, name.hash) {
                    self.ports.move_on(hash, tried * step, step);
                    return Ok((name, true));
                }
                let (_, first) = *waits_at_peer.get_or_insert((name, tried));
                if tried - first >= PASSED_OVER {
                    break;
                }
                continue;
            }
            if spare.is_none() && self.can_be_recycled(now, &name, false) {
                spare = Some((name, tried));
            }
        }
        let is_free = waits_at_peer.is_some();
        let (name, tried) = waits_at_peer.or(spare).ok_or(ConnectError::NoPorts)?;
        self.ports.move_on(hash, tried * step, step);
        Ok((name, is_free))
    }

    /// Returns an unpredictable number, from which the port search of a bound socket starts
    /// (Linux's `inet_csk_find_open_port`).
    pub fn random_port(&mut self) -> u32 {
        self.ports.rng.next_u64() as u32
    }

    /// Returns the range of ports to choose from: the stack's, limited by the socket's
    /// (`inet_sk_get_local_port_range`).
    pub fn port_range(&self, asked: Option<(u16, u16)>) -> (u32, u32) {
        let own = (self.shared.config.port_low, self.shared.config.port_high);
        let Some((low, high)) = asked else { return own };
        let within = |port: u16, otherwise| {
            let port = u32::from(port);
            if (own.0..=own.1).contains(&port) { port } else { otherwise }
        };
        (within(low, own.0), within(high, own.1))
    }

    /// Returns the port to try after `tried` others, relative to the first of `count`: all with the
    /// parity of `begin`, then the others. An odd `count` leaves one over, the first or the last
    /// depending on `begin` (Linux's `__inet_hash_connect`, `inet_csk_find_open_port`).
    pub fn offset_by_parity(count: u32, begin: u32, tried: u32) -> u32 {
        let pairs = (count & !1).max(1);
        let (pass, step) = (tried / pairs.div_ceil(2), tried % pairs.div_ceil(2));
        let begin = ((begin % pairs) & !1 | begin & 1) ^ (pass & 1);
        let offset = begin + 2 * step;
        if offset >= count { offset - pairs } else { offset }
    }

    /// Is this the tuple of a TIME-WAIT that may be cut short? Timestamps keep the segments of the old connection out of the new one
    /// (RFC 7323 §5), as `tcp_twsk_unique` reasons. `named`: the application has said which port.
    pub(in crate::stack) fn can_be_recycled(&self, now: Instant, name: &Name, named: bool) -> bool {
        let (config, tuple) = (&self.shared.config, &name.tuple);
        let Some(index) = self.time_wait.find(name.hash, tuple) else { return false };
        if named && config.port_choice.named_reuses() {
            return self.time_wait.get(index).ts_recent.is_some() && self.find_listener(tuple).is_none();
        }
        let allowed = match config.tcp_tw_reuse {
            0 => false,
            1 => true,
            _ => tuple.peer.is_loopback() || self.addresses.contains(&tuple.peer),
        };
        let age = config.time_wait.saturating_sub(self.time_wait.deadline(index).since(now));
        let entry = self.time_wait.get(index);
        allowed
            && !entry.fin_awaited
            && age > Duration::from_millis(config.tcp_tw_reuse_delay.into())
            && entry.ts_recent.is_some()
            && self.find_listener(tuple).is_none()
    }

    /// Ends the TIME-WAIT of a tuple that a connect takes over. The new ISN must not be before what comes back.
    pub(in crate::stack) fn recycle(&mut self, name: &Name) -> Option<SeqNum> {
        let index = self.time_wait.find(name.hash, &name.tuple)?;
        self.shared.counters.time_wait_recycled += 1;
        Some(self.time_wait.remove(index).snd_nxt + ISN_DISTANCE)
    }

    /// Has nobody this tuple?
    pub(in crate::stack) fn is_free(&self, name: &Name, claim: Claim) -> bool {
        self.holder_at(name.hash, &name.tuple).is_none()
            && self.time_wait.find(name.hash, &name.tuple).is_none()
            && (claim == Claim::Takes || self.find_listener(&name.tuple).is_none())
    }
}
