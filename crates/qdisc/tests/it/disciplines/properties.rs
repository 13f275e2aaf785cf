//! What holds for every discipline and every traffic. Failing cases are printed with their seed.
use super::bed::{Bed, Frame, MS};
use proptest::prelude::*;
use qdisc::{Ecn, Qdisc, Skb};

/// Each with the most packets that it lets wait, if it says so.
const DISCIPLINES: &[(&str, Option<usize>)] = &[
    ("pfifo limit 7", Some(7)),
    ("bfifo limit 9000", None),
    ("pfifo_head_drop limit 7", Some(7)),
    ("pfifo_fast", None),
    ("prio", None),
    ("prio bands 5 priomap 0 1 2 3 4 0 1 2 3 4 0 1 2 3 4 0", None),
    ("tbf rate 3mbit burst 4000 limit 20000", None),
    ("tbf rate 3mbit burst 4000 limit 20000 peakrate 5mbit mtu 3000", None),
    ("codel limit 20", Some(20)),
    ("codel limit 20 target 1ms interval 10ms ecn", Some(20)),
    ("fq_codel limit 20 flows 4", Some(20)),
    ("fq_codel limit 200 target 1ms interval 5ms quantum 300", Some(200)),
    ("stab linklayer atm overhead 10 fq_codel limit 20", Some(20)),
    ("sfq limit 20", Some(20)),
    ("sfq limit 30 depth 4 flows 3 headdrop perturb 1 quantum 500", Some(30)),
    ("red limit 30000 min 3000 max 9000 avpkt 1000", None),
    ("red limit 30000 min 3000 max 9000 avpkt 1000 probability 0.5 ecn adaptive", None),
    ("pie limit 20 target 1ms tupdate 2ms ecn", Some(20)),
    ("fq flow_limit 5", None),
    ("fq maxrate 1mbit quantum 1000 initial_quantum 1000", None),
    ("cake", None),
    ("cake bandwidth 3mbit diffserv4 rtt 5ms ack-filter", None),
    ("cake bandwidth 3mbit besteffort memlimit 20kb ingress", None),
    ("cake unlimited diffserv8 memlimit 30kb dual-dsthost wash", None),
    ("stab overhead 10 cake bandwidth 5mbit precedence flowblind pppoe-vcmux rtt 1ms", None),
    ("netem delay 5ms 3ms loss 5% reorder 10% gap 3 limit 20", Some(20)),
    ("netem delay 5ms rate 3mbit loss gemodel 5% 20% slot 1ms 4ms packets 3", None),
];

/// Those whose packets of one priority or flow may pass each other.
fn reorders(qdisc: &str) -> bool {
    qdisc.starts_with("netem")
}

type Offer = (u64, usize, u32, u32, bool);

fn traffic() -> impl Strategy<Value = Vec<Offer>> {
    let gap = prop_oneof![3 => Just(0u64), 2 => 0..2 * MS, 1 => 0..200 * MS];
    prop::collection::vec((gap, 1usize..1514, 0u32..6, 0u32..3, any::<bool>()), 0..150)
}

fn play(qdisc: &str, seed: u64, wire: Option<u64>, offers: &[Offer]) -> (Bed, usize) {
    let mut bed = Bed::seeded(qdisc, wire, seed);
    let mut most = 0;
    for (number, (gap, len, flow, priority, ecn)) in offers.iter().enumerate() {
        let next = bed.now + gap;
        bed.advance(next);
        let frame = Frame {
            number: number as u32,
            flow: *flow,
            // Of one flow all have the same priority.
            priority: (flow + priority * 6) / 6 * 3 + flow % 2,
            ecn: if *ecn { Ecn::Ect0 } else { Ecn::NotEct },
            // So have they the same DSCP and the same hosts.
            dscp: [0, 8, 46, 34, 16, 1][*flow as usize],
            source: flow % 2,
            destination: flow % 3,
            ..Frame::default()
        };
        bed.offer(frame, *len);
        let stats = bed.stats();
        most = most.max(stats.qlen);
        let accounted = bed.left.len() + bed.dropped.len() + stats.qlen;
        assert_eq!(accounted, number + 1, "{qdisc}: {stats:?}");
    }
    bed.drain();
    (bed, most)
}

