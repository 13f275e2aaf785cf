//! What tc reads and shows.
use crate::disciplines::bed::{Bed, Frame, MS};
use qdisc::Device;

/// The options as they are shown.
fn shown(words: &str) -> String {
    let mut bed = Bed::new(&format!("cake {words}"), None);
    let text = bed.tc("qdisc show");
    text.trim().trim_start_matches("qdisc cake 1: root refcnt 2 ").to_owned()
}

/// What tc says to these words.
fn refused(words: &str) -> String {
    let mut device: Device<Frame> = Device::new("eth0");
    let result = device.tc(0, &format!("qdisc add root cake {words}"), &mut Vec::new());
    result.expect_err(words).to_string()
}

#[test]
fn the_defaults_are_shown_as_tc_does() {
    assert_eq!(
        shown(""),
        "bandwidth unlimited diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw overhead 0"
    );
}

#[test]
fn every_word_is_shown_again() {
    for words in [
        "bandwidth 20Mbit besteffort flowblind nonat wash ingress ack-filter no-split-gso rtt 30ms noatm overhead 38 mpu 84",
        "bandwidth 16Mbit diffserv4 dual-srchost nonat nowash ack-filter-aggressive split-gso rtt 10ms atm overhead 32 memlimit 32Mb",
        "bandwidth unlimited precedence hosts nonat nowash no-ack-filter split-gso rtt 100us ptm overhead -4 fwmark 0xf0",
    ] {
        // What is shown as "bandwidth unlimited" is said by one word.
        assert_eq!(shown(&words.replace("bandwidth unlimited", "unlimited")), words);
    }
}

/// What tc 6.1 sends to the kernel for these words.
#[test]
fn names_of_links_stand_for_overheads_that_add_up() {
    let framing = |words: &str| {
        let text = shown(words);
        text.split_once("rtt 100ms ").map(|(_, framing)| framing.to_owned())
    };
    for (words, expected) in [
        ("ethernet", "noatm overhead 38 mpu 84"),
        ("ethernet ether-vlan ether-vlan", "noatm overhead 46 mpu 84"),
        ("docsis", "noatm overhead 18 mpu 64"),
        ("conservative", "atm overhead 48"),
        ("pppoe-vcmux", "atm overhead 32"),
        ("pppoe-llcsnap", "atm overhead 40"),
        ("pppoa-vcmux", "atm overhead 10"),
        ("pppoa-llc", "atm overhead 14"),
        ("bridged-vcmux", "atm overhead 24"),
        ("bridged-llcsnap", "atm overhead 32"),
        ("ipoa-vcmux", "atm overhead 8"),
        ("ipoa-llcsnap", "atm overhead 16"),
        ("pppoe-ptm ether-vlan", "ptm overhead 34"),
        ("bridged-ptm via-ethernet", "ptm overhead 22"),
        ("pppoe-ptm overhead 10 noatm", "noatm overhead 10"),
        ("raw overhead 10", "raw overhead 10"),
        ("overhead 10 raw", "raw overhead 0"),
        ("raw atm", "raw atm overhead 0"),
        ("atm raw", "raw overhead 0"),
        ("atm docsis", "noatm overhead 18 mpu 64"),
        ("atm ethernet", "atm overhead 38 mpu 84"),
        ("conservative ether-vlan", "atm overhead 52"),
        ("ether-vlan conservative", "atm overhead 48"),
        ("ethernet raw", "raw overhead 0 mpu 84"),
    ] {
        assert_eq!(framing(words).as_deref(), Some(expected), "{words}");
    }
}

#[test]
fn names_of_distances_stand_for_round_trips() {
    let mut bed = Bed::new("cake bandwidth 1gbit besteffort", None);
    for (name, rtt, target) in [
        ("metro", "10ms", "500us"),
        ("regional", "30ms", "1.5ms"),
        ("internet", "100ms", "5ms"),
        ("oceanic", "300ms", "15ms"),
        ("satellite", "1s", "50ms"),
        ("interplanetary", "1e+03s", "50s"),
        ("rtt 40ms", "40ms", "2ms"),
    ] {
        bed.tc(&format!("qdisc change root handle 1: cake {name}"));
        let text = bed.tc("-s qdisc show");
        assert!(text.contains(&format!("rtt {rtt} ")), "{name}: {text}");
        assert_eq!(super::row(&mut bed, "target"), [target], "{name}");
        assert_eq!(super::row(&mut bed, "interval"), [rtt], "{name}");
    }
}

