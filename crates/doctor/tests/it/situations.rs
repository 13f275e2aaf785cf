//! Ten hosts with a problem that the doctor must name first.
//!
//! `FIRSTBYTE_BESIDE='ss -tinmo; nstat' cargo test -p firstbyte-doctor situations -- --nocapture
//! --test-threads 1` shows what other tools report.
use crate::accept::listener_at;
use crate::bed::{bed, beside, beside_here, found, once_gone, transfer, until, within, write};
use crate::shown::Show;
use crate::{findings, ids};
use doctor::{Finding, sources};
use interop::ends::{Ask, ClientEnd as _, Serve, ServerEnd as _, Way};
use interop::hook::{Hook, Verdict, drop_if};
use interop::netns::Host;
use interop::segment::{options, refresh_checksum};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Waits for a window in which this rule comes first.
#[track_caller]
fn first(host: &Host, id: &str) -> Vec<Finding> {
    let mut seen = Vec::new();
    let named = (0..60).any(|_| {
        seen = found(host, || std::thread::sleep(Duration::from_millis(150)));
        seen.first().is_some_and(|finding| finding.id == id)
    });
    assert!(named, "{id} is not first of {:?}", ids(&seen));
    beside(host, || {});
    seen
}

#[track_caller]
fn is_first(found: &[Finding], id: &str) {
    assert_eq!(found.first().map(|finding| finding.id.as_str()), Some(id), "{:?}", ids(found));
}

#[test]
fn a_small_backlog_under_load() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| listener_at(address, 4));
    let mut clients = Vec::new();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
    let found = bed
        .at_server(|| clients.extend(bed.client.host.run(|| (0..8).map(|_| connect()).collect::<Vec<_>>())));
    is_first(&found, "ACC-01");
    beside(&bed.server.host, || drop(bed.client.host.run(connect)));
}

#[test]
fn a_fixed_send_buffer_over_a_long_path() {
    let Some(bed) = bed(Duration::from_millis(40)) else { return };
    let ends = bed.connection(80);
    rustix::net::sockopt::set_socket_send_buffer_size(&ends.0, 16384).unwrap();
    let send = |to: &TcpStream| rustix::net::send(to, &[0; 1448], rustix::net::SendFlags::EOR).is_ok();
    transfer(ends, send, || first(&bed.client.host, "WIN-06"));
}

#[test]
fn a_black_hole_behind_a_tunnel() {
    let Some(bed) = bed(Duration::from_millis(10)) else { return };
    bed.wire.set_hook(drop_if(|_, segment| segment.payload.len() > 1260));
    transfer(bed.connection(80), write, || first(&bed.client.host, "CC-11"));
}

#[test]
fn an_option_that_the_path_takes_away() {
    let Some(bed) = bed(Duration::from_millis(12)) else { return };
    // Replaces window scaling (kind 3) by NOPs.
    let strip: Hook = Box::new(|_, segment, packet| {
        let scaling = options(packet, segment.options.clone()).into_iter().find(|(kind, _)| *kind == 3);
        let Some((_, range)) = scaling else { return Verdict::Pass };
        let mut changed = packet.to_vec();
        changed[range].fill(1);
        refresh_checksum(&mut changed);
        Verdict::Replace(changed)
    });
    bed.wire.set_hook(strip);
    transfer(bed.connection(80), write, || first(&bed.client.host, "WIN-02"));
}

#[test]
fn stale_keys_behind_a_balancer() {
    let Some(mut bed) = bed(Duration::from_millis(4)) else { return };
    bed.server.serve(&Serve::new());
    let server = bed.server.host.share();
    // Each connection reaches another server of the pool.
    let mut visits = 0..;
    let mut visit = || {
        server.sysctl("net.ipv4.tcp_fastopen_key", &format!("0000000{}-1-2-3", visits.next().unwrap() % 2));
        bed.client.exchange(&Ask::new(Way::FastOpen));
    };
    let found = found(&server, || (0..12).for_each(|_| visit()));
    is_first(&found, "TFO-07");
    beside(&server, visit);
}

#[test]
fn a_strict_filter_on_a_second_uplink() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    bed.server.host.run(|| {
        crate::shell("ip link add v0 type veth peer name v1; ip addr add 10.9.0.1/24 dev v0");
        crate::shell("ip link set v0 up; ip link set v1 up; ip route add 10.77.0.1/32 dev v0");
        testnet::sysctl("net.ipv4.conf.all.rp_filter", "1");
    });
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    let connect = || {
        let client = &bed.client.host;
        assert!(client.run(|| TcpStream::connect_timeout(&address, Duration::from_millis(100))).is_err());
    };
    is_first(&bed.at_server(connect), "RX-07");
    beside(&bed.server.host, connect);
}

pub(crate) fn a_standing_queue_at_a_shaper(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(10)) else { return };
    let client = bed.client.host.share();
    let shaper = |what, limit| {
        let command = format!("tc qdisc {what} dev tun0 root tbf rate 10mbit burst 15k limit {limit}");
        client.run(|| crate::shell(&command));
    };
    shaper("add", "4m");
    show.silent(&["TX-02"], &bed.at_client(|| {}));
    // Each connection keeps its own queue short (TCP small queues), but together they do not.
    let over = AtomicBool::new(false);
    let send = |ends| {
        transfer(ends, write, || {
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
    };
    std::thread::scope(|scope| {
        for port in 80..87 {
            let ends = bed.connection(port);
            let send = &send;
            scope.spawn(move || send(ends));
        }
        let _over = Over(&over);
        show.fires(&["TX-02"], &first(&client, "TX-02"));
        // 10 ms.
        client.run(|| show.run_or(&["TX-02"], || shaper("change", "12k")));
        show.gone(&["TX-02"], &once_gone(&["TX-02"], || within(&client, 1, "TX-02")));
    });
}

/// Sets the flag when dropped, also after a failed assertion.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_program_that_does_not_close() {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _leaked: Vec<TcpStream> = (0..101)
            .map(|_| {
                drop(TcpStream::connect(address).unwrap());
                listener.accept().unwrap().0
            })
            .collect();
        let found = findings(|| {});
        is_first(&found, "ST-01");
        let held = found[0].evidence.iter().find(|evidence| evidence.name == "most of them held by").unwrap();
        assert!(held.value.contains(&format!("process {} (101)", std::process::id())), "{}", held.value);
        beside_here();
    });
}

#[test]
fn ports_used_up() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    bed.client.host.sysctl("net.ipv4.ip_local_port_range", "40000 40009");
    let address = bed.address(80);
    let listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    for _ in 0..10 {
        drop(bed.client.host.run(|| TcpStream::connect(address).unwrap()));
        drop(listener.accept().unwrap());
    }
    is_first(&bed.at_client(|| {}), "ST-07");
    beside(&bed.client.host, || {});
}

#[test]
fn orphans_of_a_peer_that_does_not_read() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    let _clients: Vec<TcpStream> = (0..10)
        .map(|_| {
            let client = bed.client.host.run(|| TcpStream::connect(address).unwrap());
            let mut server = listener.accept().unwrap().0;
            server.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
            while server.write(&[0; 1 << 16]).is_ok() {}
            client
        })
        .collect();
    let orphans = || {
        let sample = bed.server.host.run(sources::here);
        sample.in_state(doctor::sample::state::FIN_WAIT_1).filter(|socket| socket.probing).count()
    };
    until("orphans that probe", || orphans() == 10);
    first(&bed.server.host, "ST-03");
}
