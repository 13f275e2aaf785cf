//! Ten thousand exchanges each way: every byte arrives, and arrives once.
use crate::curl_to_ours::start_responder;
use crate::kernel_and_ours;

use interop::netns::Addresses;
use interop::programs::{CURL, PYTHON, curl, ready, url};
use interop::{IpVersion, KernelPeer};
use proto::{Config, FastOpen};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::AsyncReadExt as _;

/// Exchanges of one client program, and how many of them run at once.
const EACH: u32 = 2500;
const CLIENTS: u32 = 4;

/// Three curls over IPv4 and one over IPv6, each with a new connection per request.
#[test]
fn kernel_clients_to_our_server() {
    if !ready(&[CURL]) {
        return;
    }
    let (host, ours) = kernel_and_ours(Config::default());
    let visits = [IpVersion::V4, IpVersion::V6].map(|version| start_responder(&ours, version));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (host, version) = (&host, if client == 0 { IpVersion::V6 } else { IpVersion::V4 });
            scope.spawn(move || {
                let page = url(Addresses::nth(2).of(version), 80, &format!("{client}-[1-{EACH}]"));
                let expected: String = (1..=EACH).map(|number| format!("{client}-{number}\n")).collect();
                let got = curl(host, &["--tcp-fastopen", &page]);
                assert!(got == expected, "curl {client} got {} bytes of {}", got.len(), expected.len());
            });
        }
    });
    for (visits, clients) in visits.iter().zip([CLIENTS - 1, 1]) {
        let visits = visits.lock().unwrap();
        assert_eq!(visits.len(), (clients * EACH) as usize, "each path was asked for");
        assert!(visits.values().all(|count| *count == 1), "each path was asked for once");
    }
    let counters = ours.net.stack().expect("a stack of ours").counters();
    // Each curl begins without a cookie only if it comes before the first one is granted.
    assert!(counters.tcp_fastopen_passive >= u64::from(CLIENTS * (EACH - 1)), "{counters:?}");
    assert_eq!(counters.replay_guard_hits, 0);
}

/// Tasks of our client against a kernel server that echoes and remembers.
#[test]
fn our_clients_to_a_kernel_server() {
    if !ready(&[PYTHON]) {
        return;
    }
    let (host, ours) = kernel_and_ours(Config::default());
    let mut peer = KernelPeer::new(&host);
    for version in [IpVersion::V4, IpVersion::V6] {
        let id = version as u8;
        peer.call(
            &json!({"do": "echo", "id": id, "host": host.addresses.of(version), "port": 80, "qlen": 256}),
        );
        let count = if version == IpVersion::V4 { EACH * (CLIENTS - 1) } else { EACH };
        let wrong = run_clients(&ours, SocketAddr::new(host.addresses.of(version), 80), count);
        assert_eq!(wrong, Vec::<String>::new());
        let seen = peer.call(&json!({"do": "connections", "id": id}));
        let mut seen: Vec<String> = serde_json::from_value(seen["connections"].clone()).unwrap();
        seen.sort();
        let expected: Vec<String> = (0..count).map(message).collect();
        assert!(seen == expected, "{} of {count} messages arrived, each once", seen.len());
    }
    assert!(
        ours.net.stack().expect("a stack of ours").counters().tcp_fastopen_active
            >= u64::from(CLIENTS * EACH) - 64,
        "{:?}",
        ours.net.stack().expect("a stack of ours").counters()
    );
}

/// A numbered message whose length varies.
fn message(number: u32) -> String {
    format!("{number:08}:{}", "z".repeat(number as usize % 50))
}

/// Runs `count` exchanges from several tasks; what went wrong.
fn run_clients(ours: &interop::OurEnd, peer: SocketAddr, count: u32) -> Vec<String> {
    let net = ours.net.clone();
    ours.run(async move {
        let next = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (net, next) = (net.clone(), next.clone());
                tokio::spawn(async move {
                    let mut wrong = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return wrong;
                        }
                        match echo(&net, peer, message(number)).await {
                            Ok(reply) if reply == message(number) => {}
                            other => wrong.push(format!("{number}: {other:?}")),
                        }
                    }
                })
            })
            .collect();
        let mut wrong = Vec::new();
        for task in tasks {
            wrong.extend(task.await.expect("a client task"));
        }
        wrong
    })
}

async fn echo(net: &firstbyte::Net, peer: SocketAddr, text: String) -> std::io::Result<String> {
    let socket = net.socket().fast_open(FastOpen::Auto).fin(true);
    let mut stream = socket.connect_with(peer, text.into_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    Ok(reply)
}
