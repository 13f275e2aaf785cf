//! Handshakes of every kind, and attempts that fail. Times in tenths of a millisecond.
use crate::written::{
    Draft, connection, connections, connections_of, down, events, opened_by_server, pcap, syn, syn_ack, up,
};
use capture::{Connection, Event, FastOpen, Opening, Side, Unreachable};
use core::time::Duration;
use wire::Flags;

fn fin(draft: Draft) -> Draft {
    draft.with(Flags::FIN)
}

fn unseen(seen: &Connection) -> u64 {
    Side::BOTH.map(|side| seen.half(side).unseen_bytes()).iter().sum()
}

#[test]
fn syns_without_an_answer_are_counted_with_their_time() {
    let drafts: Vec<_> = [0, 1, 3, 7, 15, 31, 63].map(|second| (second * 10_000, syn())).to_vec();
    let seen = connection(&drafts);
    assert_eq!(seen.opening(), Opening::NoAnswer { syns: 7, over: Duration::from_secs(63) });
    assert_eq!(seen.opening().to_string(), "no answer to 7 SYNs in 63.00 s");
    assert_eq!(seen.fast_open(), FastOpen::Unanswered);
    assert_eq!(seen.half(Side::Client).retransmitted_segments(), 6);
    let backwards: Vec<_> = drafts.into_iter().rev().collect();
    assert_eq!(connection(&backwards).handshake().syns(), 7, "a file that is not ordered by time");
}

#[test]
fn every_other_way_to_fail_has_a_name() {
    let opening = |drafts: &[(u64, Draft)]| connection(drafts).opening();
    let reset = down(0, 1, 0).with(Flags::RST);
    assert_eq!(opening(&[(0, syn()), (400, reset.clone())]), Opening::Refused { syns: 1 });
    // Windows tries three times.
    let thrice: Vec<_> = (0..3).flat_map(|n| [(n * 5000, syn()), (n * 5000 + 400, reset.clone())]).collect();
    assert_eq!(opening(&thrice), Opening::Refused { syns: 3 });
    let alone = [(0, syn()), (400, syn_ack(1)), (10_400, syn_ack(1)), (30_400, syn_ack(1))];
    assert_eq!(opening(&alone), Opening::NotAcknowledged { syn_acks: 3 });
    let scan = [(0, syn()), (400, syn_ack(1)), (401, up(1, 0, 0).alone(Flags::RST))];
    assert_eq!(opening(&scan), Opening::Aborted);
    let open = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 0))];
    let at_once = |draft: Draft| opening(&[&open[..], &[(500, draft)]].concat());
    assert_eq!(at_once(down(1, 1, 0).with(Flags::RST)), Opening::ResetAtOnce(Side::Server));
    assert_eq!(at_once(up(1, 1, 0).with(Flags::RST)), Opening::ResetAtOnce(Side::Client));
    assert_eq!(at_once(up(1, 1, 10)), Opening::Open);
    let later = [(401, up(1, 1, 10)), (800, down(1, 11, 0).with(Flags::RST))];
    assert_eq!(
        opening(&[&open[..2], &later].concat()),
        Opening::Open,
        "a later reset is not a failed attempt"
    );
}

#[test]
fn one_direction_is_no_failure() {
    let client = connection(&[(0, syn()), (400, up(1, 1, 0)), (401, up(1, 1, 100)), (900, up(101, 501, 0))]);
    assert_eq!(client.opening(), Opening::OneWay(Side::Client));
    assert_eq!((client.captured_only(), unseen(&client)), (Some(Side::Client), 0));
    let server = connection(&[(0, syn_ack(1)), (500, down(1, 101, 500)), (501, down(501, 101, 500))]);
    assert_eq!(server.opening(), Opening::OneWay(Side::Server));
    let middle = connection(&[(0, up(1, 1, 100)), (500, up(101, 501, 100))]);
    assert_eq!((middle.opening(), middle.captured_only()), (Opening::NotSeen, Some(Side::Client)));
}

