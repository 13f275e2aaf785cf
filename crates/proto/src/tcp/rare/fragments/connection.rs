//! A connection lets its packets be cut, or not.

use super::{Fragments, HEADER_LEN, first_ident, goes_whole};
use crate::PathMtuDiscovery;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::rare::special::Special;
use wire::{Addr, Flags, IpHeader, TcpHeader};

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

    /// By the route, or by who reported less than may be.
    pub(crate) fn path_mtu_is_locked(&self, cx: &Context) -> bool {
        self.route_metrics().and_then(|route| route.mtu).is_some_and(|mtu| mtu.locked)
            || is_locked(cx, self.tuple.local, self.tuple.peer)
    }

    /// Packets may be cut.
    pub(in crate::tcp) fn fragments(&self) -> bool {
        self.special.as_deref().is_some_and(|special| special.fragments.is_some())
    }

    /// The header of a packet of so many bytes behind it, which a device may make into `segments`.
    #[cold]
    pub(in crate::tcp) fn let_be_cut(
        &mut self,
        ip: &mut IpHeader,
        flags: Flags,
        len: usize,
        segments: usize,
    ) {
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

/// Less than is believed was reported of the path, not long ago.
fn is_locked(cx: &Context, local: Addr, peer: Addr) -> bool {
    let path = cx.paths.lookup(local, peer).filter(|path| path.path_mtu_locked);
    path.is_some_and(|path| path.fresh_path_mtu(cx.now, cx.config.mtu_expires).is_some())
}
