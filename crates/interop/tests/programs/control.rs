//! The control: the kernel's TCP at both ends.

use interop::programs::{CURL, Capture, NGINX, Nginx, TCPDUMP, TSHARK, curl, ready, tshark, url};
use interop::{Addresses, Host, IpVersion, Wire};
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(150);

/// Ten packets plain and eight on a repeat visit, give or take one ACK: the FINs may cross, and a
/// client that is slow to close acknowledges the server's FIN first. tcpdump and tshark see the
/// same.
#[test]
fn curl_and_nginx() {
    if !ready(&[CURL, NGINX, TCPDUMP, TSHARK]) {
        return;
    }
    interop::undisturbed(|| {
        let (client, client_side) = Host::new(Addresses::nth(1));
        let (server, server_side) = Host::new(Addresses::nth(2));
        server.sysctl("net.ipv4.tcp_fastopen", "3");
        let wire = Wire::new(client_side, server_side, Duration::from_millis(10));
        let _nginx = Nginx::start(&server, "hello from nginx");
        for version in [IpVersion::V4, IpVersion::V6] {
            let address = server.addresses.of(version);
            let page = url(address, 80, "");
            assert_eq!(curl(&client, &[&page]), "hello from nginx");
            let plain = wire.settle(QUIET).only();
            assert!((9..=11).contains(&plain.len()), "{plain}");
            assert_eq!(curl(&client, &["--tcp-fastopen", &page]), "hello from nginx");
            let first = wire.settle(QUIET).only();
            assert!(first.syn(0).segment.requests_cookie(), "{first}");

            let capture = Capture::start(&client);
            assert_eq!(curl(&client, &["--tcp-fastopen", &page]), "hello from nginx");
            let repeat = wire.settle(QUIET).only();
            assert!((8..=10).contains(&repeat.len()), "{repeat}");
            assert!(repeat.syn_data_acked() > 0, "{repeat}");

            let (captured, files) = capture.finish(client.addresses.of(version), QUIET);
            assert_eq!(captured.only().len(), repeat.len(), "{captured}\n{repeat}");
            let lines = tshark(&files.file("capture.pcap"), &["tcp.options.tfo.cookie", "tcp.len"]);
            assert_eq!(lines.len(), repeat.len());
            let cookie = interop::kernel_end::hex(repeat.syn(0).segment.cookie().expect("a cookie"));
            assert_eq!(lines[0], format!("{cookie}\t{}", repeat.syn(0).segment.payload.len()));
        }
    });
}
