//! What a queueing discipline may know of a packet, and the packet as it waits.
use crate::Nanos;

/// What disciplines ask a packet. Every answer has a default, so that a packet that is only bytes fits anywhere.
pub trait Packet: Clone {
    /// Which flow it belongs to (Linux's `skb_get_hash`): packets of one flow have the same number.
    fn flow_hash(&self) -> u32 {
        0
    }

    /// Linux's `skb->priority`: the socket's priority, or the handle of a class (`0x10010` is class `1:10`).
    fn priority(&self) -> u32 {
        0
    }

    /// Linux's `skb->mark`, which a filter may translate to a class.
    fn mark(&self) -> u32 {
        0
    }

    /// The ECN field of its IP header.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    /// Sets Congestion Experienced; called only if [`Packet::ecn`] is not [`Ecn::NotEct`].
    fn set_ce(&mut self) {}

    /// Not before this moment may it leave (Linux's `skb->tstamp`, the earliest departure time); `None`: at once.
    fn departs_at(&self) -> Option<Nanos> {
        None
    }

    /// Flips a bit, counted from the most significant bit of the first byte.
    fn flip_bit(&mut self, bit: u64) {
        let _ = bit;
    }
}

/// The ECN field (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not ECN-capable: congestion is told by loss.
    #[default]
    NotEct,
    /// ECN-capable, ECT(0).
    Ect0,
    /// ECN-capable, ECT(1).
    Ect1,
    /// Congestion Experienced.
    Ce,
}

/// A packet as it waits: with its length, and what disciplines note on it (as on Linux's `sk_buff`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skb<P> {
    /// The packet.
    pub packet: P,
    wire_len: u32,
    /// What it counts as: its length, or what a size table makes of that (`qdisc_pkt_len`).
    pub(crate) len: u32,
    /// When it came, or when it may go; each discipline notes here what it needs (Linux's `skb->cb`).
    pub(crate) time: Nanos,
}

impl<P> Skb<P> {
    /// A packet of `len` bytes (more than `u32::MAX` count as that).
    pub fn new(packet: P, len: usize) -> Skb<P> {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Skb { packet, wire_len: len, len, time: 0 }
    }

    /// Its length on the device, bytes.
    pub fn wire_len(&self) -> usize {
        self.wire_len as usize
    }

    /// The bytes that a discipline counts for it: its length unless a size table (`stab`) says otherwise.
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length of a packet, which is never of interest as empty"
    )]
    pub fn len(&self) -> usize {
        self.len as usize
    }
}

impl<P: Packet> Skb<P> {
    /// Marks it if it is ECN-capable; was it? (Linux's `INET_ECN_set_ce`.)
    pub(crate) fn set_ce(&mut self) -> bool {
        if self.packet.ecn() == Ecn::NotEct {
            return false;
        }
        self.packet.set_ce();
        true
    }
}
