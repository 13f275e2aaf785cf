//! Tests of the control socket with a stack in memory.

use super::*;
use crate::failure::Failure;
use control::{Listing, Which};
use firstbyte::Net;
use firstbyte::device::{Capabilities, memory};
use firstbyte::{Config, TcpListener};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const WIRE: Capabilities = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: true };

fn place(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("firstbyte-control-{name}-{}", std::process::id()))
}

/// Returns two stacks joined in memory; the first listens on port 80.
fn pair() -> (Net, Net) {
    let (left, right) = memory::pair(WIRE);
    let mut config = Config::default();
    config.set("net.ipv4.tcp_mem", "100 200 300").unwrap();
    let server = Net::builder().device(left).address("10.0.0.1/24").config(config).seed([1; 32]).start();
    let client = Net::builder().device(right).address("10.0.0.2/24").seed([2; 32]).start();
    (server.unwrap(), client.unwrap())
}

fn ss(which: Which) -> Listing {
    Listing::of(which)
}

fn listed(net: &Net, listing: Listing) -> String {
    answer(&Request::read(&Request::Ss(listing).line()).unwrap(), net.stack().unwrap(), Instant::ZERO)
        .unwrap()
}

/// Checks queues, states and fields as ss(8) shows them.
#[tokio::test]
async fn sockets_are_listed_as_ss_lists_them() {
    let (server, client) = pair();
    let listener = TcpListener::builder(&server).backlog(7).bind("10.0.0.1:80").await.unwrap();
    let mut stream = client.socket().connect("10.0.0.1:80").await.unwrap();
    let local = stream.local_addr().unwrap();
    stream.write_all(&[7; 3000]).await.unwrap();
    // One more connection waits in the accept queue.
    let (mut accepted, _) = listener.accept().await.unwrap();
    let waiting = client.socket().connect("10.0.0.1:80").await.unwrap();
    accepted.read_exact(&mut [0; 1000]).await.unwrap();
    while server.stack().unwrap().inspect(|stack| stack.counters().passive_opens) < 2 {
        tokio::task::yield_now().await;
    }

    let listening = listed(&server, ss(Which::Listening));
    let words: Vec<Vec<&str>> = listening.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1], ["LISTEN", "1", "7", "10.0.0.1:80", "0.0.0.0:*"], "{listening}");
    assert_eq!(words.len(), 2);

    let connected = listed(&server, ss(Which::Connected));
    let line = connected.lines().find(|line| line.contains(&local.to_string())).unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["ESTAB", "2000", "0", "10.0.0.1:80", &local.to_string()]
    );
    assert!(connected.starts_with("State"), "{connected}");
    assert_eq!(connected.lines().count(), 3);
    assert_eq!(listed(&server, ss(Which::All)).lines().count(), 4);
    let v6 = Listing { family: Some(6), ..ss(Which::All) };
    assert_eq!(listed(&server, v6).lines().count(), 1, "the head alone");

    let info = listed(&server, Listing { info: true, ..ss(Which::Connected) });
    let details = info.lines().find(|line| line.starts_with('\t')).unwrap();
    for name in [" cubic ", "wscale:", "rto:", "rtt:", "mss:1448", "cwnd:10", "bytes_received:", "minrtt:"] {
        assert!(details.contains(name), "{name}: {details}");
    }
    let json: Value =
        serde_json::from_str(&listed(&server, Listing { info: true, json: true, ..ss(Which::All) })).unwrap();
    let sockets = json["sockets"].as_array().unwrap();
    assert_eq!((sockets.len(), &json["more"]), (3, &0.into()));
    assert_eq!((&sockets[0]["state"], &sockets[0]["send_q"]), (&"LISTEN".into(), &7.into()));
    let ours = sockets.iter().find(|socket| socket["peer"] == local.to_string()).unwrap();
    assert_eq!(
        (&ours["recv_q"], &ours["info"]["mss"], &ours["info"]["cubic"]),
        (&2000.into(), &1448.into(), &true.into())
    );
    drop((stream, waiting, accepted));
}

