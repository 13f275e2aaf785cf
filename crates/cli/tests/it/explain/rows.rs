//! States of server and path, each prepared with the kernel's TCP at both ends, and the verdict on
//! each.
use super::bed::{Bed, route};
use crate::{Server, firstbyte};
use interop::craft;
use interop::direction::Direction;
use interop::hook::{self, Hook, Verdict, drop_if};
use interop::programs::{NGINX, Nginx, ready};
use interop::segment::{RST, Segment, refresh_checksum};
use interop::undisturbed;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A state of server and path.
pub(super) struct Row {
    /// Name of its test.
    pub(super) name: &'static str,
    /// Description.
    pub(super) what: &'static str,
    /// Expected cause with the kernel's sockets.
    pub(super) kernel: &'static str,
    /// Expected cause with own SYNs.
    pub(super) own: &'static str,
}

/// Prepares a bed, and judges it with both kinds of `explain`.
fn judge(row: &Row, prepare: fn(&mut Bed), check: fn(kernel: &Value, own: &Value)) {
    undisturbed(|| {
        let Some(mut bed) = Bed::new() else { return };
        prepare(&mut bed);
        let kernel = bed.by_kernel();
        assert_eq!(kernel["verdict"]["cause"], row.kernel, "the kernel's sockets: {kernel:#}");
        let own = bed.by_own();
        assert_eq!(own["verdict"]["cause"], row.own, "SYNs of our own: {own:#}");
        check(&kernel, &own);
    });
}

/// Defines each row as a test and an entry of [`ROWS`]: the state; the causes with the kernel's
/// sockets and with own SYNs; its preparation; further checks.
macro_rules! rows {
    ($($name:ident: $what:literal, $kernel:literal, $own:literal, $prepare:expr $(, $check:expr)?;)*) => {
        pub(super) const ROWS: &[Row] =
            &[$(Row { name: stringify!($name), what: $what, kernel: $kernel, own: $own }),*];

        $(#[test]
        fn $name() {
            let row = ROWS.iter().find(|row| row.name == stringify!($name)).unwrap();
            let check: &[fn(&Value, &Value)] = &[$($check)?];
            judge(row, $prepare, check.first().copied().unwrap_or(|_, _| {}));
        })*
    };
}

const FAST_OPEN: &str = "net.ipv4.tcp_fastopen";
const KEY: &str = "net.ipv4.tcp_fastopen_key";
const NEW_KEY: &str = "00000000-00000000-00000000-00000007";

