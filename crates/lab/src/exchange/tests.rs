use super::*;
use crate::testing::*;

fn only(capture: &Capture) -> Exchange {
    let mut found = exchanges(capture, CLIENT);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn the_four_packet_exchange() {
    let exchange = only(&four_packets());
    assert_eq!(exchange.packets(), 4);
    assert_eq!(exchange.time_to_first_byte(), Some(Duration::from_millis(40)));
    assert_eq!(exchange.verdict, Verdict::Accepted);
    assert_eq!((exchange.syn_data_len, exchange.syn_data_acked, exchange.synack_data_len), (27, 27, 43));
    assert_eq!((exchange.cookie, exchange.cookie_granted), (Some(a_cookie()), None));
    assert_eq!(exchange.bytes_resent, 0);
    assert_eq!(exchange.ended_at.since(exchange.started_at), Duration::from_millis(80));
}

#[test]
fn a_refused_syn_sends_its_data_again() {
    let (ack, psh_ack) = (Flags::ACK, Flags::PSH | Flags::ACK);
    let tape = |answer: Segment| {
        Tape::default()
            .packet(0, from_client(Flags::SYN, 0, 0, 27).with_fast_open(Some(a_cookie())))
            .packet(20, answer)
            .packet(40, from_client(psh_ack, 1, 1, 27))
            .packet(60, from_server(ack, 1, 28, 0))
            .packet(60, from_server(psh_ack, 1, 28, 43))
            .capture()
    };
    let syn_ack = from_server(Flags::SYN | Flags::ACK, 0, 1, 0);
    let other = Cookie::new(&[7; 8]);
    for (answer, segment) in [
        (Answer::NoOption, syn_ack.clone()),
        (Answer::SameCookie, syn_ack.clone().with_fast_open(Some(a_cookie()))),
        (Answer::NewCookie, syn_ack.clone().with_fast_open(other)),
    ] {
        let exchange = only(&tape(segment));
        assert_eq!(exchange.verdict, Verdict::NotAcknowledged { answer });
        assert_eq!(exchange.bytes_resent, 27);
        assert_eq!(exchange.time_to_first_byte(), Some(Duration::from_millis(80)));
    }
}

#[test]
fn a_lost_syn_is_seen_as_lost() {
    let capture = Tape::default()
        .lost(0, "firewall", from_client(Flags::SYN, 0, 0, 27).with_fast_open(Some(a_cookie())))
        .packet(100, from_client(Flags::SYN, 0, 0, 0))
        .packet(120, from_server(Flags::SYN | Flags::ACK, 0, 1, 0))
        .packet(140, from_client(Flags::PSH | Flags::ACK, 1, 1, 27))
        .packet(160, from_server(Flags::PSH | Flags::ACK, 1, 28, 43))
        .capture();
    let exchange = only(&capture);
    assert_eq!((exchange.verdict, exchange.syns, exchange.packets()), (Verdict::Lost, 2, 5));
    assert_eq!(exchange.time_to_first_byte(), Some(Duration::from_millis(180)));
}

#[test]
fn a_lost_syn_ack_of_an_accepted_syn_is_not_a_refusal() {
    let capture = Tape::default()
        .packet(0, from_client(Flags::SYN, 0, 0, 27).with_fast_open(Some(a_cookie())))
        .lost(20, "line", from_server(Flags::SYN | Flags::ACK, 0, 28, 0))
        // Arrives before the client knows the server's sequence numbers, so it is discarded.
        .packet(20, from_server(Flags::PSH | Flags::ACK, 1, 28, 43))
        .packet(1000, from_client(Flags::SYN, 0, 0, 0))
        .packet(1020, from_server(Flags::SYN | Flags::ACK, 0, 28, 0))
        .packet(1060, from_server(Flags::PSH | Flags::ACK, 1, 28, 43))
        .capture();
    let exchange = only(&capture);
    assert_eq!((exchange.verdict, exchange.syns), (Verdict::Accepted, 2));
    assert_eq!(exchange.time_to_first_byte(), Some(Duration::from_millis(1080)));
}

#[test]
fn cookie_requests_and_plain_handshakes() {
    let syn_ack = from_server(Flags::SYN | Flags::ACK, 0, 1, 0);
    let open = |syn: Segment, syn_ack: Segment| {
        only(&Tape::default().packet(0, syn).packet(20, syn_ack).capture()).verdict
    };
    let syn = from_client(Flags::SYN, 0, 0, 0);
    let asking = syn.clone().with_fast_open(None);
    assert_eq!(open(syn, syn_ack.clone()), Verdict::Plain);
    assert_eq!(open(asking.clone(), syn_ack.clone()), Verdict::CookieRequested { granted: false });
    assert_eq!(
        open(asking, syn_ack.with_fast_open(Some(a_cookie()))),
        Verdict::CookieRequested { granted: true }
    );
}

#[test]
fn a_reused_port_is_another_connection() {
    let mut second = from_client(Flags::SYN, 0, 0, 0);
    second.tcp.seq += 5_000_000;
    let capture = Tape::default().packet(0, from_client(Flags::SYN, 0, 0, 0)).packet(100, second).capture();
    assert_eq!(exchanges(&capture, CLIENT).len(), 2);
}

#[test]
fn a_nat_hides_nothing_from_the_client() {
    let public: core::net::SocketAddr = "203.0.113.1:40000".parse().unwrap();
    let syn = from_client(Flags::SYN, 0, 0, 0);
    let mut outside = syn.clone();
    outside.set_src(public);
    let syn_ack = from_server(Flags::SYN | Flags::ACK, 0, 1, 0);
    let mut answer = syn_ack.clone();
    answer.set_dst(public);
    let exchange = only(&Tape::default().changed(0, syn, outside).changed(20, answer, syn_ack).capture());
    assert_eq!(exchange.packets(), 2);
    assert_eq!(exchange.client, client_addr());
    assert_eq!(exchange.server_isn, Some(SeqNum(SERVER_ISN)));
}
