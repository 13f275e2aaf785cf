//! May routers cut our packets? RFC 1191's "don't fragment" of IPv4, and what is believed of who says that it was in the way.
//!
//! A socket says it (`IP_MTU_DISCOVER`), else the stack (`ip_no_pmtu_disc`). Where a path's MTU is not doubted, be it that its route says so
//! (`mtu lock`) or that less than `min_pmtu` was reported of it, nothing is left to be discovered, and packets may be cut, too (Linux's
//! `ip_dont_fragment`).

mod connection;

pub(crate) use connection::cut_ident;

use crate::PathMtuDiscovery;
use wire::{Flags, SeqNum};

/// Packets that are no longer are never cut (Linux's `IPV4_MIN_MTU`; RFC 791 §3.2: every router forwards them whole).
const NEVER_CUT: usize = 68;
/// Of IPv4.
const HEADER_LEN: usize = 20;

/// The packets of a connection that may be cut bear numbers, lest the pieces of two be taken for one (RFC 6864 §4.3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments {
    /// Of the next packet.
    ident: u16,
}

impl PathMtuDiscovery {
    /// Smaller packets from now on, and what was too large is retransmitted at once.
    pub(crate) fn resends(self) -> bool {
        !matches!(self, PathMtuDiscovery::Dont | PathMtuDiscovery::Interface | PathMtuDiscovery::Omit)
    }

    /// Only the device's own MTU counts.
    pub(crate) fn is_deaf(self) -> bool {
        matches!(self, PathMtuDiscovery::Interface | PathMtuDiscovery::Omit)
    }
}

/// As hard to guess as the initial sequence number.
fn first_ident(iss: SeqNum) -> u16 {
    (iss.0 ^ iss.0 >> 16) as u16
}

/// A SYN-ACK of so many bytes, with both headers, that no router cuts (Linux's `ip_build_and_send_pkt`).
pub(crate) fn goes_whole(flags: Flags, len: usize) -> bool {
    flags.contains(Flags::SYN | Flags::ACK) && len <= NEVER_CUT
}
