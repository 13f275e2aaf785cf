//! Packets lost, options stripped, black holes.
use super::{ONE_WAY, Pair, ask, ask_record, assert_served, exchange, fetch_cookie};
use interop::hook::{drop_first, drop_server_data, drop_syn_data, pass, strip_fast_open};
use interop::{Ask, Direction, Serve, Way, counters};
use std::time::Duration;

super::rows! {
    syn_data_dropped, option_stripped, first_syn_ack_lost, black_hole_pause, server_data_black_holed
}

/// Linux pays a second on every connect.
fn syn_data_dropped(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.wire.set_hook(drop_syn_data());
    for visit_number in 1..=2 {
        let (exchange, conversation) = exchange(&mut bed, Way::FastOpen);
        assert_eq!(exchange.reply, [b'r'; 43]);
        assert_eq!(conversation.shapes()[..4], [">S(27)", ">S", "<SA", ">PA(27)"], "{conversation}");
        assert_eq!(conversation.syn(1).segment.fast_open, None, "the second SYN is plain");
        let waited = conversation.syn(1).at - conversation.syn(0).at;
        assert!((980..1500).contains(&waited.as_millis()), "{waited:?}");
        assert_eq!(exchange.client_fail, 3);
        assert_eq!(bed.client.counters(), counters(&[("ActiveFail", visit_number)]));
        assert_eq!(bed.client.counter("TCPSynRetrans"), visit_number);
    }
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1)]));
}

fn option_stripped(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.wire.set_hook(strip_fast_open());
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 2, 8);
    assert_eq!(visit.1.shapes()[..3], [">S(27)", "<SA", ">PA(27)"]);
    assert_eq!(visit.1.syn_data_acked(), 0);
    assert_eq!(visit.0.client_fail, 2);
    assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1)]));
}

/// The reply that overtakes the second SYN-ACK is of no use to a client in SYN-SENT.
fn first_syn_ack_lost(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.wire.set_hook(drop_first(1, |_, segment| segment.is_syn_ack()));
    let (exchange, conversation) = exchange(&mut bed, Way::FastOpen);
    assert_eq!(exchange.reply, [b'r'; 43]);
    assert_eq!(conversation.shapes()[..3], [">S(27)", "<SA", "<PA(43)"], "{conversation}");
    assert_eq!(conversation.syn(1).segment.fast_open, None);
    let first = exchange.first_byte_ms.expect("a first byte");
    assert!((1040.0..2000.0).contains(&first), "{first} ms\n{conversation}");
    assert_eq!(exchange.client_fail, 0);
    assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
    assert_eq!(bed.client.counter("TCPSynRetrans"), 1);
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
    // One by its timer, one in answer to the plain SYN, unless the first one's ACK comes in
    // between.
    assert!((1..=2).contains(&bed.server.counter("TCPSynRetrans")), "{conversation}");
}

/// After three time-outs of one connect Fast Open pauses for `tcp_fastopen_blackhole_timeout_sec`,
/// then comes back.
fn black_hole_pause(pair: Pair) {
    let mut bed = pair.bed();
    bed.client.set("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "2");
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.wire.set_hook(drop_first(3, |_, segment| segment.is_syn()));
    let lost = ask(&mut bed, &Ask::new(Way::FastOpen));
    assert_eq!(lost.0.client_fail, 3, "{}", lost.1);
    assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 2), ("Blackhole", 1)]), "{}", lost.1);

    let paused = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &paused, 2, 9);
    assert_eq!(paused.1.syn(0).segment.fast_open, None, "not even a request");
    assert_eq!(paused.0.client_fail, 0);

    std::thread::sleep(Duration::from_secs(2));
    let back = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &back, 1, 8);
}

/// The SYN-ACK arrives and nothing after it but FINs: the client waits until its own limit. A FIN
/// with nothing before it tells of a black hole when the socket ends, and Fast Open pauses.
fn server_data_black_holed(pair: Pair) {
    let mut bed = pair.bed();
    bed.client.set("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "60");
    bed.client.set("net.ipv4.tcp_fin_timeout", "1");
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    bed.wire.set_hook(drop_server_data());
    let limit = ONE_WAY * 30;
    let (hung, conversation) = ask(&mut bed, &Ask { limit, ..Ask::new(Way::FastOpen) });
    assert_eq!(hung.first_byte_ms, None, "{conversation}");
    assert!(hung.total_ms >= limit.as_secs_f64() * 1000.0);
    let sent = conversation.payload_bytes(Direction::ToClient);
    assert!(sent >= 86 && sent % 43 == 0, "the reply was sent more than once, {sent} bytes\n{conversation}");

    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(bed.client.counters(), counters(&[("Active", 1), ("Blackhole", 1)]), "{conversation}");
    bed.wire.set_hook(pass());
    let next = ask_record(&mut bed, &Ask::new(Way::FastOpen)).1.only_opened();
    assert_eq!(next.syn(0).segment.fast_open, None, "{next}");
}
