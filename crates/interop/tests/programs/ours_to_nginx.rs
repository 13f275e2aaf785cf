//! A client on our library fetches from an unmodified nginx on the kernel's TCP.
use crate::kernel_and_ours;

use interop::ends::{Ask, ClientEnd as _, Way};
use interop::programs::{Capture, NGINX, Nginx, TCPDUMP, ready};
use interop::{Conversation, Host, IpVersion, OurEnd};
use proto::Config;
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(150);

fn fetch(host: &Host, ours: &mut OurEnd, version: IpVersion, way: Way) -> Conversation {
    let capture = Capture::start(host);
    let data = b"GET / HTTP/1.1\r\nHost: nginx\r\nConnection: close\r\n\r\n".to_vec();
    let exchange = ours.exchange(&Ask { version, data, ..Ask::new(way) });
    assert!(exchange.reply.ends_with(b"hello from nginx"), "{exchange:?}");
    capture.finish(ours.addresses_of(version), QUIET).0.only()
}

/// Plain never more than ten packets, a cookie, then the request on the SYN.
#[test]
fn cookie_then_request_on_the_syn() {
    if !ready(&[NGINX, TCPDUMP]) {
        return;
    }
    interop::undisturbed(|| {
        let (host, mut ours) = kernel_and_ours(Config::default());
        let _nginx = Nginx::start(&host, "hello from nginx");
        for version in [IpVersion::V4, IpVersion::V6] {
            let plain = fetch(&host, &mut ours, version, Way::Plain);
            assert!(plain.told() <= 10 && plain.syn(0).segment.fast_open.is_none(), "{plain}");
            let first = fetch(&host, &mut ours, version, Way::FastOpen);
            assert!(first.syn(0).segment.requests_cookie(), "{first}");
            let repeat = fetch(&host, &mut ours, version, Way::FastOpen);
            assert_eq!(repeat.syn(0).segment.cookie(), first.syn_ack(0).segment.cookie(), "{repeat}");
            assert!(repeat.syn_data_acked() > 0, "{repeat}");
            assert!(repeat.told() <= 8, "{repeat}");
        }
        assert_eq!(ours.net.stack().expect("a stack of ours").counters().tcp_fastopen_active, 2);
        assert_eq!(host.counters().of("TCPFastOpenPassive"), 2);
    });
}
