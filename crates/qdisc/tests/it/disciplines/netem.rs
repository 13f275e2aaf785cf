//! netem (tc-netem(8), Linux's `sch_netem.c`).
use super::bed::{Bed, Frame, MS, SECOND};
use qdisc::Ecn;

fn shown(options: &str) -> String {
    let mut bed = Bed::new(&format!("netem {options}"), None);
    let line = bed.tc("qdisc show");
    line.trim_end().strip_prefix("qdisc netem 1: root refcnt 2 ").expect("one line").to_owned()
}

fn offer(bed: &mut Bed, count: u32, gap: u64) {
    for number in 0..count {
        bed.send(number, 0, 1000);
        let next = bed.now + gap;
        bed.advance(next);
    }
}

#[test]
fn it_is_shown_as_tc_does() {
    // What iproute2 6.1 prints of the same numbers.
    assert_eq!(shown("delay 10ms 2ms 25% loss 0.3% 25%"), "limit 1000 delay 10ms  2ms 25% loss 0.3% 25%");
    assert_eq!(
        shown("limit 50 delay 1ms duplicate 2% 10% reorder 25% 50% gap 5 corrupt 0.1% 20%"),
        "limit 50 delay 1ms duplicate 2% 10% reorder 25% 50% corrupt 0.1% 20% gap 5"
    );
    assert_eq!(
        shown("loss gemodel 1% 10% 70% 0.1% ecn rate 5mbit 20 48 5"),
        "limit 1000 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1% rate 5Mbit packetoverhead 20 cellsize 48 celloverhead 5 ecn"
    );
    assert_eq!(
        shown("loss state 1% 10% 20% 90% 0.1% rate 5mbit -14 slot 800us 10ms packets 20 bytes 1500"),
        "limit 1000 loss state p13 1% p31 10% p32 20% p23 90% p14 0.1% rate 5Mbit packetoverhead -14 slot 800us 10ms packets 20 bytes 1500"
    );
    assert_eq!(shown("slot distribution normal 800us 300us"), "limit 1000 slot distribution 800us 300us");
    assert_eq!(shown("loss gemodel 1%"), "limit 1000 loss gemodel p 1% r 99% 1-h 100% 1-k 0%");
}

#[test]
fn a_delay_is_exact_and_order_is_kept() {
    let mut bed = Bed::new("netem delay 35ms", None);
    offer(&mut bed, 5, MS);
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at).collect();
    assert_eq!(times, [35 * MS, 36 * MS, 37 * MS, 38 * MS, 39 * MS]);
}

#[test]
fn jitter_lets_packets_pass_each_other_within_its_range() {
    let mut bed = Bed::seeded("netem delay 20ms 5ms", None, 3);
    offer(&mut bed, 1000, MS / 10);
    bed.drain();
    let delays: Vec<u64> =
        bed.left.iter().map(|left| left.at - u64::from(left.frame.number) * MS / 10).collect();
    assert!(delays.iter().all(|delay| (15 * MS..25 * MS).contains(delay)));
    assert!(*delays.iter().min().unwrap() < 16 * MS && *delays.iter().max().unwrap() > 24 * MS);
    assert!(!bed.order().is_sorted());
}

#[test]
fn a_normal_delay_has_its_mean_and_deviation() {
    let mut bed = Bed::seeded("netem limit 100000 delay 100ms 10ms distribution normal", None, 4);
    offer(&mut bed, 20_000, MS);
    bed.drain();
    let delays: Vec<f64> =
        bed.left.iter().map(|left| (left.at - u64::from(left.frame.number) * MS) as f64 / 1e6).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let deviation = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / delays.len() as f64).sqrt();
    assert!((mean - 100.0).abs() < 0.3 && (deviation - 10.0).abs() < 0.3, "{mean} {deviation}");
}

