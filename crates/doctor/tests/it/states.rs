//! Sockets that stay in a state, and ports that run out.
use crate::bed::until;
use crate::{apply, assert_healthy, findings, has, ids, judged_by};
use doctor::{Limits, Rule, Severity, sources};
use std::io::Write;
use std::net::{TcpListener, TcpStream};

#[test]
fn a_server_that_never_closes_is_found() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let leaked: Vec<TcpStream> = (0..101)
            .map(|_| {
                drop(TcpStream::connect(address).unwrap());
                listener.accept().unwrap().0
            })
            .collect();
        let found = findings(|| {});
        assert_eq!(ids(&found), ["ST-01"]);
        assert!(
            found[0].evidence.iter().any(|e| e.value == format!("port {} (101)", address.port())),
            "{found:#?}"
        );
        drop(leaked);
        assert_healthy(&findings(|| {}));
    });
}

#[test]
fn clients_that_gave_up_in_the_accept_queue_are_found() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (0..5).for_each(|_| drop(TcpStream::connect(address).unwrap()));
        assert_eq!(ids(&findings(|| {})), ["ST-02"]);
        (0..5).for_each(|_| drop(listener.accept().unwrap()));
        assert_healthy(&findings(|| {}));
    });
}

#[test]
fn ports_that_run_out_are_found_and_a_wider_range_mends_it() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.ip_local_port_range", "40000 40003");
        let listener = TcpListener::bind("127.0.0.1:80").unwrap();
        let clients: Vec<_> =
            (0..4).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
        assert!(TcpStream::connect(listener.local_addr().unwrap()).is_err());
        let found = findings(|| {});
        assert_eq!((ids(&found), found[0].severity), (vec!["ST-07"], Severity::Critical));
        testnet::sysctl("net.ipv4.ip_local_port_range", "1024 65535");
        assert_healthy(&findings(|| {}));
        drop(clients);
    });
}

#[test]
fn a_full_time_wait_table_is_found() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_max_tw_buckets", "2");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let visits = || {
            for _ in 0..10 {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                drop(listener.accept().unwrap());
                drop(client);
            }
        };
        let found = findings(visits);
        assert_eq!(ids(&found), ["ST-06"]);
        apply(&found, "ST-06");
        assert!(findings(visits).is_empty());
    });
}

#[test]
fn closed_connections_that_a_zero_window_holds_are_found() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let clients: Vec<TcpStream> = (0..10)
            .map(|_| {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let mut server = listener.accept().unwrap().0;
                server.set_nonblocking(true).unwrap();
                while server.write(&[0; 1 << 16]).is_ok() {}
                client
            })
            .collect();
        until("ten that are held", || has(&findings(|| {}), "ST-03"));
        drop(clients);
        assert_healthy(&findings(|| {}));
    });
}

#[test]
fn connections_half_closed_for_ever_are_found() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let halves: Vec<_> = (0..11)
            .map(|_| {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let server = listener.accept().unwrap().0;
                client.shutdown(std::net::Shutdown::Write).unwrap();
                (client, server)
            })
            .collect();
        assert!(!has(&findings(|| {}), "ST-04"), "not yet for 60 s");
        let mut limits = Limits::default();
        limits.set(&Rule::by_id("ST-04").unwrap().limits[0], 0.0);
        let sample = sources::here();
        let found = judged_by(&sample, &sample, &limits);
        assert!(has(&found, "ST-04"), "{:?}", ids(&found));
        drop(halves);
        let sample = sources::here();
        assert!(!has(&judged_by(&sample, &sample, &limits), "ST-04"));
    });
}

#[test]
fn ports_that_wait_although_they_could_be_used_again_are_told() {
    testnet::in_namespace(|| {
        crate::shell("ip addr add 10.1.0.1/32 dev lo");
        testnet::sysctl("net.ipv4.ip_local_port_range", "40000 40003");
        let listener = TcpListener::bind("10.1.0.1:80").unwrap();
        for _ in 0..3 {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let server = listener.accept().unwrap().0;
            drop(client);
            drop(server);
        }
        let found = findings(|| {});
        assert!(has(&found, "ST-08"), "{:?}", ids(&found));
        apply(&found, "ST-08");
        assert!(!has(&findings(|| {}), "ST-08"));
    });
}
