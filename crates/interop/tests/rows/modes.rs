//! The bits of `tcp_fastopen`, listeners with and without the option, cookie-less mode.
use super::{Pair, ask, assert_served, exchange, fetch_cookie};
use interop::{Ask, Serve, Way, counters};

super::rows! {
    listener_without_fast_open, requests_to_a_listener_without_fast_open, every_listener, server_bit_off,
    client_without_cookie_to_server_without_cookie, client_without_cookie_to_ordinary_server,
    request_to_server_without_cookie, no_cookie_by_socket_option, closed_port
}

const SETTING: &str = "net.ipv4.tcp_fastopen";

/// The cookie of another listener of the same address; this one does not do Fast Open.
fn listener_without_fast_open(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.server.serve(&Serve { port: 81, qlen: 0, ..Serve::new() });
    for visit_number in 1..=2 {
        let visit = ask(&mut bed, &Ask { port: 81, ..Ask::new(Way::FastOpen) });
        assert_served(pair, &visit, 2, 8);
        assert_eq!(visit.1.shapes()[..3], [">S(27)", "<SA", ">PA(27)"]);
        assert_eq!(visit.1.syn_ack(0).segment.fast_open, None);
        assert_eq!(visit.0.client_fail, 2);
        assert_eq!(bed.client.counters(), counters(&[("ActiveFail", visit_number)]));
    }
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1)]));
}

/// Kind 34, then once the experimental kind, then kind 34 again.
fn requests_to_a_listener_without_fast_open(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve { qlen: 0, ..Serve::new() });
    let kinds = [0; 3].map(|_| {
        let (exchange, conversation) = exchange(&mut bed, Way::FastOpen);
        assert_eq!(exchange.client_fail, 1);
        assert_eq!(conversation.syn_ack(0).segment.fast_open, None);
        let option = conversation.syn(0).segment.fast_open.clone().expect("a request");
        assert!(option.cookie.is_empty());
        option.experimental
    });
    assert_eq!(kinds, [false, true, false]);
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 3)]));
}

fn every_listener(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.set(SETTING, "0x403");
    bed.server.serve(&Serve { qlen: 0, ..Serve::new() });
    fetch_cookie(&mut bed);
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 1, 8);
    assert_eq!(visit.0.client_fail, 0);
    assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
}

fn server_bit_off(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.server.set(SETTING, "0x1");
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 2, 8);
    assert_eq!(visit.0.client_fail, 2);
    assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1)]));
}

fn client_without_cookie_to_server_without_cookie(pair: Pair) {
    let mut bed = pair.bed();
    bed.client.set(SETTING, "0x5");
    bed.server.set(SETTING, "0x203");
    bed.server.serve(&Serve::new());
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 1, 8);
    assert_eq!(visit.1.syn(0).segment.fast_open, None);
    assert_eq!(visit.1.syn_data_acked(), 27);
    assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("Passive", 1)]));
}

fn client_without_cookie_to_ordinary_server(pair: Pair) {
    let mut bed = pair.bed();
    bed.client.set(SETTING, "0x5");
    bed.server.serve(&Serve::new());
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 2, 8);
    assert_eq!(visit.1.syn_ack(0).segment.fast_open, None, "no cookie is offered");
    assert_eq!(visit.0.client_fail, 2);
    assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 1)]));
    assert_eq!(bed.server.counters(), counters(&[]));
}

fn request_to_server_without_cookie(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.set(SETTING, "0x203");
    bed.server.serve(&Serve::new());
    for visit_number in 1..=2 {
        let visit = exchange(&mut bed, Way::FastOpen);
        assert_served(pair, &visit, 2, 8);
        assert!(visit.1.syn(0).segment.requests_cookie());
        assert_eq!(visit.1.syn_ack(0).segment.fast_open, None, "no cookie is ever issued");
        assert_eq!(visit.0.client_fail, 1);
        let expected = counters(&[("CookieReqd", visit_number), ("Passive", visit_number)]);
        assert_eq!(bed.server.counters(), expected);
    }
    assert_eq!(bed.client.counters(), counters(&[]));
}

fn no_cookie_by_socket_option(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve { no_cookie: true, ..Serve::new() });
    let visit = exchange(&mut bed, Way::NoCookie);
    assert_served(pair, &visit, 1, 8);
    assert_eq!(visit.1.syn(0).segment.fast_open, None);
    assert_eq!(visit.0.client_fail, 0);
    assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("Passive", 1)]));
}

/// A cookie of that host, data on the SYN, nobody there: refused after one round trip, in two
/// packets.
fn closed_port(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    let (exchange, conversation) = ask(&mut bed, &Ask { port: 9, ..Ask::new(Way::FastOpen) });
    assert_eq!(conversation.shapes(), [">S(27)", "<RA"], "{conversation}");
    assert!(exchange.error.is_some() && exchange.reply.is_empty(), "{exchange:?}");
    assert!((40.0..900.0).contains(&exchange.total_ms), "{exchange:?}");
}