#[test]
fn correlated_losses_come_together() {
    let lost = |correlation: &str| {
        let mut bed = Bed::seeded(&format!("netem loss 40% {correlation}"), None, 5);
        offer(&mut bed, 20_000, 1000);
        bed.lost()
    };
    let after_a_loss =
        |lost: &[u32]| lost.windows(2).filter(|w| w[1] == w[0] + 1).count() as f64 / lost.len() as f64;
    let (alone, together) = (lost(""), lost("50%"));
    assert!((after_a_loss(&alone) - 0.4).abs() < 0.02, "{}", after_a_loss(&alone));
    assert!(after_a_loss(&together) > 0.46, "{}", after_a_loss(&together));
    // A mixture of two draws is rarely extreme: as in Linux, correlated loss is rarer than was asked for.
    assert!(together.len() < alone.len());
}

#[test]
fn correlation_of_delays_is_lost_in_a_remainder_as_in_linux() {
    // Linux takes the correlated number modulo the jitter's width, which leaves nothing of the correlation.
    let mut bed = Bed::seeded("netem delay 100ms 10ms 90%", None, 5);
    offer(&mut bed, 5000, 50 * MS);
    bed.drain();
    let delays: Vec<i64> =
        bed.left.iter().map(|left| left.at as i64 - i64::from(left.frame.number) * 50 * MS as i64).collect();
    let step = delays.windows(2).map(|w| (w[1] - w[0]).unsigned_abs()).sum::<u64>() / delays.len() as u64;
    // Two independent even draws from a width of 20 ms are a third of it apart.
    assert!((6 * MS..7 * MS + MS / 2).contains(&step), "{step}");
}

#[test]
fn random_loss_has_its_rate() {
    let mut bed = Bed::seeded("netem loss 3%", None, 1);
    offer(&mut bed, 50_000, 1000);
    assert!((1400..1600).contains(&bed.dropped.len()), "{}", bed.dropped.len());
    assert_eq!(bed.stats().drops, bed.dropped.len() as u64);
}

#[test]
fn with_ecn_what_would_be_lost_is_marked() {
    let mut bed = Bed::seeded("netem loss 10% ecn", None, 1);
    for number in 0..1000 {
        bed.offer(Frame { number, ecn: Ecn::Ect0, ..Frame::default() }, 100);
    }
    let marked = bed.left.iter().filter(|left| left.frame.ecn == Ecn::Ce).count();
    assert_eq!((bed.left.len(), bed.dropped.len()), (1000, 0));
    assert!((60..140).contains(&marked), "{marked}");
}

/// Share of packets lost, and the mean length of a run of losses.
fn bursts(options: &str) -> (f64, f64) {
    let mut bed = Bed::seeded(options, None, 7);
    offer(&mut bed, 100_000, 1000);
    let lost = bed.lost();
    let runs = 1 + lost.windows(2).filter(|w| w[1] != w[0] + 1).count();
    (lost.len() as f64 / 100_000.0, lost.len() as f64 / runs as f64)
}

#[test]
fn gemodel_loses_in_bursts() {
    // Bad for 1 / (1 + 20) of the time, 5 packets long.
    let (share, run) = bursts("netem loss gemodel 1% 20%");
    assert!((0.042..0.053).contains(&share) && (4.5..5.5).contains(&run), "{share} {run}");
    // With 1-h of a half, half of a bad time's packets.
    let (share, _) = bursts("netem loss gemodel 1% 20% 50%");
    assert!((0.020..0.028).contains(&share), "{share}");
}

#[test]
fn the_four_states_lose_in_bursts_and_alone() {
    let (share, run) = bursts("netem loss state 1% 20%");
    assert!((0.042..0.053).contains(&share) && (4.5..5.5).contains(&run), "{share} {run}");
    let (share, run) = bursts("netem loss state 0% 100% 0% 100% 2%");
    assert!((0.018..0.022).contains(&share) && run < 1.05, "{share} {run}");
}

#[test]
fn a_copy_goes_with_its_original_and_is_not_copied_again() {
    let mut bed = Bed::new("netem duplicate 100% delay 1ms", None);
    offer(&mut bed, 2, MS);
    bed.drain();
    assert_eq!(bed.order(), [0, 0, 1, 1]);
}