rows! {
    a_first_visit:
        "a server with Fast Open; no cookie is known", "works", "works",
        |bed| bed.listen(&json!({})),
        |kernel, own| {
            assert_eq!(probes(kernel), ["plain", "request", "cookie", "cookie_again", "data_alone"]);
            assert_eq!(own["visits"].as_array().unwrap().len(), 8, "{own:#}");
        };
    the_cookie_is_known:
        "the same; the cookie is known", "works", "works",
        with_cookie,
        |kernel, _| assert_eq!(probes(kernel), ["plain", "cookie", "cookie_again", "data_alone"]);
    nginx_with_fast_open:
        "nginx, `listen … fastopen=16`", "works", "works",
        |bed| match ready(&[NGINX]) {
            true => bed.kept.push(Box::new(Nginx::start(&bed.server, "hello"))),
            false => bed.listen(&json!({})),
        },
        |kernel, own| {
            // 5 ms each way.
            for report in [kernel, own] {
                let saves = report["verdict"]["saves_ms"].as_f64().unwrap();
                assert!((5.0..40.0).contains(&saves), "{report:#}");
            }
        };
    every_listener_has_it:
        "the server's `tcp_fastopen` is 0x403, its program knows nothing of Fast Open", "works", "works",
        |bed| {
            bed.server.sysctl(FAST_OPEN, "0x403");
            bed.listen(&json!({"qlen": 0}));
        };
    a_reply_on_the_syn_ack:
        "the reply comes on the SYN-ACK (`firstbyte serve`)", "works", "works",
        |bed| {
            bed.server.sysctl("net.ipv4.ip_forward", "1");
            route(&bed.client, &["10.78.0.0/24", "via", "10.77.0.2"]);
            let arguments = ["--tun", "serve0", "--address", "10.78.0.2/24"];
            let server = bed.server.run(|| Server::start_by(firstbyte(), &arguments));
            bed.kept.push(Box::new(server));
            bed.target = "10.78.0.2:80".parse().unwrap();
        },
        |_, own| {
            let visit = visit(own, "cookie");
            assert_eq!(visit["first_byte_ms"], visit["answered_ms"], "{own:#}");
        };
    the_server_speaks_first:
        "the server says something before it is asked", "works", "works",
        |bed| bed.listen(&json!({"expect": 0, "closes": "never"}));
    a_reply_of_many_segments:
        "a reply longer than the server's first window", "works", "works",
        |bed| bed.listen(&json!({"reply": "x".repeat(43_000)})),
        |_, own| assert!(says(own, "10 segments, 14480 bytes of a reply arrived before any"), "{own:#}");
    cookies_of_four_bytes:
        "cookies of 4 bytes", "works", "works", |bed| cookies_of(bed, 4);
    cookies_of_six_bytes:
        "cookies of 6 bytes", "works", "works", |bed| cookies_of(bed, 6);
    cookies_of_sixteen_bytes:
        "cookies of 16 bytes", "works", "works", |bed| cookies_of(bed, 16);
    cookies_that_are_too_short:
        "cookies of 2 bytes", "not_offered", "invalid_cookie", |bed| cookies_of(bed, 2);
    cookies_that_are_too_long:
        "cookies of 18 bytes", "not_offered", "invalid_cookie", |bed| cookies_of(bed, 18);
    cookies_of_an_odd_length:
        "cookies of 15 bytes", "not_offered", "invalid_cookie", |bed| cookies_of(bed, 15),
        |_, own| assert!(own.to_string().contains("with a cookie of 15 bytes, which clients ignore"), "{own:#}");
    a_new_key_with_the_old_one_behind:
        "the server has a new key, and the old one as its backup", "works", "works",
        |bed| {
            with_cookie(bed);
            let key = bed.server.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen_key").unwrap());
            bed.server.sysctl(KEY, &format!("{NEW_KEY},{}", key.trim()));
        };
    a_new_key:
        "the server has a new key and not the old one", "key_changed", "works",
        |bed| {
            with_cookie(bed);
            bed.server.sysctl(KEY, NEW_KEY);
        };
    keys_that_differ:
        "two servers behind the address, each with a key of its own", "keys_differ", "keys_differ",
        |bed| change_key(bed, 2);
    a_key_that_never_stays:
        "a server with another key each time", "key_differs", "key_differs",
        |bed| change_key(bed, usize::MAX);
    the_program_has_no_fast_open:
        "the program at this port has no TCP_FASTOPEN; no cookie is known, and it is asked again and again",
        "not_offered", "not_offered",
        |bed| {
            bed.listen(&json!({"qlen": 0}));
            // Kind 34, then the experimental kind once, then kind 34 again.
            for _ in 0..2 {
                assert_eq!(bed.by_kernel()["verdict"]["cause"], "not_offered");
            }
        };
    another_port_gave_the_cookie:
        "the program at this port has no TCP_FASTOPEN; one at another port of the address gave a cookie",
        "ignored", "not_offered",
        |bed| {
            with_cookie(bed);
            bed.listen(&json!({"id": 1, "port": 81, "qlen": 0}));
            bed.target.set_port(81);
        };
    the_servers_half_is_off:
        "the program has TCP_FASTOPEN, the server's `tcp_fastopen` no bit 0x2", "not_offered", "not_offered",
        |bed| {
            bed.server.sysctl(FAST_OPEN, "1");
            bed.listen(&json!({}));
        };
    the_servers_half_was_switched_off:
        "the same, and the cookie is known", "ignored", "not_offered",
        |bed| {
            with_cookie(bed);
            bed.server.sysctl(FAST_OPEN, "1");
        };
    syn_cookies:
        "the server's `tcp_syncookies` is 2; the cookie is known", "ignored", "not_offered",
        |bed| {
            with_cookie(bed);
            bed.server.sysctl("net.ipv4.tcp_syncookies", "2");
        };
    a_queue_full_of_handshakes:
        "the program's Fast Open queue is full of handshakes that nobody completes; the cookie is known",
        "ignored", "not_offered",
        |bed| {
            bed.listen(&json!({"qlen": 2}));
            bed.fetch_cookie();
            let mut held = BTreeSet::new();
            bed.wire.set_hook(drop_if(move |direction, segment| {
                let to_server = direction == Direction::ToServer;
                if to_server && segment.is_syn() && !segment.payload.is_empty() && held.len() < 2 {
                    held.insert(segment.src.port());
                }
                to_server && !segment.is_syn() && held.contains(&segment.src.port())
            }));
            for _ in 0..2 {
                let held = bed.open(Duration::from_secs(3)).unwrap();
                bed.kept.push(Box::new(held));
            }
        };
    a_queue_full_of_resets:
        "the queue is full of connections that were reset less than a minute ago; the cookie is known",
        "ignored", "not_offered",
        |bed| {
            bed.listen(&json!({"qlen": 1, "closes": "never"}));
            bed.fetch_cookie();
            // Only a connection that the program has accepted still counts.
            let (replied, reset) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let (seen_reply, seen_reset) = (replied.clone(), reset.clone());
            bed.wire.set_hook(drop_if(move |direction, segment| {
                let to_client = direction == Direction::ToClient;
                seen_reply.fetch_or(to_client && !segment.payload.is_empty(), Ordering::Relaxed);
                to_client
            }));
            assert!(bed.visit(Duration::from_millis(300)).is_err(), "it hears nothing");
            until(&replied);
            bed.wire.set_hook(drop_if(move |_, segment| {
                seen_reset.fetch_or(segment.has(RST), Ordering::Relaxed);
                false
            }));
            until(&reset);
        };
    a_server_without_cookies:
        "the server's `tcp_fastopen` is 0x203: it takes data from anybody and gives no cookies",
        "without_cookie", "without_cookie",
        |bed| {
            bed.server.sysctl(FAST_OPEN, "0x203");
            bed.listen(&json!({}));
        };
    a_program_without_cookies:
        "the program has TCP_FASTOPEN_NO_COOKIE", "without_cookie", "without_cookie",
        |bed| bed.listen(&json!({"no_cookie": true}));
    a_client_that_never_asks:
        "this host's `tcp_fastopen` is 0x5, an ordinary server", "not_asked", "works",
        |bed| {
            with_cookie(bed);
            bed.client.sysctl(FAST_OPEN, "0x5");
        };
    a_route_that_never_asks:
        "this host's route there has `fastopen_no_cookie`, an ordinary server", "not_asked", "works",
        |bed| {
            with_cookie(bed);
            let mut ip = testnet::command("ip");
            ip.args(["route", "change", "10.77.0.0/24", "dev", "tun0", "src", "10.77.0.1", "fastopen_no_cookie", "1"]);
            assert!(bed.client.output(&mut ip).status.success());
        };
    neither_end_wants_cookies:
        "this host's `tcp_fastopen` is 0x5, the server's 0x203", "without_cookie", "without_cookie",
        |bed| {
            bed.client.sysctl(FAST_OPEN, "0x5");
            bed.server.sysctl(FAST_OPEN, "0x203");
            bed.listen(&json!({}));
        };
    syns_with_data_are_dropped:
        "the path drops SYNs with data", "data_dropped", "data_dropped",
        |bed| behind(bed, hook::drop_syn_data());
    a_client_that_never_asks_behind_a_middlebox:
        "the same, and this host's `tcp_fastopen` is 0x5", "data_dropped", "data_dropped",
        |bed| {
            bed.client.sysctl(FAST_OPEN, "0x5");
            behind(bed, hook::drop_syn_data());
        };
    full_syns_are_dropped:
        "the path drops SYNs that are full of data", "works", "works_small",
        |bed| behind(bed, drop_if(|_, segment| segment.is_syn() && segment.payload.len() > 1000));
    the_option_is_dropped:
        "the path drops SYNs that carry the option", "option_dropped", "option_dropped",
        |bed| behind(bed, drop_if(|_, segment| segment.is_syn() && segment.fast_open.is_some()));
    the_option_is_reset:
        "a firewall answers SYNs that carry the option by a reset", "option_reset", "option_reset",
        |bed| behind(bed, reset_if(|syn| syn.fast_open.is_some()));
    the_option_is_stripped:
        "the path takes the option out; no cookie is known", "not_offered", "not_offered",
        |bed| behind(bed, hook::strip_fast_open());
    the_option_is_stripped_from_the_cookie:
        "the path takes the option out; the cookie is known", "ignored", "not_offered",
        |bed| {
            with_cookie(bed);
            bed.wire.set_hook(hook::strip_fast_open());
        };
    syns_with_data_are_reset:
        "a firewall answers SYNs that carry data by a reset", "data_reset", "data_reset",
        |bed| behind(bed, reset_if(|syn| !syn.payload.is_empty()));
    the_reply_is_dropped:
        "the path drops what follows the SYN-ACK, where the SYN carried data", "stalls", "stalls",
        |bed| behind(bed, drop_replies());
    the_program_resets:
        "the program resets each connection that it accepts", "program_resets", "program_resets",
        |bed| bed.listen(&json!({"expect": 0, "reply": "", "closes": "reset"})),
        |kernel, own| {
            for report in [kernel, own] {
                assert_eq!(visit(report, "cookie")["acknowledged"], 18, "{report:#}");
                assert!(report["visits"].as_array().unwrap().iter().all(|visit| visit["reply"] == 0));
            }
        };
    the_path_resets_behind_data:
        "the path resets connections whose SYN carried data, when the reply comes", "then_reset", "then_reset",
        |bed| behind(bed, reset_replies());
    one_visit_is_unlucky:
        "the path drops SYNs with data of one visit and not of the others", "unclear", "unclear",
        |bed| {
            with_cookie(bed);
            let mut unlucky = std::collections::BTreeMap::new();
            bed.wire.set_hook(drop_if(move |direction, segment| {
                let with_data = segment.is_syn() && !segment.payload.is_empty();
                direction == Direction::ToServer
                    && with_data
                    && *unlucky.entry(segment.src.ip()).or_insert(segment.src.port()) == segment.src.port()
            }));
        };
    a_syn_ack_is_lost:
        "the first SYN-ACK to a SYN with data is lost, by chance", "works", "works",
        |bed| {
            with_cookie(bed);
            let (mut seen, mut hit) = (BTreeSet::new(), BTreeSet::new());
            bed.wire.set_hook(drop_if(move |direction, segment| {
                if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
                    seen.insert(segment.src);
                }
                segment.is_syn_ack() && seen.contains(&segment.dst) && hit.insert(segment.dst.ip())
            }));
        },
        |kernel, own| {
            assert_eq!((&visit(kernel, "cookie")["syns"], &visit(own, "cookie")["syns"]), (&2.into(), &2.into()));
        };
    the_kernel_pauses:
        "this host's kernel has lost three SYNs and pauses (`tcp_fastopen_blackhole_timeout_sec`); the cookie is known",
        "paused", "works",
        paused;
    the_kernel_pauses_without_a_cookie:
        "the same; no cookie is known", "paused", "works",
        |bed| {
            paused(bed);
            let flushed = bed.client.output(testnet::command("ip").args(["tcp_metrics", "flush"]));
            assert!(flushed.status.success());
        };
    every_syn_comes_twice:
        "the path delivers every SYN twice", "works", "works",
        |bed| behind(bed, Box::new(|_, segment, _| match segment.is_syn() {
            true => Verdict::Duplicate { after: Duration::from_millis(3) },
            false => Verdict::Pass,
        }));
    syns_come_again_when_the_connection_is_over:
        "the path delivers SYNs once more when their connections are over", "works", "works",
        |bed| behind(bed, Box::new(|_, segment, _| match segment.is_syn() {
            true => Verdict::Duplicate { after: Duration::from_millis(200) },
            false => Verdict::Pass,
        }));
    nobody_listens:
        "nobody listens at this port; the cookie is known", "refused", "refused",
        |bed| {
            with_cookie(bed);
            bed.target.set_port(81);
        };
    nothing_comes_back:
        "nothing comes back", "unreachable", "unreachable",
        |bed| behind(bed, drop_if(|direction, _| direction == Direction::ToClient));
}

