//! Which packets go first, by their DSCP.
use super::{bytes, row};
use crate::disciplines::bed::{Bed, Frame, MS, SECOND};
use qdisc::Ecn;

const BULK: u8 = 8; // CS1
const VIDEO: u8 = 34; // AF41
const VOICE: u8 = 46; // EF

fn marked(number: u32, dscp: u8) -> Frame {
    Frame { number, dscp, flow: dscp.into(), ..Frame::default() }
}

/// Four tins are full for two seconds; what each got, in ten-thousandths: bulk, best effort, video, voice.
fn shares(words: &str, wire: Option<u64>) -> [usize; 4] {
    let mut bed = Bed::new(&format!("cake {words} diffserv4 interplanetary memlimit 1gb"), wire);
    for number in 0..2000 {
        for dscp in [0, BULK, VIDEO, VOICE] {
            bed.offer(marked(number, dscp), 1000);
        }
    }
    bed.advance(2 * SECOND);
    let all = bytes(&bed, |_| true);
    [BULK, 0, VIDEO, VOICE].map(|dscp| bytes(&bed, |frame| frame.dscp == dscp) * 10_000 / all)
}

/// To within two thousandths.
fn are_near(got: [usize; 4], expected: [usize; 4]) -> bool {
    got.iter().zip(expected).all(|(got, expected)| got.abs_diff(expected) <= 20)
}

#[test]
fn full_tins_get_their_thresholds_and_best_effort_what_is_left() {
    // 1/16, 1/2 and 1/4 of the rate.
    let got = shares("bandwidth 8mbit", None);
    assert!(are_near(got, [625, 1875, 5000, 2500]), "{got:?}");
}

#[test]
fn without_a_shaper_weights_decide() {
    // 64, 1024, 512 and 256 of 1856.
    let got = shares("unlimited", Some(8_000_000));
    assert!(are_near(got, [345, 5517, 2759, 1379]), "{got:?}");
}

#[test]
fn voice_below_its_threshold_goes_next() {
    let mut bed = Bed::new("cake bandwidth 8mbit", None);
    for number in 0..20 {
        bed.offer(marked(number, 0), 1000);
    }
    bed.advance(3 * MS + MS / 2);
    bed.offer(marked(100, VOICE), 200);
    bed.advance(4 * MS);
    assert_eq!(bed.order(), [0, 1, 2, 3, 100]);
}

#[test]
fn voice_above_its_threshold_does_not() {
    // A quarter of 8 Mbit/s: a packet of 1000 bytes every 4 ms goes first, no more. At 0 ms there was none yet.
    let mut bed = Bed::new("cake bandwidth 8mbit interplanetary", None);
    for number in 0..40 {
        bed.offer(marked(number, 0), 1000);
    }
    for number in 100..140 {
        bed.offer(marked(number, VOICE), 1000);
    }
    bed.advance(23 * MS);
    let voice: Vec<u64> = bed.left.iter().filter(|l| l.frame.dscp == VOICE).map(|l| l.at / MS).collect();
    assert_eq!(voice, [1, 4, 8, 12, 16, 20]);
}

#[test]
fn what_voice_sent_while_nobody_else_did_is_not_held_against_it() {
    let mut bed = Bed::new("cake bandwidth 8mbit interplanetary", None);
    for number in 100..200 {
        bed.offer(marked(number, VOICE), 1000);
    }
    // For 40 ms it has four times its share.
    bed.advance(40 * MS + MS / 2);
    for number in 0..40 {
        bed.offer(marked(number, 0), 1000);
    }
    bed.advance(50 * MS);
    let voice = |l: &&crate::disciplines::bed::Left| l.frame.dscp == VOICE && l.at > 40 * MS;
    let times: Vec<u64> = bed.left.iter().filter(voice).map(|l| l.at / MS).collect();
    assert_eq!(times, [44, 48], "as soon as one packet's share has passed");
}

