//! Runs the prober over a path with middleboxes, against the kernel or nginx.
#![expect(clippy::unwrap_used, reason = "tests")]
use firstbyte_probe::{Cause, Ends, Prober, Verdict};
use interop::direction::Direction;
use interop::hook::{self, Hook};
use interop::kernel_end::KernelEnd;
use interop::netns::{Addresses, Host};
use interop::path::Wire;
use interop::programs::{NGINX, Nginx, ready};
use interop::socket_device::SocketDevice;
use interop::undisturbed;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

/// 5 ms each way: many times the delay that a busy machine adds.
const ONE_WAY: Duration = Duration::from_millis(5);

struct Bed {
    prober: Prober<SocketDevice>,
    server: Host,
    wire: Wire,
}

fn can() -> bool {
    let can = testnet::can();
    if let Err(reason) = &can {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
    }
    can.is_ok()
}

fn bed(hook: Hook, address: fn(Addresses) -> IpAddr) -> Bed {
    let (here, there) = (Addresses::nth(1), Addresses::nth(2));
    let (device, client_side) = SocketDevice::new(1500);
    let (server, server_side) = Host::new(there);
    let wire = Wire::new(client_side, server_side, ONE_WAY);
    wire.set_hook(hook);
    let ends = Ends { local: address(here), server: SocketAddr::new(address(there), 80) };
    let prober = Prober::new(device, ends, b"GET / HTTP/1.0\r\n\r\n", 7).timeout(Duration::from_millis(300));
    let server = KernelEnd::new(server, here).host;
    Bed { prober, server, wire }
}

/// Starts a server in the namespace that answers every connection with 9000 bytes; its threads end
/// with the test's process.
fn serve(host: &Host, fast_open: bool) {
    host.sysctl("net.ipv4.tcp_fastopen", if fast_open { "1027" } else { "0" });
    let listener = host.run(|| TcpListener::bind("[::]:80").unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 2000]).and_then(|_| stream.write_all(&[b'x'; 9000]));
            });
        }
    });
}

fn v4(addresses: Addresses) -> IpAddr {
    addresses.v4.into()
}

fn verdict(bed: &mut Bed) -> Verdict {
    let visits = bed.prober.all(|_| {}).unwrap();
    assert!(bed.prober.packets() <= 40, "{} packets", bed.prober.packets());
    Verdict::of(&visits)
}

#[test]
fn nginx_with_fast_open_works_and_saves_a_round_trip() {
    if !can() || !ready(&[NGINX]) {
        return;
    }
    for address in [v4, |addresses: Addresses| addresses.v6.into()] {
        undisturbed(|| {
            let mut bed = bed(hook::pass(), address);
            let _nginx = Nginx::start(&bed.server, "hello");
            let verdict = verdict(&mut bed);
            assert_eq!(verdict.cause, Cause::Works, "{verdict:#?}");
            let saves = verdict.saves_ms.unwrap();
            assert!((8.0..20.0).contains(&saves), "{verdict:#?}");
            assert!(
                verdict.deduced.iter().any(|word| word.starts_with("MSS 14") && word.contains("SACK")),
                "{verdict:#?}"
            );
        });
    }
}

/// The causes on a path, each with its middlebox.
#[test]
fn a_middlebox_is_named_by_what_it_does() {
    if !can() {
        return;
    }
    let option_dropped = || hook::drop_if(|_, segment| segment.is_syn() && segment.fast_open.is_some());
    let cases: [(Hook, Cause); 5] = [
        (hook::drop_syn_data(), Cause::DataDropped),
        (option_dropped(), Cause::OptionDropped),
        (hook::strip_fast_open(), Cause::NotOffered),
        (
            hook::drop_if(|direction, segment| {
                direction == Direction::ToServer && segment.is_syn() && segment.payload.len() > 1000
            }),
            Cause::WorksSmall,
        ),
        (hook::drop_if(|direction, _| direction == Direction::ToClient), Cause::Unreachable),
    ];
    std::thread::scope(|scope| {
        for (hook, cause) in cases {
            scope.spawn(move || {
                let mut bed = bed(hook, v4);
                serve(&bed.server, true);
                let verdict = verdict(&mut bed);
                assert_eq!(verdict.cause, cause, "{verdict:#?}");
            });
        }
    });
}

#[test]
fn a_reply_that_disappears_is_a_stall() {
    if !can() {
        return;
    }
    // Only if the connection began with data, like a firewall that lost its state.
    let mut began_with_data = std::collections::BTreeSet::new();
    let hook = hook::drop_if(move |direction, segment| {
        if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
            began_with_data.insert(segment.src.port());
        }
        direction == Direction::ToClient
            && !segment.payload.is_empty()
            && began_with_data.contains(&segment.dst.port())
    });
    let mut bed = bed(hook, v4);
    serve(&bed.server, true);
    assert_eq!(verdict(&mut bed).cause, Cause::Stalls);
}

#[test]
fn servers_without_with_other_keys_and_without_cookies_are_told_apart() {
    if !can() {
        return;
    }
    let mut off = bed(hook::pass(), v4);
    serve(&off.server, false);
    assert_eq!(verdict(&mut off).cause, Cause::NotOffered);

    let mut open = bed(hook::pass(), v4);
    serve(&open.server, true);
    open.server.sysctl("net.ipv4.tcp_fastopen", "1539");
    assert_eq!(verdict(&mut open).cause, Cause::WithoutCookie);

    let mut nobody = bed(hook::pass(), v4);
    assert_eq!(verdict(&mut nobody).cause, Cause::Refused);

    // The key changes with every SYN that carries data, like a load balancer that uses another
    // server each time.
    let mut changing = bed(hook::pass(), v4);
    serve(&changing.server, true);
    let host = changing.server.share();
    let mut key = 0;
    changing.wire.set_hook(Box::new(move |direction, segment, _| {
        if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
            key += 1;
            host.sysctl("net.ipv4.tcp_fastopen_key", &format!("00000000-00000000-00000000-0000000{key}"));
        }
        hook::Verdict::Pass
    }));
    assert_eq!(verdict(&mut changing).cause, Cause::KeyDiffers);
}

/// A link for packets of 1500 bytes, the most common size.
#[test]
fn a_full_syn_fits_a_link_of_1500_bytes() {
    if !can() {
        return;
    }
    for address in [v4, |addresses: Addresses| addresses.v6.into()] {
        let full = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let seen = full.clone();
        let hook: Hook = Box::new(move |_, segment, packet| {
            if segment.is_syn() {
                seen.fetch_max(packet.len(), std::sync::atomic::Ordering::Relaxed);
            }
            if packet.len() > 1500 { hook::Verdict::Drop } else { hook::Verdict::Pass }
        });
        let mut bed = bed(hook, address);
        serve(&bed.server, true);
        let verdict = verdict(&mut bed);
        let full = full.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(verdict.cause, Cause::Works, "{verdict:#?}");
        assert!((1450..=1500).contains(&full), "{full}");
    }
}

/// Linux's initial window is ten segments; 9000 bytes are seven.
#[test]
fn the_first_flight_of_the_server_is_counted() {
    if !can() {
        return;
    }
    let mut bed = bed(hook::pass(), v4);
    serve(&bed.server, true);
    let verdict = verdict(&mut bed);
    let flight = verdict.deduced.iter().find(|word| word.contains("before any ACK")).unwrap();
    assert!(flight.starts_with("7 segments, 9000 bytes"), "{flight}");
}
