//! Captures that tcpdump makes of curl and nginx on the kernel's TCP, judged.
use capture::{Answer, CaptureFile, Connection, Effect, End, FastOpen, Side, Table};
use interop::netns::Addresses;
use interop::programs::{CURL, Capture, NGINX, Nginx, TCPDUMP, curl, ready, url};
use interop::{Host, Wire, hook};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

const ONE_WAY: Duration = Duration::from_millis(20);
/// Long enough for the last FIN's acknowledgement.
const QUIET: Duration = Duration::from_millis(150);

fn connections(file: &Path) -> Vec<Connection> {
    let mut file = CaptureFile::open(File::open(file).expect("it was written")).expect("a capture");
    let (mut table, mut all) = (Table::default(), Vec::new());
    while let Some(frame) = file.next_frame() {
        let packet = frame.tcp().expect("tcpdump was told to keep TCP only");
        table.handle(&packet, &mut |over| all.push(over));
    }
    assert_eq!(file.end(), End::Whole);
    table.finish(&mut |over| all.push(over));
    all
}

/// Without Fast Open, with a request for a cookie, with a cookie, with one of a key that is gone,
/// and where a SYN with data is dropped.
#[test]
fn curl_and_nginx_are_classified_as_they_were() {
    if !ready(&[CURL, NGINX, TCPDUMP]) {
        return;
    }
    interop::undisturbed(|| {
        let (client, client_tun) = Host::new(Addresses::nth(1));
        let (server, server_tun) = Host::new(Addresses::nth(2));
        client.sysctl("net.ipv4.tcp_fastopen", "1");
        server.sysctl("net.ipv4.tcp_fastopen", "3");
        let wire = Wire::new(client_tun, server_tun, ONE_WAY);
        let _nginx = Nginx::start(&server, "hello");
        let page = url(server.addresses.v4.into(), 80, "");
        let (at_client, at_server) = (Capture::start(&client), Capture::start(&server));

        curl(&client, &[&page]);
        curl(&client, &["--tcp-fastopen", &page]);
        curl(&client, &["--tcp-fastopen", &page]);
        server.sysctl("net.ipv4.tcp_fastopen_key", "00010203-04050607-08090a0b-0c0d0e0f");
        curl(&client, &["--tcp-fastopen", &page]);
        wire.set_hook(hook::drop_syn_data());
        curl(&client, &["--tcp-fastopen", &page]);

        let (_, at_client) = at_client.finish(client.addresses.v4.into(), QUIET);
        let (_, at_server) = at_server.finish(client.addresses.v4.into(), QUIET);
        let seen = connections(&at_client.file("capture.pcap"));
        let classes: Vec<FastOpen> = seen.iter().map(Connection::fast_open).collect();
        let expected = [
            FastOpen::NotTried,
            FastOpen::CookieRequested { granted: true },
            FastOpen::Accepted { without_cookie: false },
            FastOpen::NotAcknowledged(Answer::NewCookie),
            FastOpen::Dropped,
        ];
        assert_eq!(classes, expected);

        let rtt = seen[0].rtt().expect("its handshake was seen");
        assert!((2 * ONE_WAY..4 * ONE_WAY).contains(&rtt), "{rtt:?}");
        let first_bytes: Vec<Duration> =
            seen.iter().map(|connection| connection.time_to_first_byte().expect("an answer")).collect();
        assert!(first_bytes[0] >= 4 * ONE_WAY && first_bytes[2] < first_bytes[0], "{first_bytes:?}");
        let Some(Effect::Saved(saved)) = seen[2].fast_open_effect() else { panic!("{:?}", seen[2]) };
        assert!((2 * ONE_WAY..4 * ONE_WAY).contains(&saved), "{saved:?}");
        let Some(Effect::Wasted(wasted)) = seen[4].fast_open_effect() else { panic!("{:?}", seen[4]) };
        assert!((1.0..1.5).contains(&wasted.as_secs_f64()), "Linux's first time-out is a second: {wasted:?}");
        for connection in &seen {
            assert_eq!(connection.is_seen_from(Side::Client), Some(true), "{connection:?}");
            assert!(Side::BOTH.iter().all(|side| connection.half(*side).is_finished()), "{connection:?}");
        }

        // At the other end a SYN that was dropped on the way is not there.
        let seen = connections(&at_server.file("capture.pcap"));
        let classes: Vec<FastOpen> = seen.iter().map(Connection::fast_open).collect();
        assert_eq!(classes[..4], expected[..4]);
        assert_eq!(classes[4], FastOpen::NotTried);
        assert!(
            seen.iter().all(|connection| connection.is_seen_from(Side::Server) == Some(true)),
            "{seen:?}"
        );
    });
}
