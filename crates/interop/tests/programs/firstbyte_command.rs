//! The command itself, as users start it, with the programs they would use.

use interop::command::{self, Server};
use interop::kernel_end::{KernelEnd, hex};
use interop::netns::{Addresses, DEVICE, fast_open_since};
use interop::programs::{CURL, Capture, NGINX, Nginx, PYTHON, TCPDUMP, curl, ready, url};
use interop::{Conversation, Host, IpVersion, Serve, ServerEnd as _, counters};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(150);
/// The key of the known cookies.
const KEY: &str = "00010203-04050607-08090a0b-0c0d0e0f";

fn fetch(host: &Host, version: IpVersion, arguments: &[&str]) -> Conversation {
    let page = url(Addresses::nth(2).of(version), 80, "");
    let capture = Capture::start(host);
    assert!(!curl(host, &[arguments, &[page.as_str()]].concat()).is_empty());
    capture.finish(host.addresses.of(version), QUIET).0.only()
}

/// An unmodified curl: first a cookie (the one Linux would give), then four packets.
#[test]
fn curl_from_serve() {
    if !ready(&[CURL, TCPDUMP]) {
        return;
    }
    interop::undisturbed(|| {
        let host = Host::bare(Addresses::nth(1));
        host.sysctl("net.ipv4.tcp_fastopen", "3");
        let key = std::env::temp_dir().join(format!("firstbyte-interop-key-{}", std::process::id()));
        std::fs::write(&key, KEY).expect("a key file");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a key for its owner");
        let addresses = ["--address", "10.77.0.2/24", "--address", "fd77::2/64"];
        let kernel = ["--host-address", "10.77.0.1/24", "--host-address", "fd77::1/64", "--tun", DEVICE];
        let key_file = ["--key-file", key.to_str().expect("text")];
        let server = Server::start(
            &host,
            &[&addresses[..], &kernel[..], &key_file[..], &["--no-keep-alive"]].concat(),
        );
        for (version, cookie) in [(IpVersion::V4, "1d0aa246d060bffa"), (IpVersion::V6, "440340d4fa43d746")] {
            let plain = fetch(&host, version, &[]);
            assert!(plain.told() <= 10 && plain.syn(0).segment.fast_open.is_none(), "{plain}");
            let first = fetch(&host, version, &["--tcp-fastopen"]);
            assert!(first.syn(0).segment.requests_cookie(), "{first}");
            assert_eq!(first.syn_ack(0).segment.cookie().map(hex).as_deref(), Some(cookie), "{first}");
            let repeat = fetch(&host, version, &["--tcp-fastopen"]);
            let (request, reply) =
                (repeat.syn(0).segment.payload.len(), repeat.syn_ack(0).segment.payload.len());
            assert!(request > 0 && reply > 0, "{repeat}");
            let expected = [format!(">S({request})"), format!("<SFPA({reply})"), ">FA".into(), "<A".into()];
            assert_eq!(repeat.shapes(), expected, "{repeat}");
        }
        let (status, said) = server.stop();
        assert!(status.success(), "{status}");
        std::fs::remove_file(key).expect("the key file");
        let early: Vec<bool> =
            said.iter().filter(|line| line["event"] == "request").map(|line| line["early"] == true).collect();
        assert_eq!(early, [false, false, true, false, false, true], "{said:?}");
    });
}

/// nginx on port 80 and a Python listener on port 81: a cookie, then the request on the SYN, taken
/// at once.
#[test]
fn get_from_nginx_and_python() {
    if !ready(&[NGINX, PYTHON, TCPDUMP]) {
        return;
    }
    interop::undisturbed(|| {
        let host = Host::with_free_tun(Addresses::nth(2));
        host.sysctl("net.ipv4.tcp_fastopen", "3");
        host.sysctl("net.ipv4.tcp_fastopen_key", KEY);
        let _nginx = Nginx::start(&host, "hello from nginx");
        let mut python = KernelEnd::new(host.share(), Addresses::nth(1));
        let reply =
            b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\nConnection: close\r\n\r\nhello from python".to_vec();
        for (version, cookie) in [(IpVersion::V4, "1d0aa246d060bffa"), (IpVersion::V6, "440340d4fa43d746")] {
            python.serve(&Serve { port: 81, version, expect: 1, reply: reply.clone(), ..Serve::new() });
            for (port, bytes) in [(80, 16), (81, 17)] {
                let before = host.counters();
                let capture = Capture::start(&host);
                let page = url(host.addresses.of(version), port, "");
                let report = get(&host, &page);
                let (record, _files) = capture.finish(Addresses::nth(1).of(version), QUIET);

                let visits = report["visits"].as_array().expect("visits");
                let told: Vec<&str> =
                    visits.iter().filter_map(|visit| visit["fast_open"]["outcome"].as_str()).collect();
                assert_eq!(told, ["cookie granted", "accepted", "accepted"], "{report:#}");
                assert!(
                    visits.iter().all(|visit| visit["status"] == 200 && visit["bytes"] == bytes),
                    "{report:#}"
                );
                let conversations = record.conversations();
                assert_eq!(conversations.len(), 3, "{record}");
                assert_eq!(
                    conversations[0].syn_ack(0).segment.cookie().map(hex).as_deref(),
                    Some(cookie),
                    "{record}"
                );
                for repeat in &conversations[1..] {
                    assert_eq!(repeat.syn(0).segment.cookie().map(hex).as_deref(), Some(cookie), "{repeat}");
                    let request = repeat.syn(0).segment.payload.len();
                    assert!(request > 0 && repeat.syn_data_acked() as usize == request, "{repeat}");
                    assert!(repeat.told() <= 8, "{repeat}");
                }
                let grown = fast_open_since(&host.counters(), &before);
                assert_eq!(
                    grown,
                    counters(&[("CookieReqd", 1), ("Passive", 2)]),
                    "the kernel counted the same"
                );
            }
        }
    });
}

/// `firstbyte get -c 3 --json` as 10.77.0.1 and fd77::1.
fn get(host: &Host, page: &str) -> Value {
    let addresses = ["--address", "10.77.0.1/24", "--address", "fd77::1/64", "--tun", DEVICE];
    let output = command::run(host, &[&["get", "--json", "--count", "3"], &addresses[..], &[page]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a report in JSON")
}
