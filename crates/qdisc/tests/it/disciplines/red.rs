//! red (Floyd and Jacobson 1993, Linux's `sch_red.c`).
use super::bed::{Bed, Frame, MS, SECOND};
use qdisc::Ecn;

const RED: &str = "red limit 60kb min 15000 max 45000 avpkt 1000 burst 20 bandwidth 10mbit";

/// Offers `gap` apart to a wire of 10 Mbit/s (0.8 ms a frame of 1000 bytes).
fn offer(bed: &mut Bed, count: u32, gap: u64, ecn: Ecn) {
    for number in 0..count {
        bed.offer(Frame { number, ecn, ..Frame::default() }, 1000);
        let next = bed.now + gap;
        bed.advance(next);
    }
}

#[test]
fn it_is_shown_as_tc_does() {
    let mut bed = Bed::new(&format!("{RED} probability 0.02 ecn adaptive"), None);
    let expected = "qdisc red 1: root refcnt 2 limit 60Kb min 15000b max 45000b ecn adaptive ";
    assert_eq!(bed.tc("qdisc show"), format!("{expected}\n"));
    let details = bed.tc("-s -d qdisc show");
    assert!(details.starts_with(&format!("{expected}ewma 3 probability 0.02 Scell_log ")), "{details}");
    assert!(details.contains("  marked 0 early 0 pdrop 0 other 0"), "{details}");
}

#[test]
fn a_short_burst_passes_and_lasting_overload_is_dropped_early() {
    let mut bed = Bed::new(RED, Some(10_000_000));
    offer(&mut bed, 20, 0, Ecn::NotEct);
    assert_eq!(bed.dropped.len(), 0, "the average follows slowly");
    bed.drain();
    // 1.6 times the rate of the wire for 4 s.
    offer(&mut bed, 8000, MS / 2, Ecn::NotEct);
    let early = bed.dropped.len() as u64;
    assert!((2000..3500).contains(&early), "{early}");
    assert!(bed.tc("-s qdisc show").contains(&format!("early {early} pdrop 0")));
    assert!(bed.stats().backlog < 55_000, "{:?}", bed.stats());
}

#[test]
fn between_the_thresholds_marks_are_spread() {
    // 3 % too much: the average settles between the thresholds, where each mark follows the last at random.
    let mut bed = Bed::new(&format!("{RED} ecn probability 0.1"), Some(10_000_000));
    offer(&mut bed, 2000, 776_000, Ecn::Ect0);
    bed.drain();
    let marked: Vec<u32> =
        bed.left.iter().filter(|left| left.frame.ecn == Ecn::Ce).map(|left| left.frame.number).collect();
    assert!(bed.dropped.is_empty() && marked.len() > 10, "{marked:?}");
    assert!(bed.tc("-s qdisc show").contains(&format!("marked {} early 0", marked.len())));
    assert_eq!(bed.stats().overlimits, marked.len() as u64);
}

#[test]
fn after_an_idle_time_the_average_has_decayed() {
    let mut bed = Bed::new(RED, Some(10_000_000));
    offer(&mut bed, 3000, MS / 2, Ecn::NotEct);
    bed.drain();
    let before = bed.dropped.len();
    let later = bed.now + 10 * SECOND;
    bed.advance(later);
    offer(&mut bed, 12, 0, Ecn::NotEct);
    assert_eq!(bed.dropped.len(), before);
}

#[test]
fn adaptive_raises_the_probability_until_the_average_is_in_the_middle() {
    let probability = |bed: &mut Bed| {
        let text = bed.tc("-d qdisc show");
        let (_, rest) = text.split_once("probability ").unwrap();
        rest.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let mut bed = Bed::new(&format!("{RED} adaptive"), Some(10_000_000));
    assert_eq!(probability(&mut bed), 0.02);
    offer(&mut bed, 20_000, 720_000, Ecn::NotEct); // 11 % too much
    let raised = probability(&mut bed);
    assert!(raised > 0.04, "{raised}");
    let average = bed.stats().backlog;
    assert!((15_000..45_000).contains(&average), "{average}");
    bed.drain();
    let later = bed.now + 600 * SECOND;
    bed.advance(later);
    bed.send(0, 0, 1000);
    assert!(probability(&mut bed) < 0.011, "{}", probability(&mut bed));
}

#[test]
fn tc_computes_what_is_not_given() {
    let mut bed = Bed::new("red limit 60000 avpkt 1000", None);
    assert_eq!(bed.tc("qdisc show"), "qdisc red 1: root refcnt 2 limit 60000b min 5000b max 15000b \n");
    let refused = bed.device.tc(0, "qdisc replace root red limit 60000", &mut Vec::new());
    assert_eq!(refused.unwrap_err().to_string(), "RED: Required parameter (limit, avpkt) is missing");
}