/// RFC 5961 section 4: a server that still has an older connection answers a SYN with an ACK of
/// that connection. The client resets it and tries again.
#[test]
fn a_challenge_ack_is_an_older_connections() {
    let drafts = [
        (0, syn()),
        (200, down(2_999_995_000, 899_999_000, 0)),
        (201, up(899_999_000, 0, 0).alone(Flags::RST)),
        (10_000, syn()),
        (10_200, syn_ack(1)),
        (10_201, up(1, 1, 100)),
        (10_401, down(1, 101, 500)),
    ];
    let seen = connection(&drafts);
    assert_eq!((seen.older_packets(), seen.packets(), unseen(&seen)), (2, 7, 0));
    assert_eq!((seen.opening(), seen.reset_by()), (Opening::Open, None));
    assert_eq!((seen.half(Side::Client).text_bytes(), seen.half(Side::Server).text_bytes()), (100, 500));
    let all = events(&drafts);
    assert!(all[1].contains(Event::OlderConnection) && all[2].contains(Event::OlderConnection), "{all:?}");
    let gone = connection(&[(0, syn()), (10_000, syn()), (20_000, up(0, 1, 0).alone(Flags::RST))]);
    assert_eq!((gone.opening().name(), gone.older_packets()), ("no-answer", 0), "the client gives up");
    let never = connection(&drafts[..4]);
    assert_eq!(never.opening(), Opening::OlderConnection { syns: 2 });
}

/// An answer like that in a capture with the older connection: each packet belongs to its own
/// connection.
#[test]
fn an_answer_out_of_time_wait_belongs_to_the_older_connection() {
    let again = |draft: Draft| draft.shifted(1_000_000, 2_000_000);
    let drafts = [
        (0, syn()),
        (200, syn_ack(1)),
        (201, up(1, 1, 100)),
        (401, fin(down(1, 101, 50))),
        (402, fin(up(101, 52, 0))),
        (602, down(52, 102, 0)),
        (5000, again(syn())),
        (5200, down(52, 102, 0)),
        (5201, up(102, 0, 0).alone(Flags::RST)),
        (15_000, again(syn())),
        (15_200, again(syn_ack(1))),
        (15_201, again(up(1, 1, 30))),
        (15_300, down(1, 101, 50)),
    ];
    let all = connections(&drafts);
    assert_eq!(all.len(), 2);
    assert_eq!((all[1].half(Side::Client).text_bytes(), unseen(&all[1])), (30, 0));
    assert_eq!((all[1].older_packets(), all[1].opening()), (2, Opening::Open));
    assert_eq!(all[0].half(Side::Server).text_bytes(), 50);
    assert!(events(&drafts)[6].contains(Event::PortReused));
}

/// Two servers behind one address, or one that makes a new SYN cookie each time: the answer that
/// the client acknowledges counts.
#[test]
fn of_two_answers_the_one_that_the_client_takes_counts() {
    let other = |draft: Draft| draft.shifted(0, 700_000_000);
    let both = [(0, syn()), (200, syn_ack(1)), (210, other(syn_ack(1)).offering(1400, 3))];
    let first =
        [(211, up(1, 1, 100)), (400, other(down(1, 1, 0)).with(Flags::RST)), (450, down(1, 101, 500))];
    let seen = connection(&[&both[..], &first].concat());
    assert_eq!((seen.other_answers(), unseen(&seen), seen.half(Side::Server).text_bytes()), (2, 0, 500));
    assert_eq!(seen.half(Side::Server).offer().and_then(|offer| offer.mss), Some(1460));
    let third = both.iter().cloned().chain([
        (220, syn_ack(1).shifted(0, 1_400_000_000).offering(1300, 3)),
        (221, up(1, 1, 100).shifted(0, 1_400_000_000)),
    ]);
    let seen = connection(&third.collect::<Vec<_>>());
    assert_eq!(seen.half(Side::Server).offer().and_then(|offer| offer.mss), Some(1300));
    let second = [(211, other(up(1, 1, 100))), (450, other(down(1, 101, 500)))];
    let seen = connection(&[&both[..], &second].concat());
    assert_eq!((seen.other_answers(), unseen(&seen), seen.half(Side::Server).text_bytes()), (1, 0, 500));
    assert_eq!(seen.half(Side::Server).offer().and_then(|offer| offer.mss), Some(1400));
}

/// A load balancer sends each copy of a SYN to another server. Both continue to answer, even after
/// the connection has ended.
#[test]
fn the_other_server_may_answer_to_the_end() {
    let other = |draft: Draft| draft.shifted(0, 700_000_000);
    let seen = connection(&[
        (0, syn()),
        (200, syn_ack(1)),
        (300, syn()),
        (500, other(syn_ack(1))),
        (600, other(up(1, 1, 100))),
        (700, syn_ack(1)),
        (800, other(fin(down(1, 101, 500)))),
        (801, other(fin(up(101, 502, 0)))),
        (1000, other(down(502, 102, 0))),
        (2000, syn_ack(1)),
    ]);
    assert_eq!((seen.other_answers(), seen.handshake().syn_acks()), (3, 1));
    assert_eq!((unseen(&seen), seen.half(Side::Server).text_bytes()), (0, 500));
}