#[test]
fn besteffort_sees_no_dscp() {
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort flowblind", None);
    for (number, dscp) in (0..).zip([BULK, 0, VIDEO, VOICE, BULK]) {
        bed.offer(marked(number, dscp), 1000);
    }
    bed.drain();
    assert_eq!(bed.order(), [0, 1, 2, 3, 4]);
}

/// Packets of each tin, as they are shown.
fn tins_of(words: &str, frames: &[Frame]) -> Vec<String> {
    let mut bed = Bed::new(&format!("cake {words}"), None);
    for frame in frames {
        bed.offer(frame.clone(), 100);
    }
    row(&mut bed, "pkts")
}

#[test]
fn bulk_is_shown_first_and_voice_last() {
    let frames: Vec<Frame> =
        [0, 0, 0, BULK, VIDEO, VIDEO, VOICE, VOICE, VOICE, VOICE].map(|dscp| marked(0, dscp)).into();
    assert_eq!(tins_of("diffserv3", &frames), ["1", "5", "4"]);
    assert_eq!(tins_of("diffserv4", &frames), ["1", "3", "2", "4"]);
    assert_eq!(tins_of("diffserv8", &frames), ["0", "1", "3", "2", "0", "0", "4", "0"]);
    assert_eq!(tins_of("precedence", &frames), ["3", "1", "0", "0", "2", "4", "0", "0"]);
}

#[test]
fn a_priority_of_its_handle_names_the_tin() {
    let named = |class: u32| Frame { priority: 0x1_0000 | class, dscp: VOICE, ..Frame::default() };
    assert_eq!(tins_of("diffserv3", &[named(1), named(2), named(2), named(3), named(4)]), ["1", "2", "2"]);
    let other = Frame { priority: 0x2_0001, dscp: VOICE, ..Frame::default() };
    assert_eq!(tins_of("diffserv3", &[other]), ["0", "0", "1"]);
}

#[test]
fn a_mark_names_the_tin_where_that_is_asked_for() {
    let of = |mark| Frame { mark, dscp: BULK, ..Frame::default() };
    // Of 0x31 the mask leaves 3, of 0x12 1, of 0x0f nothing, of 0xf0 15, which is no tin.
    let frames = [of(0x31), of(0x12), of(0x12), of(0x0f), of(0xf0)];
    assert_eq!(tins_of("diffserv4 fwmark 0xf0", &frames), ["4", "0", "1", "0"]);
    assert_eq!(tins_of("diffserv4", &frames), ["5", "0", "0", "0"]);
}

#[test]
fn wash_clears_the_dscp_once_the_tin_is_chosen_and_leaves_ecn() {
    for (words, left) in [("wash", 0), ("nowash", VOICE)] {
        let mut bed = Bed::new(&format!("cake bandwidth 8mbit {words}"), None);
        bed.offer(Frame { ecn: Ecn::Ect1, ..marked(1, VOICE) }, 100);
        assert_eq!((bed.left[0].frame.dscp, bed.left[0].frame.ecn), (left, Ecn::Ect1));
        assert_eq!(row(&mut bed, "pkts"), ["0", "0", "1"]);
    }
}

#[test]
fn what_waits_in_a_tin_that_is_taken_away_is_dropped() {
    let mut bed = Bed::new("cake bandwidth 8mbit diffserv4", None);
    for (number, dscp) in [(0, 0), (1, 0), (2, VOICE), (3, VIDEO), (4, BULK)] {
        bed.offer(marked(number, dscp), 1000);
    }
    bed.tc("qdisc change root handle 1: cake diffserv3");
    assert_eq!((bed.lost(), bed.stats().qlen, bed.stats().backlog), (vec![2], 3, 3000));
    bed.tc("qdisc change root handle 1: cake besteffort");
    assert_eq!((bed.lost(), bed.stats().qlen), (vec![2, 3, 4], 1));
    bed.drain();
    assert_eq!(bed.order(), [0, 1]);
}