/// The client closed first: its TIME-WAIT is in the summary, but not in a plain listing.
#[tokio::test]
async fn a_summary_counts_states_and_memory() {
    let (server, client) = pair();
    let listener = TcpListener::builder(&server).bind("10.0.0.1:80").await.unwrap();
    let stream = client.socket().connect("10.0.0.1:80").await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    drop(stream);
    while client.stack().unwrap().inspect(|stack| stack.states().of(firstbyte::State::FinWait2)) == 0 {
        tokio::task::yield_now().await;
    }
    let told = listed(&client, ss(Which::Summary));
    assert!(told.starts_with("Total: 1\nTCP:   1 (estab 0, synrecv 0, orphaned 0, timewait 0)"), "{told}");
    assert!(told.contains("\nFIN-WAIT-2 1\n"), "{told}");
    drop(accepted);
    while client.stack().unwrap().inspect(|stack| stack.states().of(firstbyte::State::TimeWait)) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(listed(&client, ss(Which::Summary)).contains("\nTIME-WAIT  1\n"));
    assert_eq!(listed(&client, ss(Which::Connected)).lines().count(), 1);
    assert!(listed(&client, ss(Which::All)).contains("TIME-WAIT"));
    let json: Value =
        serde_json::from_str(&listed(&server, Listing { json: true, ..ss(Which::Summary) })).unwrap();
    assert_eq!(json["states"], serde_json::json!({ "LISTEN": 1 }));
    assert_eq!(json["memory"]["levels"], serde_json::json!([100 * 4096, 200 * 4096, 300 * 4096]));
    assert_eq!((&json["memory"]["pressure"], &json["memory"]["refused"]), (&"none".into(), &0.into()));
    assert!(listed(&server, ss(Which::Summary)).contains("pages of 100 200 300 (tcp_mem), pressure: none"));
}

#[tokio::test]
async fn keys_are_set_and_what_is_none_is_refused_and_not_shown() {
    let (server, _client) = pair();
    let set = |keys: &str| {
        let request = Request::Set { name: "net.ipv4.tcp_fastopen_key".to_owned(), value: keys.to_owned() };
        answer(&request, server.stack().unwrap(), Instant::ZERO)
    };
    assert_eq!(set("1-2-3-4"), Ok(String::new()));
    for wrong in ["0-0-0-0", "1-2-3-4,0-0-0-0"] {
        let why = set(wrong).unwrap_err();
        assert!(why.starts_with("net.ipv4.tcp_fastopen_key: the key is all zeros"), "{why}");
    }
    assert!(!set("5ec2e7").unwrap_err().contains("5ec2e7"));
    assert_eq!(
        server.stack().unwrap().inspect(|stack| stack.fast_open_key().to_string()),
        "00000001-00000002-00000003-00000004"
    );
}

#[tokio::test]
async fn routes_are_set_shown_and_taken_back() {
    let (server, _client) = pair();
    let do_it = |line: &str| {
        Request::read(line).and_then(|request| answer(&request, server.stack().unwrap(), Instant::ZERO))
    };
    assert_eq!(do_it("route show"), Ok(String::new()));
    assert_eq!(do_it("route set default initcwnd 20"), Ok(String::new()));
    assert_eq!(do_it("route set 10.0.0.0/8 initcwnd 30 mtu lock 1400 congctl reno"), Ok(String::new()));
    assert_eq!(do_it("route set 10.0.0.0/8 initcwnd 4 mtu lock 1400 congctl reno"), Ok(String::new()));
    assert_eq!(do_it("route set unreachable 192.0.2.0/24"), Ok(String::new()));
    let shown = do_it("route show").unwrap();
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        [
            "0.0.0.0/0 initcwnd 20",
            "10.0.0.0/8 mtu lock 1400 initcwnd 4 congctl reno",
            "unreachable 192.0.2.0/24"
        ]
    );
    let json: Value = serde_json::from_str(&do_it("route show json").unwrap()).unwrap();
    assert_eq!(
        json[1],
        serde_json::json!({ "dst": "10.0.0.0/8", "mtu": 1400, "initcwnd": 4, "congctl": "reno", "locked": ["mtu"] })
    );
    assert_eq!(json[2], serde_json::json!({ "dst": "192.0.2.0/24", "type": "unreachable" }));
    assert_eq!(do_it("route del 10.0.0.0/8"), Ok(String::new()));
    assert!(do_it("route del 10.0.0.0/8").unwrap_err().contains("cannot find a route to 10.0.0.0/8"));
    assert_eq!(server.stack().unwrap().routes().len(), 2);
}

