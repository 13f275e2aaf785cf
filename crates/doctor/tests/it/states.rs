//! Sockets that stay in a state, and ports that run out.
use crate::bed::{once_found, once_gone};
use crate::shown::Show;
use crate::{assert_healthy, findings, ids, judged_by};
use doctor::{Limits, Rule, Severity, sources};
use std::io::Write;
use std::net::{TcpListener, TcpStream};

pub(crate) fn a_server_that_never_closes_is_found(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let visited = || {
            drop(TcpStream::connect(address).unwrap());
            listener.accept().unwrap().0
        };
        let mut leaked: Vec<TcpStream> = (0..100).map(|_| visited()).collect();
        show.silent(&["ST-01"], &findings(|| {}));
        leaked.push(visited());
        let found = findings(|| {});
        assert_eq!(ids(&found), ["ST-01"]);
        show.fires(&["ST-01"], &found);
        assert!(
            found[0].evidence.iter().any(|e| e.value == format!("port {} (101)", address.port())),
            "{found:#?}"
        );
        drop(leaked);
        show.by_hand(&["ST-01"]);
        let found = once_gone(&["ST-01"], || findings(|| {}));
        assert_healthy(&found);
        show.gone(&["ST-01"], &found);
    });
}

pub(crate) fn clients_that_gave_up_in_the_accept_queue_are_found(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let clients: Vec<_> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
        show.silent(&["ST-02"], &findings(|| {}));
        drop(clients);
        let found = once_found("ST-02", || findings(|| {}));
        assert_eq!(ids(&found), ["ST-02"]);
        show.fires(&["ST-02"], &found);
        (0..5).for_each(|_| drop(listener.accept().unwrap()));
        show.by_hand(&["ST-02"]);
        let found = once_gone(&["ST-02"], || findings(|| {}));
        assert_healthy(&found);
        show.gone(&["ST-02"], &found);
    });
}

pub(crate) fn ports_that_run_out_are_found_and_a_wider_range_mends_it(show: &Show) {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.ip_local_port_range", "40000 40003");
        let listener = TcpListener::bind("127.0.0.1:80").unwrap();
        let connect = |_| TcpStream::connect(listener.local_addr().unwrap());
        let mut clients: Vec<_> = (0..2).map(connect).collect();
        show.silent(&["ST-07"], &findings(|| {}));
        clients.extend((0..2).map(connect));
        assert!(clients.iter().all(Result::is_ok) && connect(0).is_err());
        let found = findings(|| {});
        assert_eq!((ids(&found), found[0].severity), (vec!["ST-07"], Severity::Critical));
        show.fires(&["ST-07"], &found);
        show.run(&["ST-07"]);
        clients.push(connect(0));
        assert!(clients.iter().all(Result::is_ok));
        let found = findings(|| {});
        assert_healthy(&found);
        show.gone(&["ST-07"], &found);
    });
}

pub(crate) fn a_full_time_wait_table_is_found(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let visits = || {
            for _ in 0..10 {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                drop(listener.accept().unwrap());
                drop(client);
            }
        };
        show.silent(&["ST-06"], &findings(visits));
        testnet::sysctl("net.ipv4.tcp_max_tw_buckets", "2");
        let found = findings(visits);
        assert_eq!(ids(&found), ["ST-06"]);
        show.fires(&["ST-06"], &found);
        show.run(&["ST-06"]);
        show.gone(&["ST-06"], &findings(visits));
    });
}

pub(crate) fn closed_connections_that_a_zero_window_holds_are_found(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ends: Vec<_> = (0..10)
            .map(|_| {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let mut server = listener.accept().unwrap().0;
                server.set_nonblocking(true).unwrap();
                while server.write(&[0; 1 << 16]).is_ok() {}
                (client, server)
            })
            .collect();
        show.silent(&["ST-03"], &findings(|| {}));
        let (_clients, servers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        drop(servers);
        show.fires(&["ST-03"], &once_found("ST-03", || findings(|| {})));
        show.run(&["ST-03"]);
        // The clients still do not read.
        let found = findings(|| {});
        assert_healthy(&found);
        show.gone(&["ST-03"], &found);
    });
}

pub(crate) fn connections_half_closed_for_ever_are_found(show: &Show) {
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
        // Less than 60 s so far.
        show.silent(&["ST-04"], &findings(|| {}));
        let mut limits = Limits::default();
        limits.set(&Rule::by_id("ST-04").unwrap().limits[0], 0.0);
        let sample = sources::here();
        show.fires(&["ST-04"], &judged_by(&sample, &sample, &limits));
        drop(halves);
        show.by_hand(&["ST-04"]);
        let found = once_gone(&["ST-04"], || {
            let sample = sources::here();
            judged_by(&sample, &sample, &limits)
        });
        show.gone(&["ST-04"], &found);
    });
}

pub(crate) fn ports_that_wait_although_they_could_be_used_again_are_told(show: &Show) {
    testnet::in_namespace(|| {
        crate::shell("ip addr add 10.1.0.1/32 dev lo");
        testnet::sysctl("net.ipv4.ip_local_port_range", "40000 40003");
        let listener = TcpListener::bind("10.1.0.1:80").unwrap();
        let visit = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let server = listener.accept().unwrap().0;
            drop(client);
            drop(server);
        };
        show.silent(&["ST-08"], &findings(visit));
        (0..2).for_each(|_| visit());
        show.fires(&["ST-08"], &once_found("ST-08", || findings(|| {})));
        show.run(&["ST-08"]);
        show.gone(&["ST-08"], &findings(|| {}));
    });
}
