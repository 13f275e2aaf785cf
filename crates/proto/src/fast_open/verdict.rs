//! Negative verdicts: places where Fast Open failed, and the time for which it is disabled there
//! (RFC 7413 §4.1.3.1, R14–R16, R24).
//!
//! > "The client MUST cache negative responses from the server in order to avoid potential
//! > connection failures."
//!
//! A verdict concerns one port of one peer as seen from one local network. Its duration doubles
//! with every consecutive failure:
//!
//! ```text
//!  failure            failure of the trial                     quiet
//!  |--- 5 min ---|trial|----- 10 min -----|......10 min......|......10 min......|
//!  count 1             count 2                               count 1            forgotten
//! ```
//!
//! - After a verdict has expired, one connection may try (half-open). The others refrain during the
//!   trial.
//! - A failed trial increments the count, a successful one removes the verdict.
//! - The count is halved for each duration of the verdict that passes without evidence after its
//!   end, so that an old failure weighs less than a new one.
//! - Failures while the verdict applies do not count: these connections started before it, or were
//!   forced.
//! - If SYN data has passed before, the first SYN that seems lost is only a doubt (count 0, without
//!   effect): packets are lost occasionally, and five minutes with one more round trip each cost
//!   more than a second fallback. The next one in a row is a failure; a success in between removes
//!   the doubt.
//!
//! The times are Apple's (5 minutes, doubling, at most 65 536 minutes); FreeBSD waits a constant
//! 900 s. A trial costs one connection the fallback time, 100 ms to 1 s, so at first one trial
//! every five minutes is cheap enough.
//!
//! SYN+data+FIN has its own slot: where it fails, SYN+data may still work.

use super::lru::Lru;
use crate::{Instant, Verdict};
use core::time::Duration;
use wire::Addr;

/// How long the first verdict holds.
const BASE: Duration = Duration::from_secs(5 * 60);
/// The longest a verdict holds: 65 536 minutes.
const CAP: Duration = Duration::from_secs(65_536 * 60);
/// How long others wait for the outcome of a trial: longer than any fallback, and than three time-outs of a usual path.
const TRIAL: Duration = Duration::from_secs(10);

/// A local network: a range of addresses that share the middleboxes on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    prefix: Addr,
    prefix_len: u8,
}

impl Network {
    /// Creates the network of `addr`. `prefix_len` counts bits of the address's IP version; a
    /// larger value means all bits.
    pub fn new(addr: Addr, prefix_len: u8) -> Network {
        let (width, mapping) = if addr.is_v4() { (32, 96) } else { (128, 0) };
        let prefix_len = prefix_len.min(width);
        let host_bits = u32::from(128 - mapping - prefix_len);
        let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
        let prefix = Addr((u128::from_be_bytes(addr.0) & mask).to_be_bytes());
        Network { prefix, prefix_len }
    }

    /// Returns the first address.
    pub fn prefix(&self) -> Addr {
        self.prefix
    }

    /// Returns the number of bits, 0..=32 for IPv4 and 0..=128 for IPv6.
    pub fn prefix_len(&self) -> u8 {
        self.prefix_len
    }
}

/// The key of a verdict. It includes the port because Fast Open is a property of a listener (R16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerdictKey {
    /// The network of the local address.
    pub network: Network,
    /// The peer's address.
    pub peer: Addr,
    /// The peer's port.
    pub port: u16,
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictEntry {
    /// The latest reason.
    pub reason: Verdict,
    /// Consecutive failures when the verdict was given; 0 is a doubt without effect.
    pub count: u32,
    /// Time of the verdict.
    pub since: Instant,
    /// Time of its end.
    pub until: Instant,
}

impl VerdictEntry {
    fn new(now: Instant, reason: Verdict, count: u32) -> VerdictEntry {
        VerdictEntry { reason, count, since: now, until: now + hold_time(count) }
    }

    /// What is left of the count: halved for each length of the verdict since its end.
    fn decayed_count(&self, now: Instant) -> u32 {
        let length = self.until.since(self.since).as_nanos().max(1);
        let halvings = self.quiet(now).as_nanos() / length;
        u32::try_from(halvings).ok().and_then(|shift| self.count.checked_shr(shift)).unwrap_or(0)
    }

    fn quiet(&self, now: Instant) -> Duration {
        now.since(self.until)
    }
}

/// How long the `count`th failure in a row keeps Fast Open off.
fn hold_time(count: u32) -> Duration {
    let factor = 1u32.checked_shl(count.saturating_sub(1)).unwrap_or(u32::MAX);
    BASE.saturating_mul(factor).min(CAP)
}

/// A verdict and the trial after it.
#[derive(Clone, Copy)]
struct Slot {
    entry: VerdictEntry,
    trial_until: Instant,
}

impl Slot {
    fn active(&self, now: Instant) -> bool {
        now < self.entry.until || now < self.trial_until
    }

