//! Figures beside those of the kernel's own tools, in one namespace at one time.
use doctor::show::sockets::{self, View, Which};
use doctor::{Window, sources};
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

/// What a program of this thread's namespace prints.
fn said(command: &str) -> String {
    let output = testnet::command("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Two ends that have exchanged something.
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

/// The words of a listing that stand still: no ages, and not what ss alone shows.
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
