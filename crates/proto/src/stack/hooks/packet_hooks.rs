//! Packet hooks: socket options that act on single packets. They save the headers of a SYN
//! (`TCP_SAVE_SYN`), drop packets with too many hops (`IP_MINTTL`), delay packets (`TCP_TX_DELAY`),
//! and sign segments (`TCP_MD5SIG`, in `signing`).
//!
//! Until a socket sets one of these options there are no hooks, and a packet costs one test of a
//! null pointer.

use super::signing::{Signing, tuple_of};
use crate::socket_options::RareOptions;
use crate::stack::Stack;
use crate::stack::demux::holders::Holder;
use crate::{ConnId, DropReason, Instant, ListenerId};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;
use wire::{Arrival, Flags, IpHeader, TxPacket, protocol};

/// Most delayed packets that wait at a time; more leave at once.
const LATER_MAX: usize = 65_536;
/// Where a TCP header has its length, in words, and its flags.
const OFFSET_AT: usize = 12;
const FLAGS_AT: usize = 13;

/// The hooks' state, allocated when the first socket sets such an option.
#[derive(Default)]
pub(in crate::stack) struct PacketHooks {
    /// Hop limit of the packet that is being handled, and its IP and TCP headers if it is a SYN.
    hops: u8,
    syn: Option<Box<[u8]>>,
    pub(in crate::stack) signing: Signing,
    /// Delayed packets in the order of their departure; the number distinguishes those of one moment.
    later: BTreeMap<(Instant, u64), TxPacket>,
    count: u64,
    /// Delayed packets whose time has come.
    due: VecDeque<TxPacket>,
}

impl PacketHooks {
    /// When the next delayed packet leaves.
    pub(in crate::stack) fn next(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((at, _), _)| *at)
    }

    pub(in crate::stack) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(in crate::stack) fn pop_due(&mut self, packet: &mut TxPacket) -> bool {
        let due = self.due.pop_front();
        let is_one = due.is_some();
        *packet = due.unwrap_or_default();
        is_one
    }

    /// Delays a packet until `at`. False: too many wait already, and it was left alone.
    pub(in crate::stack) fn put_off(&mut self, at: Instant, packet: &mut TxPacket) -> bool {
        let has_room = self.later.len() < LATER_MAX;
        if has_room {
            self.count += 1;
            self.later.insert((at, self.count), core::mem::take(packet));
        }
        has_room
    }

    /// Makes at most `most` packets due whose time has come.
    fn release(&mut self, now: Instant, most: usize) {
        for _ in 0..most {
            let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= now) else { break };
            self.due.push_back(first.remove());
        }
    }
}

impl Stack {
    /// Sets the hooks up if a new socket's options need them.
    pub(in crate::stack) fn enable_hooks(&mut self, options: &RareOptions) {
        if options.is_ordinary() {
            return;
        }
        let asks = options.save_syn || !options.tx_delay.is_zero() || options.min_hops > 0;
        if asks || !options.md5_keys.is_empty() {
            self.hooks.get_or_insert_default();
        }
    }

    /// Notes the hop limit, and the headers of a SYN, of a packet that is about to be handled.
    #[cold]
    pub(in crate::stack) fn note_packet(&mut self, packet: &Arrival<'_>) {
        let Some(hooks) = self.hooks.as_deref_mut() else { return };
        (hooks.hops, hooks.syn) = (u8::MAX, None);
        hooks.signing.note(None);
        let Ok((ip, payload)) = IpHeader::parse(&packet.data) else { return };
        hooks.hops = ip.hop_limit;
        hooks.signing.note(packet.data.get(payload.clone()));
        let Some([offset, flags]) = packet.data.get(payload.start + OFFSET_AT..=payload.start + FLAGS_AT)
        else {
            return;
        };
        let is_syn =
            Flags::from_bits_truncate(u16::from(*flags)).intersection(Flags::SYN | Flags::ACK) == Flags::SYN;
        if ip.protocol == protocol::TCP && is_syn {
            let end = payload.start + usize::from(offset >> 4) * 4;
            hooks.syn = packet.data.get(..end).map(Box::from);
        }
    }

