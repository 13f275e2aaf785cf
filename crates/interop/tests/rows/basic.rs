//! Plain, first visit, repeat visit.
use super::{Pair, ask, assert_served, exchange};
use interop::{Ask, IpVersion, Serve, Way, counters};

super::rows! { plain, cookie_request, repeat_visit, repeat_visit_over_ipv6, repeat_visit_deferred_connect }

fn plain(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    let visit = exchange(&mut bed, Way::Plain);
    assert_served(pair, &visit, 2, 10);
    assert_eq!(visit.1.shapes()[..4], [">S", "<SA", ">A", ">PA(27)"]);
    assert_eq!((bed.client.counters(), bed.server.counters()), (counters(&[]), counters(&[])));
}

fn cookie_request(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 2, 8);
    let conversation = &visit.1;
    assert!(conversation.syn(0).segment.requests_cookie(), "{conversation}");
    assert_eq!(conversation.syn_ack(0).segment.cookie().map(<[u8]>::len), Some(8), "{conversation}");
    assert_eq!(conversation.shapes()[..3], [">S", "<SA", ">PA(27)"], "the request rides on the first ACK");
    assert_eq!(visit.0.client_fail, 1);
    assert_eq!(bed.client.counters(), counters(&[]));
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1)]));
}

fn repeat_visit(pair: Pair) {
    repeat(pair, Way::FastOpen, IpVersion::V4);
}

fn repeat_visit_over_ipv6(pair: Pair) {
    repeat(pair, Way::FastOpen, IpVersion::V6);
}

fn repeat_visit_deferred_connect(pair: Pair) {
    repeat(pair, Way::FastOpenConnect, IpVersion::V4);
}

fn repeat(pair: Pair, way: Way, version: IpVersion) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve { version, ..Serve::new() });
    let (_, first) = ask(&mut bed, &Ask { version, ..Ask::new(way) });
    let granted = first.syn_ack(0).segment.cookie().map(<[u8]>::to_vec);
    let visit = ask(&mut bed, &Ask { version, ..Ask::new(way) });
    assert_served(pair, &visit, 1, 8);
    let conversation = &visit.1;
    assert_eq!(conversation.shapes()[..3], [">S(27)", "<SA", "<PA(43)"]);
    assert_eq!(conversation.syn(0).segment.cookie().map(<[u8]>::to_vec), granted, "the cookie comes back");
    assert_eq!(conversation.syn_data_acked(), 27);
    assert_eq!(visit.0.client_fail, 0);
    assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
}
