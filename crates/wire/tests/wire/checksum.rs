//! The Internet checksum against RFC 1071 by the letter.

use crate::common::{hex, naive_sum, v4, v6};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{Checksum, protocol};

fn sum(data: &[u8]) -> Checksum {
    let mut sum = Checksum::new();
    sum.add(data);
    sum
}

#[test]
fn the_example_of_rfc_1071() {
    let sum = sum(&hex("0001 f203 f4f5 f6f7"));
    assert_eq!(sum.folded(), 0xddf2);
    assert_eq!(sum.finish(), 0x220d);
}

#[test]
fn nothing_sums_to_zero() {
    assert_eq!(Checksum::new().folded(), 0);
    assert_eq!(Checksum::new().finish(), 0xffff);
}

#[test]
fn all_ones_do_not_overflow() {
    for len in [1, 2, 63, 64, 65, 65_535, 1 << 20] {
        let expected = if len % 2 == 0 { 0xffff } else { naive_sum(&vec![0xff; len]) };
        assert_eq!(sum(&vec![0xff; len]).folded(), expected, "{len} bytes");
    }
}

/// The kernel leaves the pseudo-header's sum in the field of a packet on loopback: these two were captured there.
#[test]
fn pseudo_headers_are_those_the_kernel_leaves_in_partial_checksums() {
    let loopback = v4(127, 0, 0, 1);
    assert_eq!(Checksum::pseudo_header(loopback, loopback, protocol::TCP, 68).folded(), 0xfe4c);
    let loopback = v6("::1");
    assert_eq!(Checksum::pseudo_header(loopback, loopback, protocol::TCP, 52).folded(), 0x003c);
}

/// A packet that is still to be cut may be longer than 65535 bytes.
#[test]
fn a_pseudo_header_counts_all_32_bits_of_the_length() {
    let (src, dst) = (v6("fd77::1"), v6("fd77::2"));
    let bytes = hex(
        "fd77 0000 0000 0000 0000 0000 0000 0001 fd77 0000 0000 0000 0000 0000 0000 0002 0002 0003 0000 0006",
    );
    assert_eq!(Checksum::pseudo_header(src, dst, 6, 0x0002_0003).folded(), naive_sum(&bytes));
}

#[test]
#[should_panic(expected = "equal lengths")]
fn copy_and_add_refuses_unequal_lengths() {
    Checksum::new().copy_and_add(&mut [0; 3], &[0; 4]);
}

proptest! {
    #[test]
    fn equals_the_naive_sum(data in vec(any::<u8>(), 0..3000)) {
        prop_assert_eq!(sum(&data).folded(), naive_sum(&data));
    }

    #[test]
    fn parts_of_any_length_sum_like_the_whole(parts in vec(vec(any::<u8>(), 0..200), 0..12)) {
        let mut by_parts = Checksum::new();
        let mut copied = Checksum::new();
        let mut copy = Vec::new();
        for part in &parts {
            by_parts.add(part);
            let start = copy.len();
            copy.resize(start + part.len(), 0);
            copied.copy_and_add(&mut copy[start..], part);
        }
        let whole = parts.concat();
        prop_assert_eq!(by_parts.folded(), naive_sum(&whole));
        prop_assert_eq!(copied.folded(), naive_sum(&whole));
        prop_assert_eq!(copy, whole);
    }

    #[test]
    fn data_with_its_own_checksum_sums_to_zero(mut data in vec(any::<u8>(), 2..200)) {
        data[..2].fill(0);
        let checksum = sum(&data).finish();
        data[..2].copy_from_slice(&checksum.to_be_bytes());
        prop_assert_eq!(sum(&data).finish(), 0);
    }
}