/// Checks the mode, the bound on a request, and the removal with the stack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_is_asked_and_goes_with_its_stack() {
    let (server, _client) = pair();
    let path = place("asked");
    let socket = ControlSocket::open(Some(&path), "unused", server.stack().unwrap()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let source = || ControlArgs::at(&path);
    let set = Request::read("route set default initcwnd 5").unwrap();
    assert_eq!(ask(&source(), &set), Ok(String::new()));
    assert_eq!(ask(&source(), &Request::RouteShow { json: false }), Ok("0.0.0.0/0 initcwnd 5\n".to_owned()));
    let gone = ask(&source(), &Request::read("route del 10.0.0.0/8").unwrap()).unwrap_err();
    assert_eq!(
        gone,
        Failure::failed("cannot find a route to 10.0.0.0/8; `firstbyte route show --stack` lists the routes")
    );

    let raw = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(bytes).unwrap();
        // The server may have answered and closed before it has read everything.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    assert!(raw(b"reboot\n").starts_with("error\n`reboot` is not a request"));
    assert!(raw(b"ss").starts_with("error\nexpected a request of one line"));
    assert!(raw(&[b'x'; 5000]).starts_with("error\nexpected a request of one line, at most 4096 bytes"));
    assert!(raw(&[0xff, b'\n']).is_empty(), "no text is no request");

    let second = ControlSocket::open(Some(&path), "unused", server.stack().unwrap()).unwrap_err();
    assert!(format!("{second:?}").contains("another stack uses it"), "{second:?}");
    drop(socket);
    assert!(!path.exists());
    let nobody = format!("{:?}", ask(&source(), &Request::RouteShow { json: false }).unwrap_err());
    assert!(nobody.contains("there is no such socket"), "{nobody}");

    // A socket left by a killed process is replaced; a file of another kind is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let dead = format!("{:?}", ask(&source(), &Request::RouteShow { json: false }).unwrap_err());
    assert!(dead.contains("is not running any more"), "{dead}");
    drop(ControlSocket::open(Some(&path), "unused", server.stack().unwrap()).unwrap());
    std::fs::write(&path, "a file").unwrap();
    assert!(ControlSocket::open(Some(&path), "unused", server.stack().unwrap()).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    std::fs::remove_file(&path).unwrap();
}

/// Idle clients do not delay others, even if they take all places but one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_peers_delay_nobody() {
    let (server, _client) = pair();
    let path = place("silent");
    let _socket = ControlSocket::open(Some(&path), "unused", server.stack().unwrap()).unwrap();
    let mut silent: Vec<_> = (0..server::PEERS_MAX).map(|_| UnixStream::connect(&path).unwrap()).collect();
    // Dropping a client frees its place.
    silent.pop();
    let show = Request::RouteShow { json: false };
    assert_eq!(ask(&ControlArgs::at(&path), &show), Ok(String::new()));
    for mut peer in silent {
        peer.set_nonblocking(true).unwrap();
        let waits = peer.read(&mut [0]).unwrap_err();
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock, "nobody was given up before the answer");
    }
}

/// The clock does not start at zero: uptime and rates must be relative to the start of the stack.
#[tokio::test]
async fn time_counts_from_the_beginning_of_the_stack() {
    let (server, _client) = pair();
    let path = place("time");
    let _socket = ControlSocket::open(Some(&path), "unused", server.stack().unwrap()).unwrap();
    let asked = |request: Request| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            std::io::Write::write_all(&mut stream, format!("{}\n", request.line()).as_bytes()).unwrap();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
            text
        })
    };
    let counters = asked(Request::Counters).await.unwrap();
    let seconds = counters.lines().find_map(|line| line.strip_prefix("seconds ")).unwrap();
    assert!((0.0..60.0).contains(&seconds.parse::<f64>().unwrap()), "{seconds}");
    let sample = asked(Request::Sample).await.unwrap();
    let sample: serde_json::Value = serde_json::from_str(sample.strip_prefix("ok\n").unwrap()).unwrap();
    assert!((0.0..60.0).contains(&sample["uptime"].as_f64().unwrap()), "{}", sample["uptime"]);
}