    fn admit(&mut self, now: Instant) -> bool {
        if self.active(now) {
            return false;
        }
        if self.entry.decayed_count(now) > 0 {
            self.trial_until = now + TRIAL;
        }
        true
    }

    fn record(&mut self, now: Instant, reason: Verdict) {
        if now >= self.entry.until {
            let count = self.entry.decayed_count(now).saturating_add(1);
            *self = Slot::new(now, reason, count);
        }
    }

    /// Rules nothing out.
    fn doubt(now: Instant, reason: Verdict) -> Slot {
        Slot { entry: VerdictEntry { reason, count: 0, since: now, until: now }, trial_until: now }
    }

    fn new(now: Instant, reason: Verdict, count: u32) -> Slot {
        Slot { entry: VerdictEntry::new(now, reason, count), trial_until: now }
    }
}

/// The two verdicts one key may have.
#[derive(Clone, Copy, Default)]
struct Slots {
    fast_open: Option<Slot>,
    syn_fin: Option<Slot>,
}

impl Slots {
    fn get_mut(&mut self, kind: SlotKind) -> &mut Option<Slot> {
        match kind {
            SlotKind::FastOpen => &mut self.fast_open,
            SlotKind::SynFin => &mut self.syn_fin,
        }
    }
}

/// What a verdict rules out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// SYN data, cookies and requests.
    FastOpen,
    /// The FIN on a SYN with data.
    SynFin,
}

impl SlotKind {
    fn of(reason: Verdict) -> SlotKind {
        if reason == Verdict::SynFin { SlotKind::SynFin } else { SlotKind::FastOpen }
    }
}

/// All verdicts, bounded; over it the one touched least recently goes.
pub(super) struct Verdicts {
    slots: Lru<VerdictKey, Slots>,
}

impl Verdicts {
    pub(super) fn new(capacity: usize, hash_key: (u64, u64)) -> Verdicts {
        Verdicts { slots: Lru::new(capacity, hash_key) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// The verdict that holds now.
    pub(super) fn active(&self, now: Instant, key: &VerdictKey, kind: SlotKind) -> Option<Verdict> {
        let mut slots = *self.slots.get(key)?;
        slots.get_mut(kind).filter(|slot| slot.active(now)).map(|slot| slot.entry.reason)
    }

    /// As `active`, but `None` after the end of a verdict starts the trial.
    pub(super) fn admit(&mut self, now: Instant, key: &VerdictKey, kind: SlotKind) -> Option<Verdict> {
        let slot = self.slots.get_mut(key)?.get_mut(kind).as_mut()?;
        if slot.admit(now) { None } else { Some(slot.entry.reason) }
    }

    pub(super) fn record(&mut self, now: Instant, key: VerdictKey, reason: Verdict) -> VerdictEntry {
        let slots = self.slots.use_or_insert_with(key, Slots::default);
        let slot = slots.get_mut(SlotKind::of(reason)).get_or_insert_with(|| Slot::doubt(now, reason));
        slot.record(now, reason);
        slot.entry
    }

    /// What may be a failure of the path, or an accident. True: nothing was held against it before, so it stays a doubt.
    pub(super) fn doubt(&mut self, now: Instant, key: VerdictKey, reason: Verdict) -> bool {
        let slot = self.slots.use_or_insert_with(key, Slots::default).get_mut(SlotKind::of(reason));
        if slot.is_some() {
            return false;
        }
        *slot = Some(Slot::doubt(now, reason));
        true
    }

    /// Takes over a verdict given earlier, where there is none.
    pub(super) fn restore(&mut self, key: VerdictKey, entry: VerdictEntry) {
        let slots = self.slots.use_or_insert_with(key, Slots::default);
        let slot = slots.get_mut(SlotKind::of(entry.reason));
        slot.get_or_insert(Slot { entry, trial_until: entry.since });
    }

    /// Removes the verdict if `which` says so of its reason.
    pub(super) fn clear_if(
        &mut self,
        key: &VerdictKey,
        kind: SlotKind,
        which: impl FnOnce(Verdict) -> bool,
    ) -> bool {
        let Some(slots) = self.slots.get_mut(key) else { return false };
        let slot = slots.get_mut(kind);
        if !slot.is_some_and(|slot| which(slot.entry.reason)) {
            return false;
        }
        *slot = None;
        if slots.fast_open.is_none() && slots.syn_fin.is_none() {
            self.slots.remove(key);
        }
        true
    }

    pub(super) fn forget(&mut self, key: &VerdictKey) -> bool {
        self.slots.remove(key).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Most recently touched first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&VerdictKey, &VerdictEntry)> {
        self.slots.iter().flat_map(|(key, slots)| {
            slots.fast_open.iter().chain(&slots.syn_fin).map(move |slot| (key, &slot.entry))
        })
    }
}
