//! SYNs that are never completed, and other causes that make a listener's counters grow.
use crate::accept::listener_at;
use crate::bed::{Bed, bed, once_found, until};
use crate::half_open::{half_open, syn};
use crate::shown::Show;
use crate::{findings, has, ids};
use doctor::sample::{Address, Socket, state};
use doctor::{Confidence, Finding, Record, Report, Sample, Severity};
use interop::Direction;
use interop::hook::{Verdict, pass};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// Sends one SYN from each of these addresses of 10.7.0.0/16.
fn forged(bed: &Bed, port: u16, numbers: std::ops::Range<u16>) {
    let to = bed.server.host.addresses.v4;
    for n in numbers {
        let [high, low] = n.to_be_bytes();
        bed.wire.inject(Direction::ToServer, syn(Ipv4Addr::new(10, 7, high + 1, low), to, 1024 + n, port));
    }
}

/// Routes the server's replies to 10.7.0.0/16 into the path, where nobody answers.
fn flooded(bed: &Bed) {
    bed.server.host.run(|| crate::shell("ip route add 10.7.0.0/16 dev tun0"));
    let forged = |to: &[u8]| to.starts_with(&[10, 7]);
    bed.wire.set_hook(Box::new(move |_, _, packet| {
        let lost = packet.get(16..20).is_some_and(forged);
        if lost { Verdict::Drop } else { Verdict::Pass }
    }));
}

pub(crate) fn a_syn_flood_is_one_finding_that_names_it(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let listener = bed.server.host.run(|| listener_at(address, 64));
    flooded(&bed);
    let visit = || {
        drop(bed.client.host.run(|| TcpStream::connect(address).unwrap()));
        drop(rustix::net::accept(&listener).unwrap());
    };
    show.silent(&["ACC-07"], &bed.at_server(visit));
    bed.server.host.sysctl("net.ipv4.tcp_synack_retries", "2");
    forged(&bed, 80, 0..200);
    until("a full SYN queue", || half_open(&bed) > 64);
    let found = once_found("ACC-07", || {
        bed.at_server(|| {
            forged(&bed, 80, 200..250);
            std::thread::sleep(Duration::from_millis(200));
        })
    });
    show.fires(&["ACC-07"], &found);
    assert_eq!((found[0].symptom.as_str(), found[0].scope.to_string()), ("SYN flood", "port 80".to_owned()));
    assert_eq!(named(&found), ["ACC-07"]);
    assert!(found[0].why.contains("Clients still connect with SYN cookies"), "{}", found[0].why);
    // The SYNs are dropped before this host.
    show.by_hand(&["ACC-07"]);
    until("an empty SYN queue", || half_open(&bed) == 0);
    show.gone(&["ACC-07"], &bed.at_server(visit));
}

