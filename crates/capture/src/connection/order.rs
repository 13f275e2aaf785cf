//! Decides whether a packet was sent before or after those seen already.

use crate::packet::Packet;

/// The order of sending, as one side's packets show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    /// The latest timestamp.
    tsval: Option<u32>,
    /// The latest IPv4 identification, if it counts packets.
    ident: Option<u16>,
    /// Packets in a row that increased the identification by a small step.
    steps: u8,
}

/// When a packet was sent, compared with the latest one before it in the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Before it: the network or the capture changed the order.
    Older,
    /// After it.
    Newer,
    /// Unknown.
    Unknown,
}

/// Packets in a row with small steps after which the identification counts as a counter.
const STEPS: u8 = 8;
/// Largest step of the identification from one packet to the next. A host may count all of its
/// packets, or the segments of a merged one.
const STEP_MAX: i16 = 64;

impl Sent {
    /// Notes one more packet.
    ///
    /// Each packet, including a retransmission, has the timestamp of its own time (RFC 7323 section
    /// 3.2). "Older" is decided by signed difference, as in PAWS (section 5.2).
    pub(super) fn note(&mut self, packet: &Packet<'_>) -> Order {
        let by_ident = self.note_ident(packet.ident);
        let Some(now) = packet.options.timestamps.map(|timestamps| timestamps.tsval) else { return by_ident };
        let since = self.tsval.map_or(1, |latest| now.wrapping_sub(latest).cast_signed());
        let is_first = self.tsval.is_none();
        if since >= 0 {
            self.tsval = Some(now);
        }
        match since {
            _ if is_first => by_ident,
            ..0 => Order::Older,
            0 => by_ident,
            1.. => Order::Newer,
        }
    }

    /// Notes an identification. Linux counts the packets of each connection, Windows those of the
    /// host. Other systems count nothing.
    fn note_ident(&mut self, ident: u16) -> Order {
        if ident == 0 {
            return Order::Unknown;
        }
        let Some(latest) = self.ident else {
            self.ident = Some(ident);
            return Order::Unknown;
        };
        let since = ident.wrapping_sub(latest).cast_signed();
        let is_counter = self.steps >= STEPS;
        if (1..=STEP_MAX).contains(&since) {
            self.steps = self.steps.saturating_add(1);
            self.ident = Some(ident);
            return if is_counter { Order::Newer } else { Order::Unknown };
        }
        if is_counter && (-STEP_MAX..0).contains(&since) {
            return Order::Older;
        }
        self.steps = 0;
        self.ident = Some(ident);
        Order::Unknown
    }
}
