//! Compares values with those of the kernel's own tools, in one namespace at one time.
use doctor::sample::Socket;
use doctor::show::sockets::{self, View, Which};
use doctor::show::{counters, paths, queues, routes, settings};
use doctor::sources::Holder;
use doctor::{Sample, Window, sources};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn has(program: &str) -> bool {
    let is_there = testnet::has_program(program);
    if !is_there {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs {program}");
    }
    is_there
}

/// Returns the output of a program in this thread's namespace.
fn said(command: &str) -> String {
    let output = testnet::command("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns two ends that have exchanged data.
fn connection() -> (TcpListener, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    client.write_all(&[1; 5000]).unwrap();
    server.read_exact(&mut [0; 3000]).unwrap();
    server.write_all(b"answer").unwrap();
    client.read_exact(&mut [0; 6]).unwrap();
    (listener, client, server)
}

/// Returns the words of a listing that do not change: no ages, and nothing that only ss shows.
fn still(listing: &str) -> Vec<BTreeSet<String>> {
    const MOVES: [&str; 13] = [
        "lastsnd", "lastrcv", "lastack", "busy", "timer", "rto", "ino", "uid", "sk", "cgroup", "rcv_rtt",
        "ato", "bbr",
    ];
    let joined = listing.replace("\n\t", " ");
    let lines = joined.lines().skip(1);
    let mut sockets: Vec<BTreeSet<String>> = lines
        .map(|line| {
            let words = line.split_whitespace().filter(|word| {
                let name = word.split(':').next().unwrap();
                let moves = MOVES.contains(&name) && word.contains(':');
                !moves && !["<->", "pmtu:65535"].contains(word)
            });
            words.map(str::to_owned).collect()
        })
        .collect();
    sockets.sort();
    sockets
}

#[test]
fn sockets_have_the_words_of_ss() {
    if !has("ss") {
        return;
    }
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_congestion_control", "reno");
        let _ends = connection();
        let view = View {
            which: Which::All,
            info: true,
            memory: true,
            timers: true,
            extended: true,
            ..View::default()
        };
        let theirs = still(&said("ss -tainmo"));
        let now = sources::sockets();
        let ours = still(&sockets::text(&view, &Window::since_boot(&now)));
        assert_eq!(ours.len(), 3);
        assert_eq!(ours, theirs);
    });
}

#[test]
fn counters_are_those_of_nstat() {
    if !has("nstat") {
        return;
    }
    testnet::in_namespace(|| {
        drop(connection());
        let theirs = said("nstat -asz");
        let now = sources::procfs();
        let view = counters::View { zeros: true, ..counters::View::default() };
        let ours = counters::text(&view, &Window::since_boot(&now));
        let pairs = |text: &str| -> BTreeSet<String> {
            let lines =
                text.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
            lines.filter(|line| line.starts_with("Tcp")).collect()
        };
        assert!(pairs(&ours).contains("TcpActiveOpens 1"), "{ours}");
        // nstat leaves out some values of /proc/net/snmp (TcpRtoMin and others).
        let missing: Vec<_> = pairs(&theirs).difference(&pairs(&ours)).cloned().collect();
        assert!(missing.is_empty(), "{missing:?}");
    });
}

#[test]
fn queues_are_those_of_tc() {
    if !has("tc") || !has("ip") {
        return;
    }
    testnet::in_namespace(|| {
        // Without IPv6 the kernel sends nothing by itself.
        testnet::sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        let words = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        for discipline in [
            "tbf rate 5mbit burst 4kb latency 50ms",
            "pfifo limit 77",
            "bfifo limit 30000",
            "pfifo_fast",
            "htb default 16",
        ] {
            said("ip link add va type veth peer name vb; ip link set va up; ip link set vb up");
            said(&format!("tc qdisc replace dev va root handle 1: {discipline}"));
            let now = sources::queues().unwrap();
            assert_eq!(
                words(&queues::text(Some("va"), &now)),
                words(&said("tc -s qdisc show | grep -A 2 'dev va '")),
                "{discipline}"
            );
            said("ip link del va");
        }
    });
}

/// A process can choose any name (PR_SET_NAME).
#[test]
fn the_name_of_a_process_is_shown_and_not_obeyed() {
    let holder = Holder { pid: 1, name: "x\u{1b}[31m\nHACK".to_owned(), descriptor: 3 };
    let view = View { which: Which::All, holders: Some([(7, vec![holder])].into()), ..View::default() };
    let now = Sample { sockets: vec![Socket { inode: 7, ..Socket::default() }], ..Sample::default() };
    let text = sockets::text(&view, &Window::since_boot(&now));
    assert!(text.contains(r#"users:(("x\u{1b}[31m\u{a}HACK",pid=1,fd=3))"#), "{text}");
}

#[test]
fn routes_and_paths_are_those_of_ip() {
    if !has("ip") {
        return;
    }
    testnet::in_namespace(|| {
        said(
            "ip link add va type veth peer name vb; ip link set va up; ip link set vb up
             ip addr add 10.9.0.1/24 dev va; ip -6 addr add fd00:9::1/64 dev va nodad
             ip route add default via 10.9.0.2 metric 7 initcwnd 20
             ip route add 10.10.0.0/16 via 10.9.0.2 cwnd lock 12 mtu 1400 rto_min 30ms quickack 1
             ip route add unreachable 10.11.0.0/16; ip route add 10.12.0.1 dev va proto static src 10.9.0.1
             ip route add 10.13.0.0/16 table 77 dev va; ip route add 10.14.0.0/16 via 10.99.0.1 dev va onlink hoplimit 9",
        );
        let words = |text: String| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        let now = sources::routes().unwrap();
        assert_eq!(words(routes::text(&now, Some(routes::MAIN), 4)), words(said("ip route show")));
        assert_eq!(words(routes::text(&now, Some(77), 4)), ["10.13.0.0/16 dev va table 77 scope link"]);
        // The preference of IPv6 routers does not concern TCP.
        let theirs = said("ip -6 route show").replace(" pref medium", "");
        assert_eq!(words(routes::text(&now, Some(routes::MAIN), 6)), words(theirs));
        // With cookies.
        testnet::sysctl("net.ipv4.tcp_fastopen", "1027");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for _ in 0..2 {
            said(&format!(
                "python3 -c 'import socket; s = socket.socket(); s.sendto(b\"x\", 0x20000000, (\"127.0.0.1\", {}))'",
                listener.local_addr().unwrap().port()
            ));
        }
        let ours = paths::text(&sources::paths().unwrap());
        let still = |text: &str| {
            text.split_whitespace().filter(|word| !word.ends_with("sec")).collect::<Vec<_>>().join(" ")
        };
        assert!(ours.contains("fo_cookie"), "{ours}");
        assert_eq!(still(&ours), still(&said("ip tcp_metrics show")));
    });
}

#[test]
fn settings_are_those_of_sysctl() {
    testnet::in_namespace(|| {
        let now = sources::procfs();
        let ours = settings::text(&["net.ipv4.tcp_rmem".to_owned()], &now).unwrap();
        let value = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
        assert_eq!(ours, format!("net.ipv4.tcp_rmem = {value}"));
        // The key is not shown.
        let key = settings::text(&["tcp_fastopen_key".to_owned()], &now).unwrap();
        assert!(key.starts_with("net.ipv4.tcp_fastopen_key = ") && key.contains("set"), "{key}");
    });
}
