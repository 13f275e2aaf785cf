//! Programs that do not read, and buffers that are too small.
use crate::bed::{bed, once_found, once_gone, transfer, within, write};
use crate::shown::Show;
use crate::{assert_healthy, findings, has, ids};
use doctor::sample::{Info, Memory, Socket, state};
use doctor::{Sample, sources};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub(crate) fn a_reader_that_is_too_slow_is_found(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["WIN-09"], &found);
        let mut written = 0;
        let found = findings(|| {
            // Until the window is closed and the sender probes it, which depends on the kernel's
            // timers.
            let begun = Instant::now();
            while !sources::here().sockets.iter().any(|socket| socket.probing) {
                assert!(begun.elapsed() < Duration::from_secs(20), "no probe of a closed window");
                match client.write(&[0; 65536]) {
                    Ok(taken) => written += taken,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
            // A slow reader that has not stopped.
            written -= server.read(&mut [0; 4096]).unwrap();
        });
        show.fires(&["WIN-09"], &found);
        assert!(!has(&found, "WIN-17"), "{:?}", ids(&found));
        let mut buffer = vec![0; 1 << 20];
        while written > 0 {
            written -= server.read(&mut buffer).unwrap();
        }
        show.by_hand(&["WIN-09"]);
        show.gone(&["WIN-09"], &findings(|| {}));
    });
}

pub(crate) fn a_peer_that_does_not_read_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let (mut client, mut server) = bed.connection(80);
    show.silent(&["WIN-10"], &bed.at_client(|| {}));
    client.set_nonblocking(true).unwrap();
    let mut written = 0;
    // The persist timer runs in both samples.
    let found = once_found("WIN-10", || {
        while let Ok(taken) = client.write(&[0; 65536]) {
            written += taken;
        }
        bed.at_client(|| std::thread::sleep(Duration::from_millis(50)))
    });
    show.fires(&["WIN-10"], &found);
    assert_eq!(found[0].id, "WIN-10", "{:?}", ids(&found));
    assert!(!has(&found, "WIN-09") && !has(&found, "WIN-17"), "it reads all it gets: {:?}", ids(&found));
    let mut buffer = vec![0; 1 << 20];
    while written > 0 {
        written -= server.read(&mut buffer).unwrap();
    }
    show.by_hand(&["WIN-10"]);
    show.gone(&["WIN-10"], &once_gone(&["WIN-10"], || bed.at_client(|| {})));
}

pub(crate) fn a_program_that_has_stopped_reading_is_named_with_its_process(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        show.silent(&["WIN-17"], &findings(|| {}));
        client.set_nonblocking(true).unwrap();
        let mut written = 0;
        while !sources::here().sockets.iter().any(|socket| socket.probing) {
            written += client.write(&[0; 65536]).unwrap_or(0);
        }
        // Neither counters nor queues change any more.
        let found = once_found("WIN-17", || findings(|| std::thread::sleep(Duration::from_millis(50))));
        show.fires(&["WIN-17"], &found);
        let first = &found[0];
        let ends = format!("{} -> {}", server.local_addr().unwrap(), server.peer_addr().unwrap());
        assert_eq!((first.id.as_str(), &first.scope), ("WIN-17", &doctor::Scope::Socket(ends)), "{found:#?}");
        let held = format!("process {}", std::process::id());
        assert!(first.evidence.iter().any(|evidence| evidence.value.contains(&held)), "{first:#?}");
        assert!(!has(&found, "WIN-09"), "{:?}", ids(&found));
        let mut buffer = vec![0; 1 << 20];
        while written > 0 {
            written -= server.read(&mut buffer).unwrap();
        }
        show.by_hand(&["WIN-17"]);
        let found = findings(|| {});
        assert_healthy(&found);
        show.gone(&["WIN-17"], &found);
    });
}

