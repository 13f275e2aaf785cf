//! The receiver: received data, the advertised window, and owed acknowledgments.

use super::ack_delay::AckDelay;
pub(crate) use super::ack_delay::AckOwed;
use super::autotune::Tuner;
use super::payload::Payload;
use super::reassembly::Reassembly;
use super::receive_buffer::{ReceiveBuffer, Spare, pinned};
use super::window_space::{Space, WindowSpace};
use crate::Instant;
use alloc::boxed::Box;
use wire::{Arrival, SackBlocks, SeqNum};

/// Reasons why a segment is not acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum Outside {
    /// All of its data came before.
    Old,
    /// It is beyond the window.
    Beyond,
}

/// RCV.* of RFC 9293 §3.3.1.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) irs: SeqNum,
    pub(crate) nxt: SeqNum,
    /// Right edge of the window that was last advertised.
    pub(in crate::tcp) adv: SeqNum,
    /// Shift of our windows.
    pub(crate) wscale: u8,
    /// The peer's FIN is in order, before `nxt`.
    pub(crate) fin_received: bool,
    pub(crate) ack_owed: AckOwed,
    /// Last.ACK.sent of RFC 7323.
    pub(crate) last_ack_sent: SeqNum,
    /// Largest payload of a segment so far: the size of a full segment.
    pub(super) rcv_mss: u16,
    pub(super) delay: AckDelay,
    /// Time of the last arrival of data.
    pub(super) last_data_at: Instant,
    /// There was no memory for a segment, so a closed window is advertised.
    pub(super) refuses: bool,
    pub(crate) space: Space,
    pub(super) tuner: Option<Box<Tuner>>,
    pub(crate) buffer: ReceiveBuffer,
    pub(super) out_of_order: Option<Box<Reassembly>>,
    pub(super) bytes_received: u64,
}

impl Receiver {
    pub(crate) fn new(irs: SeqNum, space: Space, wscale: u8) -> Receiver {
        Receiver {
            irs,
            nxt: irs + 1,
            adv: irs + 1,
            wscale,
            fin_received: false,
            ack_owed: AckOwed::No,
            last_ack_sent: irs,
            rcv_mss: 536,
            delay: AckDelay::new(),
            last_data_at: Instant::ZERO,
            refuses: false,
            space,
            tuner: None,
            buffer: ReceiveBuffer::default(),
            out_of_order: None,
            bytes_received: 0,
        }
    }

    /// Begins to receive, with the peer's SYN.
    #[inline]
    pub(crate) fn begin(&mut self, irs: SeqNum, space: Space, wscale: u8) {
        (self.irs, self.nxt, self.adv, self.last_ack_sent) = (irs, irs + 1, irs + 1, irs);
        (self.space, self.wscale) = (space, wscale);
        (self.ack_owed, self.delay, self.tuner) = (AckOwed::No, AckDelay::new(), None);
    }

    /// Returns when data last arrived.
    pub(crate) fn last_data_at(&self) -> Instant {
        self.last_data_at
    }

    /// Returns the bytes received in order.
    pub(crate) fn bytes_received(&self) -> u64 {
        self.bytes_received
    }

