//! The hop where SYNs with data are lost.
use super::bed::{Bed, OWN};
use crate::{firstbyte, stderr, stdout};
use firstbyte::device::Device as _;
use firstbyte::device::tun::Tun;
use interop::hook;
use interop::netns::{Addresses, Host};
use interop::path::Wire;
use serde_json::json;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A router before the middlebox sees SYNs with data; nothing behind the middlebox does.
#[test]
fn syns_with_a_small_hop_limit_find_the_last_router_that_sees_them() {
    let Some(mut bed) = Bed::new() else { return };
    bed.listen(&json!({}));
    bed.wire.set_hook(hook::drop_syn_data());
    let page = std::env::temp_dir().join(format!("firstbyte-explain-{}.html", std::process::id()));
    let output = bed.run(&[&OWN[..], &["--html", page.to_str().unwrap()]].concat());
    let said = stdout(&output);
    assert!(said.contains("drops SYNs with data."), "{said}{}", stderr(&output));
    assert!(
        said.contains(
            "hop limit:\n  1: 10.79.0.1 forwarded it\n  2: lost before this hop, or at a router that does not answer\n  \
             3: lost before this hop, or at a router that does not answer\n"
        ),
        "{said}"
    );
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("drops SYNs with data.") && html.contains("SYN with the cookie"), "{html}");
    assert!(html.contains("10.79.0.1 forwarded it") && html.matches("<svg").count() >= 4);
    std::fs::remove_file(page).unwrap();
}

/// Creates a device of this address in a host, and returns its other side, for a wire.
fn device(host: &Host, name: &str, address: [u8; 4]) -> OwnedFd {
    let opened =
        host.run(|| Tun::builder().name(name).offload(false).address(address.into(), 24).open().unwrap());
    // The device disappears with its last descriptor.
    opened.as_fd().unwrap().try_clone_to_owned().unwrap()
}

fn route(host: &Host, to: &str, via: &str) {
    let added = host.output(testnet::command("ip").args(["route", "add", to, "via", via]));
    assert!(added.status.success(), "{to} via {via}: {}", stderr(&added));
}

/// Client, three routers and server in a row, each pair joined by a wire; a middlebox between the
/// second router and the third.
#[test]
fn a_middlebox_between_routers_is_found_by_the_last_that_sees_the_syn() {
    if let Err(reason) = testnet::can() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
        return;
    }
    let hosts: Vec<Host> = (1..=5).map(|number| Host::bare(Addresses::nth(number))).collect();
    let wires: Vec<Wire> = (0..4_u8)
        .map(|number| {
            let left = device(&hosts[usize::from(number)], "right", [10, 80, number, 1]);
            let right = device(&hosts[usize::from(number) + 1], "left", [10, 80, number, 2]);
            Wire::new(left, right, Duration::from_millis(1))
        })
        .collect();
    for (at, host) in hosts.iter().enumerate() {
        host.sysctl("net.ipv4.ip_forward", "1");
        if at < 3 {
            route(host, "10.80.3.0/24", &format!("10.80.{at}.2"));
        }
        if at > 0 {
            route(host, "10.79.0.0/24", &format!("10.80.{}.1", at - 1));
        }
    }
    let server = &hosts[4];
    server.sysctl("net.ipv4.tcp_fastopen", "1027");
    let _listener = server.run(|| TcpListener::bind("10.80.3.2:80").unwrap());
    wires[2].set_hook(hook::drop_syn_data());
    let mut explain = firstbyte();
    explain.args(["explain", "10.80.3.2:80", "--tun", "probe0", "--address", "10.79.0.2/24"]);
    let output = hosts[0].output(explain.args(["--timeout", "300ms"]));
    let said = stdout(&output);
    let hops = "hop limit:\n  1: 10.79.0.1 forwarded it\n  2: 10.80.0.2 forwarded it\n  3: 10.80.1.2 forwarded it\n  \
                4: lost before this hop, or at a router that does not answer\n  5: lost before this hop, or at a router that does not answer\n";
    assert!(said.contains("drops SYNs with data."), "{said}{}", stderr(&output));
    assert!(said.contains(hops), "{said}");
}
