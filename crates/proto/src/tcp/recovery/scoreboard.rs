//! The scoreboard (RFC 6675): marks on the segments of the send queue, their sums, and what to send again.
//!
//! The payload stays where it is: a mark is a bit of its segment. Whatever blocks a peer sends, an ACK walks over no more segments than it
//! reports or finds to be lost for the first time, and cuts none that was one packet.

mod duplicates;
mod fin;
mod refused;
mod reported;
mod timeout;

use alloc::vec::Vec;
pub(crate) use duplicates::dsack;
pub(crate) use reported::Timeout;

use super::arrived::{Arrived, Block};
use super::marks::{LostTransmission, Marks, Resend};
use super::prr::Prr;
use super::rack::{Rack, ReoWindow};
use super::{Probe, Spurious, Undo};
use crate::tcp::send::send_queue::{Kind, Packets, SendQueue, TxSegment};
use crate::{Config, Instant};
use core::time::Duration;
use smallvec::SmallVec;
use wire::SeqNum;

/// `tcp_recovery`: loss is found by time (else by RFC 6675's counting).
pub(crate) const RACK: u32 = 0x1;

/// Where the sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is held to be lost.
    Open,
    /// Nothing is held to be lost, but congestion was echoed: the window shrinks, until more than the recovery point is acknowledged.
    Reducing,
    /// Fast recovery, until the recovery point is acknowledged.
    Recovery,
    /// After a time-out, until the recovery point is acknowledged.
    Loss,
}

/// The state of a connection on which something was delivered out of order, or lost.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    marks: Marks,
    rack: Rack,
    prr: Prr,
    pub(in crate::tcp) phase: Phase,
    /// A tail loss probe is to be sent now.
    pub(in crate::tcp) probe_due: bool,
    /// The one that was sent and of which nothing is known yet.
    pub(in crate::tcp) probe: Option<Probe>,
    /// What the recovery began from, while it may prove spurious.
    pub(in crate::tcp) undo: Option<Undo>,
    /// Window per round trip when last acknowledged, bytes per second.
    pub(in crate::tcp) window_rate: Option<u64>,
    /// First time-out in a row, while any.
    pub(super) silent_since: Option<Instant>,
    /// When the first of what is retransmitted and still on its way was, in milliseconds.
    resent_since: Option<u32>,
    /// F-RTO: nothing was acknowledged since the time-out, or only what may be the retransmission.
    forward: bool,
    /// F-RTO: until the next ACK new data goes instead of what is lost.
    pub(in crate::tcp) new_data_first: bool,
    /// What was to be retransmitted was refused here: the next acknowledgement, or the timer, brings the next attempt.
    pub(in crate::tcp) refused: bool,
    fin: fin::Fin,
    /// A time-out has just come, and nothing after it.
    pub(in crate::tcp) timed_out: bool,
    /// What was sent before the loss was found ends here.
    point: SeqNum,
    /// Where the peer has no SACK: bytes that its duplicates tell to have arrived behind the first missing segment.
    reported: Option<u32>,
    /// Partial acknowledgements that the recovery has had from such a peer.
    partials: u8,
}

impl Scoreboard {
    pub(crate) fn new(reordering: u32, snd_una: SeqNum, sack: bool) -> Scoreboard {
        Scoreboard {
            marks: Marks::default(),
            rack: Rack::new(reordering, snd_una),
            prr: Prr::default(),
            phase: Phase::Open,
            probe_due: false,
            probe: None,
            undo: None,
            window_rate: None,
            silent_since: None,
            resent_since: None,
            forward: false,
            new_data_first: false,
            refused: false,
            fin: fin::Fin::default(),
            timed_out: false,
            point: snd_una,
            reported: (!sack).then_some(0),
            partials: 0,
        }
    }

    /// Segments delivered beyond a hole that make it a loss.
    pub(crate) fn reordering(&self) -> u32 {
        self.rack.dup_thresh
    }

    /// Bytes in flight: delivered out of order, held to be lost, retransmitted.
    pub(crate) fn sums(&self) -> (u32, u32, u32) {
        (
            self.marks.sacked.weight + self.reported_bytes(),
            self.marks.lost.weight,
            self.marks.retransmitted.weight,
        )
    }

    /// SetPipe of RFC 6675 §4, by sums.
    pub(crate) fn pipe(&self, flight_size: u32) -> u32 {
        let Marks { sacked, lost, retransmitted, .. } = &self.marks;
        (flight_size + retransmitted.weight)
            .saturating_sub(sacked.weight + lost.weight + self.reported_bytes())
    }

    /// What was sent before the loss was found ends here.
    pub(crate) fn point(&self) -> SeqNum {
        self.point
    }

    /// Something retransmitted is on its way.
    pub(crate) fn any_resent(&self) -> bool {
        self.marks.retransmitted.len > 0
    }