pub(crate) fn clients_without_a_route_back_are_named(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    bed.server.host.run(|| crate::shell("ip route add unreachable 10.8.0.0/16"));
    let from = |first: u8| {
        let to = bed.server.host.addresses.v4;
        for n in 1..=5 {
            let packet = syn(Ipv4Addr::new(10, first, 0, n), to, 1024, 80);
            bed.wire.inject(Direction::ToServer, packet);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    show.silent(&["ACC-02"], &bed.at_server(|| from(77)));
    let found = once_found("ACC-02", || bed.at_server(|| from(8)));
    show.fires(&["ACC-02"], &found);
    assert_eq!(named(&found), ["ACC-02"]);
    assert_eq!(found[0].symptom, "listener drops SYNs: no route back to the clients");
    assert_eq!(found[0].scope.to_string(), "port 80");
    bed.server
        .host
        .run(|| crate::shell("ip route del unreachable 10.8.0.0/16; ip route add 10.8.0.0/16 dev tun0"));
    show.by_hand(&["ACC-02"]);
    show.gone(&["ACC-02"], &bed.at_server(|| from(8)));
}

pub(crate) fn damaged_segments_are_told_from_losses(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let (from, to) = (bed.client.host.addresses.v4, bed.server.host.addresses.v4);
    let send = |damage: u8| {
        for n in 0..12 {
            let mut packet = syn(from, to, 2000 + n, 81);
            packet[36] ^= damage;
            bed.wire.inject(Direction::ToServer, packet);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    show.silent(&["RX-11"], &bed.at_server(|| send(0)));
    let found = once_found("RX-11", || bed.at_server(|| send(1)));
    show.fires(&["RX-11"], &found);
    assert_eq!(named(&found), ["RX-11"]);
    show.by_hand(&["RX-11"]);
    show.gone(&["RX-11"], &bed.at_server(|| send(0)));
}

/// A listener with a key for MD5 signatures (`TCP_MD5SIG`, option 14) of its client. The client
/// connects with the same key or without one.
const SIGNS: &str = "
import socket, struct, sys
def key(s): s.setsockopt(6, 14, struct.pack('=HH4s120xBBHI80s', 2, 0, socket.inet_aton('127.0.0.1'), 0, 0, 3, 0, b'key'.ljust(80, b'.')))
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(1); key(l)
c = socket.socket(); c.settimeout(0.2)
if sys.argv[1] == 'both': key(c)
try: c.connect(l.getsockname())
except OSError: pass
";

pub(crate) fn signatures_that_do_not_match_are_named(show: &Show) {
    if !testnet::has_program("python3") {
        return show.skip("needs python3");
    }
    testnet::in_namespace(|| {
        let connect = |keys: &str| {
            let status = testnet::command("python3").args(["-c", SIGNS, keys]).status().unwrap();
            assert!(status.success());
        };
        show.silent(&["RX-12"], &findings(|| connect("both")));
        let found = findings(|| connect("one"));
        show.fires(&["RX-12"], &found);
        assert_eq!(named(&found), ["RX-12"]);
        show.by_hand(&["RX-12"]);
        show.gone(&["RX-12"], &findings(|| connect("both")));
    });
}

/// Returns the ids of the findings that are more severe than information.
fn named(found: &[Finding]) -> Vec<&str> {
    let bad = found.iter().filter(|finding| finding.severity > Severity::Info);
    bad.map(|finding| finding.id.as_str()).collect()
}

/// The return path to one client is broken: its SYNs arrive, its SYN-ACKs are lost. This is not a
/// flood, although the queue fills.
#[test]
fn a_broken_way_back_to_one_client_is_no_flood() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| listener_at(address, 10));
    crate::half_open::flood(&bed, 80, 1000..1030);
    let found = once_found("ACC-12", || bed.at_server(|| {}));
    assert!(!has(&found, "ACC-07") && !has(&found, "CC-07") && !has(&found, "CC-12"), "{:?}", ids(&found));
    bed.wire.set_hook(pass());
}

/// A long queue that is far from full, and no handshake succeeds: the return path to the clients is
/// broken.
#[test]
fn a_way_back_that_is_broken_is_found_in_a_long_queue() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| listener_at(address, 500));
    crate::half_open::flood(&bed, 80, 1000..1020);
    let found = once_found("ACC-12", || bed.at_server(|| {}));
    assert_eq!(named(&found), ["ACC-12"]);
}

