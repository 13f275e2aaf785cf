//! Events of single packets: retransmission, probe, out of order, or none. Times in tenths of a
//! millisecond.
use crate::written::{Draft, connection, down, events, syn, syn_ack, up};
use capture::{Event, Side};
use wire::Flags;

fn opening() -> Vec<(u64, Draft)> {
    vec![(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 0))]
}

fn after_opening(drafts: &[(u64, Draft)]) -> Vec<(u64, Draft)> {
    [opening(), drafts.to_vec()].concat()
}

/// Windows and old BSD send one byte below SND.NXT, Linux none (RFC 9293 section 3.8.4).
#[test]
fn a_keep_alive_is_no_retransmission_with_and_without_a_byte() {
    for len in [0, 1] {
        let mut drafts =
            after_opening(&[(500, up(1, 1, 100)), (900, down(1, 101, 500)), (901, up(101, 501, 0))]);
        for n in 1..=5 {
            drafts.push((n * 1_800_000, up(100, 501, len)));
            drafts.push((n * 1_800_000 + 400, down(501, 101, 0)));
        }
        let seen = connection(&drafts);
        let client = seen.half(Side::Client);
        assert_eq!((client.retransmitted_segments(), client.retransmitted_bytes()), (0, 0), "{len}");
        assert_eq!((client.probes(), client.text_bytes()), (5, 100), "{len}");
        assert_eq!(client.sender().longest(), None, "{len}: no sender waited");
        assert_eq!(seen.half(Side::Server).sender().longest(), None, "{len}");
        assert_eq!(seen.half(Side::Server).duplicate_acks(), 0, "{len}");
        let all = events(&drafts);
        assert!(all[6].contains(Event::KeepAlive) && all[7].contains(Event::KeepAliveAck), "{all:?}");
    }
}

/// An unacknowledged byte of a keystroke has the same numbers.
#[test]
fn a_byte_that_is_not_acknowledged_is_retransmitted() {
    let seen = connection(&after_opening(&[(500, up(1, 1, 1)), (2500, up(1, 1, 1)), (2900, down(1, 2, 0))]));
    let client = seen.half(Side::Client);
    assert_eq!((client.retransmitted_segments(), client.probes(), client.text_bytes()), (1, 0, 1));
}

/// BSD and Windows probe a closed window with a byte of new data, Linux with none below SND.UNA
/// (RFC 9293 section 3.8.6.1).
#[test]
fn a_probe_of_a_closed_window_is_no_retransmission() {
    let closed = [(500, down(1, 1, 100)), (501, up(1, 101, 0).window(0))];
    for probe in [down(101, 1, 1), down(100, 1, 0)] {
        let mut drafts = after_opening(&closed);
        for n in 1..=3 {
            drafts.push((500 + n * 5_000, probe.clone()));
            drafts.push((501 + n * 5_000, up(1, 101, 0).window(0)));
        }
        drafts.push((20_000, up(1, 101, 0).window(5000)));
        drafts.push((20_400, down(101, 1, 100)));
        let seen = connection(&drafts);
        let server = seen.half(Side::Server);
        assert_eq!((server.retransmitted_segments(), server.text_bytes(), server.probes()), (0, 200, 3));
        assert_eq!(server.unseen_bytes(), 0);
        let all = events(&drafts);
        assert!(
            all[5].contains(Event::ZeroWindowProbe) && all[6].contains(Event::ZeroWindowProbeAck),
            "{all:?}"
        );
        assert!(all[4].contains(Event::ZeroWindow) && all[11].contains(Event::WindowUpdate), "{all:?}");
        assert!(!all[12].is_retransmission(), "{all:?}");
    }
}

