//! Exact times in virtual time.
use qdisc::{
    Delivery, Device, DropReason, Limit, Link, LinkConfig, Loss, Packet, Probability, Reorder, Verdict,
};

const MS: u64 = 1_000_000;

/// Follows `next_event` until the link is empty; gives (time, packet) of each delivery.
fn drain<P: Clone>(link: &mut Link<P>) -> Vec<(u64, P)> {
    let mut out = Vec::new();
    while let Some(at) = link.next_event() {
        while let Some(delivery) = link.poll(at) {
            assert_eq!(delivery.delivered_at, at, "delivered exactly when due");
            out.push((at, delivery.packet));
        }
    }
    out
}

#[test]
fn one_packet_takes_its_serialisation_time_and_the_delay() {
    let mut link = Link::new(LinkConfig::new().rate(5_000_000).delay(35 * MS), 0);
    assert_eq!(link.enqueue(7, 'p', 1500), Verdict::Queued);
    assert!(link.poll(7 + 37_400_000 - 1).is_none());
    let expected = Delivery {
        packet: 'p',
        len: 1500,
        enqueued_at: 7,
        delivered_at: 37_400_007,
        corrupt_bit: None,
        is_duplicate: false,
    };
    assert_eq!(link.poll(37_400_007), Some(expected));
    assert_eq!(link.next_event(), None);
}

#[test]
fn a_driver_queue_of_127_full_packets_holds_a_small_one_for_304_8_ms() {
    // The classic: 5 Mbit/s, queue 128, 127 packets of 1500 bytes ahead of an interactive one of 500 bytes.
    let mut link = Link::new(LinkConfig::new().rate(5_000_000).limit(Limit::packets(128)), 0);
    for n in 0..127 {
        assert_eq!(link.enqueue(0, n, 1500), Verdict::Queued);
    }
    assert_eq!(link.enqueue(0, 127, 500), Verdict::Queued);
    let deliveries = drain(&mut link);
    assert_eq!(deliveries[0], (2_400_000, 0));
    assert_eq!(deliveries[126], (304_800_000, 126));
    assert_eq!(deliveries[127], (305_600_000, 127));
    assert_eq!(link.queue().peaks().sojourn, 304_800_000);
}

#[test]
fn big_packets_multiply_the_latency_of_a_queue_counted_in_packets() {
    let mut link = Link::new(LinkConfig::new().rate(5_000_000).limit(Limit::packets(128)), 0);
    for n in 0..127 {
        link.enqueue(0, n, 65_536);
    }
    assert_eq!(drain(&mut link)[126].0, 13_316_915_200); // 127 × 65536 × 8 / 5e6 = 13.3 s
}

#[test]
fn the_packet_being_sent_does_not_count_as_waiting() {
    let mut link = Link::new(LinkConfig::new().rate(1_000_000).limit(Limit::packets(2)), 0);
    let verdicts: Vec<_> = (0..4).map(|n| link.enqueue(0, n, 125)).collect();
    let full = Verdict::Dropped(DropReason::QueueFull);
    assert_eq!(verdicts, [Verdict::Queued, Verdict::Queued, Verdict::Queued, full]);
    assert_eq!(
        (link.stats().backlog_packets, link.stats().backlog_bytes, link.stats().transmitting),
        (2, 250, 1)
    );
    // At 1 ms the first is out, the second is being sent, and there is room for one more.
    assert_eq!(link.enqueue(MS, 4, 125), Verdict::Queued);
    assert_eq!(link.enqueue(MS, 5, 125), full);
    assert_eq!(drain(&mut link), [(MS, 0), (2 * MS, 1), (3 * MS, 2), (4 * MS, 4)]);
    assert_eq!(link.stats().drops_queue, 2);
}

#[test]
fn overhead_costs_time_on_the_wire() {
    let mut link = Link::new(LinkConfig::new().rate(1_000_000_000).overhead(38), 0);
    link.enqueue(0, 'a', 1500);
    assert_eq!(drain(&mut link), [(12_304, 'a')]);
    assert_eq!(link.stats().delivered_bytes, 1500);
}

#[test]
fn without_a_rate_only_the_delay_counts_and_order_is_kept() {
    let mut link = Link::new(LinkConfig::new().delay(85 * MS), 0);
    for n in 0..3 {
        link.enqueue(0, n, 1500);
    }
    assert_eq!(drain(&mut link), [(85 * MS, 0), (85 * MS, 1), (85 * MS, 2)]);
    let mut perfect = Link::new(LinkConfig::new(), 0);
    perfect.enqueue(9, 'x', 40);
    assert_eq!(perfect.poll(9).unwrap().packet, 'x');
}

