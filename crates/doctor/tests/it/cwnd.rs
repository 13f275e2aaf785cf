//! Initial windows, and paths that lose or duplicate packets.
use crate::bed::{bed, once_found, transfer, until, within, write};
use crate::shown::Show;
use crate::{assert_healthy, findings, ids, of};
use doctor::{Severity, sources};
use interop::Direction;
use interop::hook::{Hook, Verdict, drop_if, pass};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

pub(crate) fn a_threshold_of_another_day_is_found_in_path_route_and_connection(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(14)) else { return };
    const RULES: &[&str] = &["CC-01", "CC-03", "CC-04"];
    let host = &bed.client.host;
    show.silent(RULES, &transfer(bed.connection(79), write, || within(host, 2, "CC-03")));
    host.run(|| crate::shell("ip tcp_metrics flush all"));
    host.sysctl("net.ipv4.tcp_no_ssthresh_metrics_save", "0");
    host.run(|| crate::shell("ip route add 10.77.0.2/32 dev tun0 ssthresh 5"));
    let (mut client, mut server) = bed.connection(80);
    client.write_all(&[0; 5000]).unwrap();
    server.read_exact(&mut [0; 5000]).unwrap();
    client.shutdown(Shutdown::Both).unwrap();
    server.shutdown(Shutdown::Both).unwrap();
    until("a remembered path", || host.run(|| sources::here().paths.iter().any(|path| path.rtt > 10_000)));
    show.fires(RULES, &transfer(bed.connection(81), write, || within(host, 60, "CC-03")));
    host.run(|| show.run(RULES));
    show.gone(RULES, &transfer(bed.connection(82), write, || within(host, 2, "CC-03")));
    assert_healthy(&bed.at_client(|| {}));
}

pub(crate) fn routes_that_clamp_or_shrink_windows_are_found_and_their_fix_works(show: &Show) {
    testnet::in_namespace(|| {
        crate::shell("ip link add v0 type veth peer name v1");
        crate::shell("ip addr add 10.0.0.1/24 dev v0; ip link set v0 up; ip link set v1 up");
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["CC-04", "CC-05"], &found);
        crate::shell("ip route add 10.9.0.0/16 via 10.0.0.2 dev v0 cwnd lock 12 mtu 1400 initcwnd 4");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["CC-04", "CC-05"]);
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning));
        show.fires(&["CC-04", "CC-05"], &found);
        show.run(&["CC-04"]);
        // One command fixes both metrics of the route. A second command would undo the first.
        let found = findings(|| {});
        assert_eq!(ids(&found), [""; 0]);
        show.run(&["CC-05"]);
        show.gone(&["CC-04", "CC-05"], &findings(|| {}));
        let kept =
            sources::here().routes.iter().find(|route| route.route.starts_with("10.9")).unwrap().metrics;
        assert_eq!((kept.mtu, kept.cwnd, kept.initcwnd), (1400, 0, 0));
    });
}

pub(crate) fn pauses_that_shrink_windows_are_told(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(24)) else { return };
    show.silent(&["CC-06"], &bed.at_client(|| {}));
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
    show.fires(&["CC-06"], &once_found("CC-06", || bed.at_client(|| {})));
    bed.client.host.run(|| show.run(&["CC-06"]));
    show.gone(&["CC-06"], &bed.at_client(|| {}));
}

pub(crate) fn packets_that_arrive_twice_are_found(show: &Show) {
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
    show.silent(&["CC-09"], &bed.at_client(send));
    bed.wire.set_hook(twice);
    let found = bed.at_client(|| {
        send();
        until("reports of doubles", || bed.client.host.counters().of("TCPDSACKRecv") >= 20);
    });
    assert_eq!(of(&found, "CC-09")[0].severity, Severity::Warning);
    show.fires(&["CC-09"], &found);
    bed.wire.set_hook(pass());
    show.by_hand(&["CC-09"]);
    show.gone(&["CC-09"], &bed.at_client(send));
}

pub(crate) fn a_path_that_swallows_full_size_packets_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(4)) else { return };
    bed.wire.set_hook(drop_if(|_, segment| segment.payload.len() > 1260));
    let (mut client, mut server) = bed.connection(80);
    client.write_all(&[0; 100]).unwrap();
    server.read_exact(&mut [0; 100]).unwrap();
    let found = bed.at_client(|| {});
    assert_healthy(&found);
    show.silent(&["CC-11"], &found);
    client.write_all(&[0; 20_000]).unwrap();
    // After three time-outs.
    show.fires(&["CC-11"], &once_found("CC-11", || bed.at_client(|| {})));
    bed.client.host.run(|| show.run(&["CC-11"]));
    show.gone(&["CC-11"], &bed.at_client(|| {}));
    // The data arrives in smaller packets.
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    server.read_exact(&mut [0; 20_000]).unwrap();
}

pub(crate) fn a_connect_that_will_wait_for_minutes_is_told(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(4)) else { return };
    show.silent(&["CC-13"], &bed.at_client(|| {}));
    bed.wire.set_hook(drop_if(|_, _| true));
    let address = bed.address(80);
    let flags = SocketFlags::NONBLOCK;
    let socket =
        bed.client.host.run(|| socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap());
    assert!(connect(&socket, &address).is_err(), "in progress");
    // After the third SYN.
    let found = once_found("CC-13", || bed.at_client(|| {}));
    show.fires(&["CC-13"], &found);
    assert_eq!(of(&found, "CC-13")[0].formula, "131 s > 60 s");
    bed.client.host.run(|| show.run(&["CC-13"]));
    show.gone(&["CC-13"], &bed.at_client(|| {}));
}
