//! Packetization-layer path MTU discovery (RFC 4821, RFC 8899), as Linux does it: a segment larger than the others shows by its
//! acknowledgement that the path carries such packets, and by its loss, while what follows it arrives, that it does not. No ICMP is needed.
//!
//! `tcp_mtu_probing` 2 searches from the beginning, from `tcp_base_mss` up. 1 begins when nothing was acknowledged for as long as
//! `tcp_retries1` retransmissions take: perhaps the path drops large packets without a word (RFC 2923 §2.1), so segments become small, and
//! smaller with every further time-out, until some get through; from there on probes go up.
//!
//! A probe is made of what waits to be sent, so nothing is sent that would not be sent anyway. Its loss is no sign of congestion
//! (RFC 4821 §7.6.2).

mod connection;

use crate::Instant;
use wire::SeqNum;

/// `tcp_mtu_probing`: when black holes are suspected, and always.
const BLACK_HOLES: u32 = 1;
pub(in crate::tcp) const ALWAYS: u32 = 2;
/// Fewer segments of congestion window have no room for a probe beside the duplicates that would show its loss.
const WINDOW_MIN: u32 = 11;

/// Where the largest packet that the path carries is looked for. Sizes are of IP packets.
#[derive(Debug)]
pub(in crate::tcp) struct MtuSearch {
    /// Packets of this size are held to get through.
    low: u16,
    /// Larger ones are held not to.
    high: u16,
    /// Segments are made for `low`. Not so of a passive open before its first probe, where `mtu_search_from_full` is set.
    bounds: bool,
    /// When the search began, or began anew.
    since: Instant,
    probe: Option<Probe>,
}

/// A probe that is on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    from: SeqNum,
    end: SeqNum,
    size: u16,
}

/// What there is to do for the search before new data goes.
pub(in crate::tcp) enum Next {
    Nothing,
    /// A probe with this payload goes.
    Probe(u16),
    /// There is enough to send for one, and it has room as soon as something is acknowledged.
    Wait,
}

impl MtuSearch {
    fn new(now: Instant, low: u16, high: u16, bounds: bool) -> MtuSearch {
        MtuSearch { low, high, bounds, since: now, probe: None }
    }

    /// What segments are made for.
    pub(in crate::tcp) fn bound(&self) -> Option<u16> {
        self.bounds.then_some(self.low)
    }
}
