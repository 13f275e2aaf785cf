//! htb (tc-htb(8), Linux's `sch_htb.c`). Order and counters beside the kernel's own: `tests/it/kernel.rs`.
use super::bed::{Bed, Frame, SECOND};
use proptest::prelude::*;

const A: u32 = 0x1_0010;
const B: u32 = 0x1_0020;

fn tree(a: &str, b: &str) -> Bed {
    let mut bed = Bed::new("htb default 20", None);
    bed.tc("class add parent 1: classid 1:1 htb rate 10mbit");
    bed.tc(&format!("class add parent 1:1 classid 1:10 htb {a}"));
    bed.tc(&format!("class add parent 1:1 classid 1:20 htb {b}"));
    bed
}

/// Keeps both classes full for ten seconds; bytes a second of each.
fn shares(bed: &mut Bed, classes: &[u32]) -> Vec<u64> {
    let mut number = 0;
    for tick in 0..1000 {
        for class in classes {
            // 12.5 kB in 10 ms: as much as 10 Mbit/s.
            for _ in 0..10 {
                bed.offer(Frame { number, priority: *class, ..Frame::default() }, 1250);
                number += 1;
            }
        }
        bed.advance((tick + 1) * SECOND / 100);
    }
    let sent = |class: &u32| {
        bed.left.iter().filter(|left| left.frame.priority == *class).map(|left| left.len as u64).sum::<u64>()
            / 10
    };
    classes.iter().map(sent).collect()
}

fn near(bytes: u64, mbit: f64) -> bool {
    (bytes as f64 * 8.0 / 1e6 - mbit).abs() < 0.02 * mbit + 0.02
}

#[test]
fn spare_bandwidth_is_shared_as_the_quantums() {
    // Rates 2 and 4, quantums 25 and 50 kB: the 4 Mbit/s to spare go 1 : 2.
    let mut bed = tree("rate 2mbit ceil 10mbit", "rate 4mbit ceil 10mbit");
    let got = shares(&mut bed, &[A, B]);
    assert!(near(got[0] + got[1], 10.0), "{got:?}");
    assert!(near(got[0], 10.0 / 3.0) && near(got[1], 20.0 / 3.0), "{got:?}");
}

#[test]
fn alone_a_class_borrows_up_to_its_ceil() {
    let mut bed = tree("rate 2mbit ceil 6mbit", "rate 4mbit");
    let got = shares(&mut bed, &[A]);
    assert!(near(got[0], 6.0), "{got:?}");
}

#[test]
fn what_is_spare_goes_to_the_lower_priority_number_first() {
    let mut bed = tree("rate 2mbit ceil 10mbit prio 0", "rate 2mbit ceil 10mbit prio 1");
    let got = shares(&mut bed, &[A, B]);
    assert!(near(got[0], 8.0) && near(got[1], 2.0), "{got:?}");
}

#[test]
fn a_mark_names_a_class_and_zero_the_direct_queue() {
    let mut bed = tree("rate 2mbit", "rate 2mbit");
    bed.tc("filter add dev eth0 parent 1: handle 6 fw flowid 1:10");
    bed.offer(Frame { number: 1, mark: 6, ..Frame::default() }, 100);
    bed.offer(Frame { number: 2, priority: 0x1_0000, ..Frame::default() }, 100);
    bed.offer(Frame { number: 3, ..Frame::default() }, 100);
    let classes = bed.tc("-s class show");
    let sent: Vec<&str> =
        classes.lines().filter(|line| line.starts_with("class") || line.contains("Sent")).collect();
    let of = |class: &str| sent[sent.iter().position(|line| line.contains(class)).unwrap() + 1];
    assert!(of("1:10 ").contains("100 bytes 1 pkt"), "{classes}");
    assert!(of("1:20 ").contains("100 bytes 1 pkt"), "the default: {classes}");
    assert!(bed.tc("qdisc show").contains("direct_packets_stat 1 "));
    assert_eq!(
        bed.tc("filter show"),
        "filter parent 1: protocol all pref 49152 fw chain 0 handle 0x6 classid 1:10 \n"
    );
}

#[test]
fn a_class_that_goes_takes_its_packets_along() {
    let mut bed = tree("rate 8kbit burst 100 cburst 100", "rate 8kbit");
    for number in 0..5 {
        bed.offer(Frame { number, priority: A, ..Frame::default() }, 500);
    }
    assert_eq!((bed.left.len(), bed.stats().qlen), (1, 4));
    bed.tc("class del classid 1:10");
    assert_eq!((bed.dropped.len(), bed.stats().qlen, bed.stats().drops), (4, 0, 4));
    bed.drain();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every leaf has packets for five seconds.
    #[test]
    fn each_leaf_gets_its_rate_and_no_class_more_than_its_ceil(
        leaves in prop::collection::vec((100u64..1000, 0u64..2000, 0u32..3, 200usize..1500), 1..5),
        spare in 0u64..3000,
    ) {
        // kbit/s; the parent has what its leaves are promised, and some to lend.
        let parent = leaves.iter().map(|(rate, ..)| rate).sum::<u64>() + spare;
        let mut bed = Bed::new("htb", None);
        bed.tc(&format!("class add parent 1: classid 1:1 htb rate {parent}kbit burst 3000 cburst 3000"));
        for (n, (rate, more, prio, _)) in leaves.iter().enumerate() {
            let ceil = rate + more;
            bed.tc(&format!("class add parent 1:1 classid 1:1{n} htb rate {rate}kbit ceil {ceil}kbit burst 3000 cburst 3000 prio {prio} quantum 1500"));
        }
        let class = |n: usize| 0x1_0010 + n as u32;
        for tick in 0..500u64 {
            for (n, (.., len)) in leaves.iter().enumerate() {
                // As much as the parent carries, in ten milliseconds.
                for _ in 0..(parent * 10 / 8 / *len as u64) + 1 {
                    bed.offer(Frame { priority: class(n), ..Frame::default() }, *len);
                }
            }
            bed.advance((tick + 1) * SECOND / 100);
        }
        let sent = |n: usize| bed.left.iter().filter(|left| left.frame.priority == class(n)).map(|left| left.len as u64).sum::<u64>();
        let carried = |kbit: u64| kbit * 125 * 5;
        let mut total = 0;
        for (n, (rate, more, ..)) in leaves.iter().enumerate() {
            total += sent(n);
            prop_assert!(sent(n) + 3000 >= carried(*rate), "leaf {n}: {} of {}", sent(n), carried(*rate));
            prop_assert!(sent(n) <= carried(rate + more) + 3000 + 1500, "leaf {n}: {} of {}", sent(n), carried(rate + more));
        }
        // Leaves send of their own right while their parent is in debt: each as much as its burst and the packet that ends it.
        let of_leaves = (3000 + 1500) * leaves.len() as u64;
        prop_assert!(total <= carried(parent) + 3000 + of_leaves, "{total} of {}", carried(parent));
    }
}