/// A receiver with room for the byte of a probe acknowledges it.
#[test]
fn the_byte_of_a_probe_counts_once_it_is_accepted() {
    let seen = connection(&after_opening(&[
        (500, down(1, 1, 100)),
        (501, up(1, 101, 0).window(0)),
        (5500, down(101, 1, 1)),
        (5501, up(1, 102, 0).window(0)),
        (10_500, down(102, 1, 1)),
        (10_501, up(1, 103, 0).window(5000)),
        (10_901, down(103, 1, 50)),
    ]));
    let server = seen.half(Side::Server);
    assert_eq!((server.text_bytes(), server.retransmitted_segments(), server.unseen_bytes()), (152, 0, 0));
}

/// A loss probe (RFC 8985 section 7) is the last segment again, or new data.
#[test]
fn a_loss_probe_is_a_retransmission_unless_it_is_new() {
    let again = [(500, up(1, 1, 100)), (1400, up(1, 1, 100)), (1800, down(1, 101, 0))];
    assert_eq!(connection(&after_opening(&again)).half(Side::Client).retransmitted_segments(), 1);
    let new = [(500, up(1, 1, 100)), (1400, up(101, 1, 100)), (1800, down(1, 201, 0))];
    assert_eq!(connection(&after_opening(&new)).half(Side::Client).retransmitted_segments(), 0);
}

#[test]
fn a_reset_or_an_old_acknowledgement_below_is_no_retransmission() {
    let seen = connection(&after_opening(&[
        (500, up(1, 1, 100)),
        (900, down(1, 101, 0)),
        (901, up(1, 1, 0)),
        (902, up(50, 1, 0).with(Flags::RST)),
    ]));
    assert_eq!(seen.half(Side::Client).retransmitted_segments(), 0);
    assert_eq!(seen.reset_by(), Some(Side::Client));
}

#[test]
fn a_fin_again_is_a_retransmission_and_so_is_a_syn() {
    let fin = up(1, 1, 0).with(Flags::FIN);
    let drafts =
        [(0, syn()), (10_000, syn()), (10_400, syn_ack(1)), (10_401, up(1, 1, 0)), (10_500, fin.clone())];
    let drafts = [&drafts[..], &[(12_500, fin)]].concat();
    let seen = connection(&drafts);
    assert_eq!(seen.half(Side::Client).retransmitted_segments(), 2);
    let marked = events(&drafts).iter().filter(|events| events.is_retransmission()).count();
    assert_eq!(marked, 2, "the ladder has as many lines as were counted");
}

/// A packet that the network delivers twice keeps its identification. A sender would use another.
#[test]
fn a_packet_with_the_same_identification_is_a_duplicate() {
    let first = [(500, up(1, 1, 100).ident(7)), (520, up(101, 1, 100).ident(8))];
    let counts = |drafts: &[(u64, Draft)]| {
        let seen = connection(&after_opening(&[&first[..], drafts].concat()));
        let client = seen.half(Side::Client);
        (client.retransmitted_segments(), client.duplicates(), seen.copies())
    };
    assert_eq!(counts(&[(530, up(101, 1, 100).ident(8))]), (0, 0, 1), "recorded twice");
    assert_eq!(counts(&[(900, up(101, 1, 100).ident(8))]), (0, 1, 0), "delivered twice");
    assert_eq!(counts(&[(900, up(101, 1, 100).ident(9))]), (1, 0, 0));
}

/// The receiver acknowledges a segment before the capture has it, by more than a short round trip.
#[test]
fn what_is_recorded_behind_its_acknowledgement_is_late() {
    let late = [(500, up(1, 101, 0)), (1500, down(1, 1, 100)), (1600, up(1, 102, 0))];
    let seen = connection(&after_opening(&[&late[..], &[(1610, down(101, 1, 0).with(Flags::FIN))]].concat()));
    let server = seen.half(Side::Server);
    assert_eq!((server.out_of_order(), server.retransmitted_segments(), server.text_bytes()), (2, 0, 100));
}