#[test]
fn corruption_flips_one_bit_of_the_packet() {
    let mut bed = Bed::seeded("netem corrupt 100%", None, 2);
    offer(&mut bed, 1000, 1000);
    let bits: Vec<u64> = bed.left.iter().map(|left| left.frame.flipped.unwrap()).collect();
    assert!(bits.iter().all(|bit| *bit < 8000));
    assert!(bits.iter().any(|bit| *bit < 800) && bits.iter().any(|bit| *bit > 7200));
}

#[test]
fn every_fifth_overtakes() {
    let mut bed = Bed::new("netem delay 10ms reorder 100% gap 5", None);
    offer(&mut bed, 5, MS);
    bed.drain();
    assert_eq!(bed.order(), [4, 0, 1, 2, 3]);
    assert_eq!((bed.left[0].at, bed.stats().requeues), (4 * MS, 1));
}

#[test]
fn a_rate_spaces_and_counts_the_delay_from_when_the_packet_came() {
    // 1000 bytes at 8 Mbit/s: 1 ms each, and the wait for those before is part of the delay.
    let mut bed = Bed::new("netem delay 2ms rate 8mbit", None);
    offer(&mut bed, 5, 0);
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at / MS).collect();
    assert_eq!(times, [3, 4, 5, 6, 7]);
}

#[test]
fn cells_cost_what_they_carry() {
    // 1000 + 8 bytes are 21 cells of 48 + 5 bytes: 1113 bytes.
    let mut bed = Bed::new("netem rate 8mbit 8 48 5", None);
    offer(&mut bed, 1, 0);
    bed.drain();
    assert_eq!(bed.left[0].at, 1_113_000);
}

#[test]
fn slots_let_packets_go_in_bunches() {
    let mut bed = Bed::new("netem slot 10ms 10ms packets 3", None);
    offer(&mut bed, 9, MS / 10);
    bed.drain();
    let times: Vec<u64> = bed.left.iter().map(|left| left.at / MS).collect();
    // The first slot begins at once; each of the others ten milliseconds after the last was full, or a packet came too late for it.
    assert_eq!(times[..5], [0, 10, 10, 10, 20]);
    let bunches = times.chunk_by(|a, b| a == b).map(<[u64]>::len).collect::<Vec<_>>();
    assert!(bunches.iter().all(|len| *len <= 3), "{times:?}");
}

#[test]
fn the_limit_counts_what_is_on_its_way() {
    let mut bed = Bed::new("netem limit 3 delay 1s", None);
    offer(&mut bed, 5, MS);
    assert_eq!((bed.lost(), bed.stats().qlen), (vec![3, 4], 3));
}

#[test]
fn a_discipline_behind_it_is_reached_after_the_delay() {
    let mut bed = Bed::new("netem delay 10ms", None);
    bed.tc("qdisc add parent 1:1 handle 2: tbf rate 8mbit burst 1000 limit 2000");
    offer(&mut bed, 5, 0);
    assert_eq!(bed.stats().qlen, 5);
    bed.advance(SECOND);
    let times: Vec<u64> = bed.left.iter().map(|left| left.at / MS).collect();
    // All five arrive at once; two find room.
    assert_eq!(times, [10, 11]);
    assert_eq!((bed.dropped.len(), bed.stats().qlen, bed.stats().drops), (3, 0, 3));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: &str| {
        let mut bed = Bed::new("pfifo", None);
        bed.device
            .tc(0, &format!("qdisc replace root netem {options}"), &mut Vec::new())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refused("reorder 5%"), "reordering not possible without specifying some delay");
    assert_eq!(refused("delay 1ms gap 5"), "gap specified without reorder probability");
    assert_eq!(
        refused("delay 1ms distribution normal"),
        "distribution specified but no latency and jitter values"
    );
    assert_eq!(refused("ecn"), "ecn requested without loss model");
    assert_eq!(refused("loss 1% loss 2%"), "duplicate loss argument");
    assert_eq!(refused("loss foo"), "Unknown loss parameter: foo");
    assert_eq!(refused("loss 101%"), "Illegal \"loss percent\"");
    assert_eq!(refused("delay x"), "Illegal \"latency\"");
    assert_eq!(refused("foo"), "What is \"foo\"?");
}
