//! Small writes become larger packets when they are about to leave (Linux's `tcp_grow_skb`).

use super::SendQueue;
use wire::SeqNum;

impl SendQueue {
    /// The segment at `seq`, which was not sent yet, takes of the one behind it what it lacks of `most` bytes, unless a record ends between
    /// them.
    pub(crate) fn join_next(&mut self, seq: SeqNum, most: u32) {
        let index = self.index_of(seq);
        let Some(held) = self.held.as_deref_mut() else { return };
        let (Some(first), Some(next)) = (held.segments.get(index), held.segments.get(index + 1)) else {
            return;
        };
        let lacks = most.saturating_sub(first.len);
        let fresh = first.transmissions == 0 && next.transmissions == 0;
        if first.seq != seq || first.eor || !fresh || lacks == 0 {
            return;
        }
        let whole = next.len <= lacks;
        if !whole {
            held.split_at(index + 1, lacks);
        } else if index + 2 == held.segments.len() {
            held.freeze_tail();
        }
        let (Some(mut next), Some(first)) = (held.segments.remove(index + 1), held.segments.get_mut(index))
        else {
            return;
        };
        first.len += next.len;
        first.parts.append(&mut next.parts);
        if whole {
            first.push |= next.push;
            first.eor = next.eor;
        }
    }
}
