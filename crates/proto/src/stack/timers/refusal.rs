//! Packets that could not leave: the device, or a queue before it, refused them at once.
//!
//! On the way to the peer a packet is lost and nobody says so. Here somebody does, and Linux's TCP listens (`net_xmit_eval` in
//! `__tcp_transmit_skb`): what was refused has not been sent. Whose it was is read from the packet, so that nothing is kept for it while
//! all leave.

use crate::stack::Stack;
use crate::tcp::send::output::Refused;
use crate::tuple::FourTuple;
use crate::{ConnId, Instant};
use wire::{Flags, SeqNum, TxPacket};

impl Stack {
    /// `packet`, which [`poll_transmit`](Stack::poll_transmit) gave, was refused here, and has not left: its connection takes it back, takes
    /// the refusal for a sign of congestion, and tries again at the next event, or after 500 ms where nothing is in flight that could be
    /// answered. To be called before the next packet is asked for; of several that were, the last first.
    ///
    /// A packet that belongs to no connection is lost, and so is one that others of the same connection have left behind. So is a reset: it
    /// answers what came, and has nothing that a connection could take back.
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
