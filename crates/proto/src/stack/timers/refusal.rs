//! Packets refused by the device or a queue before it.
//!
//! A packet lost on the path is lost silently. A local refusal is reported, and Linux's TCP reacts
//! to it (`net_xmit_eval` in `__tcp_transmit_skb`): the refused data counts as unsent. The packet
//! itself identifies its connection, so nothing is stored while packets leave normally.

use crate::stack::Stack;
use crate::tcp::send::output::Refused;
use crate::tuple::FourTuple;
use crate::{ConnId, Instant};
use wire::{Flags, SeqNum, TxPacket};

impl Stack {
    /// Reports that `packet`, returned by [`poll_transmit`](Stack::poll_transmit), was refused
    /// locally and has not left. Its connection takes the data back, treats the refusal as
    /// congestion, and retries at the next event, or after 500 ms if nothing in flight can be
    /// answered. Call it before the next packet is polled; for several packets, the last first.
    ///
    /// A packet without a connection is lost. So is one that the connection has already superseded,
    /// and a reset, because it contains nothing to take back.
    #[cold]
    pub fn handle_refusal(&mut self, now: Instant, packet: &TxPacket) {
        let ends = wire::ends_of(packet.header());
        let Some(((local, local_port), (peer, peer_port))) = ends else { return };
        let Some(refused) = read(packet).filter(|refused| !refused.flags.contains(Flags::RST)) else {
            return;
        };
        let Some(index) = self.find_connection(&FourTuple { local, local_port, peer, peer_port }) else {
            return;
        };
        // What it has written behind, in the middle of the application's call, does not leave either.
        while let Some(later) = self.replies.take_last(|later| wire::ends_of(later.header()) == ends) {
            if let Some(later) = read(&later) {
                self.take_back(now, index, &later);
            }
        }
        self.take_back(now, index, &refused);
        let Some((generation, connection)) = self.connections.entry_mut(index) else { return };
        if !connection.is_opening_due() {
            // It would only be refused again: something must happen first.
            self.work.take_turn_away(ConnId { index, generation }, connection);
            connection.put_off_probe(now);
            connection.time_what_lost_its_turn(now);
        }
        connection.note_plain();
        connection.note_limit(now);
        self.work.deadlines.note(index, connection);
        if self.trace.is_some() {
            self.trace_changes(now, index);
        }
    }

    fn take_back(&mut self, now: Instant, index: u32, refused: &Refused) {
        if let Some(connection) = self.connections.get_mut(index) {
            connection.could_not_leave(self.shared.context(now), refused);
        }
    }
}

/// What a packet sends. `None`: it is not TCP's.
fn read(packet: &TxPacket) -> Option<Refused> {
    let header = packet.header();
    let tcp = header.get(if header.first()? >> 4 == 4 { IPV4_LEN } else { IPV6_LEN }..)?;
    let seq = SeqNum(u32::from_be_bytes(*tcp.get(SEQ_AT..)?.first_chunk()?));
    let flags = Flags::from_bits_truncate(u16::from(*tcp.get(FLAGS_AT)?));
    let len = u32::try_from(packet.payload_len()).ok()?;
    let segments = if packet.gso_size > 0 { len.div_ceil(packet.gso_size.into()) } else { 1 };
    Some(Refused { seq, len, flags, segments })
}

/// Of headers as connections write them: without IP options.
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const SEQ_AT: usize = 4;
const FLAGS_AT: usize = 13;
