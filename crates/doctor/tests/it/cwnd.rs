//! What windows begin with, and paths that lose or repeat packets.
use crate::bed::{bed, fires, transfer, until, write};
use crate::{apply, assert_healthy, findings, has, ids, of};
use doctor::{Severity, sources};
use interop::Direction;
use interop::hook::{Hook, Verdict, drop_if, pass};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

#[test]
fn a_threshold_of_another_day_is_found_in_path_route_and_connection() {
    let Some(bed) = bed(Duration::from_millis(14)) else { return };
    let host = &bed.client.host;
    host.sysctl("net.ipv4.tcp_no_ssthresh_metrics_save", "0");
    host.run(|| crate::shell("ip route add 10.77.0.2/32 dev tun0 ssthresh 5"));
    let (mut client, mut server) = bed.connection(80);
    client.write_all(&[0; 5000]).unwrap();
    server.read_exact(&mut [0; 5000]).unwrap();
    client.shutdown(Shutdown::Both).unwrap();
    server.shutdown(Shutdown::Both).unwrap();
    until("a remembered path", || host.run(|| sources::here().paths.iter().any(|path| path.rtt > 10_000)));
    assert!(transfer(bed.connection(81), write, || fires(host, "CC-03", 60)));
    let found = bed.at_client(|| {});
    for id in ["CC-01", "CC-04"] {
        assert!(has(&found, id), "{id}: {:?}", ids(&found));
    }
    host.run(|| apply(&found, "CC-04"));
    host.run(|| apply(&found, "CC-01"));
    assert_healthy(&bed.at_client(|| {}));
    assert!(!has(&bed.at_client(|| {}), "CC-04"));
}

#[test]
fn routes_that_clamp_or_shrink_windows_are_found_and_their_fix_mends_them() {
    testnet::in_namespace(|| {
        crate::shell("ip link add v0 type veth peer name v1");
        crate::shell("ip addr add 10.0.0.1/24 dev v0; ip link set v0 up; ip link set v1 up");
        assert_healthy(&findings(|| {}));
        crate::shell("ip route add 10.9.0.0/16 via 10.0.0.2 dev v0 cwnd lock 12 mtu 1400 initcwnd 4");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["CC-04", "CC-05"]);
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning));
        apply(&found, "CC-04");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["CC-05"]);
        apply(&found, "CC-05");
        assert_healthy(&findings(|| {}));
        let kept =
            sources::here().routes.iter().find(|route| route.route.starts_with("10.9")).unwrap().metrics;
        assert_eq!((kept.mtu, kept.cwnd, kept.initcwnd), (1400, 0, 0));
    });
}

#[test]
fn pauses_that_shrink_windows_are_told() {
    let Some(bed) = bed(Duration::from_millis(24)) else { return };
    let mut kept = Vec::new();
    for port in 80..83 {
        let (mut client, mut server) = bed.connection(port);
        let reader = std::thread::spawn(move || {
            server.read_exact(&mut [0; 200_000]).unwrap();
            server
        });
        client.write_all(&[0; 200_000]).unwrap();
        kept.push((client, reader.join().unwrap()));
    }
    until("a pause", || has(&bed.at_client(|| {}), "CC-06"));
    let found = bed.at_client(|| {});
    bed.client.host.run(|| apply(&found, "CC-06"));
    assert!(!has(&bed.at_client(|| {}), "CC-06"));
}

#[test]
fn packets_that_arrive_twice_are_found() {
    let Some(bed) = bed(Duration::from_millis(4)) else { return };
    let twice: Hook = Box::new(|direction, segment, _| match direction {
        Direction::ToServer if !segment.payload.is_empty() => {
            Verdict::Duplicate { after: Duration::from_micros(100) }
        }
        _ => Verdict::Pass,
    });
    let send = || {
        let (mut client, mut server) = bed.connection(80);
        let reader = std::thread::spawn(move || server.read_exact(&mut [0; 200_000]).unwrap());
        client.write_all(&[0; 200_000]).unwrap();
        reader.join().unwrap();
    };
    bed.wire.set_hook(twice);
    let found = bed.at_client(|| {
        send();
        until("reports of doubles", || bed.client.host.counters().of("TCPDSACKRecv") >= 20);
    });
    assert_eq!(of(&found, "CC-09")[0].severity, Severity::Warning);
    bed.wire.set_hook(pass());
    let found = bed.at_client(send);
    assert!(!has(&found, "CC-09"), "{:?}", ids(&found));
}

#[test]
fn a_path_that_swallows_full_size_packets_is_found() {
    let Some(bed) = bed(Duration::from_millis(4)) else { return };
    bed.wire.set_hook(drop_if(|_, segment| segment.payload.len() > 1260));
    let (mut client, mut server) = bed.connection(80);
    client.write_all(&[0; 100]).unwrap();
    server.read_exact(&mut [0; 100]).unwrap();
    assert_healthy(&bed.at_client(|| {}));
    client.write_all(&[0; 20_000]).unwrap();
    until("three time-outs", || has(&bed.at_client(|| {}), "CC-11"));
    let found = bed.at_client(|| {});
    bed.client.host.run(|| apply(&found, "CC-11"));
    assert!(!has(&bed.at_client(|| {}), "CC-11"));
    // And the data gets there, in smaller packets.
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    server.read_exact(&mut [0; 20_000]).unwrap();
}

#[test]
fn a_connect_that_will_wait_for_minutes_is_told() {
    let Some(bed) = bed(Duration::from_millis(4)) else { return };
    bed.wire.set_hook(drop_if(|_, _| true));
    let address = bed.address(80);
    let flags = SocketFlags::NONBLOCK;
    let socket =
        bed.client.host.run(|| socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap());
    assert!(connect(&socket, &address).is_err(), "in progress");
    until("a third SYN", || has(&bed.at_client(|| {}), "CC-13"));
    let found = bed.at_client(|| {});
    assert_eq!(of(&found, "CC-13")[0].formula, "131 s > 60 s");
    bed.client.host.run(|| apply(&found, "CC-13"));
    assert!(!has(&bed.at_client(|| {}), "CC-13"));
}
