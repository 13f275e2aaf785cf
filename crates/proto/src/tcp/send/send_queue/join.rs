//! Small writes become larger packets when they are about to leave (Linux's `tcp_grow_skb`).

use super::SendQueue;
use wire::SeqNum;

impl SendQueue {
    /// The segment at `seq`, which was not sent yet, takes of the one behind it what it lacks of `most` bytes, unless a record ends between
    /// them.
    pub(crate) fn join_next(&mut self, seq: SeqNum, most: u32) {
        let Some(held) = self.held.as_deref_mut() else { return };
        let place = held.segments.find(seq);
        let behind = held.segments.behind(place);
        let (Some(first), Some(next)) = (held.segments.get(place), held.segments.get(behind)) else {
            return;
        };
        let lacks = most.saturating_sub(first.len);
        let fresh = first.transmissions == 0 && next.transmissions == 0;
        if first.seq != seq || first.eor || !fresh || lacks == 0 {
            return;
        }
        let whole = next.len <= lacks;
        let behind = if whole { behind } else { held.split_at(behind, lacks) };
        if whole && held.segments.is_last(behind) {
            held.freeze_tail();
        }
        let Some(mut next) = held.segments.remove(behind) else { return };
        let place = held.segments.find(seq);
        let Some(first) = held.segments.get_mut(place) else { return };
        first.len += next.len;
        first.parts.append(&mut next.parts);
        if whole {
            first.push |= next.push;
            first.eor = next.eor;
        }
    }
}