/// Counters of the kernel after four seconds of a flood, with a queue of 500 (read from Linux
/// 6.18).
fn recorded(cookies: &str) -> Record {
    let listener =
        Socket { state: state::LISTEN, local_port: 90, send_queue: 500, inode: 7, ..Socket::default() };
    let half_open = |n: u16| {
        let [high, low] = n.to_be_bytes();
        Socket {
            state: state::SYN_RECEIVED,
            local_port: 90,
            peer: Address(Ipv4Addr::new(10, 7, high + 1, low).into()),
            peer_port: 1024 + n,
            retransmits: 2,
            ..Socket::default()
        }
    };
    let sockets = std::iter::once(listener).chain((0..501).map(half_open)).collect();
    let settings = [("net.ipv4.tcp_syncookies", cookies), ("net.ipv4.tcp_max_syn_backlog", "512")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let before =
        Sample { kernel: "6.18.44".to_owned(), uptime: 100.0, sockets, settings, ..Sample::default() };
    let mut now = Sample { uptime: 104.0, ..before.clone() };
    let counted: &[(&str, u64)] = &[
        ("TcpRetransSegs", 1002),
        ("TcpOutSegs", 5553),
        ("TcpInSegs", 4551),
        ("TcpExtTCPSynRetrans", 1002),
        ("TcpExtTCPTimeouts", 1002),
        ("TcpExtTCPOrigDataSent", 0),
    ];
    let of_cookies: &[(&str, u64)] = match cookies {
        "0" => &[("TcpExtTCPReqQFullDrop", 4213), ("TcpExtListenDrops", 4213)],
        _ => &[("TcpExtTCPReqQFullDoCookies", 4213), ("TcpExtSyncookiesSent", 4213)],
    };
    let all = counted.iter().chain(of_cookies);
    now.counters.extend(all.map(|(name, value)| ((*name).to_owned(), *value)));
    Record::new(Some(before), now)
}

fn judged(record: &Record) -> Vec<Finding> {
    let settings = ["ACC-11"];
    let all = Report::of(&record.window()).findings;
    all.into_iter().filter(|finding| !settings.contains(&finding.id.as_str())).collect()
}

#[test]
fn a_recorded_flood_is_one_finding_with_and_without_cookies() {
    let found = judged(&recorded("1"));
    assert_eq!(ids(&found), ["ACC-07"]);
    assert_eq!((found[0].severity, found[0].confidence), (Severity::Warning, Confidence::Likely));
    let found = judged(&recorded("0"));
    assert_eq!(ids(&found), ["ACC-07"]);
    assert_eq!(found[0].severity, Severity::Critical);
    assert!(found[0].why.contains("Linux drops SYNs of real clients"), "{}", found[0].why);
    assert_eq!(found[0].fix.steps[0].command, "sysctl -w net.ipv4.tcp_syncookies=\"1\"");
}

/// Many clients complete their handshakes at once, most with a SYN cookie. The queue stays short,
/// so this is not a flood.
#[test]
fn a_crowd_that_completes_its_handshakes_is_no_flood() {
    let mut crowd = recorded("1");
    for socket in &mut crowd.now.sockets {
        socket.retransmits = 0;
    }
    crowd.now.counters.insert("TcpExtSyncookiesRecv".to_owned(), 4200);
    crowd.now.counters.insert("TcpPassiveOpens".to_owned(), 6000);
    assert_eq!(ids(&judged(&crowd)), ["ACC-14"]);
}

/// With the value 2 every SYN gets a cookie, and the counter grows as if the queue were full. The
/// finding names the setting.
#[test]
fn cookies_that_a_setting_asks_for_are_no_full_queue() {
    let mut every = recorded("2");
    every.now.sockets.retain(|socket| socket.state == state::LISTEN);
    assert_eq!(ids(&judged(&every)), ["ACC-10"]);
}

/// A server with lossy clients and a few connects of its own. The retransmissions are SYN-ACKs.
#[test]
fn syn_acks_sent_again_are_neither_losses_nor_unanswered_connects() {
    let before = Sample { kernel: "6.18.44".to_owned(), uptime: 100.0, ..Sample::default() };
    let mut now = Sample { uptime: 105.0, ..before.clone() };
    for (counter, value) in [
        ("TcpRetransSegs", 400),
        ("TcpExtTCPSynRetrans", 390),
        ("TcpOutSegs", 4000),
        ("TcpExtTCPOrigDataSent", 2000),
        ("TcpPassiveOpens", 900),
        ("TcpActiveOpens", 10),
    ] {
        now.counters.insert(counter.to_owned(), value);
    }
    let mut record = Record::new(Some(before), now);
    assert_eq!(ids(&judged(&record)), Vec::<&str>::new());
    // With connects of its own that wait.
    let waits =
        |n: u16| Socket { state: state::SYN_SENT, local_port: n, retransmits: 2, ..Socket::default() };
    record.now.sockets.extend((0..6).map(waits));
    assert_eq!(ids(&judged(&record)), ["CC-12"]);
}

/// Drops that no counter explains: the finding claims no full queue, and is only a hint.
#[test]
fn drops_without_a_reason_are_a_hint() {
    let listener = Socket { state: state::LISTEN, local_port: 80, send_queue: 128, ..Socket::default() };
    let mut before = Sample { kernel: "6.18.44".to_owned(), uptime: 100.0, ..Sample::default() };
    before.settings.insert("net.ipv4.tcp_syncookies".to_owned(), "0".to_owned());
    before.settings.insert("net.ipv4.tcp_max_syn_backlog".to_owned(), "512".to_owned());
    before.sockets.push(Socket { memory: Some(doctor::sample::Memory::default()), ..listener });
    let mut now = Sample { uptime: 105.0, ..before.clone() };
    now.sockets[0].memory.as_mut().unwrap().drops = 20;
    now.counters.insert("TcpExtListenDrops".to_owned(), 20);
    let mut found = judged(&Record::new(Some(before), now));
    found.retain(|finding| finding.id != "ACC-09");
    assert_eq!(ids(&found), ["ACC-02"]);
    assert_eq!((found[0].scope.to_string(), found[0].confidence), ("port 80".to_owned(), Confidence::Hint));
}

#[test]
fn a_flood_in_a_short_queue_without_cookies_is_named_too() {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    bed.server.host.sysctl("net.ipv4.tcp_syncookies", "0");
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| listener_at(address, 32));
    flooded(&bed);
    forged(&bed, 80, 0..100);
    let mut found = Vec::new();
    until("a flood that costs clients", || {
        found = bed.at_server(|| {
            forged(&bed, 80, 100..200);
            std::thread::sleep(Duration::from_millis(100));
        });
        found.first().is_some_and(|first| first.id == "ACC-07" && first.severity == Severity::Critical)
    });
    assert!(
        !["ACC-02", "ACC-08", "ACC-09", "ACC-12", "ACC-05"].iter().any(|id| has(&found, id)),
        "{:?}",
        ids(&found)
    );
}
