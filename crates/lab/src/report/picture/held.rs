//! Data that a receiver holds beyond its acknowledgment, as reported by SACK.

/// Ranges of the stream that do not touch, in order.
#[derive(Default)]
pub(super) struct Held {
    pieces: Vec<(u32, u32)>,
}

impl Held {
    /// Adds ranges, and removes everything below `acked`.
    pub(super) fn take(&mut self, more: Vec<(u32, u32)>, acked: u32) {
        self.pieces.extend(more.into_iter().filter(|(from, to)| from < to));
        self.pieces.sort_unstable();
        let all = core::mem::take(&mut self.pieces);
        for (from, to) in all.into_iter().filter(|(_, to)| *to > acked) {
            match self.pieces.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => self.pieces.push((from.max(acked), to)),
            }
        }
    }

    pub(super) fn bytes(&self) -> u32 {
        self.pieces.iter().map(|(from, to)| to - from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_counted_once_and_no_longer_than_they_lie_beyond() {
        let mut held = Held::default();
        held.take(vec![(20, 30), (40, 50)], 10);
        assert_eq!(held.bytes(), 20);
        held.take(vec![(25, 45)], 10);
        assert_eq!(held.bytes(), 30);
        held.take(Vec::new(), 35);
        assert_eq!(held.bytes(), 15);
        held.take(vec![(5, 9)], 50);
        assert_eq!(held.bytes(), 0);
    }
}