/// One interface shows merged segments, another their parts, in either order.
#[test]
fn the_parts_of_a_merged_segment_are_copies() {
    let parts = [(501, down(1, 1, 1448).ident(100)), (502, down(1449, 1, 445).ident(101))];
    let whole = [(500, down(1, 1, 1893).ident(100))];
    let last = [(510, down(1894, 1, 10).ident(102))];
    for drafts in
        [[&whole[..], &parts, &last].concat(), [&parts[..], &[(503, whole[0].1.clone())], &last].concat()]
    {
        let seen = connection(&after_opening(&drafts));
        let server = seen.half(Side::Server);
        assert_eq!((server.retransmitted_segments(), server.text_bytes()), (0, 1903), "{drafts:?}");
    }
    let again = [(501, down(1449, 1, 445).ident(107))];
    let seen = connection(&after_opening(&[&whole[..], &again, &last].concat()));
    assert_eq!(seen.half(Side::Server).retransmitted_segments(), 1, "retransmitted later");
}

/// An identification that is the same in all packets means nothing.
#[test]
fn a_constant_identification_is_no_evidence() {
    let drafts =
        [(500, up(1, 1, 100).ident(1)), (505, up(101, 1, 100).ident(1)), (510, up(1, 1, 100).ident(1))];
    let seen = connection(&after_opening(&drafts));
    assert_eq!((seen.copies(), seen.half(Side::Client).retransmitted_segments()), (0, 1));
}

/// Identifications that count show the order of sending if there is no timestamp.
#[test]
fn the_identification_tells_late_from_retransmitted() {
    let seen = |late: u16| {
        let mut drafts = opening();
        for n in 0..12_u16 {
            drafts.push((1000 + u64::from(n), down(1 + 100 * u32::from(n), 1, 100).ident(100 + n)));
        }
        // The thirteenth comes after the fourteenth.
        drafts.push((1013, down(1301, 1, 100).ident(113)));
        drafts.push((3000, down(1201, 1, 100).ident(late)));
        let seen = connection(&drafts);
        let server = seen.half(Side::Server);
        (server.out_of_order(), server.retransmitted_segments())
    };
    assert_eq!(seen(112), (1, 0));
    assert_eq!(seen(114), (0, 1));
}

#[test]
fn a_segment_that_overlaps_in_part_repeats_only_that() {
    let seen =
        connection(&after_opening(&[(500, up(1, 1, 100)), (2500, up(51, 1, 100)), (2900, down(1, 151, 0))]));
    let client = seen.half(Side::Client);
    assert_eq!(
        (client.text_bytes(), client.retransmitted_segments(), client.retransmitted_bytes()),
        (150, 1, 50)
    );
    // A part of the overlapping segment had been missing.
    let gap = [(500, up(101, 1, 100)), (2500, up(1, 1, 300)), (2900, down(1, 301, 0))];
    let seen = connection(&after_opening(&gap));
    assert_eq!((seen.half(Side::Client).text_bytes(), seen.half(Side::Client).unseen_bytes()), (300, 0));
}

/// Two gaps, filled by one merged segment.
#[test]
fn a_segment_may_fill_several_gaps() {
    let seen = connection(&after_opening(&[
        (500, down(101, 1, 100)),
        (501, down(301, 1, 100)),
        (502, down(1, 1, 300)),
        (900, up(1, 401, 0)),
    ]));
    let server = seen.half(Side::Server);
    assert_eq!((server.text_bytes(), server.unseen_bytes()), (400, 0));
    assert_eq!(
        (server.out_of_order(), server.retransmitted_segments()),
        (1, 0),
        "too soon for a retransmission"
    );
}

#[test]
fn text_from_before_the_capture_is_retransmitted_or_late() {
    let counts = |drafts: &[(u64, Draft)]| {
        let seen = connection(drafts);
        let server = seen.half(Side::Server);
        (server.retransmitted_segments(), server.out_of_order(), server.text_bytes(), server.unseen_bytes())
    };
    // The receiver had already acknowledged it.
    let acked = [(0, up(1, 1001, 10)), (10, down(1001, 11, 100)), (2000, down(501, 11, 100))];
    assert_eq!(counts(&acked), (1, 0, 200, 0));
    assert!(events(&acked)[2].contains(Event::SpuriousRetransmission));
    // Not acknowledged: long after, and immediately.
    assert_eq!(counts(&[(0, down(1001, 1, 100)), (3000, down(901, 1, 100))]), (1, 0, 200, 0));
    assert_eq!(counts(&[(0, down(1001, 1, 100)), (5, down(901, 1, 100))]), (0, 1, 200, 0));
}

