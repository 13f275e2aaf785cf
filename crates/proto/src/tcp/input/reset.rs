//! Second and fourth check: RST and SYN (RFC 9293 §3.10.7.4, RFC 5961 §3 and §4).

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::{CloseReason, Outcome, State};
use wire::Flags;

impl Connection {
    /// A reset counts only with exactly the number we expect next, or (as with Linux) the one behind everything that came out of order: what a
    /// peer does not know to be missing. Elsewhere in the window it is challenged. RFC 5961 §3.2: "If the RST bit is set and the sequence number
    /// exactly matches the next expected sequence number (RCV.NXT), then TCP MUST reset the connection."
    pub(super) fn check_reset(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        if !segment.has(Flags::RST) {
            return Ok(());
        }
        let behind_all = || self.agreed.sack && self.rcv.out_of_order_end() == Some(segment.seq());
        if segment.seq() == self.rcv.nxt || self.resets_behind_fin(segment) || behind_all() {
            self.reset_by_peer(cx);
        } else {
            if self.fast_opened && self.outcome != Outcome::Pending && self.tally.data_segs_in == 0 {
                // Somebody between us and the peer may not like what the SYN carried (Linux's `tcp_validate_incoming`).
                cx.blackhole_suspected();
            }
            self.challenge(cx);
        }
        Err(Reply::Nothing)
    }

    /// Some hosts end a program by a FIN and a reset of the same number, and answer no challenge (Linux's `tcp_reset_check`).
    pub(super) fn resets_behind_fin(&self, segment: &Segment) -> bool {
        let fin_came = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        fin_came && segment.seq() == self.rcv.nxt - 1
    }

    pub(super) fn reset_by_peer(&mut self, cx: &mut Context) {
        self.terminate(&mut cx.counters, CloseReason::Reset);
    }

    /// RFC 5961 §4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK (also referred to as challenge ACK) to
    /// the remote peer".
    pub(super) fn check_syn(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        if !segment.has(Flags::SYN) {
            return Ok(());
        }
        // Simultaneous open: the peer's SYN-ACK repeats the SYN that put us into SYN-RECEIVED. As anything that comes twice it is
        // acknowledged at once, and reported (RFC 2883; as Linux's `tcp_data_queue`). Exactly that: any other is challenged.
        let (ack, bare) = (segment.header.ack, segment.len() == 1);
        if self.handshake.is_some()
            && segment.has(Flags::ACK)
            && segment.seq() == self.rcv.irs
            && bare
            && self.snd.iss.before(ack)
            && ack.before_or_eq(self.snd.max)
        {
            self.hear_again(segment, false);
            cx.counters.delayed_ack_lost += 1;
            self.note_repeated_syn(cx);
            self.rcv.ack_now();
            return Ok(());
        }
        self.hear_again(segment, true);
        self.challenge_syn(cx);
        Err(Reply::Nothing)
    }
}