proptest! {
    #[test]
    fn every_packet_leaves_or_is_dropped(which in 0..DISCIPLINES.len(), seed: u64, wire in prop::option::of(100_000u64..50_000_000), offers in traffic()) {
        let (qdisc, limit) = DISCIPLINES[which];
        let (bed, most) = play(qdisc, seed, wire, &offers);
        let stats = bed.stats();
        prop_assert_eq!(bed.left.len() + bed.dropped.len(), offers.len());
        prop_assert_eq!((stats.packets as usize, stats.drops as usize), (bed.left.len(), bed.dropped.len()), "{}: {:?}", qdisc, stats);
        prop_assert_eq!((stats.qlen, stats.backlog), (0, 0));
        prop_assert!(limit.is_none_or(|limit| most <= limit), "{}: {} waited", qdisc, most);
    }

    #[test]
    fn a_flow_keeps_its_order(which in 0..DISCIPLINES.len(), seed: u64, offers in traffic()) {
        let (qdisc, _) = DISCIPLINES[which];
        prop_assume!(!reorders(qdisc));
        let (bed, _) = play(qdisc, seed, Some(2_000_000), &offers);
        for flow in 0..6 {
            for priority in 0..16 {
                let order: Vec<u32> = bed.left.iter().map(|left| &left.frame).filter(|f| f.flow == flow && f.priority == priority).map(|f| f.number).collect();
                prop_assert!(order.is_sorted(), "{}: {:?}", qdisc, order);
            }
        }
    }

    #[test]
    fn the_same_calls_give_the_same_packets(which in 0..DISCIPLINES.len(), seed: u64, offers in traffic()) {
        let (qdisc, _) = DISCIPLINES[which];
        let (a, _) = play(qdisc, seed, Some(2_000_000), &offers);
        let (b, _) = play(qdisc, seed, Some(2_000_000), &offers);
        prop_assert_eq!(a.left, b.left);
        prop_assert_eq!(a.dropped, b.dropped);
    }

    #[test]
    fn no_command_makes_it_panic_then_or_later(
        kind in 0..DISCIPLINES.len(),
        words in prop::collection::vec(prop::sample::select(WORDS), 0..14),
        lens in prop::collection::vec(0usize..100_000, 0..40),
    ) {
        let (qdisc, _) = DISCIPLINES[kind];
        let mut bed = Bed::new(qdisc, None);
        let mut dropped = Vec::new();
        let words = words.join(" ");
        for command in [words.clone(), format!("qdisc change root handle 1: {words}"), format!("qdisc add parent 1:1 {words}"), format!("qdisc replace root {words}")] {
            let _ = bed.device.tc(0, &command, &mut dropped);
            for (number, len) in lens.iter().enumerate() {
                let now = (number as u64) << (number % 40);
                let _ = bed.device.enqueue(now, Skb::new(Frame { flow: number as u32 % 3, ..Frame::default() }, *len), &mut dropped);
                let _ = bed.device.dequeue(now + 1, &mut dropped);
            }
            let _ = bed.device.tc(0, "-s -d qdisc show", &mut dropped);
            let _ = bed.device.tc(0, "-s -d class show", &mut dropped);
        }
    }
}

const WORDS: &[&str] = &[
    "tc",
    "qdisc",
    "class",
    "filter",
    "add",
    "change",
    "replace",
    "del",
    "show",
    "root",
    "parent",
    "handle",
    "1:",
    "1:1",
    "1:10",
    "2:",
    "x",
    "0",
    "1",
    "99999999999999999999",
    "-1",
    "5mbit",
    "15k",
    "50ms",
    "1%",
    "100%",
    "limit",
    "rate",
    "burst",
    "latency",
    "peakrate",
    "mtu",
    "pfifo",
    "bfifo",
    "pfifo_fast",
    "prio",
    "tbf",
    "htb",
    "codel",
    "fq_codel",
    "netem",
    "red",
    "sfq",
    "pie",
    "fq",
    "cake",
    "bandwidth",
    "diffserv8",
    "besteffort",
    "rtt",
    "memlimit",
    "wash",
    "ack-filter",
    "ingress",
    "mpu",
    "raw",
    "pppoe-vcmux",
    "satellite",
    "stab",
    "linklayer",
    "atm",
    "overhead",
    "target",
    "interval",
    "ecn",
    "flows",
    "quantum",
    "default",
    "classid",
    "ceil",
    "delay",
    "loss",
    "gemodel",
    "random",
    "state",
    "reorder",
    "gap",
    "slot",
    "duplicate",
    "corrupt",
    "distribution",
    "normal",
    "bands",
    "priomap",
    "min",
    "max",
    "avpkt",
    "probability",
];