#[test]
fn a_capture_that_begins_with_an_idle_connection_has_probes_and_no_text() {
    let drafts = (0..4).flat_map(|n| {
        [
            (n * 600_000, down(701, 301, 0)),
            (n * 600_000 + 10, up(300, 701, 1)),
            (n * 600_000 + 20, down(701, 301, 0)),
        ]
    });
    let seen = connection(&drafts.collect::<Vec<_>>());
    let client = seen.half(Side::Client);
    assert_eq!((client.retransmitted_segments(), client.text_bytes(), client.probes()), (0, 0, 4));
}

/// Nobody answers, or only one direction was captured.
#[test]
fn a_capture_may_begin_with_a_keep_alive_with_a_byte() {
    let seen = connection(&[(0, up(700, 1, 1)), (20_000, up(700, 1, 1)), (40_000, up(700, 1, 1))]);
    assert_eq!((seen.half(Side::Client).retransmitted_segments(), seen.half(Side::Client).probes()), (0, 2));
}

#[test]
fn a_retransmission_is_named_as_wireshark_names_it() {
    let mut drafts = after_opening(&[(500, up(1, 1, 100))]);
    for n in 1..5_u32 {
        drafts.push((500 + u64::from(n), up(1 + 100 * n, 1, 100)));
        drafts.push((900 + u64::from(n), down(1, 1, 0)));
    }
    drafts.sort_by_key(|(at, _)| *at);
    drafts.push((910, up(1, 1, 100)));
    drafts.push((1310, down(1, 501, 0)));
    drafts.push((4000, up(401, 1, 100)));
    let all = events(&drafts);
    let names: Vec<String> =
        all[8..].iter().map(|events| events.iter().map(|event| event.to_string()).collect()).collect();
    assert_eq!(
        names,
        [
            "duplicate ACK",
            "duplicate ACK",
            "duplicate ACK",
            "duplicate ACK",
            "fast retransmission",
            "",
            "spurious retransmission"
        ]
    );
    assert_eq!(all[11].duplicate_acks(), 4);
}

#[test]
fn data_up_to_the_edge_of_the_scaled_window_fills_it() {
    let drafts = [
        (0, syn().offering(1460, 2)),
        (400, syn_ack(1).offering(1460, 7)),
        (401, up(1, 1, 0).window(250)),
        (500, down(1, 1, 500)),
        (501, down(501, 1, 500)),
        (1000, up(1, 1001, 0).window(250)),
    ];
    let all = events(&drafts);
    assert!(!all[3].contains(Event::WindowFull) && all[4].contains(Event::WindowFull), "{all:?}");
    let seen = connection(&drafts);
    assert_eq!((seen.window_scale(Side::Client), seen.window_scale(Side::Server)), (Some(2), Some(7)));
    assert_eq!(connection(&drafts[2..]).window_scale(Side::Client), None, "no SYN was captured");
    assert_eq!(
        connection(&drafts[1..]).window_scale(Side::Server),
        Some(7),
        "a SYN-ACK has it only if the SYN had"
    );
    assert_eq!(connection(&drafts[1..]).window_scale(Side::Client), None);
}

#[test]
fn a_gap_is_said_at_both_ends() {
    let all = events(&after_opening(&[(500, down(101, 1, 100)), (510, up(1, 201, 0)), (520, up(1, 301, 0))]));
    assert!(all[3].contains(Event::PreviousNotCaptured), "{all:?}");
    assert!(!all[4].contains(Event::AckedUnseen) && all[5].contains(Event::AckedUnseen), "{all:?}");
}