/// Starts a listener, and fetches its cookie.
fn with_cookie(bed: &mut Bed) {
    bed.listen(&json!({}));
    bed.fetch_cookie();
}

/// Starts a listener behind this middlebox, without a known cookie.
fn behind(bed: &mut Bed, hook: Hook) {
    bed.listen(&json!({}));
    bed.wire.set_hook(hook);
}

#[track_caller]
fn until(happened: &AtomicBool) {
    let begun = Instant::now();
    while !happened.load(Ordering::Relaxed) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Makes Linux pause Fast Open: a connect with data whose SYNs get no answer.
fn paused(bed: &mut Bed) {
    bed.client.sysctl("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "60");
    bed.client.sysctl("net.ipv4.tcp_syn_retries", "1");
    with_cookie(bed);
    bed.wire.set_hook(drop_if(|direction, _| direction == Direction::ToServer));
    assert!(bed.visit(Duration::from_secs(10)).is_err(), "nothing answers");
    bed.pass();
    assert_eq!(bed.client.counters().of("TCPFastOpenBlackhole"), 1);
}

/// Sends SYNs with data to `keys` servers in turn, each with its own key.
fn change_key(bed: &mut Bed, keys: usize) {
    let server = bed.server.share();
    let key = |number: usize| format!("00000000-00000000-00000000-{number:08}");
    bed.server.sysctl(KEY, &key(0));
    let mut with_data = 0;
    let hook: Hook = Box::new(move |direction, segment, _| {
        if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
            server.sysctl(KEY, &key(with_data % keys));
            with_data += 1;
        }
        Verdict::Pass
    });
    behind(bed, hook);
    if keys > 2 {
        // The cookie is made with the first key.
        bed.server.sysctl(KEY, &key(99));
    }
}

/// Translates between Linux's cookies of 8 bytes and cookies of `len` on the path.
fn cookies_of(bed: &mut Bed, len: usize) {
    let mut given = std::collections::BTreeMap::new();
    let hook: Hook = Box::new(move |direction, segment, packet| {
        let (Some(cookie), client) = (segment.cookie(), direction == Direction::ToClient) else {
            return Verdict::Pass;
        };
        let other = match client {
            true => {
                let longer: Vec<u8> = cookie.iter().copied().cycle().take(len).collect();
                given.insert(longer.clone(), cookie.to_vec());
                longer
            }
            false => given.get(cookie).cloned().unwrap_or_else(|| cookie.to_vec()),
        };
        Verdict::Replace(craft::with_cookie(packet, Some(&other)))
    });
    behind(bed, hook);
}

/// Answers with the reset of a port without a listener, to which such a SYN is forwarded.
fn reset_if(is_meant: fn(&Segment) -> bool) -> Hook {
    const CLOSED: u16 = 9;
    // The ports of TCP are behind 20 bytes of IPv4 without options.
    let with = |packet: &[u8], at: usize, port: u16| {
        let mut packet = packet.to_vec();
        packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
        refresh_checksum(&mut packet);
        Verdict::Replace(packet)
    };
    Box::new(move |_, segment, packet| match segment {
        Segment { src, .. } if src.port() == CLOSED => with(packet, 20, 80),
        syn if syn.is_syn() && is_meant(syn) => with(packet, 22, CLOSED),
        _ => Verdict::Pass,
    })
}

/// Acts like a firewall without state for connections that began with data.
fn drop_replies() -> Hook {
    let mut began_with_data = BTreeSet::new();
    drop_if(move |direction, segment| {
        if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
            began_with_data.insert(segment.src);
        }
        direction == Direction::ToClient
            && !segment.payload.is_empty()
            && began_with_data.contains(&segment.dst)
    })
}