/// An acknowledgement of data that the server cannot have sent does not complete the handshake.
#[test]
fn a_wrong_acknowledgement_opens_nothing() {
    let open = [(0, syn()), (400, syn_ack(1))];
    for ack in [0, 500_000, 900_000_000] {
        let wrong = [(401, up(1, ack, 0)), (10_400, syn_ack(1)), (30_400, syn_ack(1))];
        let seen = connection(&[&open[..], &wrong].concat());
        assert_eq!(
            (seen.opening(), seen.older_packets()),
            (Opening::NotAcknowledged { syn_acks: 3 }, 1),
            "{ack}"
        );
        assert_eq!(unseen(&seen), 0, "{ack}");
    }
    // The capture may lack the first data of either side.
    let lacks = [(401, up(1, 14_601, 0)), (402, up(20_001, 14_601, 100))];
    let seen = connection(&[&open[..], &lacks].concat());
    assert_eq!((seen.opening(), seen.older_packets()), (Opening::Open, 0));
}

/// Two connections between the same ports at the same time, for example after a restart of a host.
/// The SYN of one was not captured.
#[test]
fn a_connection_without_its_syn_between_the_same_ports_is_another() {
    let other = |draft: Draft| draft.shifted(2_000_000_000, 3_000_000_000);
    let all = connections(&[
        (0, syn()),
        (10, syn_ack(1)),
        (20, up(1, 1, 20)),
        (30, other(down(1, 1, 17))),
        (40, other(up(1, 18, 25))),
        (50, down(1, 21, 40)),
        (60, other(down(18, 26, 17))),
        (70, up(21, 41, 10)),
        (80, other(up(26, 35, 0))),
        (90, down(41, 31, 0)),
    ]);
    let texts: Vec<_> = all.iter().map(|seen| Side::BOTH.map(|side| seen.half(side).text_bytes())).collect();
    assert_eq!(texts, [[30, 40], [25, 17]]);
    assert_eq!(all.iter().map(unseen).collect::<Vec<_>>(), [0, 0]);
}

/// One packet does not move the numbers. Both sides together do, if the capture has a gap.
#[test]
fn numbers_beyond_the_window_need_both_sides() {
    let open = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 100)), (801, down(1, 101, 500))];
    let forged = [(900, down(860_000_000, 101, 100)), (1000, down(501, 101, 500)), (1001, up(101, 1001, 0))];
    let seen = connection(&[&open[..], &forged].concat());
    assert_eq!((seen.older_packets(), unseen(&seen)), (1, 0));
    assert_eq!(seen.half(Side::Server).text_bytes(), 1000);
    let forged_ack = [(900, up(101, 860_578_523, 0)), (1000, down(501, 101, 500)), (1001, up(101, 1001, 0))];
    let seen = connection(&[&open[..], &forged_ack].concat());
    assert_eq!((seen.older_packets(), unseen(&seen)), (1, 0));
    let gap = [
        (90_000, down(50_000_001, 101, 100)),
        (90_400, up(101, 50_000_101, 0)),
        (90_500, down(50_000_101, 101, 100)),
    ];
    let seen = connection(&[&open[..], &gap].concat());
    assert_eq!((seen.older_packets(), unseen(&seen)), (0, 49_999_500));
}

/// RFC 5961 section 3: a reset beyond the window resets nothing.
#[test]
fn a_forged_reset_resets_nothing() {
    let open = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 100)), (801, down(1, 101, 500))];
    let forged = [(900, down(900_000_000, 0, 0).alone(Flags::RST)), (1000, down(501, 101, 500))];
    let seen = connection(&[&open[..], &forged].concat());
    assert_eq!(
        (seen.reset_by(), seen.older_packets(), seen.half(Side::Server).text_bytes()),
        (None, 1, 1000)
    );
}

#[test]
fn packets_recorded_in_any_order_are_one_connection() {
    let whole = [
        (0, syn()),
        (1, syn_ack(1)),
        (401, up(1, 1, 0)),
        (500, up(1, 1, 100)),
        (900, fin(down(1, 101, 500))),
        (901, fin(up(101, 502, 0))),
        (1301, down(502, 102, 0)),
    ];
    for (one, other) in [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3), (3, 4)] {
        let mut drafts: Vec<_> = whole.iter().map(|(_, draft)| draft.clone()).collect();
        drafts.swap(one, other);
        let drafts: Vec<_> = drafts.into_iter().enumerate().map(|(n, draft)| (n as u64 * 4, draft)).collect();
        let [seen] = &connections(&drafts)[..] else { panic!("{one} and {other}: more than one") };
        let counts =
            Side::BOTH.map(|side| (seen.half(side).text_bytes(), seen.half(side).retransmitted_segments()));
        assert_eq!((counts, unseen(seen)), ([(100, 0), (500, 0)], 0), "{one} and {other}");
        assert_eq!(seen.opening(), Opening::Open, "{one} and {other}");
    }
}