/// Zero windows were advertised, and all data is read now: no reader is too slow.
#[test]
fn zero_windows_of_a_host_that_has_read_everything_are_silent() {
    let mut before =
        Sample { kernel: "6.18.0".into(), uptime: 1.0, sockets: vec![unread(0, 0)], ..Sample::default() };
    let mut now = Sample { uptime: 6.0, ..before.clone() };
    now.counters.insert("TcpExtTCPToZeroWindowAdv".into(), 3);
    assert_eq!(ids(&crate::judged(&before, &now)), Vec::<&str>::new());
    before.sockets[0] = unread(127_480, 0);
    assert_eq!(ids(&crate::judged(&before, &now)), Vec::<&str>::new(), "all of it was read");
    // Half full, and some data was read.
    now.sockets[0] = unread(90_000, 0);
    now.sockets[0].info.as_mut().unwrap().bytes_received = 200_000;
    assert_eq!(ids(&crate::judged(&before, &now)), ["WIN-09"]);
}

/// One sample is enough if the last data arrived long ago and fills the buffer.
#[test]
fn a_reader_that_has_stopped_is_seen_in_one_sample() {
    let stopped = |last_data_recv| {
        let sockets = vec![unread(127_480, last_data_recv)];
        let sample = Sample { kernel: "6.18.0".into(), sockets, ..Sample::default() };
        let found = doctor::Report::of(&doctor::Window::since_boot(&sample)).findings;
        found.first().map(|found| found.formula.clone())
    };
    assert_eq!(stopped(200), None);
    assert_eq!(stopped(9444).unwrap(), "127480 bytes unread for 9.4 s >= 1 s");
}

/// Returns a connection with this many unread bytes, whose last data arrived this many milliseconds
/// ago (buffer sizes of Linux 6.18).
fn unread(recv_queue: u32, last_data_recv: u32) -> Socket {
    let memory = Memory { rcvbuf: 131_072, rmem_alloc: recv_queue, ..Memory::default() };
    let info = Info { last_data_recv, bytes_received: recv_queue.into(), ..Info::default() };
    let (memory, info) = (Some(memory), Some(info));
    Socket { state: state::ESTABLISHED, inode: 7, recv_queue, memory, info, ..Socket::default() }
}

/// Windows in which a rule must fire at least once. A rule that must not fire gets fewer.
const MANY: usize = 60;
const FEW: usize = 2;

pub(crate) fn a_connection_without_window_scaling_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(12)) else { return };
    let client = bed.client.host.share();
    let look = |port, windows| transfer(bed.connection(port), write, || within(&client, windows, "WIN-02"));
    show.silent(&["WIN-02"], &look(79, FEW));
    bed.server.host.sysctl("net.ipv4.tcp_window_scaling", "0");
    show.fires(&["WIN-02"], &look(80, MANY));
    bed.server.host.sysctl("net.ipv4.tcp_window_scaling", "1");
    show.by_hand(&["WIN-02"]);
    show.gone(&["WIN-02"], &look(81, FEW));
}

/// Segments behind a lost one fill the window. The finding for such a connection names losses, not
/// the reader.
#[test]
fn a_window_that_losses_fill_does_not_blame_the_reader() {
    let found = |total_retrans| {
        let info = Info { data_segs_out: 10_000, total_retrans, ..Info::default() };
        let info = Info { busy_time: 4_000_000, rwnd_limited: 2_000_000, ..info };
        let socket = Socket { state: state::ESTABLISHED, info: Some(Info::default()), ..Socket::default() };
        let before =
            Sample { kernel: "6.18.0".into(), uptime: 1.0, sockets: vec![socket], ..Sample::default() };
        let mut now = Sample { uptime: 6.0, ..before.clone() };
        now.sockets[0].info = Some(info);
        now.counters.insert("TcpExtTCPOrigDataSent".into(), 10_000);
        now.counters.insert("TcpRetransSegs".into(), total_retrans.into());
        ids(&crate::judged(&before, &now)).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(0), ["WIN-03"]);
    assert_eq!(found(300), ["CC-07"]);
}