#[test]
fn named_packets_are_lost_and_cost_nothing() {
    let mut link = Link::new(LinkConfig::new().rate(1_000_000).drop_nth([4, 2]), 0);
    for n in 1..=5 {
        let expected = if n % 2 == 0 { Verdict::Dropped(DropReason::Nth) } else { Verdict::Queued };
        assert_eq!(link.enqueue(0, n, 125), expected);
    }
    assert_eq!(drain(&mut link), [(MS, 1), (2 * MS, 3), (3 * MS, 5)]);
    assert_eq!((link.stats().drops_nth, link.stats().dropped()), (2, 2));
}

#[test]
fn every_nth_is_lost() {
    let mut link = Link::new(LinkConfig::new().loss(Loss::Every(2)), 0);
    let lost = (1..=10).filter(|n| link.enqueue(0, *n, 1) == Verdict::Dropped(DropReason::Loss)).count();
    assert_eq!((lost, link.stats().drops_loss), (5, 5));
}

#[test]
fn random_loss_has_its_rate_and_repeats_with_its_seed() {
    let run = |seed| {
        let mut link = Link::new(LinkConfig::new().loss(Loss::Random(Probability::percent(2.0))), seed);
        (0..50_000u32).filter(|n| link.enqueue(0, *n, 1) != Verdict::Queued).collect::<Vec<_>>()
    };
    assert!((900..1100).contains(&run(1).len()));
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_duplicate_follows_its_original_through_queue_and_transmitter() {
    let mut link = Link::new(LinkConfig::new().rate(1_000_000).duplicate(Probability::ONE), 0);
    link.enqueue(0, 'd', 125);
    assert!(!link.poll(MS).unwrap().is_duplicate);
    assert!(link.poll(2 * MS).unwrap().is_duplicate);
    assert_eq!(
        (link.stats().duplicated, link.stats().delivered_packets, link.stats().offered_packets),
        (1, 2, 1)
    );
}

#[test]
fn a_duplicate_needs_no_room_when_the_link_is_infinitely_fast() {
    let config = LinkConfig::new().limit(Limit::packets(0)).duplicate(Probability::ONE);
    let mut link = Link::new(config, 0);
    link.enqueue(0, 'd', 125);
    assert_eq!(drain(&mut link), [(0, 'd'), (0, 'd')]);
}

#[test]
fn corruption_names_a_bit_inside_the_packet() {
    let mut link = Link::new(LinkConfig::new().corrupt(Probability::ONE), 5);
    let bits: Vec<u64> = (0..1000)
        .map(|_| {
            link.enqueue(0, (), 40);
            link.poll(0).unwrap().corrupt_bit.unwrap()
        })
        .collect();
    assert!(bits.iter().all(|bit| *bit < 320));
    assert!(
        bits.iter().any(|bit| *bit < 32) && bits.iter().any(|bit| *bit >= 288),
        "all of the packet is hit"
    );
    link.enqueue(0, (), 0);
    assert_eq!(link.poll(0).unwrap().corrupt_bit, None, "an empty packet has no bit to flip");
}

#[test]
fn every_fifth_packet_overtakes() {
    let reorder = Reorder { probability: Probability::ONE, gap: 5 };
    let mut link = Link::new(LinkConfig::new().delay(10 * MS).reorder(reorder), 0);
    for n in 1..=5u64 {
        link.enqueue(n * MS, n, 100);
    }
    let expected = [(5 * MS, 5), (11 * MS, 1), (12 * MS, 2), (13 * MS, 3), (14 * MS, 4)];
    assert_eq!(drain(&mut link), expected);
    assert_eq!(link.stats().reordered, 1);
}

#[test]
fn jitter_stays_in_its_range_and_overtakes_only_when_allowed() {
    let run = |config: LinkConfig| {
        let mut link = Link::new(config.delay(20 * MS), 9);
        let mut out = Vec::new();
        for n in 0..500u64 {
            link.enqueue(n * MS / 10, n, 100);
            out.extend(std::iter::from_fn(|| link.poll(n * MS / 10)).map(|d| (d.delivered_at, d.packet)));
        }
        out.extend(drain(&mut link));
        out
    };
    let ordered = run(LinkConfig::new().jitter(5 * MS));
    assert!(ordered.windows(2).all(|w| w[0].1 < w[1].1));
    let free = run(LinkConfig::new().jitter_with_reordering(5 * MS));
    assert!(free.windows(2).any(|w| w[0].1 > w[1].1));
    let delays: Vec<u64> = free.iter().map(|(at, n)| at - n * MS / 10).collect();
    assert!(delays.iter().all(|d| (15 * MS..=25 * MS).contains(d)));
    assert!(*delays.iter().min().unwrap() < 16 * MS && *delays.iter().max().unwrap() > 24 * MS);
}

#[test]
fn a_link_that_is_down_loses_what_comes_and_delivers_what_is_on_it() {
    let mut link = Link::new(LinkConfig::new().delay(MS), 0);
    link.enqueue(0, 'a', 1);
    link.set_up(false);
    assert_eq!(link.enqueue(0, 'b', 1), Verdict::Dropped(DropReason::Down));
    link.set_up(true);
    link.enqueue(0, 'c', 1);
    assert_eq!(drain(&mut link), [(MS, 'a'), (MS, 'c')]);
    assert_eq!(link.stats().drops_down, 1);
}

#[test]
fn a_change_of_rate_and_delay_holds_for_what_comes_later() {
    let mut link = Link::new(LinkConfig::new().rate(1_000_000).delay(10 * MS), 0);
    link.enqueue(0, 'a', 125);
    link.enqueue(0, 'b', 125);
    link.set_config(LinkConfig::new().rate(2_000_000).delay(20 * MS));
    assert_eq!(drain(&mut link), [(21 * MS, 'a'), (21 * MS + MS / 2, 'b')]);
}

#[test]
fn time_that_goes_back_is_taken_as_the_latest_seen() {
    let mut link = Link::new(LinkConfig::new().delay(MS), 0);
    link.enqueue(10 * MS, 'a', 1);
    link.enqueue(5 * MS, 'b', 1);
    assert_eq!(drain(&mut link), [(11 * MS, 'a'), (11 * MS, 'b')]);
}

/// A packet of a flow.
#[derive(Clone, Debug, PartialEq)]
struct OfFlow(u32, u32);

impl Packet for OfFlow {
    fn flow_hash(&self) -> u32 {
        self.0
    }
}

/// A link of 8 Mbit/s (1 ms a packet of 1000 bytes) with a discipline.
fn with(qdisc: &str) -> Link<OfFlow, Device<qdisc::Entry<OfFlow>>> {
    let mut device = Device::new("eth0");
    device.tc(0, &format!("qdisc add root handle 1: {qdisc}"), &mut Vec::new()).expect(qdisc);
    Link::with_qdisc(LinkConfig::new().rate(8_000_000), device, 0)
}

fn drain_flows(link: &mut Link<OfFlow, Device<qdisc::Entry<OfFlow>>>) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    while let Some(at) = link.next_event() {
        while let Some(delivery) = link.poll(at) {
            out.push((at / MS, delivery.packet.1));
        }
    }
    out
}

