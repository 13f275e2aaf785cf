//! The algebra of sequence numbers.
use proptest::prelude::*;
use wire::SeqNum;

#[test]
fn order_wraps_around() {
    let last = SeqNum(u32::MAX);
    assert_eq!(last + 2, SeqNum(1));
    assert_eq!(SeqNum(1) - 2, last);
    assert!(last.before(SeqNum(0)) && SeqNum(0).after(last));
    assert_eq!(SeqNum(5).since(last), 6);
    assert_eq!(last.latest(SeqNum(0)), SeqNum(0));
    assert_eq!(last.earliest(SeqNum(0)), last);
    assert!(SeqNum(1).within(last, 3) && !SeqNum(2).within(last, 3) && !SeqNum(1).within(SeqNum(1), 0));
}

proptest! {
    #[test]
    fn a_later_number_is_after(first: u32, distance in 1..1u32 << 31) {
        let (first, second) = (SeqNum(first), SeqNum(first) + distance);
        prop_assert!(first.before(second) && !second.before(first));
        prop_assert!(second.after(first) && second.after_or_eq(first) && first.before_or_eq(second));
        prop_assert_eq!(second.since(first), distance);
        prop_assert_eq!(first.latest(second), second);
        prop_assert_eq!(second.earliest(first), first);
    }

    #[test]
    fn a_number_is_neither_before_nor_after_itself(n: u32) {
        let n = SeqNum(n);
        prop_assert!(!n.before(n) && !n.after(n) && n.before_or_eq(n) && n.after_or_eq(n));
    }
}
