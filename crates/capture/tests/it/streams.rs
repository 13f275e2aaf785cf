//! Sequence numbers of each direction.
use crate::written::{CLIENT, SERVER, connection, connections, down, endpoint, syn, syn_ack, up};
use capture::{Side, Table};
use core::time::Duration;
use wire::Flags;

#[test]
fn text_is_counted_once_and_retransmissions_apart() {
    let seen = connection(&[
        (0, syn()),
        (400, syn_ack(1)),
        (401, up(1, 1, 100)),
        (2401, up(1, 1, 100)),
        (2801, down(1, 101, 50)),
    ]);
    let up = seen.half(Side::Client);
    assert_eq!((up.text_bytes(), up.retransmitted_segments(), up.retransmitted_bytes()), (100, 1, 100));
    assert_eq!(seen.half(Side::Server).text_bytes(), 50);
    assert_eq!((seen.client(), seen.server()), (endpoint(CLIENT), endpoint(SERVER)));
}

/// The network caused a gap that is filled immediately. A gap that is filled later was lost before
/// the place of capture.
#[test]
fn out_of_order_is_told_from_lost_by_the_time() {
    let opening = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 0))];
    let reordered = [&opening[..], &[(500, down(101, 1, 100)), (505, down(1, 1, 100))]].concat();
    let lost = [&opening[..], &[(500, down(101, 1, 100)), (905, down(1, 1, 100))]].concat();
    let counts = |seen: &capture::Connection| {
        let server = seen.half(Side::Server);
        (server.text_bytes(), server.out_of_order(), server.retransmitted_segments())
    };
    assert_eq!(counts(&connection(&reordered)), (200, 1, 0));
    assert_eq!(counts(&connection(&lost)), (200, 0, 1));
}

/// A capture on all interfaces has a forwarded packet twice.
#[test]
fn a_packet_seen_twice_is_no_retransmission() {
    let seen = connection(&[
        (0, syn()),
        (400, syn_ack(1)),
        (401, up(1, 1, 100).ident(7)),
        (402, up(1, 1, 100).ident(7)),
        (3000, up(1, 1, 100).ident(8)),
    ]);
    assert_eq!((seen.copies(), seen.half(Side::Client).retransmitted_segments()), (1, 1));
}

/// A router passes packets on in batches, so others come between a packet and its copy. Fast
/// retransmissions of IPv6 have no identification either.
#[test]
fn a_batch_seen_twice_is_no_retransmission() {
    let batch = |from: u64, ident: u16| {
        (0..8).map(move |index: u16| {
            let draft =
                down(1 + 100 * u32::from(index), 1, 100).ident(if ident == 0 { 0 } else { ident + index });
            (from + u64::from(index), draft)
        })
    };
    let seen = |ident| {
        let opening = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 0))];
        let seen = connection(
            &opening.into_iter().chain(batch(800, ident)).chain(batch(808, ident)).collect::<Vec<_>>(),
        );
        (seen.copies(), seen.half(Side::Server).retransmitted_segments())
    };
    assert_eq!(seen(7), (8, 0));
    assert_eq!(seen(0), (0, 8));
}

/// A retransmission has the timestamp of its own time (RFC 7323 section 3.2). A packet with an
/// older one was sent earlier.
#[test]
fn text_with_an_older_timestamp_is_late_or_a_duplicate() {
    let seen = |drafts: &[(u64, _)]| {
        let opening = [(0, syn().stamped(1)), (400, syn_ack(1).stamped(1)), (401, up(1, 1, 0).stamped(41))];
        let seen = connection(&[&opening[..], drafts].concat());
        let server = seen.half(Side::Server);
        (server.text_bytes(), server.out_of_order(), server.duplicates(), server.retransmitted_segments())
    };
    let (first, second) = (down(1, 1, 100).stamped(80), down(101, 1, 100).stamped(81));
    let again = |tsval| down(1, 1, 100).stamped(tsval);
    assert_eq!(seen(&[(800, first.clone()), (810, second.clone()), (900, again(80))]), (200, 0, 1, 0));
    assert_eq!(seen(&[(800, first.clone()), (810, second.clone()), (900, again(90))]), (200, 0, 0, 1));
    assert_eq!(
        seen(&[(810, second.clone()), (1810, again(80))]),
        (200, 1, 0, 0),
        "far later than half a round trip"
    );
    assert_eq!(seen(&[(810, second), (1810, again(180))]), (200, 0, 0, 1));
}

#[test]
fn a_new_syn_between_the_same_ports_is_another_connection() {
    let first = [
        (0, syn()),
        (400, syn_ack(1)),
        (401, up(1, 1, 0).with(Flags::FIN)),
        (800, down(1, 2, 0).with(Flags::FIN)),
    ];
    let again: Vec<_> = first.iter().map(|(at, draft)| (at + 100_000, draft.clone())).collect();
    let all = connections(&[&first[..], &again[..]].concat());
    assert_eq!(all.iter().map(capture::Connection::number).collect::<Vec<_>>(), [1, 2]);
    let retried = connections(&[(0, syn()), (10_000, syn()), (10_400, syn_ack(1))]);
    assert_eq!(retried.len(), 1, "a retransmitted SYN belongs to its connection");
}

