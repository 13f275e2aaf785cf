//! An unmodified curl on the kernel's TCP fetches from a server on our library.
use crate::kernel_and_ours;

use firstbyte::TcpListener;
use interop::netns::Addresses;
use interop::programs::{CURL, Capture, TCPDUMP, TSHARK, curl, ready, tshark, url};
use interop::responder::{Visits, respond};
use interop::{Conversation, Direction, Host, IpVersion, OurEnd};
use proto::Config;
use std::net::SocketAddr;
use std::time::Duration;

/// Long enough for a packet that should not come: the kernel's delayed ACK is 40 ms.
const QUIET: Duration = Duration::from_millis(150);

pub(crate) fn start_responder(ours: &OurEnd, version: IpVersion) -> Visits {
    let (local, visits) = (SocketAddr::new(Addresses::nth(2).of(version), 80), Visits::default());
    let builder = TcpListener::builder(&ours.net).fast_open(256);
    let listener = ours.run(async move { builder.bind(local).await.expect("a listener") });
    ours.spawn(respond(listener, visits.clone()));
    visits
}

/// One captured fetch, in the kernel's view.
fn fetch(host: &Host, version: IpVersion, arguments: &[&str], path: &str) -> Conversation {
    let page = url(Addresses::nth(2).of(version), 80, path);
    let capture = Capture::start(host);
    assert_eq!(curl(host, &[arguments, &[page.as_str()]].concat()), format!("{path}\n"));
    let (record, files) = capture.finish(host.addresses.of(version), QUIET);
    let conversation = record.only();
    if ready(&[TSHARK]) {
        let lines = tshark(&files.file("capture.pcap"), &["tcp.len"]);
        assert_eq!(lines.len(), conversation.len(), "tshark counts the same packets");
    }
    conversation
}

/// First a cookie, then four packets: SYN with the request, SYN-ACK with reply and FIN, FIN-ACK,
/// ACK.
#[test]
fn four_packets() {
    if !ready(&[CURL, TCPDUMP]) {
        return;
    }
    interop::undisturbed(|| {
        let (host, ours) = kernel_and_ours(Config::default());
        for version in [IpVersion::V4, IpVersion::V6] {
            let visits = start_responder(&ours, version);
            let plain = fetch(&host, version, &[], "plain");
            assert!(plain.told() <= 10, "{plain}");
            assert_eq!(plain.syn(0).segment.fast_open, None, "{plain}");

            let first = fetch(&host, version, &["--tcp-fastopen"], "first");
            assert!(first.syn(0).segment.requests_cookie(), "{first}");
            let cookie = first.syn_ack(0).segment.cookie().map(<[u8]>::to_vec);
            assert_eq!(cookie.as_ref().map(Vec::len), Some(8), "{first}");

            let repeat = fetch(&host, version, &["--tcp-fastopen"], "repeat");
            let request = repeat.syn(0).segment.payload.len();
            let reply = repeat.syn_ack(0).segment.payload.len();
            let expected = [format!(">S({request})"), format!("<SFPA({reply})"), ">FA".into(), "<A".into()];
            assert_eq!(repeat.shapes(), expected, "{repeat}");
            assert_eq!(repeat.syn(0).segment.cookie().map(<[u8]>::to_vec), cookie);
            assert!(request > 0 && repeat.syn_data_acked() as usize == request, "{repeat}");
            assert!(repeat.payload_bytes(Direction::ToClient) == reply && reply > 0, "{repeat}");
            assert_eq!(visits.lock().unwrap().values().copied().collect::<Vec<_>>(), [1, 1, 1]);
        }
        let counters = ours.net.stack().expect("a stack of ours").counters();
        assert_eq!((counters.tcp_fastopen_passive, counters.synack_data), (2, 2));
    });
}

/// A server of ours with Linux's habits: nothing rides on the SYN-ACK, the reply follows it.
#[test]
fn reply_behind_the_syn_ack_as_linux() {
    if !ready(&[CURL, TCPDUMP]) {
        return;
    }
    interop::undisturbed(|| {
        let (host, ours) = kernel_and_ours(Config::linux().tcp_fastopen(0x3));
        start_responder(&ours, IpVersion::V4);
        fetch(&host, IpVersion::V4, &["--tcp-fastopen"], "first");
        let repeat = fetch(&host, IpVersion::V4, &["--tcp-fastopen"], "repeat");
        assert_eq!(repeat.shapes()[1], "<SA", "{repeat}");
        assert!(repeat.syn_data_acked() > 0 && repeat.told() <= 8, "{repeat}");
    });
}