    /// Bytes that duplicates reported as arrived.
    pub(crate) fn reported_bytes(&self) -> u32 {
        self.reported.unwrap_or(0)
    }

    /// The congestion window now, where `cwnd` is the algorithm's.
    pub(crate) fn window(&self, cwnd: u32) -> u32 {
        if self.shrinks() { self.prr.window() } else { cwnd }
    }

    /// The window is that of proportional rate reduction.
    pub(crate) fn shrinks(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reducing)
    }

    /// Something is held to be lost, or was, and is not all repaired.
    pub(crate) fn repairs(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Nothing is lost or delivered out of order, and nothing was learnt: the state may go.
    pub(crate) fn is_over(&self) -> bool {
        self.is_quiet()
            && self.phase == Phase::Open
            && self.probe.is_none()
            && self.undo.is_none()
            && !self.probe_due
            && self.rack.is_plain()
    }

    /// Nothing is lost or delivered out of order.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.repairs() && self.marks.is_clear() && self.reported_bytes() == 0
    }

    /// The first segment that is not acknowledged was reported to be there.
    pub(crate) fn reneges(&self, queue: &SendQueue, snd_una: SeqNum) -> bool {
        self.marks.sacked.len > 0 && queue.starting(snd_una).next().is_some_and(|head| head.sacked)
    }

    /// Something is held to be lost.
    pub(crate) fn any_lost(&self) -> bool {
        self.marks.lost.len > 0
    }

    /// Of what is held to be lost, not all was retransmitted.
    pub(super) fn resending_waits(&self) -> bool {
        self.marks.lost.len > self.marks.retransmitted.len
    }

    /// Notes what the ACK knew before its blocks are read.
    pub(crate) fn arrival(
        &self,
        (now, echo, min_rtt): (Instant, Option<u32>, Duration),
        (snd_una, snd_nxt, in_flight): (SeqNum, SeqNum, u32),
        (smss, rtt_of_last): (u32, bool),
    ) -> Arrived {
        Arrived {
            now,
            min_rtt,
            echo,
            snd_una,
            snd_nxt,
            smss,
            rtt_of_last,
            prior_pipe: self.pipe(in_flight),
            duplicate: None,
            duplicate_bytes: 0,
            bare: false,
            overtaken: false,
            delivered: 0,
            reported: false,
            sacked_sent_at: None,
            original: false,
            repeated: false,
            prior_fack: self.rack.fack,
            reordered_from: [None; 2],
        }
    }

    /// Reads SACK blocks (RFC 2018). Returns how many meant nothing.
    pub(crate) fn read(
        &mut self,
        queue: &mut SendQueue,
        blocks: &[Block],
        snd_max: SeqNum,
        arrived: &mut Arrived,
    ) -> u32 {
        self.weigh(queue);
        let sent = snd_max.since(arrived.snd_una);
        let sensible = |block: &&Block| {
            let (from, to) = (block.0.since(arrived.snd_una), block.1.since(arrived.snd_una));
            0 < from && from < to && to <= sent
        };
        // A FIN, or what is retransmitted from the start, is not marked.
        let clipped = |block: &Block| (block.0, block.1.earliest(arrived.snd_nxt));
        let mut valid: SmallVec<[Block; 4]> =
            blocks.iter().filter(sensible).map(clipped).filter(|block| block.0.before(block.1)).collect();
        // In the order they were sent, whatever order they are reported in: the last of them gives RACK's round trip.
        valid.sort_unstable_by_key(|block| block.0.since(arrived.snd_una));
        for block in &valid {
            if let Some(packets) = queue.cut_packets(*block, arrived.smss.max(1)) {
                self.weigh(queue);
                self.sack(queue, packets, arrived);
            }
        }
        // What is acknowledged by now was news when the ACK was sent: others have overtaken it.
        let overtaken = blocks.iter().filter(|block| block.1.before_or_eq(arrived.snd_una)).count();
        let senseless = blocks.len() - valid.len() - if arrived.overtaken { overtaken } else { 0 };
        senseless as u32
    }

    /// Segments may weigh something else than they did.
    #[inline]
    pub(crate) fn weigh(&mut self, queue: &mut SendQueue) {
        if let Some(change) = queue.take_reweighed() {
            self.marks.weigh(queue, &change);
        }
    }

    fn sack(&mut self, queue: &mut SendQueue, packets: Packets, arrived: &mut Arrived) {
        queue.deliver(packets, |segment| {
            Scoreboard::delivered(&mut self.rack, self.point, (segment, false), arrived);
            if segment.transmissions == 1 {
                let (first, _) = arrived.sacked_sent_at.unwrap_or((segment.sent_at, segment.sent_at));
                arrived.sacked_sent_at = Some((first, segment.sent_at));
            }
            arrived.reported = true;
            self.marks.sack(segment);
        });
    }

    /// A segment is acknowledged and leaves the queue.
    pub(crate) fn acknowledged(&mut self, segment: &TxSegment, arrived: &mut Arrived) {
        self.marks.forget(segment);
        if self.reported.is_some() {
            arrived.repeated |= segment.transmissions > 1;
            arrived.original |= segment.transmissions == 1 && segment.end().before_or_eq(self.point);
        } else if !segment.sacked {
            Scoreboard::delivered(&mut self.rack, self.point, (segment, true), arrived);
        }
    }

    fn delivered(
        rack: &mut Rack,
        point: SeqNum,
        (segment, acknowledged): (&TxSegment, bool),
        arrived: &mut Arrived,
    ) {
        arrived.delivered += segment.weight;
        rack.on_delivered(segment, arrived);
        arrived.original |= segment.transmissions == 1 && segment.end().before_or_eq(point);
        if segment.transmissions == 1 && segment.end().before_or_eq(arrived.prior_fack) {
            arrived.came_late(segment.seq, acknowledged);
        }
    }

    /// RFC 8985 §6.2 step 3: something sent once was delivered after what was sent later. Raises the number of segments that mean a
    /// loss to as many as it was late, at most `tcp_max_reordering`. Returns how often: once by what is reported (not amid a time-out's
    /// recovery that cannot prove spurious), once by what is acknowledged.
    pub(crate) fn note_reordering(&mut self, config: &Config, arrived: &Arrived) -> u32 {
        let [mut reported, acknowledged] = arrived.reordered_from;
        if self.phase == Phase::Loss && self.undo.is_none() {
            reported = None;
        }
        let mut times = 0;
        for from in [reported, acknowledged].into_iter().flatten() {
            times += u32::from(self.is_late(from, self.rack.fack, (arrived.smss, config.tcp_max_reordering)));
        }
        times
    }

    /// What begins at `from` was delivered although what ends at `behind` had been (Linux's `tcp_check_sack_reordering`).
    pub(crate) fn is_late(&mut self, from: SeqNum, behind: SeqNum, (segment, most): (u32, u32)) -> bool {
        if !from.before(behind) {
            return false;
        }
        let segments = behind.since(from).div_ceil(segment.max(1)).min(most);
        self.rack.reordering_seen = true;
        self.rack.dup_thresh = self.rack.dup_thresh.max(segments);
        true
    }

    /// The path reorders.
    pub(crate) fn saw_reordering(&mut self) {
        self.rack.reordering_seen = true;
    }

    /// A round trip was measured since last asked: something may be late by it.
    pub(crate) fn take_advanced(&mut self) -> bool {
        core::mem::take(&mut self.rack.advanced)
    }

    /// Marks what is lost by now. Returns how long to wait until more may be.
    pub(crate) fn detect(
        &mut self,
        queue: &mut SendQueue,
        span: (SeqNum, SeqNum),
        now: Instant,
        how: &ReoWindow,
    ) -> Option<Duration> {
        self.refused = false;
        if how.flags & RACK == 0 {
            if self.marks.sacked.len == 0 && !self.repairs() {
                return None;
            }
            self.marks.count_losses(queue, span.0, self.rack.dup_thresh, how.smss);
            return None;
        }
        let recovering = self.repairs();
        self.rack.detect(queue, &mut self.marks, span, recovering, (now, how))
    }

    /// Congestion is echoed: the window comes down to `ssthresh`, from `in_flight`.
    pub(crate) fn begin_reduction(&mut self, snd_nxt: SeqNum, in_flight: u32, ssthresh: u32) {
        self.undo = None;
        self.phase = Phase::Reducing;
        self.probe = None;
        self.point = snd_nxt;
        self.prr = Prr::begin(in_flight, ssthresh);
    }

    /// Fast recovery begins where the window is being reduced already: it goes on so.
    pub(crate) fn begin_recovery_reduced(&mut self, snd_una: SeqNum) {
        let mut undo = Undo::of_congestion(snd_una);
        if self.marks.retransmitted.len > 0 {
            undo.inherit(self.resent_since, self.marks.retransmitted.len);
        }
        self.undo = Some(undo);
        self.phase = Phase::Recovery;
        self.probe = None;
    }

    /// Fast recovery begins.
    ///
    /// Retransmissions of an earlier one may still be on their way: what acknowledges them does not prove this one spurious.
    pub(crate) fn begin_recovery(&mut self, snd_nxt: SeqNum, in_flight: u32, ssthresh: u32, mut undo: Undo) {
        if self.marks.retransmitted.len > 0 {
            undo.inherit(self.resent_since, self.marks.retransmitted.len);
        }
        self.undo = Some(undo);
        self.phase = Phase::Recovery;
        self.probe = None;
        self.point = snd_nxt;
        self.prr = Prr::begin(in_flight, ssthresh);
    }

    /// RFC 6937: what may be sent after this ACK while recovering.
    pub(crate) fn reduce(&mut self, delivered: u32, flight_size: u32, safe: bool, smss: u32) {
        let pipe = self.pipe(flight_size);
        self.prr.on_ack(delivered, pipe, safe, smss);
    }

    /// Does this ACK show that the recovery is, or was, spurious?
    pub(crate) fn spurious(&mut self, arrived: &Arrived, snd_una: SeqNum) -> Option<Spurious> {
        let progress = snd_una.after(arrived.snd_una);
        let amid = self.repairs() && !self.ends_by(snd_una);
        let undo = self.undo.as_mut()?;
        match () {
            () if arrived.duplicate.is_some_and(|part| undo.reported(part, arrived.duplicate_bytes)) => {
                Some(Spurious::Duplicates)
            }
            () if progress && undo.was_delayed(arrived.echo, amid) => Some(Spurious::Timestamp),
            () if self.phase == Phase::Loss && self.forward && arrived.original => {
                Some(Spurious::ForwardProgress)
            }
            () => None,
        }
    }

    /// Does an acknowledgement up to here end the recovery?
    pub(crate) fn ends_by(&self, snd_una: SeqNum) -> bool {
        snd_una.after_or_eq(self.point)
    }

    /// Nothing was lost after all; what is reported to be there stays so.
    pub(crate) fn reopen(&mut self, queue: &mut SendQueue, snd_una: SeqNum) {
        self.unmark(queue, snd_una);
        if self.phase == Phase::Recovery {
            self.rack.reordering_seen = true;
        }
        self.phase = Phase::Open;
        self.undo = None;
        self.forward = false;
        self.fin.lost = false;
        self.new_data_first = false;
    }

    /// `snd_una` moved, perhaps beyond the recovery.
    pub(crate) fn on_progress(&mut self, snd_una: SeqNum, snd_nxt: SeqNum) {
        self.rack.on_progress(snd_una);
        if self.is_held(snd_una) {
            return;
        }
        if self.phase == Phase::Reducing && snd_una.after(self.point) {
            // More is acknowledged than the peer had when it echoed: it has seen CWR (as Linux).
            self.phase = Phase::Open;
        }
        if self.repairs() && snd_una.after_or_eq(self.point) {
            self.phase = Phase::Open;
            self.rack.on_recovered();
            if let Some(undo) = &mut self.undo {
                undo.until = Some(snd_nxt);
            }
        }
        let gone = |undo: &mut Undo| undo.until.is_some_and(|until| snd_una.after(until));
        self.undo.take_if(gone);
    }

    /// What was lost again after having been retransmitted, in segments of so many bytes: how many since last asked.
    pub(crate) fn take_lost_again(&mut self, smss: u32) -> u64 {
        core::mem::take(&mut self.marks.lost_again).weight.div_ceil(smss.max(1)).into()
    }

    /// Transmissions found to be lost since last asked.
    pub(crate) fn take_lost(&mut self) -> Vec<LostTransmission> {
        core::mem::take(&mut self.marks.newly_lost)
    }

    /// What to send again next: number and length.
    pub(crate) fn next_lost(
        &self,
        queue: &SendQueue,
        span: (SeqNum, SeqNum),
        how: &Resend,
    ) -> Option<(SeqNum, u32)> {
        if self.marks.lost.len == 0 || self.new_data_first || self.refused {
            return None;
        }
        self.marks.next_lost(queue, span, how)
    }

    /// `len` bytes from `seq` on were handed over, `again` or for the first time.
    pub(crate) fn on_sent(
        &mut self,
        queue: &mut SendQueue,
        (seq, len): (SeqNum, u32),
        again: bool,
        now: Instant,
    ) {
        let is_sent = |segment: &TxSegment| segment.end().before_or_eq(seq + len);
        if !again {
            let sent = queue.starting(seq).take_while(|segment| is_sent(segment));
            return self.prr.on_sent(sent.map(|segment| segment.weight).sum());
        }
        let before = self.marks.retransmitted.len;
        let mut weight = 0;
        self.weigh(queue);
        queue.mark_each(Kind::Any, seq, is_sent, |segment| {
            weight += segment.weight;
            // What only a probe repeats is not held to be lost, and stays as it was.
            if segment.lost && !segment.retransmitted {
                segment.retransmitted = true;
                self.marks.retransmitted.add(segment);
            }
        });
        self.prr.on_sent(weight);
        if self.marks.retransmitted.len == before {
            return;
        }
        if before == 0 || self.resent_since.is_none() {
            self.resent_since = Some(now.as_millis() as u32);
        }
        if let Some(undo) = self.undo.as_mut().filter(|undo| undo.until.is_none()) {
            undo.on_resent(now, len);
        }
    }
}

#[cfg(test)]
mod tests;
