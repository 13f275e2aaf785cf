//! A segment arrives: the checks in the RFC's order.

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::Handshake;
use wire::Flags;

impl Connection {
    /// A segment has arrived; its payload is taken out of it if it is taken at all.
    pub(crate) fn segment_arrives(&mut self, cx: &mut Context, segment: &mut Segment) -> Reply {
        self.tally.came(segment.payload.len(), segment.payload.gso_size());
        if matches!(self.handshake.as_deref(), Some(Handshake::Active(_))) {
            return self.arrives_in_syn_sent(cx, segment);
        }
        self.arrives_later(cx, segment).err().unwrap_or(Reply::Nothing)
    }

    fn arrives_later(&mut self, cx: &mut Context, segment: &mut Segment) -> Result<(), Stop> {
        if self.is_embryo(cx) {
            self.check_embryo(cx, segment)?;
        }
        if !segment.header.flags.intersects(Flags::ACK | Flags::RST | Flags::SYN) {
            // Synchronized peers never send such a segment. It gets no answer, wherever it lies (as
            // in Linux).
            return Err(Reply::Nothing);
        }
        self.predict_packet(cx, segment);
        self.check_sequence(cx, segment)?;
        self.check_reset(cx, segment)?;
        self.check_syn(cx, segment)?;
        let before = self.ecn_before_ack(cx, segment);
        let offered = self.snd.wnd;
        self.check_ack(cx, segment)?;
        if cx.config.loss_rules.retransmits_before_text() && segment.len() > 0 && !self.recovery.is_idle() {
            self.resend_meanwhile(cx);
        }
        self.acknowledged_packets(cx, segment, offered);
        if !self.agreed.ecn.is_off() {
            self.ecn_after_ack(cx, segment, before);
        }
        // An older ACK says nothing about the present (as in Linux's `tcp_ack`). An attacker who
        // guesses a number has not seen the others.
        if !segment.header.ack.before(self.snd.una) {
            self.note_timestamp(cx, segment.seq(), segment.header.options.timestamps);
        }
        if segment.has(Flags::URG) {
            self.check_urgent(cx, segment);
        }
        let ended = self.process_text_and_fin(cx, segment);
        if self.agreed.ecn.is_accurate() {
            self.acknowledge_change();
        }
        ended
    }
}