/// The cause is named as far as other connections show it, and never as certain.
#[test]
fn the_cause_of_missing_window_scaling_follows_from_other_connections() {
    let found = |change: &dyn Fn(&mut Sample)| {
        let connection = |peer: &str, options| Socket {
            state: state::ESTABLISHED,
            local_port: 40_000,
            peer: doctor::sample::Address(peer.parse().unwrap()),
            peer_port: 80,
            info: Some(Info { options, min_rtt: 20_000, bytes_acked: 5_000_000, ..Info::default() }),
            ..Socket::default()
        };
        let mut now = Sample { kernel: "6.18.0".into(), ..Sample::default() };
        now.settings.insert("net.ipv4.tcp_window_scaling".into(), "1".into());
        // With timestamps and SACK.
        now.sockets = vec![connection("192.0.2.1", 3)];
        change(&mut now);
        for (place, socket) in now.sockets.iter_mut().enumerate().skip(1) {
            socket.local_port += u16::try_from(place).unwrap();
        }
        let found = doctor::Report::of(&doctor::Window::since_boot(&now)).findings;
        found.into_iter().find(|finding| finding.id == "WIN-02").unwrap()
    };
    let other = |now: &mut Sample, peer: &str, options| {
        let mut socket = now.sockets[0].clone();
        socket.peer = doctor::sample::Address(peer.parse().unwrap());
        socket.info.as_mut().unwrap().options = options;
        now.sockets.push(socket);
    };
    let alone = found(&|_| {});
    assert_eq!(alone.confidence, doctor::Confidence::Hint);
    assert!(alone.fix.advice.starts_with("Check the peer first"), "{}", alone.fix.advice);
    assert!(alone.fix.advice.contains("SYN proxy, firewall or load balancer"), "{}", alone.fix.advice);
    let elsewhere = found(&|now| other(now, "192.0.2.2", 7));
    assert_eq!(
        elsewhere.confidence,
        doctor::Confidence::Hint,
        "another peer that can says nothing of this one"
    );
    let same = found(&|now| other(now, "192.0.2.1", 7));
    assert_eq!(same.confidence, doctor::Confidence::Likely);
    assert!(same.why.starts_with("Another connection with this peer has window scaling"), "{}", same.why);
    let nobody = found(&|now| {
        other(now, "192.0.2.2", 3);
        other(now, "192.0.2.3", 3);
    });
    assert!(nobody.why.contains("near this host"), "{}", nobody.why);
    let cookie = found(&|now| {
        now.counters.insert("TcpExtSyncookiesRecv".into(), 9);
        now.sockets[0].info.as_mut().unwrap().options = 0;
        let listener = Socket { state: state::LISTEN, local_port: 40_000, ..Socket::default() };
        now.sockets.push(listener);
        now.sockets[1].local_port -= 1;
    });
    assert!(cookie.why.contains("with a SYN cookie"), "{}", cookie.why);
}

pub(crate) fn a_receive_window_that_holds_the_sender_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    let look =
        |port, windows| transfer(bed.connection(port), send_apart, || within(&client, windows, "WIN-03"));
    // With this maximum the sender's buffer is by far the smaller one, even if the receiver rarely
    // runs.
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384");
    // A connection must be busy for one second.
    show.silent(&["WIN-03"], &look(79, 10));
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304");
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    show.fires(&["WIN-03"], &look(80, MANY));
    bed.client.host.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384");
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 131072 33554432");
    show.by_hand(&["WIN-03"]);
    show.gone(&["WIN-03"], &look(81, 10));
}

pub(crate) fn a_fixed_receive_buffer_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let server = bed.server.host.share();
    let connection = |port, fixed| {
        let address = bed.address(port);
        let listener = server.run(|| TcpListener::bind(address).unwrap());
        if fixed {
            rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16384).unwrap();
        }
        let client = bed.client.host.run(|| TcpStream::connect(address).unwrap());
        (client, listener.accept().unwrap().0)
    };
    let look = |port, fixed, windows| {
        transfer(connection(port, fixed), write, || within(&server, windows, "WIN-07"))
    };
    show.silent(&["WIN-07"], &look(79, false, FEW));
    show.fires(&["WIN-07"], &look(80, true, MANY));
    show.by_hand(&["WIN-07"]);
    show.gone(&["WIN-07"], &look(81, false, FEW));
}

pub(crate) fn a_fixed_send_buffer_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    let look = |ends, windows| transfer(ends, send_apart, || within(&client, windows, "WIN-06"));
    show.silent(&["WIN-06"], &look(bed.connection(79), FEW));
    let fixed = bed.connection(80);
    rustix::net::sockopt::set_socket_send_buffer_size(&fixed.0, 16384).unwrap();
    show.fires(&["WIN-06"], &look(fixed, MANY));
    show.by_hand(&["WIN-06"]);
    show.gone(&["WIN-06"], &look(bed.connection(81), FEW));
}