/// The round trip is the sum of both parts, at any place of capture.
#[test]
fn the_round_trip_has_two_parts() {
    let seen = connection(&[(0, syn()), (300, syn_ack(1)), (400, up(1, 1, 0))]);
    assert_eq!(seen.path(Side::Server), Some(Duration::from_millis(30)));
    assert_eq!(seen.path(Side::Client), Some(Duration::from_millis(10)));
    assert_eq!(seen.rtt(), Some(Duration::from_millis(40)));
    assert_eq!(seen.is_seen_from(Side::Client), Some(false));
}

#[test]
fn the_table_keeps_no_more_than_it_is_told() {
    let mut table = Table::holding(4);
    let mut over = 0;
    for port in 0..100_u16 {
        let packet = syn().bytes();
        let mut packet = packet;
        packet[20..22].copy_from_slice(&(1000 + port).to_be_bytes());
        let file = crate::written::pcap(&[(u64::from(port), packet)]);
        let mut file = capture::CaptureFile::open(&file[..]).unwrap();
        let frame = file.next_frame().unwrap();
        table.handle(&frame.tcp().unwrap(), &mut |_| over += 1);
    }
    assert_eq!(table.begun(), 100);
    assert_eq!(table.evicted(), over);
    assert!(over >= 96, "{over}");
    table.finish(&mut |_| over += 1);
    assert_eq!(over, 100, "each is returned once");
}

/// Several runs with one seed in a file: each starts at the same time with the same numbers.
#[test]
fn a_syn_from_before_the_last_packet_is_another_connection() {
    let run = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 100)), (801, down(1, 101, 50))];
    let all = connections(&[run.clone(), run].concat());
    let texts: Vec<u64> = all.iter().map(|seen| seen.half(Side::Client).text_bytes()).collect();
    assert_eq!((texts, all[0].half(Side::Client).retransmitted_bytes()), (vec![100, 100], 0));
}

/// Under load tcpdump has the acknowledgement but not the data.
#[test]
fn acknowledged_text_that_the_capture_does_not_have_is_counted() {
    let opening = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 0))];
    let unseen = |rest: &[(u64, crate::written::Draft)]| {
        let seen = connection(&[&opening[..], rest].concat());
        let server = seen.half(Side::Server);
        (server.text_bytes(), server.unseen_bytes(), server.retransmitted_segments(), server.out_of_order())
    };
    // A gap between segments, all of it acknowledged, and nothing after the gap.
    assert_eq!(unseen(&[(500, down(101, 1, 100)), (510, up(1, 201, 0))]), (100, 100, 0, 0));
    assert_eq!(unseen(&[(500, down(1, 1, 100)), (510, up(1, 301, 0))]), (100, 200, 0, 0));
    // Unacknowledged data may have been lost before the receiver.
    assert_eq!(unseen(&[(500, down(101, 1, 100)), (510, up(1, 1, 0))]), (100, 0, 0, 0));
    assert_eq!(unseen(&[(500, down(101, 1, 100)), (510, up(1, 51, 0))]), (100, 50, 0, 0));
    // Queues of a device are captured in any order: data may come after its acknowledgement.
    assert_eq!(unseen(&[(500, up(1, 101, 0)), (501, down(1, 1, 100))]), (100, 0, 0, 1));
    // A FIN has a number, but no data.
    assert_eq!(unseen(&[(500, down(1, 1, 100)), (510, up(1, 102, 0))]), (100, 0, 0, 0));
}

/// NICs and several queues: the acknowledgement is recorded first, whatever identifications and
/// timestamps say about the order.
#[test]
fn what_is_recorded_behind_its_acknowledgement_was_sent_once() {
    let opening =
        [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 0)), (490, down(1, 1, 100).ident(1).stamped(1))];
    let counts = |rest: &[(u64, crate::written::Draft)]| {
        let seen = connection(&[&opening[..], rest].concat());
        let server = seen.half(Side::Server);
        (server.retransmitted_segments(), server.out_of_order(), server.unseen_bytes())
    };
    let acked = (500, up(1, 301, 0));
    let behind = |at| (at, down(101, 1, 400).ident(2).stamped(2));
    assert_eq!(
        counts(&[acked.clone(), behind(520)]),
        (0, 1, 0),
        "and it continues after the acknowledgement"
    );
    assert_eq!(counts(&[acked.clone(), (520, down(101, 1, 200).ident(2).stamped(2))]), (0, 1, 0));
    assert_eq!(counts(&[acked, behind(3500)]), (1, 0, 0), "after a time-out it was retransmitted");
    let fin = |at| (at, down(101, 1, 0).with(Flags::FIN).ident(3).stamped(3));
    assert_eq!(counts(&[(500, up(1, 102, 0)), fin(501)]), (0, 1, 0));
    assert_eq!(counts(&[(500, up(1, 102, 0)), fin(501), fin(5000)]).0, 1, "the second one");
}