#[test]
fn a_discipline_may_hold_packets_back_while_the_link_is_idle() {
    // 2 Mbit/s through a link of 8: every 4 ms a packet, which takes 1 ms.
    let mut link = with("tbf rate 2mbit burst 1000 limit 10000");
    for n in 0..3 {
        assert_eq!(link.enqueue(0, OfFlow(0, n), 1000), Verdict::Queued);
    }
    assert_eq!(drain_flows(&mut link), [(1, 0), (5, 1), (9, 2)]);
}

#[test]
fn a_discipline_chooses_what_is_sent_next() {
    let mut link = with("fq_codel");
    for n in 0..4 {
        link.enqueue(0, OfFlow(1, n), 1000);
    }
    link.enqueue(0, OfFlow(2, 9), 1000);
    // The first found the link idle; a turn of the others is 1514 bytes long.
    assert_eq!(drain_flows(&mut link), [(1, 0), (2, 1), (3, 2), (4, 9), (5, 3)]);
}

#[test]
fn what_a_discipline_drops_later_can_be_seen() {
    let mut link = with("codel target 1ms interval 5ms");
    for n in 0..40 {
        link.enqueue(0, OfFlow(1, n), 1000);
    }
    let mut dropped = Vec::new();
    let mut delivered = 0;
    while let Some(at) = link.next_event() {
        while link.poll(at).is_some() {
            delivered += 1;
        }
        dropped.extend(link.drain_dropped());
    }
    assert!(!dropped.is_empty() && dropped.iter().all(|(_, reason)| *reason == DropReason::Congested));
    assert_eq!((delivered + dropped.len(), link.stats().drops_queue as usize), (40, dropped.len()));
}
