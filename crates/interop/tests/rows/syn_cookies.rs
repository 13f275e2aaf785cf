//! SYN cookies (`net.ipv4.tcp_syncookies` 2): every opening is stateless, and Fast Open is not
//! looked at.
use super::{Pair, ask, assert_served, exchange};
use interop::{Ask, IpVersion, Serve, Way, counters};

super::rows! { plain_openings, fast_open_is_not_looked_at }

const SETTING: &str = "net.ipv4.tcp_syncookies";

fn plain_openings(pair: Pair) {
    for version in [IpVersion::V4, IpVersion::V6] {
        let mut bed = pair.bed();
        bed.server.set(SETTING, "2");
        bed.server.serve(&Serve { version, ..Serve::new() });
        for visits in 1..=2 {
            let visit = ask(&mut bed, &Ask { version, ..Ask::new(Way::Plain) });
            assert_served(pair, &visit, 2, 10);
            assert_eq!(visit.1.shapes()[..4], [">S", "<SA", ">A", ">PA(27)"], "{}", visit.1);
            let sent_and_returned = ["SyncookiesSent", "SyncookiesRecv"].map(|name| bed.server.counter(name));
            assert_eq!(sent_and_returned, [visits, visits]);
        }
        assert_eq!(bed.server.counter("SyncookiesFailed"), 0);
    }
}

fn fast_open_is_not_looked_at(pair: Pair) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    super::fetch_cookie(&mut bed);
    bed.server.set(SETTING, "2");
    let visit = exchange(&mut bed, Way::FastOpen);
    assert_served(pair, &visit, 2, 8);
    assert_eq!(visit.1.shapes()[..3], [">S(27)", "<SA", ">PA(27)"], "{}", visit.1);
    assert_eq!(visit.1.syn_ack(0).segment.fast_open, None);
    assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1)]));
    assert_eq!(bed.server.counter("SyncookiesRecv"), 1);
}