    /// The headers of the SYN that is being handled, for a socket that keeps them (`tcp_reqsk_record_syn`).
    pub(in crate::stack) fn syn_to_save(&self, options: &RareOptions) -> Option<Box<[u8]>> {
        let hooks = self.hooks.as_deref()?;
        hooks.syn.clone().filter(|_| options.save_syn)
    }

    /// Whether the packet took no more hops than this connection allows (RFC 5082 §3).
    #[cold]
    pub(in crate::stack) fn is_near_enough(&mut self, index: u32) -> bool {
        let least = self.connections.get(index).map_or(0, |connection| connection.options.min_hops);
        self.came_from_near(least)
    }

    /// Whether the packet took no more hops than this listener allows (RFC 5082 §3).
    #[cold]
    pub(in crate::stack) fn is_near_enough_for_listener(&mut self, id: ListenerId) -> bool {
        let least = self.listener(id).map_or(0, |listener| listener.socket.rare.min_hops);
        self.came_from_near(least)
    }

    /// Whether the packet's hop limit is at least `least` (RFC 5082 §3); counted as dropped if not.
    fn came_from_near(&mut self, least: u8) -> bool {
        let is_near = self.hooks.as_deref().is_none_or(|hooks| hooks.hops >= least);
        if !is_near {
            self.shared.counters.tcp_min_ttl_drop += 1;
            self.drops.count(DropReason::HopLimit);
        }
        is_near
    }

    /// The next packet that leaves now: a delayed one that is due, or one that need not wait.
    #[cold]
    pub(in crate::stack) fn transmit_with_hooks(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        if self.hooks.as_deref_mut().is_some_and(|hooks| hooks.pop_due(packet)) {
            return true;
        }
        while self.transmit_next(now, packet) {
            if !self.sign(packet) {
                self.drops.count(DropReason::Signature);
            } else if !self.put_off(now, packet) {
                return true;
            }
        }
        false
    }

    /// Delays a packet if its socket wants that; true if so.
    fn put_off(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        let at = now + self.tx_delay_of(packet);
        let Some(hooks) = self.hooks.as_deref_mut() else { return false };
        let later = at > now && hooks.put_off(at, packet);
        if later {
            self.work.deadlines.note_other(at);
        }
        later
    }

    /// The transmit delay of the packet's connection; for a SYN-ACK, its listener's (Linux's `tcp_add_tx_delay`).
    fn tx_delay_of(&self, packet: &TxPacket) -> Duration {
        let Some(tuple) = tuple_of(packet) else { return Duration::ZERO };
        let options = match self.holder_of(&tuple) {
            Some(Holder::Connection(index)) => self.connections.get(index).map(|found| &found.options),
            Some(Holder::Request(index)) => {
                let listener = self.requests.get(index).and_then(|request| self.listener(request.listener));
                listener.map(|listener| &listener.socket.rare)
            }
            None => None,
        };
        options.map_or(Duration::ZERO, |options| options.tx_delay)
    }

    /// Lets at most `most` delayed packets leave whose time has come.
    pub(in crate::stack) fn release_put_off(&mut self, now: Instant, most: usize) {
        if let Some(hooks) = self.hooks.as_deref_mut() {
            hooks.release(now, most);
        }
    }

    /// Returns the IP and TCP headers of the SYN of a passive open, if its listener kept them
    /// ([`save_syn`](field@crate::SocketOptions::save_syn)). SYN cookies do not keep them.
    pub fn saved_syn(&self, id: ConnId) -> Option<&[u8]> {
        self.connection(id)?.special.as_deref()?.saved_syn.as_deref()
    }

    /// Removes the saved headers.
    pub fn forget_saved_syn(&mut self, id: ConnId) {
        if let Some(special) = self.owned(id).and_then(|connection| connection.special.as_deref_mut()) {
            special.saved_syn = None;
        }
    }

    /// Returns the TSval of a segment sent now (`TCP_TIMESTAMP`).
    pub fn timestamp(&self, now: Instant, id: ConnId) -> Option<u32> {
        self.connection(id).map(|connection| (now.as_millis() as u32).wrapping_add(connection.ts_offset))
    }
}
