//! Fast Open that fails, at the end where it is seen.
use crate::bed::{self, Bed, bed};
use crate::{apply, assert_healthy, has, ids};
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

/// What is found at the server while clients visit it.
fn at_server(bed: &mut Bed, times: usize) -> Vec<doctor::Finding> {
    let host = bed.server.host.share();
    bed::found(&host, || visit(bed, times))
}

#[test]
fn requests_for_cookies_that_a_server_refuses_are_found() {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.host.sysctl("net.ipv4.tcp_fastopen", "1");
    bed.server.serve(&Serve::new());
    let found = at_server(&mut bed, 3);
    assert!(has(&found, "TFO-02"), "{:?}", ids(&found));
    bed.server.host.run(|| apply(&found, "TFO-02"));
    assert!(!has(&at_server(&mut bed, 2), "TFO-02"));
}

#[test]
fn a_listener_that_does_not_use_fast_open_is_found() {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve { qlen: 0, ..Serve::new() });
    let found = at_server(&mut bed, 10);
    assert!(has(&found, "TFO-03"), "{:?}", ids(&found));
    bed.server.serve(&Serve { qlen: 16, port: 81, ..Serve::new() });
    let host = bed.server.host.share();
    let found = bed::found(&host, || {
        for _ in 0..11 {
            bed.client.exchange(&Ask { port: 81, ..Ask::new(Way::FastOpen) });
        }
    });
    assert!(!has(&found, "TFO-03"), "{:?}", ids(&found));
}

#[test]
fn keys_that_change_without_a_backup_are_found_at_both_ends() {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve::new());
    let (client, server) = (bed.client.host.share(), bed.server.host.share());
    let read = || (client.run(doctor::sources::here), server.run(doctor::sources::here));
    visit(&mut bed, 1);
    let before = read();
    for key in 1..=10 {
        server.sysctl("net.ipv4.tcp_fastopen_key", &format!("0000000{key:x}-1-2-3"));
        visit(&mut bed, 1);
    }
    let now = read();
    let at_client = crate::judged(&before.0, &now.0);
    assert!(has(&at_client, "TFO-04"), "{:?}", ids(&at_client));
    let at_server = crate::judged(&before.1, &now.1);
    assert!(has(&at_server, "TFO-07"), "{:?}", ids(&at_server));
    visit(&mut bed, 10);
    let later = read();
    assert_healthy(&crate::judged(&now.0, &later.0));
    assert_healthy(&crate::judged(&now.1, &later.1));
}

#[test]
fn a_path_that_drops_syns_with_data_is_found_until_it_is_forgotten() {
    let Some(mut bed) = bed(RTT) else { return };
    bed.server.serve(&Serve::new());
    visit(&mut bed, 1);
    assert_healthy(&bed.at_client(|| {}));
    bed.wire.set_hook(drop_syn_data());
    visit(&mut bed, 1);
    let found = bed.at_client(|| {});
    assert!(has(&found, "TFO-05"), "{:?}", ids(&found));
    bed.wire.set_hook(pass());
    bed.client.host.run(|| apply(&found, "TFO-05"));
    visit(&mut bed, 2);
    assert_healthy(&bed.at_client(|| {}));
}

#[test]
fn a_key_without_a_backup_and_cookies_without_fast_open_are_told() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "3");
        let found = crate::findings(|| {});
        assert_eq!(ids(&found), ["TFO-08"]);
        testnet::sysctl("net.ipv4.tcp_fastopen_key", "1-2-3-4,5-6-7-8");
        assert!(crate::findings(|| {}).is_empty());
        testnet::sysctl("net.ipv4.tcp_syncookies", "2");
        let found = crate::findings(|| {});
        assert!(has(&found, "TFO-14"), "{:?}", ids(&found));
        apply(&found, "TFO-14");
        assert!(crate::findings(|| {}).is_empty());
    });
}
