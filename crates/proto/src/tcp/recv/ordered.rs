//! Sequence numbers as keys of ordered collections.

use core::cmp::Ordering;
use wire::SeqNum;

/// A number that is compared only with others less than 2³¹ away, as those of one window are: then they have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Ordered(pub(in crate::tcp) SeqNum);

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> Ordering {
        (self.0.since(other.0) as i32).cmp(&0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_where_they_wrap() {
        let mut numbers = [2, u32::MAX - 1, 0, u32::MAX].map(|number| Ordered(SeqNum(number)));
        numbers.sort();
        assert_eq!(numbers.map(|number| number.0.0), [u32::MAX - 1, u32::MAX, 0, 2]);
    }
}
