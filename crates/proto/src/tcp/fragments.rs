//! May routers cut our packets? RFC 1191's "don't fragment" of IPv4, and what is believed of who says that it was in the way.
//!
//! A socket says it (`IP_MTU_DISCOVER`), else the stack (`ip_no_pmtu_disc`). Where a path's MTU is not doubted, be it that its route says so
//! (`mtu lock`) or that less than `min_pmtu` was told of it, nothing is left to be discovered, and packets may be cut, too (Linux's
//! `ip_dont_fragment`).

use super::connection::{Connection, Context};
use super::special::Special;
use crate::PathMtuDiscovery;
use wire::{Addr, Flags, IpHeader, SeqNum, TcpHeader};

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

impl Connection {
    /// The socket's, or the stack's.
    pub(crate) fn path_mtu_discovery(&self, cx: &Context) -> PathMtuDiscovery {
        self.options.path_mtu_discovery.unwrap_or(cx.config.path_mtu_discovery())
    }

    /// Something that may let packets be cut holds, of those that few connections know.
    #[inline]
    pub(crate) fn may_be_cut(&self, cx: &Context) -> bool {
        cx.config.ip_no_pmtu_disc != 0 || u32::from(self.path_mtu) <= cx.config.min_pmtu
    }

    /// Decides it anew.
    #[cold]
    pub(crate) fn decide_fragments(&mut self, cx: &Context) {
        let locked = || self.path_mtu_is_locked(cx);
        let whole = match self.path_mtu_discovery(cx) {
            _ if !self.tuple.peer.is_v4() => true,
            PathMtuDiscovery::Do => true,
            PathMtuDiscovery::Want => !locked(),
            // `PROBE`, too: it is about datagrams that are larger than what is known.
            _ => false,
        };
        if !whole {
            let fragments = &mut Special::of(&mut self.special, cx.now).fragments;
            fragments.get_or_insert(Fragments { ident: first_ident(self.snd.iss) });
        } else if let Some(special) = &mut self.special {
            special.fragments = None;
        }
    }

    /// By the route, or by who told less than may be.
    pub(crate) fn path_mtu_is_locked(&self, cx: &Context) -> bool {
        self.route_metrics().and_then(|route| route.mtu).is_some_and(|mtu| mtu.locked)
            || is_locked(cx, self.tuple.local, self.tuple.peer)
    }

    /// Packets may be cut.
    pub(super) fn fragments(&self) -> bool {
        self.special.as_deref().is_some_and(|special| special.fragments.is_some())
    }

    /// The header of a packet of so many bytes behind it, which a device may make into `segments`.
    #[cold]
    pub(super) fn let_be_cut(&mut self, ip: &mut IpHeader, (flags, len): (Flags, usize), segments: usize) {
        let special = self.special.as_deref_mut();
        let Some(fragments) = special.and_then(|special| special.fragments.as_mut()) else { return };
        if !goes_whole(flags, ip.emit_len() + len) {
            (ip.dont_fragment, ip.ident) = (false, fragments.ident);
            fragments.ident = fragments.ident.wrapping_add(segments as u16);
        }
    }
}

/// The number of a listener's SYN-ACK that may be cut. Only one with more than the usual options is so long that it matters.
#[inline]
pub(crate) fn cut_ident(
    cx: &Context,
    discovery: Option<PathMtuDiscovery>,
    (local, peer): (Addr, Addr),
    header: &TcpHeader,
) -> Option<u16> {
    let options = &header.options;
    let usual = options.fast_open.is_none() && options.unknown.is_empty() && options.accurate_ecn.is_none();
    if usual || !local.is_v4() || goes_whole(header.flags, HEADER_LEN + header.emit_len()) {
        return None;
    }
    let whole = match discovery.unwrap_or(cx.config.path_mtu_discovery()) {
        PathMtuDiscovery::Do => true,
        PathMtuDiscovery::Want => !is_locked(cx, local, peer),
        _ => false,
    };
    (!whole).then(|| first_ident(header.seq))
}

/// Less than is believed was told of the path, not long ago.
fn is_locked(cx: &Context, local: Addr, peer: Addr) -> bool {
    let path = cx.paths.lookup(local, peer).filter(|path| path.path_mtu_locked);
    path.is_some_and(|path| path.fresh_path_mtu(cx.now, cx.config.mtu_expires).is_some())
}

/// As hard to guess as the initial sequence number.
fn first_ident(iss: SeqNum) -> u16 {
    (iss.0 ^ iss.0 >> 16) as u16
}

/// A SYN-ACK of so many bytes, with both headers, that no router cuts (Linux's `ip_build_and_send_pkt`).
pub(crate) fn goes_whole(flags: Flags, len: usize) -> bool {
    flags.contains(Flags::SYN | Flags::ACK) && len <= NEVER_CUT
}
