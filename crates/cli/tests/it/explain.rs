//! `firstbyte explain` on the command line: over loopback, and through a TUN device, to a server on
//! the kernel.
//!
//! `explain/rows.rs` has the states of server and path, and the verdict on each; `explain/bed.rs`
//! is their test bed. `explain/hops.rs`: the hop where SYNs are lost; `explain/docs.rs`: the tables
//! of `docs/explain.md`.
mod bed;
mod docs;
mod hops;
mod rows;

use crate::{run, stderr, stdout};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

/// Answers every connection; its threads end with the test's process.
fn serve(address: &str, fast_open: &str) -> SocketAddr {
    testnet::sysctl("net.ipv4.tcp_fastopen", fast_open);
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 2000]).and_then(|_| stream.write_all(b"hello"));
            });
        }
    });
    address
}

#[test]
fn the_kernels_sockets_tell_whether_it_works() {
    testnet::in_namespace(|| {
        let server = serve("127.0.0.1:0", "1027").to_string();
        let output = run(&["explain", &server]);
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains("\nFast Open works."), "{}", stdout(&output));
        let output = run(&["explain", &server, "--json"]);
        let report: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
        assert_eq!(report["verdict"]["cause"], "works");
        // The cookie is known by now, so none is requested.
        let probes: Vec<_> =
            report["visits"].as_array().unwrap().iter().map(|visit| &visit["probe"]).collect();
        assert_eq!(probes, ["plain", "cookie", "cookie_again", "data_alone"]);
        // With Fast Open off at the server, the cookie is ignored.
        testnet::sysctl("net.ipv4.tcp_fastopen", "1");
        let output = run(&["explain", &server, "--json"]);
        assert_eq!(output.status.code(), Some(1));
        let report: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
        assert_eq!(report["verdict"]["cause"], "ignored");
        testnet::sysctl("net.ipv4.tcp_fastopen", "0");
        let output = run(&["explain", &server]);
        assert!(stderr(&output).contains("Fast Open is off for clients on this host"), "{}", stderr(&output));
    });
}

#[test]
fn syns_of_our_own_go_through_a_tun_device() {
    testnet::in_namespace(|| {
        let port = serve("0.0.0.0:0", "1027").port();
        let server = format!("10.79.0.1:{port}");
        let output = run(&["explain", "--tun", "probe0", "--address", "10.79.0.2/24", &server]);
        let said = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
        assert!(said.contains("own SYNs, from 10.79.0.2 through probe0\n\nFast Open works."), "{said}");
        for words in
            ["Accurate ECN", "MSS 1460, window scale ", "the server is 0 routers away", "packets were sent."]
        {
            assert!(said.contains(words), "{words}: {said}");
        }
    });
}

/// Servers that speak TLS, ours and nginx, answer a ClientHello. They refuse a request of HTTP.
#[test]
fn a_server_of_https_is_asked_with_a_client_hello() {
    if ["openssl", "nginx"].iter().any(|program| crate::skipped_without(program)) {
        return;
    }
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv4.tcp_fastopen", "0x403");
        let folder = tempfile::tempdir().unwrap();
        let [cert, key] = crate::serve_web::certificate(folder.path());
        let own = ["--backend", "kernel", "--bind", "0.0.0.0", "--port", "443"];
        let server = crate::Server::start(&[&own[..], &["--cert", &cert, "--cert-key", &key]].concat());
        let tls = format!("listen 0.0.0.0:8443 ssl; ssl_certificate {cert}; ssl_certificate_key {key};");
        let _nginx = crate::get_web::Nginx::start(folder.path(), &tls);
        let explain = |arguments: &[&str]| {
            let output = run(&[&["explain"], arguments].concat());
            let said = stdout(&output).to_owned();
            assert!(said.contains("Fast Open works.") && !said.contains("reset"), "{arguments:?}: {said}");
            assert_eq!(output.status.code(), Some(0));
            said
        };
        for target in ["127.0.0.1:443", "https://localhost", "https://127.0.0.1:8443"] {
            let said = explain(&["-4", target]);
            assert!(said.contains("by the kernel's sockets, with a ClientHello of TLS"), "{said}");
        }
        for target in ["10.79.0.1:443", "https://10.79.0.1:8443"] {
            explain(&["--tun", "probe0", "--address", "10.79.0.2/24", target]);
        }
        let fleet = run(&["fleet", "127.0.0.1:443"]);
        assert!(stdout(&fleet).contains("Fast Open works."), "{}", stdout(&fleet));
        let dry = run(&["explain", "--dry-run", "https://localhost"]);
        assert!(stdout(&dry).contains("To localhost, port 443") && stdout(&dry).contains("ClientHello"));
        assert_eq!(server.stop().0, Some(0));
    });
}

/// Two addresses of one server; then a key that one of them does not have.
#[test]
fn a_fleet_is_held_beside_its_key() {
    testnet::in_namespace(|| {
        let port = serve("0.0.0.0:0", "1027").port();
        let file = |name: &str| std::env::temp_dir().join(format!("fleet-{name}-{}", std::process::id()));
        let (keys, list) = (file("keys"), file("list"));
        let (keys, list) = (keys.to_str().unwrap(), list.to_str().unwrap());
        let _ = std::fs::remove_file(keys);
        assert_eq!(run(&["key", "new", keys]).status.code(), Some(0));
        std::fs::write("/proc/sys/net/ipv4/tcp_fastopen_key", std::fs::read(keys).unwrap()).unwrap();
        std::fs::write(list, format!("# both\n127.0.0.1:{port}\n127.0.0.2:{port}\n")).unwrap();
        let output = run(&["fleet", list, "--key-file", keys]);
        let said = stdout(&output);
        assert_eq!(said.matches("Fast Open works.").count(), 2, "{said}{}", stderr(&output));
        // Loopback uses the destination as its source address.
        assert_eq!(said.matches("was made with the primary key.").count(), 2, "{said}");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(run(&["key", "rotate", keys]).status.code(), Some(0));
        let output = run(&["fleet", list, "--key-file", keys]);
        assert!(stdout(&output).contains("was made with the backup key."), "{}", stdout(&output));
        assert_eq!(run(&["key", "rotate", keys]).status.code(), Some(0));
        let output = run(&["fleet", list, "--key-file", keys]);
        assert!(stdout(&output).contains("was made with neither key."), "{}", stdout(&output));
        assert_eq!(output.status.code(), Some(1));
        // The kernel caches the cookie of the address, which says nothing about a port without a
        // listener.
        std::fs::write(list, "127.0.0.1:9\n").unwrap();
        let output = run(&["fleet", list, "--key-file", keys]);
        assert_eq!(stdout(&output), "127.0.0.1:9  Nothing listens on this port.\n");
        assert_eq!(output.status.code(), Some(1));
        [keys, list].iter().for_each(|file| std::fs::remove_file(file).unwrap());
    });
}

#[test]
fn a_dry_run_sends_nothing_and_says_what_it_would() {
    let output =
        run(&["explain", "--dry-run", "host.invalid:81", "--tun", "none0", "--address", "10.79.0.2/24"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        said.starts_with("To host.invalid, port 81,")
            && said.contains("  8. a plain SYN that requests Accurate ECN\n"),
        "{said}"
    );
    assert!(said.contains("At most 40 packets"), "{said}");
    let output = run(&["explain", "--dry-run", "--json", "host.invalid:81"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("'--dry-run' cannot be used with '--json'"), "{}", stderr(&output));
}
