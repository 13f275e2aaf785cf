//! What holds for every link and every traffic.
use proptest::prelude::*;
use qdisc::{Delivery, Limit, Link, LinkConfig, Loss, Probability, Reorder};

type Offer = (u64, usize); // gap to the packet before in ns, length in bytes

fn percent() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(Probability::ZERO), (0.0..100.0).prop_map(Probability::percent)]
}

prop_compose! {
    fn any_config()(
        rate in prop_oneof![Just(0u64), 1_000u64..10_000_000_000],
        delay in 0u64..300_000_000,
        jitter in prop_oneof![Just(0u64), 0u64..100_000_000],
        jitter_reorders: bool,
        packets in prop::option::of(0usize..50),
        bytes in prop::option::of(0u64..100_000),
        loss in percent(),
        duplicate in percent(),
        corrupt in percent(),
        reorder in prop::option::of((percent(), 0u64..6)),
        drop_nth in prop::collection::vec(1u64..60, 0..4),
    ) -> LinkConfig {
        LinkConfig {
            limit: Limit { packets, bytes },
            loss: Loss::Random(loss),
            reorder: reorder.map(|(probability, gap)| Reorder { probability, gap }),
            jitter, jitter_reorders, duplicate, corrupt, drop_nth,
            ..LinkConfig::new().rate(rate).delay(delay)
        }
    }
}

fn traffic() -> impl Strategy<Value = Vec<Offer>> {
    prop::collection::vec((0u64..5_000_000, 0usize..3000), 0..60)
}

/// Offers everything, polling at each event in between; `extra` adds polls at times when nothing happens.
fn run(config: &LinkConfig, seed: u64, offers: &[Offer], extra: bool) -> (Vec<Delivery<usize>>, Link<usize>) {
    let mut link = Link::new(config.clone(), seed);
    let mut out = Vec::new();
    let mut now = 0;
    for (number, (gap, len)) in offers.iter().enumerate() {
        let next = now + gap;
        if extra {
            out.extend(link.poll(now + gap / 2));
        }
        while let Some(at) = link.next_event().filter(|at| *at <= next) {
            while let Some(delivery) = link.poll(at) {
                out.push(delivery);
            }
        }
        now = next;
        link.enqueue(now, number, *len);
        check_balance(&link);
    }
    while let Some(at) = link.next_event() {
        while let Some(delivery) = link.poll(at) {
            out.push(delivery);
        }
    }
    (out, link)
}

fn check_balance(link: &Link<usize>) {
    let s = link.stats();
    let held = (s.backlog_packets + s.transmitting + s.in_flight) as u64;
    assert_eq!(s.offered_packets + s.duplicated, s.delivered_packets + s.dropped() + held, "{s:?}");
}

proptest! {
    #[test]
    fn every_packet_is_delivered_or_counted(config in any_config(), seed: u64, offers in traffic()) {
        let (out, link) = run(&config, seed, &offers, false);
        check_balance(&link);
        let stats = link.stats();
        prop_assert_eq!(stats.delivered_packets, out.len() as u64);
        prop_assert_eq!(stats.in_flight + stats.backlog_packets + stats.transmitting, 0);
        prop_assert!(out.windows(2).all(|w| w[0].delivered_at <= w[1].delivered_at));
        prop_assert!(out.iter().all(|d| d.corrupt_bit.is_none_or(|bit| bit < d.len as u64 * 8)));
    }

    #[test]
    fn deliveries_do_not_depend_on_when_it_is_polled(config in any_config(), seed: u64, offers in traffic()) {
        prop_assert_eq!(run(&config, seed, &offers, false).0, run(&config, seed, &offers, true).0);
    }

    #[test]
    fn without_reordering_order_is_kept(config in any_config(), seed: u64, offers in traffic()) {
        let config = LinkConfig { reorder: None, jitter_reorders: false, ..config };
        let (out, _) = run(&config, seed, &offers, false);
        prop_assert!(out.windows(2).all(|w| w[0].packet <= w[1].packet));
    }

    #[test]
    fn nothing_is_faster_than_its_bits_and_the_least_delay(config in any_config(), seed: u64, offers in traffic()) {
        let config = LinkConfig { reorder: None, ..config };
        let (out, _) = run(&config, seed, &offers, false);
        let least = config.delay.saturating_sub(config.jitter);
        for d in &out {
            let bits = d.len as u128 * 8 * 1_000_000_000;
            let serialisation = config.rate.map_or(0, |rate| (bits / u128::from(rate.get())) as u64);
            prop_assert!(d.delivered_at >= d.enqueued_at + serialisation + least);
        }
    }

    #[test]
    fn a_busy_link_carries_exactly_its_rate(rate in 1_000u64..10_000_000_000, lens in prop::collection::vec(1usize..9000, 1..60)) {
        let mut link = Link::new(LinkConfig::new().rate(rate), 0);
        for (number, len) in lens.iter().enumerate() {
            link.enqueue(0, number, *len);
        }
        let mut last = 0;
        while let Some(at) = link.next_event() {
            while link.poll(at).is_some() {}
            last = at;
        }
        let bits: u128 = lens.iter().map(|len| *len as u128 * 8).sum();
        prop_assert_eq!(u128::from(last), (bits * 1_000_000_000).div_ceil(u128::from(rate)));
    }
}
