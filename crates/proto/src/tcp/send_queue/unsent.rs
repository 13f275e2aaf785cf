//! What was written and not sent, where it is one segment: the queue's part of a short way (`output/ordinary`).

use super::{SendQueue, Slices};
use crate::tcp::window_use::{Round, Sent};
use wire::SeqNum;

impl SendQueue {
    /// Bytes of the one segment that was written and never sent, if it begins at `seq` and no record has ended lately.
    #[inline(always)]
    pub(crate) fn unsent_segment(&self, seq: SeqNum) -> Option<u32> {
        let held = self.held.as_deref()?;
        let last = held.segments.back()?;
        (last.seq == seq && last.transmissions == 0 && !held.has_records).then_some(last.len)
    }

    /// [`transmit`](Self::transmit) of what [`unsent_segment`](Self::unsent_segment) told of. `lull`: the window has room for more than that.
    #[inline(always)]
    pub(in crate::tcp) fn transmit_unsent(
        &mut self,
        sent: &Sent,
        lull: bool,
        slices: &mut Slices,
    ) -> Option<(bool, &mut Round)> {
        let held = self.held.as_deref_mut()?;
        held.freeze_tail();
        let segment = held.segments.back_mut()?;
        if sent.in_flight == segment.len {
            held.flight.begin(sent.now);
        }
        segment.snapshot = self.delivery.snapshot(&held.flight, sent.in_flight);
        segment.sent_at = sent.now;
        segment.transmissions = 1;
        segment.weight = segment.len;
        (held.unit, held.sent_weight) = (1, held.sent_weight + segment.len);
        segment.add_parts_to(slices);
        if lull {
            self.delivery.lull(&mut held.flight, sent.in_flight);
        }
        Some((segment.push, &mut held.round))
    }
}