#[test]
fn at_low_rates_the_target_is_one_and_a_half_frames_and_the_interval_at_least_two_targets() {
    // A frame of 1514 bytes takes 1.514 ms.
    let mut bed = Bed::new("cake bandwidth 8mbit besteffort datacentre", None);
    assert_eq!(super::row(&mut bed, "target"), ["2.27ms"]);
    assert_eq!(super::row(&mut bed, "interval"), ["4.54ms"]);
    bed.tc("qdisc change root handle 1: cake metro");
    assert_eq!(super::row(&mut bed, "target"), ["2.27ms"]);
    assert_eq!(super::row(&mut bed, "interval"), ["11.8ms"], "10 ms, and what the target was raised by");
}

#[test]
fn what_is_not_changed_stays() {
    let mut bed = Bed::new("cake bandwidth 20mbit ethernet wash", None);
    bed.tc("qdisc change root handle 1: cake besteffort rtt 50ms");
    let expected = "qdisc cake 1: root refcnt 2 bandwidth 20Mbit besteffort triple-isolate nonat wash no-ack-filter split-gso rtt 50ms noatm overhead 38 mpu 84 \n";
    assert_eq!(bed.tc("qdisc show"), expected);
    bed.tc("qdisc change root handle 1: cake bandwidth 0 mpu 0");
    assert_eq!(bed.tc("qdisc show"), expected, "tc sends no zeros");
}

#[test]
fn wrong_words_are_refused_as_tc_does() {
    for (words, answer) in [
        ("bogus", "What is \"bogus\"?"),
        ("target 5ms", "What is \"target\"?"),
        ("bandwidth", "Command line is not complete. Try option \"help\""),
        ("bandwidth fast", "Illegal \"bandwidth\""),
        ("rtt 5m", "Illegal \"rtt\""),
        ("overhead 257", "Illegal \"overhead\", valid range is -64 to 256"),
        ("mpu -1", "Illegal \"mpu\", valid range is 0 to 256"),
        ("memlimit 1x", "Illegal value for \"memlimit\": \"1x\""),
        ("fwmark x", "Illegal value for \"fwmark\": \"x\""),
    ] {
        assert_eq!(refused(words), answer, "{words}");
    }
}

#[test]
fn words_that_could_do_nothing_are_refused() {
    assert!(refused("nat").contains("\"nat\" has nothing to look up"));
    assert!(refused("bandwidth 1mbit autorate-ingress").contains("\"autorate-ingress\""));
}

#[test]
fn statistics_are_shown_as_tc_does() {
    let mut bed = Bed::new("cake bandwidth 20mbit ethernet", None);
    for number in 0..3 {
        let frame = Frame { number, offset: 14, ..Frame::default() };
        bed.offer(frame, [1514, 60, 1014][number as usize]);
    }
    bed.advance(10 * MS);
    bed.offer(Frame { number: 4, dscp: 46, offset: 14, ..Frame::default() }, 214);
    let expected = "qdisc cake 1: root refcnt 2 bandwidth 20Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms noatm overhead 38 mpu 84 
 Sent 2802 bytes 4 pkt (dropped 0, overlimits 4 requeues 0) 
 backlog 0b 0p requeues 0
 memory used: 2610b of 4Mb
 capacity estimate: 20Mbit
 min/max network layer size:           46 /    1500
 min/max overhead-adjusted size:       84 /    1538
 average network hdr offset:            0

                   Bulk  Best Effort        Voice
  thresh       1250Kbit       20Mbit        5Mbit
  target         14.5ms          5ms          5ms
  interval        110ms        100ms        100ms
  pk_delay          0us        277us          0us
  av_delay          0us          4us          0us
  sp_delay          0us          4us          0us
  backlog            0b           0b           0b
  pkts                0            3            1
  bytes               0         2588          214
  way_inds            0            0            0
  way_miss            0            1            1
  way_cols            0            0            0
  drops               0            0            0
  marks               0            0            0
  ack_drop            0            0            0
  sp_flows            0            0            1
  bk_flows            0            1            0
  un_flows            0            0            0
  max_len             0         1514          214
  quantum           300          610          300

";
    assert_eq!(bed.tc("-s qdisc show"), expected);
}
