//! The properties of a packet that queueing disciplines use, and the queued packet.
use crate::Nanos;
use alloc::vec::Vec;

/// The properties of a packet that disciplines use. Each has a default, so that plain bytes can be
/// a packet.
pub trait Packet: Clone {
    /// Which flow it belongs to (Linux's `skb_get_hash`): packets of one flow have the same number.
    fn flow_hash(&self) -> u32 {
        0
    }

    /// Returns Linux's `skb->priority`: the socket's priority, or the handle of a class (`0x10010`
    /// is class `1:10`).
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

    /// Returns the DSCP of its IP header (RFC 2474 section 3), 0 to 63. Returns 0 without an IP
    /// header, but 56 (CS7) for ARP, like Linux's cake.
    fn dscp(&self) -> u8 {
        0
    }

    /// Sets the codepoint to 0, and leaves the ECN field.
    fn clear_dscp(&mut self) {}

    /// Which host sent it: packets of one have the same number.
    fn source_hash(&self) -> u32 {
        0
    }

    /// Which host it is for: packets to one have the same number.
    fn destination_hash(&self) -> u32 {
        0
    }

    /// Bytes of its length that precede its IP header (Linux's `skb_network_offset`).
    fn network_offset(&self) -> u32 {
        0
    }

    /// Returns the fields of its TCP header, if it is a TCP segment.
    fn tcp(&self) -> Option<TcpFields> {
        None
    }

    /// The frames that a card would cut it into (Linux's GSO); `None`: it is one.
    fn segments(&self) -> Option<Segments> {
        None
    }

    /// Splits it into its frames, at least one, each with its length.
    ///
    /// # Errors
    /// Returns the unchanged packet if it cannot be split.
    fn into_segments(self) -> Result<Vec<(Self, usize)>, Self> {
        Err(self)
    }

    /// Returns the earliest departure time (Linux's `skb->tstamp`), or `None` for immediately.
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
    /// Not ECN-capable: congestion is signalled by loss.
    #[default]
    NotEct,
    /// ECN-capable, ECT(0).
    Ect0,
    /// ECN-capable, ECT(1).
    Ect1,
    /// Congestion Experienced.
    Ce,
}

/// Frames of equal length, and a last one that may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Number of frames.
    pub count: u32,
    /// Bytes of each but the last, headers included.
    pub len: u32,
    /// Bytes of the last, headers included.
    pub last_len: u32,
}

/// The fields of a TCP segment that show whether a later acknowledgement makes this one redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpFields {
    /// The twelve bits after the data offset. FIN is the lowest, the reserved ones are the highest
    /// (RFC 9293 section 3.1).
    pub flags: u16,
    /// The acknowledgment number.
    pub ack: u32,
    /// Bytes of data.
    pub payload_len: u32,
    /// The timestamps option: TSval and TSecr (RFC 7323 section 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of the SACK option: first sequence number, and the one after the last (RFC 2018
    /// section 3).
    pub sack: [Option<(u32, u32)>; 4],
    /// True if there is an option other than timestamps, SACK and MD5, or a malformed one.
    pub other_options: bool,
}

/// A queued packet with its length and the notes of disciplines, like Linux's `sk_buff`.
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

    /// Returns its length on the device in bytes.
    pub fn wire_len(&self) -> usize {
        self.wire_len as usize
    }

    /// Bytes that a discipline counts for it: its length, unless a size table (`stab`) changes it.
    #[expect(
        clippy::len_without_is_empty,
        reason = "the length of a packet, which is never of interest as empty"
    )]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes that it takes in memory (Linux's `skb->truesize`).
    pub(crate) fn memory(&self) -> u64 {
        self.wire_len() as u64 + SKB_OVERHEAD
    }
}

/// What a packet takes in memory beyond its bytes: Linux's `sk_buff` and `skb_shared_info` on 64-bit machines, rounded.
const SKB_OVERHEAD: u64 = 768;

impl<P: Packet> Skb<P> {
    /// Takes it apart into frames, if it can be.
    pub(crate) fn into_segments(self) -> Result<Vec<Skb<P>>, Skb<P>> {
        let Skb { packet, wire_len, len, time } = self;
        let frame = |(packet, len)| Skb { time, ..Skb::new(packet, len) };
        match packet.into_segments() {
            Ok(frames) => Ok(frames.into_iter().map(frame).collect()),
            Err(packet) => Err(Skb { packet, wire_len, len, time }),
        }
    }

    /// Marks it if it is ECN-capable; was it? (Linux's `INET_ECN_set_ce`.)
    pub(crate) fn set_ce(&mut self) -> bool {
        if self.packet.ecn() == Ecn::NotEct {
            return false;
        }
        self.packet.set_ce();
        true
    }
}
