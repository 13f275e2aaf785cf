//! Fast Open failures, judged at the end that sees them.
use crate::bed::{self, Bed, bed};
use crate::shown::Show;
use crate::{assert_healthy, ids};
use interop::ends::{Ask, ClientEnd as _, Serve, ServerEnd as _, Way};
use interop::hook::{drop_syn_data, pass};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(4);

fn visit(bed: &mut Bed, times: usize) {
    for _ in 0..times {
        let exchange = bed.client.exchange(&Ask::new(Way::FastOpen));
        assert_eq!(exchange.error, None);
    }
}

/// Deletes the client's cached cookie.
fn forget(bed: &Bed) {
    bed.client.host.run(|| crate::shell("ip tcp_metrics flush all"));
}

/// Returns the findings at the server while clients connect.
fn at_server(bed: &mut Bed, times: usize) -> Vec<doctor::Finding> {
    let host = bed.server.host.share();
    bed::found(&host, || visit(bed, times))
}

pub(crate) fn requests_for_cookies_that_a_server_refuses_are_found(show: &Show) {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve::new());
    show.silent(&["TFO-02"], &at_server(&mut bed, 2));
    forget(&bed);
    bed.server.host.sysctl("net.ipv4.tcp_fastopen", "1");
    show.fires(&["TFO-02"], &at_server(&mut bed, 3));
    bed.server.host.run(|| show.run(&["TFO-02"]));
    show.gone(&["TFO-02"], &at_server(&mut bed, 2));
}

pub(crate) fn a_listener_that_does_not_use_fast_open_is_found(show: &Show) {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve { qlen: 0, ..Serve::new() });
    bed.server.serve(&Serve { qlen: 16, port: 81, ..Serve::new() });
    let host = bed.server.host.share();
    let served = |bed: &mut Bed| {
        bed::found(&host, || {
            for _ in 0..11 {
                // A client without a cookie each time.
                forget(bed);
                bed.client.exchange(&Ask { port: 81, ..Ask::new(Way::FastOpen) });
                bed.client.exchange(&Ask { port: 81, ..Ask::new(Way::FastOpen) });
            }
        })
    };
    show.silent(&["TFO-03"], &served(&mut bed));
    forget(&bed);
    show.fires(&["TFO-03"], &at_server(&mut bed, 10));
    show.by_hand(&["TFO-03"]);
    show.gone(&["TFO-03"], &served(&mut bed));
}

pub(crate) fn keys_that_change_without_a_backup_are_found_at_both_ends(show: &Show) {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve::new());
    let (client, server) = (bed.client.host.share(), bed.server.host.share());
    let read = || (client.run(doctor::sources::here), server.run(doctor::sources::here));
    visit(&mut bed, 1);
    let begun = read();
    visit(&mut bed, 10);
    let before = read();
    show.silent(&["TFO-04"], &crate::judged(&begun.0, &before.0));
    show.silent(&["TFO-07"], &crate::judged(&begun.1, &before.1));
    for key in 1..=10 {
        server.sysctl("net.ipv4.tcp_fastopen_key", &format!("0000000{key:x}-1-2-3"));
        visit(&mut bed, 1);
    }
    let now = read();
    show.fires(&["TFO-04"], &crate::judged(&before.0, &now.0));
    show.fires(&["TFO-07"], &crate::judged(&before.1, &now.1));
    // The key stays the same.
    show.by_hand(&["TFO-04", "TFO-07"]);
    visit(&mut bed, 10);
    let later = read();
    let (at_client, at_server) = (crate::judged(&now.0, &later.0), crate::judged(&now.1, &later.1));
    assert_healthy(&at_client);
    assert_healthy(&at_server);
    show.gone(&["TFO-04"], &at_client);
    show.gone(&["TFO-07"], &at_server);
}

pub(crate) fn a_path_that_drops_syns_with_data_is_found_until_it_is_forgotten(show: &Show) {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve::new());
    visit(&mut bed, 1);
    let found = bed.at_client(|| {});
    assert_healthy(&found);
    show.silent(&["TFO-05"], &found);
    bed.wire.set_hook(drop_syn_data());
    visit(&mut bed, 1);
    show.fires(&["TFO-05"], &bed.at_client(|| {}));
    bed.wire.set_hook(pass());
    bed.client.host.run(|| show.run(&["TFO-05"]));
    visit(&mut bed, 2);
    let found = bed.at_client(|| {});
    assert_healthy(&found);
    show.gone(&["TFO-05"], &found);
}

pub(crate) fn a_key_without_a_backup_and_cookies_without_fast_open_are_told(show: &Show) {
    testnet::in_namespace(|| {
        show.silent(&["TFO-08"], &crate::findings(|| {}));
        testnet::sysctl("net.ipv4.tcp_fastopen", "3");
        let found = crate::findings(|| {});
        assert_eq!(ids(&found), ["TFO-08"]);
        show.fires(&["TFO-08"], &found);
        show.silent(&["TFO-14"], &found);
        testnet::sysctl("net.ipv4.tcp_fastopen_key", "1-2-3-4,5-6-7-8");
        show.by_hand(&["TFO-08"]);
        show.gone(&["TFO-08"], &crate::findings(|| {}));
        testnet::sysctl("net.ipv4.tcp_syncookies", "2");
        show.fires(&["TFO-14"], &crate::findings(|| {}));
        show.run(&["TFO-14"]);
        let found = crate::findings(|| {});
        assert_eq!(found, []);
        show.gone(&["TFO-14"], &found);
    });
}