/// Returns a hook that turns packets after the SYN-ACK into resets, if the SYN carried data.
fn reset_replies() -> Hook {
    let mut began_with_data = BTreeSet::new();
    Box::new(move |direction, segment, packet| {
        if direction == Direction::ToServer && segment.is_syn() && !segment.payload.is_empty() {
            began_with_data.insert(segment.src);
        }
        let reply = direction == Direction::ToClient && !segment.payload.is_empty();
        if !reply || !began_with_data.contains(&segment.dst) {
            return Verdict::Pass;
        }
        let mut packet = packet.to_vec();
        // The flags of TCP, behind 20 bytes of IPv4.
        packet[20 + 13] = RST;
        refresh_checksum(&mut packet);
        Verdict::Replace(packet)
    })
}

fn probes(report: &Value) -> Vec<&str> {
    report["visits"].as_array().unwrap().iter().map(|visit| visit["probe"].as_str().unwrap()).collect()
}

#[track_caller]
fn visit<'a>(report: &'a Value, probe: &str) -> &'a Value {
    report["visits"].as_array().unwrap().iter().find(|visit| visit["probe"] == probe).unwrap()
}

fn says(report: &Value, words: &str) -> bool {
    let deduced = report["verdict"]["deduced"].as_array().unwrap();
    deduced.iter().any(|word| word.as_str().unwrap().contains(words))
}
