use super::*;
use crate::segment::Segment;
use crate::testing::*;
use core::net::{IpAddr, SocketAddr};
use wire::Flags;

const NOW: Instant = Instant::ZERO;

fn forward(middlebox: &mut dyn Middlebox, segment: &Segment) -> Vec<Segment> {
    handle(middlebox, Direction::Forward, segment)
}

fn handle(middlebox: &mut dyn Middlebox, direction: Direction, segment: &Segment) -> Vec<Segment> {
    let passed = middlebox.handle_packet(NOW, direction, segment.emit());
    passed.iter().map(|packet| Segment::parse(packet).expect("checksums are right")).collect()
}

#[test]
fn only_syns_with_data_are_dropped() {
    let mut firewall = DropSynData;
    let asking = from_client(Flags::SYN, 0, 0, 0).with_fast_open(None);
    assert!(forward(&mut firewall, &from_client(Flags::SYN, 0, 0, 1)).is_empty());
    assert_eq!(forward(&mut firewall, &asking), [asking]);
    // A SYN-ACK with data is not a SYN with data.
    let reply = from_server(Flags::SYN | Flags::ACK, 0, 28, 43);
    assert_eq!(handle(&mut firewall, Direction::Backward, &reply), [reply]);
}

/// A connection belongs to the share or does not, however often its SYN arrives.
#[test]
fn syns_with_data_of_a_share_of_connections_are_dropped() {
    let of = |percent: f64| DropSynDataOf::new(qdisc::Probability::percent(percent));
    let dropped = |percent: f64| {
        let mut firewall = of(percent);
        let is_dropped = |port: u16| {
            let mut syn = from_client(Flags::SYN, 0, 0, 1);
            syn.tcp.src_port = port;
            let twice = [(); 2].map(|()| forward(&mut firewall, &syn).is_empty());
            assert_eq!(twice[0], twice[1]);
            twice[0]
        };
        (10_000..11_000).map(is_dropped).filter(|is_dropped| *is_dropped).count()
    };
    assert_eq!((dropped(0.0), dropped(100.0)), (0, 1000));
    assert!((250..350).contains(&dropped(30.0)), "{}", dropped(30.0));
    let plain = from_client(Flags::SYN, 0, 0, 0);
    assert_eq!(forward(&mut of(100.0), &plain), [plain]);
}

#[test]
fn the_option_is_stripped_and_the_data_stays() {
    let syn = from_client(Flags::SYN, 0, 0, 27);
    assert_eq!(forward(&mut StripFastOpen, &syn.clone().with_fast_open(Some(a_cookie()))), [syn]);
}

#[test]
fn the_nth_syn_ack_of_each_connection_is_dropped() {
    let mut second = DropNthSynAck::new(2);
    let syn_ack = from_server(Flags::SYN | Flags::ACK, 0, 1, 0);
    let mut other = syn_ack.clone();
    other.tcp.seq += 77;
    let mut passed = |segment: &Segment| handle(&mut second, Direction::Backward, segment).len();
    assert_eq!(
        [passed(&syn_ack), passed(&other), passed(&syn_ack), passed(&syn_ack), passed(&other)],
        [1, 1, 0, 1, 0]
    );
}

#[test]
fn a_switched_box_waits_for_its_switch() {
    let mut firewall = Switched::off(DropSynData);
    let syn = from_client(Flags::SYN, 0, 0, 27);
    assert_eq!(forward(&mut firewall, &syn).len(), 1);
    firewall.turn_on();
    assert_eq!(forward(&mut firewall, &syn).len(), 0);
    assert_eq!(firewall.name(), DropSynData.name());
}

#[test]
fn syns_are_doubled() {
    let (syn, data) = (from_client(Flags::SYN, 0, 0, 27), from_client(Flags::ACK, 1, 1, 27));
    assert_eq!(forward(&mut Duplicate, &syn).len(), 2);
    assert_eq!(forward(&mut Duplicate, &data).len(), 1);
}

#[test]
fn the_nat_alternates_by_connection_and_translates_back() {
    let public: [IpAddr; 2] = ["203.0.113.1".parse().unwrap(), "203.0.113.2".parse().unwrap()];
    let mut nat = AlternatingNat::new(public);
    let first = from_client(Flags::SYN, 0, 0, 27);
    let mut second = first.clone();
    second.tcp.src_port += 1;
    let sources: Vec<IpAddr> = [&first, &second, &first]
        .into_iter()
        .flat_map(|segment| forward(&mut nat, segment))
        .map(|segment| segment.src().ip())
        .collect();
    assert_eq!(sources, [public[0], public[1], public[0]]);

    let answer = from_server(Flags::SYN | Flags::ACK, 0, 1, 0);
    let mut outside = answer.clone();
    outside.set_dst(SocketAddr::new(public[0], client_addr().port()));
    assert_eq!(handle(&mut nat, Direction::Backward, &outside), [answer]);
    outside.set_dst(SocketAddr::new(public[1], client_addr().port()));
    assert!(handle(&mut nat, Direction::Backward, &outside).is_empty());
}

#[test]
fn what_is_not_tcp_passes() {
    let junk = [Bytes::from_static(b"not a packet")];
    let boxes: [&mut dyn Middlebox; 4] =
        [&mut DropSynData, &mut StripFastOpen, &mut DropNthSynAck::new(1), &mut Duplicate];
    for middlebox in boxes {
        assert_eq!(middlebox.handle_packet(NOW, Direction::Forward, junk[0].clone()).as_slice(), junk);
    }
}

#[test]
fn a_firewall_lets_in_what_began_inside_and_forgets_the_silent() {
    let mut firewall = Firewall::new(core::time::Duration::from_secs(60));
    let (syn, data) = (from_client(Flags::SYN, 0, 0, 0), from_client(Flags::ACK, 1, 1, 5));
    let reply = from_server(Flags::SYN | Flags::ACK, 0, 1, 0);
    let mut at = |seconds: u64, direction, segment: &Segment| {
        let now = Instant::from_nanos(seconds * 1_000_000_000);
        firewall.handle_packet(now, direction, segment.emit()).len()
    };
    assert_eq!(at(0, Direction::Backward, &reply), 0, "nobody inside has begun");
    assert_eq!((at(0, Direction::Forward, &syn), at(1, Direction::Backward, &reply)), (1, 1));
    assert_eq!((at(61, Direction::Forward, &data), at(122, Direction::Forward, &data)), (1, 0));
    assert_eq!(at(122, Direction::Backward, &reply), 0);
    assert_eq!(at(123, Direction::Forward, &syn), 1, "a new connection");
}

#[test]
fn a_thinner_keeps_what_tells_something() {
    let mut thinner = AckThinner::new(4);
    for n in 0..8 {
        handle(&mut thinner, Direction::Backward, &from_server(Flags::ACK, 1 + 100 * n, 1, 100));
    }
    let mut passes = |ack| forward(&mut thinner, &from_client(Flags::ACK, 1, ack, 0)).len();
    let passed: Vec<usize> = [101, 201, 301, 401, 401, 501, 801].map(&mut passes).to_vec();
    // Four segments, the same number again, and the acknowledgment of everything.
    assert_eq!(passed, [0, 0, 0, 1, 1, 0, 1]);
}