/// Writes a separate buffer, as many programs do. A plain write would extend the last buffer past
/// the limit.
fn send_apart(to: &TcpStream) -> bool {
    rustix::net::send(to, &[0; 1448], rustix::net::SendFlags::EOR).is_ok()
}

/// A slow link between client and path. At a round trip of 20 ms it holds 20 kB.
const SLOW: &str = "tc qdisc add dev tun0 root tbf rate 8mbit burst 15k limit 30k";

pub(crate) fn a_maximum_that_holds_the_receiver_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let server = bed.server.host.share();
    bed.client.host.run(|| crate::shell(SLOW));
    let look = |port, windows| transfer(bed.connection(port), write, || within(&server, windows, "WIN-04"));
    show.silent(&["WIN-04"], &look(79, FEW));
    server.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    show.fires(&["WIN-04"], &look(80, MANY));
    server.run(|| show.run(&["WIN-04"]));
    show.gone(&["WIN-04"], &look(81, 6));
}

pub(crate) fn a_maximum_that_holds_the_sender_is_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let client = bed.client.host.share();
    // The receiver's window is larger than the smallest buffer of the sender and smaller than the
    // others.
    bed.server.host.sysctl("net.ipv4.tcp_rmem", "4096 32768 32768");
    let look =
        |port, windows| transfer(bed.connection(port), send_apart, || within(&client, windows, "WIN-05"));
    show.silent(&["WIN-05"], &look(79, FEW));
    client.sysctl("net.ipv4.tcp_wmem", "4096 16384 16384");
    show.fires(&["WIN-05"], &look(80, MANY));
    client.run(|| show.run(&["WIN-05"]));
    show.gone(&["WIN-05"], &look(81, 6));
}

pub(crate) fn a_buffer_cut_by_the_hosts_maximum_is_told(show: &Show) {
    testnet::in_namespace(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["WIN-16"], &found);
        rustix::net::sockopt::set_socket_send_buffer_size(&client, 1 << 29).unwrap();
        let found = findings(|| {});
        assert_eq!(ids(&found), ["WIN-16"]);
        show.fires(&["WIN-16"], &found);
        // Without the option.
        drop((client, server));
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        show.by_hand(&["WIN-16"]);
        show.gone(&["WIN-16"], &once_gone(&["WIN-16"], || findings(|| {})));
    });
}

/// Answers in a row that must name the same limit.
const IN_A_ROW: usize = 5;

/// Answers until the transfer must be steady. Losses that end its slow start may take a few.
const ASKED_MAX: usize = 15;

/// Asks for the limit of a transfer over a path of 20 ms repeatedly, with twenty samples each time.
#[test]
fn a_steady_transfer_has_the_same_limit_at_each_look() {
    use doctor::show::limits::{Looks, of};
    let Some(bed) = bed(Duration::from_millis(20)) else { return };
    let host = &bed.client.host;
    transfer(bed.connection(80), crate::bed::write, || {
        let ask = || {
            let mut looks = Looks::default();
            let first = host.run(doctor::sources::sockets);
            looks.take(&first);
            let rest = (0..20).map(|_| {
                std::thread::sleep(Duration::from_millis(20));
                let sample = host.run(doctor::sources::sockets);
                looks.take(&sample);
                sample
            });
            let last = rest.last().unwrap();
            let socket = last.sockets.iter().find(|socket| socket.peer_port == 80).unwrap();
            of(socket, &doctor::Window::between(&first, &last), &looks).unwrap()
        };
        let mut said = String::new();
        let (mut limit, mut in_a_row) = (None, 0);
        for _ in 0..ASKED_MAX {
            let limits = ask();
            let now = limits.now.unwrap();
            assert!(now > 0.0 && limits.rates.iter().all(|(_, rate)| *rate >= now), "{limits}");
            in_a_row = if limit == Some(limits.by) { in_a_row + 1 } else { 1 };
            limit = Some(limits.by);
            said += &format!("{limits}\n");
            if in_a_row == IN_A_ROW {
                return;
            }
        }
        panic!("never {IN_A_ROW} times in a row the same limit:\n{said}");
    });
}
