//! What only some sockets ask of packets: that the headers of a SYN are kept, that few hops were taken, that they leave later, that they
//! are signed (`signing`). As long as no socket has asked, a packet costs one look at a null pointer.

use super::Stack;
use super::holders::Holder;
use super::signing::Signing;
use crate::socket_options::RareOptions;
use crate::tuple::FourTuple;
use crate::{ConnId, DropReason, Instant, ListenerId};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;
use wire::{Arrival, Flags, IpHeader, TxPacket, protocol};

/// Packets that may wait to leave; more leave at once.
const LATER_MAX: usize = 65_536;
/// Where a TCP header has its length, in words, and its flags.
const OFFSET_AT: usize = 12;
const FLAGS_AT: usize = 13;

/// Kept from the first socket on that asks for anything of it.
#[derive(Default)]
pub(super) struct Attention {
    /// Hop limit of the packet that is being handled, and its IP and TCP headers if it is a SYN.
    hops: u8,
    syn: Option<Box<[u8]>>,
    pub(super) signing: Signing,
    /// What leaves later, in that order; the number tells apart what leaves at once.
    later: BTreeMap<(Instant, u64), TxPacket>,
    count: u64,
    /// Whose time has come.
    due: VecDeque<TxPacket>,
}

impl Attention {
    /// When the next packet leaves that was put off.
    pub(super) fn next(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(super) fn pop_due(&mut self, packet: &mut TxPacket) -> bool {
        let due = self.due.pop_front();
        let is_one = due.is_some();
        *packet = due.unwrap_or_default();
        is_one
    }

    /// False: too many wait already.
    pub(super) fn put_off(&mut self, at: Instant, packet: &mut TxPacket) -> bool {
        let has_room = self.later.len() < LATER_MAX;
        if has_room {
            self.count += 1;
            self.later.insert((at, self.count), core::mem::take(packet));
        }
        has_room
    }

    /// Those whose time has come, `most` of them.
    fn release(&mut self, now: Instant, most: usize) {
        for _ in 0..most {
            let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= now) else { break };
            self.due.push_back(first.remove());
        }
    }
}

impl Stack {
    /// A socket with these options begins.
    pub(super) fn attend(&mut self, options: &RareOptions) {
        if options.is_ordinary() {
            return;
        }
        let asks = options.save_syn || !options.tx_delay.is_zero() || options.min_hops > 0;
        if asks || !options.md5_keys.is_empty() {
            self.attention.get_or_insert_default();
        }
    }

    /// A packet is going to be handled.
    #[cold]
    pub(super) fn note_packet(&mut self, packet: &Arrival<'_>) {
        let Some(attention) = self.attention.as_deref_mut() else { return };
        (attention.hops, attention.syn) = (u8::MAX, None);
        attention.signing.note(None);
        let Ok((ip, payload)) = IpHeader::parse(&packet.data) else { return };
        attention.hops = ip.hop_limit;
        attention.signing.note(packet.data.get(payload.clone()));
        let Some([offset, flags]) = packet.data.get(payload.start + OFFSET_AT..=payload.start + FLAGS_AT)
        else {
            return;
        };
        let is_syn =
            Flags::from_bits_truncate(u16::from(*flags)).intersection(Flags::SYN | Flags::ACK) == Flags::SYN;
        if ip.protocol == protocol::TCP && is_syn {
            let end = payload.start + usize::from(offset >> 4) * 4;
            attention.syn = packet.data.get(..end).map(Box::from);
        }
    }

    /// The headers of the SYN that is being handled, for a socket that keeps them (`tcp_reqsk_record_syn`).
    pub(super) fn syn_to_save(&self, options: &RareOptions) -> Option<Box<[u8]>> {
        let attention = self.attention.as_deref()?;
        attention.syn.clone().filter(|_| options.save_syn)
    }

    /// As [`came_from_near`](Self::came_from_near), for a connection.
    #[cold]
    pub(super) fn is_near_enough(&mut self, index: u32) -> bool {
        let least = self.connections.get(index).map_or(0, |connection| connection.options.min_hops);
        self.came_from_near(least)
    }

    /// Whether the packet took no more hops than this listener allows (RFC 5082 §3).
    #[cold]
    pub(super) fn is_near_enough_for_listener(&mut self, id: ListenerId) -> bool {
        let least = self.listener(id).map_or(0, |listener| listener.socket.rare.min_hops);
        self.came_from_near(least)
    }

    /// Did the packet that is being handled take no more hops than a socket allows? Else it is dropped (RFC 5082 §3).
    fn came_from_near(&mut self, least: u8) -> bool {
        let is_near = self.attention.as_deref().is_none_or(|attention| attention.hops >= least);
        if !is_near {
            self.shared.counters.tcp_min_ttl_drop += 1;
            self.drops.count(DropReason::HopLimit);
        }
        is_near
    }

    /// The next packet that leaves now: one that was put off until now, or that need not wait.
    #[cold]
    pub(super) fn transmit_attentively(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        if self.attention.as_deref_mut().is_some_and(|attention| attention.pop_due(packet)) {
            return true;
        }
        while self.transmit_next(now, packet) {
            if self.sign(packet) && !self.put_off(now, packet) {
                return true;
            }
        }
        false
    }

    /// Puts a packet off, if its socket wants that.
    fn put_off(&mut self, now: Instant, packet: &mut TxPacket) -> bool {
        let at = now + self.tx_delay_of(packet);
        let Some(attention) = self.attention.as_deref_mut() else { return false };
        let later = at > now && attention.put_off(at, packet);
        if later {
            self.agenda.deadlines.note_other(at);
        }
        later
    }

    /// That of its connection; of a SYN-ACK its listener's (`tcp_add_tx_delay`).
    fn tx_delay_of(&self, packet: &TxPacket) -> Duration {
        let Some(((local, local_port), (peer, peer_port))) = wire::ends_of(packet.header()) else {
            return Duration::ZERO;
        };
        let tuple = FourTuple { local, local_port, peer, peer_port };
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

    /// What was put off until now leaves, `most` of it.
    pub(super) fn release_put_off(&mut self, now: Instant, most: usize) {
        if let Some(attention) = self.attention.as_deref_mut() {
            attention.release(now, most);
        }
    }

    /// The IP and TCP headers of the SYN that began a passive open, if its listener kept them
    /// ([`save_syn`](field@crate::SocketOptions::save_syn)); not of one that came back as a SYN cookie.
    pub fn saved_syn(&self, id: ConnId) -> Option<&[u8]> {
        self.connection(id)?.special.as_deref()?.saved_syn.as_deref()
    }

    /// Forgets them.
    pub fn forget_saved_syn(&mut self, id: ConnId) {
        if let Some(special) = self.owned(id).and_then(|connection| connection.special.as_deref_mut()) {
            special.saved_syn = None;
        }
    }

    /// TSval of a segment that would be sent now (`TCP_TIMESTAMP`).
    pub fn timestamp(&self, now: Instant, id: ConnId) -> Option<u32> {
        self.connection(id).map(|connection| (now.as_millis() as u32).wrapping_add(connection.ts_offset))
    }
}
