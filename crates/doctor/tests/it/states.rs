//! Sockets that stay in a state, and ports that run out.
use crate::{assert_healthy, findings, ids};
use doctor::Severity;
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
        let found = findings(|| {
            for _ in 0..10 {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                drop(listener.accept().unwrap());
                drop(client);
            }
        });
        assert_eq!(ids(&found), ["ST-06"]);
    });
}
