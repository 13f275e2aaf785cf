//! Fast path of most first SYN-ACKs of Fast Open: with the whole answer as one segment and perhaps
//! the FIN, or empty, on a connection without special options.
//!
//! Skips the checks of `syn` that cannot fail here. Packet and state are the same; random runs
//! compare both paths (`Stack::set_fast_paths`).
//!
//! Saves 4 % of the instructions of an exchange with Fast Open, and 7 % if the answer ends the
//! connection.

use crate::fast_paths::FastPath;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::{Handshake, PassiveOpen};
use crate::tcp::timers::Timer;
use wire::{Ecn, Flags, PlainSegment, TxPacket, USUAL_SYN_LEN, UsualSyn};

impl Connection {
    /// Sends the due SYN-ACK, if it is an ordinary one. Returns false, without any change, for
    /// others.
    #[inline(never)]
    pub(super) fn send_usual_syn_ack(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let (iss, len) = (self.snd.iss, self.snd.queue.len() as u32);
        let (Some(_), Some(timestamps)) = (self.agreed.snd_wscale, self.timestamps(cx.now)) else {
            return false;
        };
        if !self.agreed.sack
            || self.timers.is_set(Timer::Retransmit)
            || !self.tuple.peer.is_v4()
            || len > self.syn_ack_room(USUAL_SYN_LEN)
            || !self.takes_fast_paths(cx)
        {
            return false;
        }
        let fin = self.snd.fin_queued();
        let Some(Handshake::Passive(passive)) = self.handshake.as_deref_mut() else { return false };
        if !passive.is_first_answer(len > 0 || fin) {
            return false;
        }
        let mut push = false;
        if len > 0 {
            let Some(mut unsent) = self.snd.queue.unsent_segment(iss + 1) else { return false };
            unsent.flight.begin(cx.now);
            push = unsent.leave(cx.now, len, packet);
        } else if !self.snd.queue.is_vacant() {
            return false;
        }
        (passive.data_sent, passive.fin_sent) = (len, fin);
        (passive.due, passive.transmissions, passive.sent_at) = (false, 1, cx.now);
        self.synack_data_len = len as u16;
        cx.counters.synack_data += u64::from(len > 0 || fin);
        self.snd.advance_nxt(iss + 1 + len + u32::from(fin));
        let wait = cx.fresh.handshake_rto(&cx.config, 0);
        self.timers.stop_and_set(Timer::SynAckHold, Timer::Retransmit, cx.now + wait);
        let window = self.syn_window(cx);
        let mut flags = Flags::SYN | Flags::ACK;
        flags.set(Flags::PSH, push);
        flags.set(Flags::FIN, fin);
        let segment = PlainSegment {
            addresses: (self.tuple.local, self.tuple.peer),
            ports: (self.tuple.local_port, self.tuple.peer_port),
            seq: iss,
            ack: self.rcv.nxt,
            flags,
            window,
            timestamps: None,
            ecn: Ecn::NotEct,
            dscp: 0,
            hop_limit: cx.config.hop_limit(),
            payload_len: len as usize,
        };
        let usual = UsualSyn { mss: self.advmss, window_scale: self.rcv.wscale, timestamps };
        let is_written = packet.write_usual_syn(&segment, (&usual, None), cx.capabilities.tx_checksum);
        debug_assert!(is_written);
        cx.took(FastPath::SynAckSent);
        cx.counters.out_segs += 1;
        cx.counters.orig_data_sent += u64::from(len > 0 || fin);
        // A SYN-ACK without data does not count for the connection, like that of a request.
        self.tally.went(len as usize, u32::from(len > 0));
        true
    }
}

impl PassiveOpen {
    /// Returns whether no SYN-ACK was sent, and the answer may go with this one.
    fn is_first_answer(&self, says_something: bool) -> bool {
        self.fast_open
            && self.transmissions == 0
            && self.cookie.is_none()
            && (self.data_allowed || !says_something)
    }
}