/// RFC 9293 section 3.5, figure 8.
#[test]
fn two_syns_that_cross_are_one_connection() {
    let answers = [
        [(300, syn_ack(1)), (301, up(0, 1, 0).with(Flags::SYN))],
        [(300, down(1, 1, 0)), (301, up(1, 1, 0))],
    ];
    for answers in answers {
        let open = [(0, syn()), (100, opened_by_server())];
        let text = [(400, up(1, 1, 100)), (500, down(1, 101, 50))];
        let all = connections(&[&open[..], &answers, &text].concat());
        let [seen] = &all[..] else { panic!("{} connections", all.len()) };
        assert!(seen.handshake().is_simultaneous());
        assert_eq!((seen.opening(), unseen(seen)), (Opening::Open, 0));
        assert_eq!((seen.half(Side::Client).text_bytes(), seen.half(Side::Server).text_bytes()), (100, 50));
    }
}

/// An attempt has one initial number (RFC 9293). Another number is another attempt.
#[test]
fn a_syn_with_another_number_is_another_attempt() {
    let again = |draft: Draft| draft.shifted(77_000, 0);
    let all = connections(&[
        (0, syn()),
        (10_000, again(syn())),
        (10_400, again(syn_ack(1))),
        (10_401, again(up(1, 1, 100))),
        (10_500, syn_ack(1)),
    ]);
    let openings: Vec<_> = all.iter().map(Connection::opening).collect();
    assert_eq!(openings, [Opening::NotAcknowledged { syn_acks: 1 }, Opening::Open]);
}

#[test]
fn ports_are_used_again_after_a_reset_and_with_the_same_number() {
    let reset = [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 100)), (500, up(101, 1, 0).with(Flags::RST))];
    let again: Vec<_> = reset.iter().map(|(at, draft)| (at + 100_000, draft.clone())).collect();
    assert_eq!(connections(&[&reset[..], &again].concat()).len(), 2);
    // The SYN is not captured.
    let unseen =
        reset[1..].iter().map(|(at, draft)| (at + 100_000, draft.clone().shifted(5_000_000, 9_000_000)));
    assert_eq!(connections(&[reset.to_vec(), unseen.collect()].concat()).len(), 2);
}

/// A SYN that the network delivers again much later.
#[test]
fn a_late_copy_of_the_syn_is_the_same_connection() {
    let drafts =
        [(0, syn()), (400, syn_ack(1)), (401, up(1, 1, 100)), (801, down(1, 101, 500)), (900, syn())];
    let seen = connection(&drafts);
    assert_eq!((seen.handshake().syns(), seen.half(Side::Client).retransmitted_segments()), (2, 1));
}

/// RFC 792: the error quotes the IP header and eight bytes of the segment.
#[test]
fn an_icmp_error_says_why_nobody_answers() {
    let icmp = |kind: u8, code: u8, quoted: &[u8]| {
        let len = 28 + quoted.len() as u8;
        let ip = [0x45, 0, 0, len, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 254, 10, 0, 0, 1];
        [&ip[..], &[kind, code, 0, 0, 0, 0, 0, 0], quoted].concat()
    };
    let opening = |errors: Vec<Vec<u8>>| {
        let mut packets = vec![(0, syn().bytes())];
        packets.extend(errors.into_iter().map(|error| (1000, error)));
        packets.push((1_000_000, syn().bytes()));
        let [seen] = <[Connection; 1]>::try_from(connections_of(&pcap(&packets))).unwrap();
        seen.opening()
    };
    let quoted = syn().bytes()[..28].to_vec();
    let from = core::net::Ipv4Addr::new(10, 0, 0, 254).into();
    let refused = opening(vec![icmp(3, 1, &quoted)]);
    assert_eq!(refused, Opening::Unreachable { reason: Unreachable::Host, from });
    assert_eq!(refused.to_string(), "host unreachable: ICMP error from 10.0.0.254");
    assert_eq!(
        opening(vec![icmp(3, 13, &quoted)]),
        Opening::Unreachable { reason: Unreachable::Prohibited, from }
    );
    let unanswered = Opening::NoAnswer { syns: 2, over: Duration::from_secs(1) };
    assert_eq!(opening(vec![icmp(3, 4, &quoted)]), unanswered, "a smaller packet may pass");
    assert_eq!(opening(vec![icmp(3, 1, &quoted[..27])]), unanswered, "cut");
    let mut other = quoted.clone();
    other[24] ^= 1;
    assert_eq!(opening(vec![icmp(3, 1, &other)]), unanswered, "it quotes another segment");
}