    /// Returns the bytes that the application has read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_received.saturating_sub(self.buffer.len() as u64)
    }

    /// Returns whether a closed window is advertised because there was no memory.
    pub(crate) fn refuses(&self) -> bool {
        self.refuses
    }

    /// Returns whether the size of the buffer is being tuned.
    pub(crate) fn is_tuned(&self) -> bool {
        self.tuner.is_some()
    }

    /// Stops tuning the size of the buffer.
    pub(crate) fn stop_tuning(&mut self) {
        self.tuner = None;
    }

    /// Returns the last advertised window, counted from `nxt`.
    pub(crate) fn wnd(&self) -> u32 {
        if self.adv.after(self.nxt) { self.adv.since(self.nxt) } else { 0 }
    }

    pub(crate) fn rcv_mss(&self) -> u16 {
        self.rcv_mss
    }

    /// Returns the last advertised window, counted from the last acknowledgment (Linux's
    /// `tcp_receive_window`).
    pub(crate) fn advertised(&self) -> u32 {
        if self.adv.after(self.last_ack_sent) { self.adv.since(self.last_ack_sent) } else { 0 }
    }

    /// Returns the window by which quick ACKs are counted.
    pub(in crate::tcp) fn quick_window(&self) -> u32 {
        if self.space.counts_payload() { self.wnd() } else { self.advertised() }
    }

    /// Returns where a segment from `seq` to `end` lies. `None`: at least partly in the window or
    /// at its edge (Linux's `tcp_sequence`). Text is trimmed later.
    #[inline]
    pub(in crate::tcp) fn outside(&self, seq: SeqNum, end: SeqNum, fin: bool) -> Option<Outside> {
        if let Some(packets) = self.space.packets() {
            let limit = self.nxt + self.wnd();
            return packets.outside((seq, end), fin, (self.last_ack_sent, limit));
        }
        match () {
            () if seq.after(self.adv.latest(self.nxt)) => Some(Outside::Beyond),
            () => end.before(self.nxt).then_some(Outside::Old),
        }
    }

    /// Returns the memory of received data, and the memory reserved for more, in bytes.
    pub(crate) fn charged(&self) -> (u32, u32) {
        self.space.charged().unwrap_or_else(|| (self.memory(), 0))
    }

    /// Returns the window to advertise. Never moves the right edge back.
    fn offer(&self, space: &WindowSpace, mss: u32) -> u32 {
        space.offer(self.wnd(), self.buffer.len() as u32, mss)
    }

    /// Returns the window of a SYN or SYN-ACK before it is rounded to segments. `None`: that of an
    /// empty buffer.
    #[inline]
    pub(crate) fn first_window(&self, mss: u32) -> Option<u32> {
        match &self.space {
            Space::Payload(payload) => Some(self.offer(payload, mss)),
            Space::Packets(_) => None,
        }
    }

    /// Advertises a window. Returns the window field, and whether it would be zero if less had been
    /// offered before. `shift` is 0 on SYNs.
    #[inline(always)]
    pub(crate) fn advertise(&mut self, mss: u32, shift: u8) -> (u16, bool) {
        let Space::Payload(space) = &self.space else { return (0, false) };
        if self.refuses {
            // The edge stays. What fits before it is accepted when there is memory again.
            self.ack_owed = AckOwed::No;
            return (0, false);
        }
        let (field, wants_zero) = self.field(space, mss, shift);
        self.adv = self.adv.latest(self.nxt + (field << shift));
        self.acknowledged();
        (field as u16, wants_zero && field > 0)
    }

    /// Computes the result of [`advertise`](Self::advertise).
    #[inline(always)]
    pub(in crate::tcp) fn field(&self, space: &WindowSpace, mss: u32, shift: u8) -> (u32, bool) {
        let (offered, offer) = (self.wnd(), self.offer(space, mss));
        let (mut up, mut wants_zero) = ((1 << shift) - 1, false);
        if offer <= offered {
            let free = self.free();
            wants_zero = free < mss.min(space.full() / 2);
            // RFC 9293 §3.8.6: "A TCP receiver SHOULD NOT shrink the window, i.e., move the right
            // window edge to the left". Rounding down takes back less than a unit of the scale (RFC
            // 7323 §2.4). It must not close the window if there is nothing to read that would open
            // it again.
            if offered > free && (offer >> shift > 0 || !self.buffer.is_empty()) {
                up = 0;
            }
        }
        (((offer + up) >> shift).min(u32::from(u16::MAX)), wants_zero)
    }

    /// Answers a refused segment at once.
    pub(in crate::tcp) fn answer_nonsense(&mut self) {
        if self.ack_owed == AckOwed::No {
            self.delay.spare_one();
        }
        self.ack_owed = AckOwed::Now;
    }

    /// Notes that an acknowledgment leaves.
    pub(in crate::tcp) fn acknowledged(&mut self) {
        self.last_ack_sent = self.nxt;
        self.delay.acknowledged(self.ack_owed != AckOwed::No);
        self.ack_owed = AckOwed::No;
    }

    /// Returns whether the window is too large for [`window_opened`](Self::window_opened), whatever
    /// the MSS.
    pub(crate) fn is_window_ample(&self) -> bool {
        self.wnd() > self.space.full() / 2
    }

    /// Returns whether the peer needs a window update after a read (RFC 9293 §3.8.6.2.2).
    pub(crate) fn window_opened(&self, mss: u32) -> bool {
        let Space::Payload(space) = &self.space else { return false };
        space.is_worth_advertising(self.wnd(), self.offer(space, mss), mss)
    }

    /// Returns whether more than a segment is unacknowledged, and the window is not closing. If it
    /// closes, the reader causes the acknowledgment.
    pub(in crate::tcp) fn has_much_to_acknowledge(&self) -> bool {
        self.nxt.since(self.last_ack_sent) > self.mss() && self.free() >= self.wnd()
    }

    /// Returns the room in the buffer in bytes of payload.
    fn free(&self) -> u32 {
        self.space.full().saturating_sub(self.buffer.len() as u32)
    }

    /// Accepts a payload that begins at or before `nxt`, or inside the window. Returns the bytes
    /// that became readable.
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        mut seq: SeqNum,
        mut payload: Payload<'_, '_>,
        spare: &mut Spare,
    ) -> u32 {
        let whole = payload.len();
        if seq.before(self.nxt) {
            let old = self.nxt.since(seq).min(payload.len() as u32);
            payload.advance(old as usize);
            seq += old;
        }
        payload.truncate(if self.adv.after(seq) { self.adv.since(seq) as usize } else { 0 });
        if payload.is_empty() {
            self.delay.alarm();
            self.ack_owed = AckOwed::Now;
            return 0;
        }
        self.last_data_at = now;
        if seq.after(self.nxt) {
            let truesize = payload.truesize();
            self.out_of_order.get_or_insert_default().insert(
                seq,
                payload.into_bytes(),
                truesize,
                self.space.full(),
            );
            self.ack_owed = AckOwed::Now;
            return 0;
        }
        self.take_next(payload, whole, spare)
    }

    /// Accepts a payload that comes next and lies in the window.
    #[inline]
    pub(crate) fn accept_next(&mut self, now: Instant, payload: Payload<'_, '_>, spare: &mut Spare) -> u32 {
        self.last_data_at = now;
        let whole = payload.len();
        self.take_next(payload, whole, spare)
    }

    /// Accepts the next payload. Its segment had `whole` bytes.
    #[inline(always)]
    fn take_next(&mut self, payload: Payload<'_, '_>, whole: usize, spare: &mut Spare) -> u32 {
        let (packet, place) = payload.parts();
        let Arrival { truesize, gso_size, .. } = *packet;
        let full = if gso_size > 0 { gso_size } else { whole.min(usize::from(u16::MAX)) as u16 };
        let merged = gso_size > 0 && whole > usize::from(gso_size);
        let second = self.nxt.after(self.last_ack_sent) && self.ack_owed != AckOwed::No;
        let before = self.nxt;
        self.came_in_order(place.len());
        self.buffer.push_from(&mut packet.data, place, truesize, spare);
        let filled = self.out_of_order.is_some() && self.fill_from_out_of_order();
        if full > self.rcv_mss {
            self.rcv_mss = full;
            self.space.measure(whole, pinned(whole, truesize));
        }
        self.space.grow(self.nxt.since(before), self.rcv_mss.into(), self.buffer.len() as u32);
        // RFC 9293 §3.8.6.3: acknowledges at least every second full-sized segment. Small segments
        // wait.
        if filled || merged || (second && self.nxt.since(self.last_ack_sent) >= 2 * u32::from(self.rcv_mss)) {
            self.ack_owed = AckOwed::Now;
        }
        self.nxt.since(before)
    }

    pub(in crate::tcp) fn append(&mut self, payload: Payload<'_, '_>, spare: &mut Spare) {
        self.came_in_order(payload.len());
        if !payload.is_empty() {
            let (packet, place) = payload.parts();
            self.buffer.push_from(&mut packet.data, place, packet.truesize, spare);
        }
    }

    fn came_in_order(&mut self, len: usize) {
        self.nxt += len as u32;
        self.bytes_received += len as u64;
    }

    /// Appends text that is no longer out of order. Returns whether there was some, or other text
    /// is still missing.
    pub(in crate::tcp) fn fill_from_out_of_order(&mut self) -> bool {
        let Some(mut queue) = self.out_of_order.take() else { return false };
        let run = queue.take(self.nxt);
        let filled = run.is_some();
        if let Some(run) = run {
            self.nxt += run.len() as u32;
            self.bytes_received += run.len() as u64;
            self.buffer.append(run);
        }
        let more = !queue.has_no_text();
        if !queue.is_empty() {
            self.out_of_order = Some(queue);
        }
        filled || more
    }

    /// Drops out-of-order data from this number on. The peer must retransmit it.
    pub(in crate::tcp) fn cut_out_of_order(&mut self, from: SeqNum) {
        if let Some(queue) = &mut self.out_of_order {
            queue.cut(from);
            self.out_of_order.take_if(|queue| queue.is_empty());
        }
    }

    /// Copies payloads together to save memory.
    pub(in crate::tcp) fn compact(&mut self) {
        self.buffer.collapse();
        if let Some(queue) = &mut self.out_of_order {
            queue.collapse();
        }
    }

    /// Returns the number behind all out-of-order data.
    pub(crate) fn out_of_order_end(&self) -> Option<SeqNum> {
        match self.space.blocks() {
            Some(blocks) => blocks.end(),
            None => self.out_of_order.as_ref()?.reported_end(),
        }
    }

    /// Notes a FIN with number `seq`. Returns whether it is in order.
    #[inline]
    pub(crate) fn accept_fin(&mut self, seq: SeqNum) -> bool {
        if self.fin_received {
            return false;
        }
        if seq == self.nxt {
            return self.take_fin();
        }
        if seq.after(self.nxt) {
            self.out_of_order.get_or_insert_default().insert_fin(seq);
        }
        false
    }

    /// Returns whether an early FIN is in order now.
    pub(crate) fn fin_in_order(&mut self) -> bool {
        let follows = self.out_of_order.as_ref().is_some_and(|queue| queue.fin == Some(self.nxt));
        follows && self.take_fin()
    }

    /// Accepts a FIN that is in order. Returns true.
    #[inline]
    pub(in crate::tcp) fn take_fin(&mut self) -> bool {
        self.fin_received = true;
        self.nxt += 1;
        if let Some(queue) = &mut self.out_of_order {
            queue.forget_fin();
            self.out_of_order.take_if(|queue| queue.is_empty());
        }
        true
    }

    /// Returns the size of a full segment of the peer in bytes.
    pub(in crate::tcp) fn mss(&self) -> u32 {
        self.rcv_mss.into()
    }

    /// Returns whether a segment that begins at `seq` may contain known data. May return false
    /// positives, never false negatives.
    #[inline]
    pub(crate) fn may_know(&self, seq: SeqNum) -> bool {
        seq.before(self.nxt) || self.out_of_order.is_some()
    }

    /// Returns whether a FIN has come whose preceding data is missing.
    #[inline]
    pub(crate) fn awaits_fin(&self) -> bool {
        self.out_of_order.as_ref().is_some_and(|queue| queue.fin.is_some())
    }

    /// Returns whether everything came in order and once, and more may come.
    pub(crate) fn in_order(&self) -> bool {
        self.out_of_order.is_none() && !self.fin_received
    }

    /// Returns whether `len` bytes are at least a full-sized segment of the peer.
    pub(crate) fn is_full_sized(&self, len: u32) -> bool {
        len >= self.rcv_mss.into()
    }

    /// Returns whether the last advertised window was zero.
    pub(crate) fn advertised_zero(&self) -> bool {
        !self.adv.after(self.last_ack_sent + ((1 << self.wscale) - 1))
    }

    /// Returns whether data has come that leaves a gap before it.
    pub(crate) fn has_holes(&self) -> bool {
        self.out_of_order.is_some()
    }

    /// Returns whether SACK has something to report.
    pub(crate) fn has_blocks(&self) -> bool {
        self.out_of_order.is_some() || self.space.blocks().is_some_and(|blocks| !blocks.is_empty())
    }

    /// Returns SACK blocks to report, most recent first.
    pub(crate) fn sack_blocks(&self, max: usize) -> SackBlocks {
        match self.space.blocks() {
            Some(blocks) => blocks.reported(max),
            None => {
                self.out_of_order.as_ref().map_or_else(SackBlocks::default, |queue| queue.sack_blocks(max))
            }
        }
    }

    /// Returns the first known part of `len` bytes from `seq` on, and whether it is in order.
    pub(crate) fn duplicate(&self, seq: SeqNum, len: u32) -> Option<((SeqNum, SeqNum), bool)> {
        let end = seq + len;
        if seq.before(self.nxt) {
            return Some(((seq, end.earliest(self.nxt)), true));
        }
        let queue = self.out_of_order.as_ref()?;
        queue.overlap(seq, end).map(|part| (part, false))
    }

    /// Reports a duplicate part with the next acknowledgment (RFC 2883).
    pub(crate) fn report_duplicate(&mut self, part: (SeqNum, SeqNum)) {
        if let Some(blocks) = self.space.blocks_mut() {
            blocks.duplicate = Some(part);
            return;
        }
        self.out_of_order.get_or_insert_default().duplicate = Some(part);
    }

    /// Cancels the report of a duplicate part.
    pub(crate) fn forget_report(&mut self) {
        if let Some(blocks) = self.space.blocks_mut() {
            blocks.duplicate = None;
        }
        if let Some(queue) = &mut self.out_of_order {
            queue.duplicate = None;
            self.out_of_order.take_if(|queue| queue.is_empty());
        }
    }

    /// Notes that an acknowledgment with up to `max` blocks was sent. Another is owed if there was
    /// no room for everything new.
    pub(crate) fn reported(&mut self, max: usize) {
        if let Some(blocks) = self.space.blocks_mut() {
            blocks.duplicate = None;
            return;
        }
        let Some(queue) = &mut self.out_of_order else { return };
        if queue.reported(max) {
            self.ack_owed = AckOwed::Now;
        }
        if queue.is_empty() {
            self.out_of_order = None;
        }
    }

    /// Drops all early data when the connection ends, except a FIN that came alone.
    pub(crate) fn drop_out_of_order(&mut self) {
        self.out_of_order.take_if(|queue| !queue.has_no_text());
    }

    /// Drops all unread data, because the connection is over.
    pub(crate) fn discard(&mut self) {
        self.buffer = ReceiveBuffer::default();
        self.out_of_order = None;
    }

    /// Drops out-of-order data, except a FIN. The peer must retransmit it.
    pub(in crate::tcp) fn forget_out_of_order(&mut self) {
        if let Some(queue) = &mut self.out_of_order {
            queue.drop_text();
            self.out_of_order.take_if(|queue| queue.is_empty());
        }
    }

    /// Returns whether only the FIN arrived: something on the path swallowed the data before it.
    pub(crate) fn only_fin_came(&self) -> bool {
        self.bytes_received == 0 && self.out_of_order.as_ref().is_some_and(|queue| queue.has_no_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, SocketOptions};
    use bytes::Bytes;
    use proptest::prelude::*;

    proptest! {
        /// RFC 7323 §2.3: the field is the window shifted right, and its reader shifts it left. The
        /// advertised edge never retreats, exceeds the buffer by at most the rounding, and the
        /// field fits.
        #[test]
        fn the_edge_that_is_told_never_retreats(
            shift in 0u8..=14,
            buffer in 4096u32..4 << 20,
            steps in proptest::collection::vec((1usize..3000, 0usize..6000), 1..60),
        ) {
            let config = Config { tcp_rmem: [4096, buffer, buffer], ..Config::default() };
            let space = Space::new(&config, &SocketOptions::default());
            let mut receiver = Receiver::new(SeqNum(u32::MAX - 5000), space, shift);
            let mut edge = receiver.nxt + u32::from(receiver.advertise(1460, 0).0);
            for (arrives, read) in steps {
                let (seq, room) = (receiver.nxt, receiver.wnd() as usize);
                let mut bytes = Bytes::from(vec![0; arrives.min(room)]);
                let len = bytes.len();
                let mut packet = Arrival::shared(&mut bytes, len + 200, 0);
                if len > 0 {
                    let payload = Payload::new(&mut packet, 0..len);
                    prop_assert_eq!(receiver.accept(Instant::ZERO, seq, payload, &mut Spare::default()), len as u32);
                }
                receiver.buffer.read(&mut vec![0; read], &mut Spare::default());
                let (field, _) = receiver.advertise(1460, shift);
                let offered = receiver.nxt + (u32::from(field) << shift);
                prop_assert!(offered.after_or_eq(edge) || edge.since(offered) < 1 << shift, "{shift}: {offered:?} after {edge:?}");
                prop_assert!(receiver.adv.after_or_eq(edge));
                let most = receiver.space.full().max(receiver.wnd()) + (1 << shift);
                prop_assert!(u32::from(field) << shift <= most);
                edge = receiver.adv;
            }
        }
    }
}
