//! SYN cookies: when they are sent, what they keep, who passes, and what a flood costs.

use crate::pair::*;
use crate::peer::*;
use core::time::Duration;
use proto::fast_open::KeyRing;
use proto::*;

const FULL_OPTIONS: &str = "mss 1400,sackOK,TS 100 0,wscale 7";
const KEY: &str = "00010203-04050607-08090a0b-0c0d0e0f";

/// Both profiles with `tcp_syncookies` set, in both IP versions.
fn servers(tcp_syncookies: u32) -> [Peer; 4] {
    let peer = |config: Config| Peer::new(config.tcp_syncookies(tcp_syncookies).tcp_fastopen(0x3));
    [peer(Config::default()), peer(Config::linux()), peer(Config::default()).v6(), peer(Config::linux()).v6()]
}

fn listen(p: &mut Peer, backlog: u32) -> ListenerId {
    p.listen_with(ListenOptions { backlog, ..ListenOptions::default() })
}

fn counter(p: &Peer, name: &str) -> u64 {
    p.stack.counters().get(name).unwrap()
}

/// Sent, came back, refused.
fn cookies(p: &Peer) -> [u64; 3] {
    ["SyncookiesSent", "SyncookiesRecv", "SyncookiesFailed"].map(|name| counter(p, name))
}

/// A spoofed SYN: its number decides source address and port.
fn spoofed(p: &mut Peer, number: u32) {
    let [_, _, high, low] = number.to_be_bytes();
    let source = match p.local.is_ipv4() {
        true => format!("10.9.{high}.{low}"),
        false => format!("fd00::9:{high:x}:{low:x}"),
    };
    p.remote = std::net::SocketAddr::new(source.parse().unwrap(), 1024 + (number % 60_000) as u16);
    p.send("S 0 <mss 1460>");
}

/// L-ACC-2: backlog 8, 50 spoofed SYNs.
#[test]
fn fifty_spoofed_syns() {
    for (mode, held, sent, dropped) in [(0, 9, 0, 41), (1, 9, 41, 0), (2, 0, 50, 0)] {
        for mut p in servers(mode) {
            let listener = listen(&mut p, 8);
            let mut answers = 0;
            for number in 0..50 {
                spoofed(&mut p, number);
                answers += p.sent_now().len();
            }
            assert_eq!((p.sizes(), answers as u64), ((0, held, 0), held as u64 + sent));
            assert_eq!(cookies(&p), [sent, 0, 0]);
            assert_eq!(counter(&p, "TCPReqQFullDoCookies"), sent);
            assert_eq!((counter(&p, "TCPReqQFullDrop"), counter(&p, "ListenDrops")), (dropped, dropped));
            let info = p.stack.listener_info(listener).unwrap();
            assert_eq!((info.syn_queue, info.cookies.sent, info.drops.syn_queue_full), (held, sent, dropped));
        }
    }
}

/// Without cookies the last quarter of `tcp_max_syn_backlog` is for peers that are known; with them the backlog alone counts.
#[test]
fn the_last_quarter_is_for_known_peers() {
    for (mode, held) in [(0, 49), (1, 100)] {
        for mut p in servers(mode) {
            p.stack.set(p.now, "net.ipv4.tcp_max_syn_backlog", "64").unwrap();
            listen(&mut p, 1000);
            (0..100).for_each(|number| spoofed(&mut p, number));
            p.expect_sent(held);
            assert_eq!(p.sizes().1, held);
            let dropped = 100 - held as u64;
            assert_eq!((counter(&p, "ListenDrops"), counter(&p, "TCPReqQFullDrop")), (dropped, 0));
            let path = p.stack.path_cache_mut().entry(p.now, p.local.ip().into(), p.remote.ip().into());
            path.set_rtt(Some(Duration::from_millis(10)));
            p.remote.set_port(999);
            p.send("S 0 <mss 1460>");
            p.expect("SA 0 ack 1");
            assert_eq!(p.sizes().1, held + 1);
        }
    }
}

/// The options of the SYN come back in the timestamp, and serve the data transfer.
#[test]
fn window_scale_and_sack_survive() {
    for mut p in servers(2) {
        let listener = listen(&mut p, 8);
        p.send(&format!("S 0 win 4096 <{FULL_OPTIONS}>"));
        let syn_ack = p.expect("SA 0 ack 1");
        assert!(syn_ack.options.sack_permitted && syn_ack.options.timestamps.is_some());
        let own_shift = syn_ack.options.window_scale.unwrap();
        assert_eq!(p.sizes(), (0, 0, 0));
        p.send("A 1 ack 1 win 100 <TS 200 0>");
        let id = p.accept(listener);
        let info = p.stack.info(id).unwrap();
        assert_eq!((info.state, info.snd_wnd), (State::Established, 12_800));
        assert_eq!((info.snd_wscale, info.rcv_wscale), (7, own_shift));
        assert!(info.sack && info.timestamps);
        let mss = if p.local.is_ipv4() { 1300 } else { 1220 };
        assert_eq!(info.snd_mss, mss - 12, "rounded down to the table, less the timestamps");
        assert_eq!(cookies(&p), [1, 1, 0]);
        p.send("PA 11:21 ack 1 win 100 <TS 210 0>");
        assert_eq!(p.expect("A 1 ack 1").options.sack.len(), 1);
        p.send("PA 1:11 ack 1 win 100 <TS 210 0>");
        assert_eq!(p.read(id).unwrap(), pattern(1, 20));
        p.write(id, &pattern(1, 20_000));
        let sent: usize = p.sent_now().iter().filter(|text| text.contains("TS ")).count();
        assert_eq!(sent, 12_800 / (usize::from(mss) - 12), "the scaled window, in whole segments");
    }
}

/// With timestamps; without them, and for who did not ask, nothing is promised and nothing marked.
#[test]
fn ecn_survives() {
    let rows = [("SEW", FULL_OPTIONS, "SAE", 2), ("SEW", "mss 1400", "SA", 0), ("S", FULL_OPTIONS, "SA", 0)];
    for (syn, options, syn_ack, codepoint) in rows {
        for mut p in servers(2) {
            let listener = listen(&mut p, 8);
            p.send(&format!("{syn} 0 <{options}>"));
            p.expect(&format!("{syn_ack} 0 ack 1"));
            p.send(if options.contains("TS") { "A 1 ack 1 <TS 200 0>" } else { "A 1 ack 1" });
            let id = p.accept(listener);
            p.write(id, &pattern(1, 10));
            let packet = p.take_packet().unwrap();
            let traffic_class = if p.local.is_ipv4() { packet[1] } else { packet[1] >> 4 };
            assert_eq!(traffic_class & 3, codepoint, "{syn} {options}");
        }
    }
}

#[test]
fn without_timestamps_only_the_mss_survives() {
    for mut p in servers(2) {
        let listener = listen(&mut p, 8);
        p.send("S 0 <mss 1450,sackOK,wscale 7>");
        let advertised = if p.local.is_ipv4() { 1460 } else { 1440 };
        p.expect(&format!("SA 0 ack 1 <mss {advertised}>"));
        p.send("PA 1:11 ack 1 win 5000");
        let id = p.accept(listener);
        let info = p.stack.info(id).unwrap();
        assert_eq!((info.snd_mss, info.snd_wnd, info.snd_wscale, info.rcv_wscale), (1440, 5000, 0, 0));
        assert!(!info.sack && !info.timestamps);
        assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    }
}

#[test]
fn forged_and_stray_acks_are_refused() {
    for mut p in servers(2) {
        listen(&mut p, 8);
        p.send("A 1 ack 1");
        assert_eq!(p.sent_now().len(), 1, "no cookie was sent yet: a stranger's");
        assert_eq!(cookies(&p), [0, 0, 0]);
        p.send(&format!("S 0 <{FULL_OPTIONS}>"));
        p.expect("SA 0 ack 1");
        // Nearer numbers may stand for another MSS.
        for forged in
            ["A 1 ack 20", "A 20 ack 1", "A 1 ack 4294967280", "A 1 ack 16777217", "A 1 ack 33554433"]
        {
            p.send(forged);
            assert_eq!(p.sent_now().len(), 1, "{forged}");
        }
        let port = p.remote.port();
        p.remote.set_port(port + 1);
        p.send("A 1 ack 1");
        p.expect("R 1");
        p.remote.set_port(port);
        p.send("SA 1 ack 1");
        p.expect("R 1");
        assert_eq!((p.sizes(), cookies(&p)), ((0, 0, 0), [1, 0, 6]));
        p.send("A 1 ack 1 <TS 200 0>");
        assert_eq!((p.sizes(), cookies(&p)), ((1, 0, 0), [1, 1, 6]));
    }
}

/// A peer that asks us to have agreed on what is off here did not get this from us.
#[test]
fn a_timestamp_that_names_an_option_that_is_off_is_refused() {
    for mut p in servers(2) {
        listen(&mut p, 8);
        p.send(&format!("S 0 <{FULL_OPTIONS}>"));
        p.expect("SA 0 ack 1");
        p.stack.set(p.now, "net.ipv4.tcp_sack", "0").unwrap();
        p.send("A 1 ack 1 <TS 200 0>");
        assert_eq!((p.sizes(), cookies(&p)), ((0, 0, 0), [1, 0, 1]));
    }
}

/// The stack's clock starts at 1000 s, 40 s into a period of 60: the cookie is good for 20 + 60 s.
#[test]
fn cookies_expire() {
    for (wait, good) in [(79_999, true), (80_000, false)] {
        for mut p in servers(2) {
            listen(&mut p, 8);
            p.send(&format!("S 0 <{FULL_OPTIONS}>"));
            p.expect("SA 0 ack 1");
            p.expect_nothing_for(wait);
            p.send("A 1 ack 1 <TS 200 0>");
            assert_eq!(
                (p.sizes().0, cookies(&p)),
                (usize::from(good), [1, u64::from(good), u64::from(!good)])
            );
        }
    }
}

/// Two minutes after the last cookie, ACKs are not even looked at (Linux's `tcp_synq_no_recent_overflow`).
#[test]
fn long_after_the_flood_nobody_can_guess() {
    for mut p in servers(2) {
        listen(&mut p, 8);
        p.send(&format!("S 0 <{FULL_OPTIONS}>"));
        p.expect("SA 0 ack 1");
        p.expect_nothing_for(119_999);
        p.send("A 1 ack 1 <TS 200 0>");
        assert_eq!(cookies(&p), [1, 0, 1]);
        p.expect("R 1");
        p.expect_nothing_for(1);
        p.send("A 1 ack 1 <TS 200 0>");
        assert_eq!((cookies(&p), p.sent_now().len()), ([1, 0, 1], 1));
    }
}

#[test]
fn switched_off_they_are_not_believed() {
    for mut p in servers(2) {
        listen(&mut p, 8);
        p.send(&format!("S 0 <{FULL_OPTIONS}>"));
        p.expect("SA 0 ack 1");
        p.stack.set(p.now, "net.ipv4.tcp_syncookies", "0").unwrap();
        p.send("A 1 ack 1 <TS 200 0>");
        assert_eq!((p.sizes(), cookies(&p)), ((0, 0, 0), [1, 0, 0]));
    }
}

/// C-05: backlog 2, eight clients at once. Three requests, five cookies, three accepted. Five clients are connected to nobody: as with
/// Linux each gets in when it sends again and there is room, unless ours is asked to tell it at once.
#[test]
fn ghosts() {
    let both = servers(1).into_iter().map(|p| (p, false)).chain(servers(1).into_iter().map(|p| (p, true)));
    for ((mut p, abort), ours) in both.zip([true, false].into_iter().cycle()) {
        p.stack.set(p.now, "net.ipv4.tcp_abort_on_overflow", if abort { "1" } else { "0" }).unwrap();
        let told = abort && ours;
        let listener = listen(&mut p, 2);
        let port = p.remote.port();
        for number in 0..8 {
            p.remote.set_port(port + number);
            p.send("S 0 <mss 1000>");
            p.expect("SA 0 ack 1");
        }
        for number in 0..8 {
            p.remote.set_port(port + number);
            p.send("A 1 ack 1");
            if told && number >= 3 {
                p.expect("RA 1 ack 1");
            }
            p.expect_nothing();
        }
        assert_eq!((p.sizes(), cookies(&p)), ((3, 0, 0), [5, 5, 0]));
        assert_eq!((counter(&p, "ListenOverflows"), counter(&p, "ListenDrops")), (5, 5));
        assert_eq!(p.stack.listener_info(listener).unwrap().drops.reset, if told { 5 } else { 0 });
        // The last one sends when there is room.
        if !told {
            p.accept(listener);
            p.send("PA 1:11 ack 1");
            assert_eq!((p.sizes(), cookies(&p)), ((4, 0, 0), [5, 6, 0]));
        }
    }
}

/// In cookie mode Linux does not look at Fast Open. Ours honours a valid cookie, and hands one out on the SYN-ACK, because neither
/// needs memory.
#[test]
fn fast_open_in_cookie_mode() {
    for (mut p, served) in servers(2).into_iter().zip([true, false, true, false]) {
        let ring: KeyRing = KEY.parse().unwrap();
        p.stack.set_fast_open_key(ring.clone());
        let cookie = ring.cookie(p.remote.ip().into(), p.local.ip().into()).to_string();
        let options = ListenOptions { backlog: 8, fast_open: Some(8), ..ListenOptions::default() };
        p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..options });
        p.send(&format!("S 0:10 <{FULL_OPTIONS},FO {cookie}>"));
        p.expect(if served { "SA 0 ack 11" } else { "SA 0 ack 1" });
        for (number, option) in ["FO", "FO 0102030405060708"].into_iter().enumerate() {
            p.remote.set_port(50_000 + number as u16);
            p.send(&format!("S 0:10 <{FULL_OPTIONS},{option}>"));
            let syn_ack = p.expect("SA 0 ack 1");
            let told = syn_ack.options.fast_open.and_then(|option| option.cookie).map(|c| c.to_string());
            assert_eq!(told, served.then(|| cookie.clone()));
            p.send("PA 1:11 ack 1 <TS 200 0>");
        }
        assert_eq!(p.sizes(), (if served { 3 } else { 2 }, 0, 0));
        assert_eq!(cookies(&p), if served { [2, 2, 0] } else { [3, 2, 0] });
    }
}

/// The whole of it between two stacks: every connection by cookie, with loss on the way.
#[test]
fn a_transfer_over_a_cookie_connection() {
    for (config, local) in [(Config::default(), "10.0.0.2:80"), (Config::linux(), "[fd00::2]:80")] {
        let mut pair = Pair::new(Config::default(), config.tcp_syncookies(2), 20);
        pair.server = local.parse().unwrap();
        let listener = pair.listen(0);
        let id =
            pair.connect(ConnectOptions { first_bytes: pattern(1, 200_000).into(), ..Default::default() });
        let mut packets = 0;
        pair.filter = Box::new(move |sent| {
            packets += u32::from(sent.len > 0);
            sent.len == 0 || packets % 20 != 7
        });
        pair.run(100);
        let child = pair.accept(listener).unwrap();
        let mut received = Vec::new();
        for _ in 0..10_000 {
            if let Ok(bytes) = pair.read(SERVER, child) {
                received.extend(bytes);
            }
            if received.len() == 200_000 {
                break;
            }
            pair.run(20);
        }
        assert!(received == pattern(1, 200_000), "{} bytes", received.len());
        let now = pair.now;
        assert!(pair.stacks[CLIENT].info(id).unwrap().snd_wscale > 0);
        pair.stacks[SERVER].close(now, child);
        assert_eq!(pair.stacks[SERVER].counters().syncookies_recv, 1);
    }
}

/// 20 000 spoofed SYNs: one small answer each at most, nothing kept beyond the queue; plain clients come in by SYN cookies, those with a
/// Fast Open cookie with their data. Then the flood ends, and the queue is clean.
#[test]
fn a_flood_does_not_keep_real_clients_out() {
    for (mut p, past_queue) in servers(1).into_iter().zip([true, false, true, false]) {
        let ring: KeyRing = KEY.parse().unwrap();
        p.stack.set_fast_open_key(ring.clone());
        let options = ListenOptions { backlog: 128, fast_open: Some(16), ..ListenOptions::default() };
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..options });
        let real = p.remote;
        let cookie = ring.cookie(real.ip().into(), p.local.ip().into()).to_string();
        for number in 0..20_000 {
            spoofed(&mut p, number);
            let answer = p.take_packet().unwrap();
            assert!(answer.len() <= if p.local.is_ipv4() { 44 } else { 64 });
            assert!(p.take_packet().is_none());
            if number % 1000 == 500 {
                p.remote = real;
                p.remote.set_port(62_000 + (number / 1000) as u16);
                p.send(&format!("S 0 <{FULL_OPTIONS}>"));
                p.expect("SA 0 ack 1");
                p.send("PA 1:11 ack 1 <TS 200 0>");
                let id = p.accept(listener);
                assert_eq!(p.read(id).unwrap(), pattern(1, 10));
                p.stack.abort(p.now, id);
                p.expect("RA 1 ack 11");
                p.remote.set_port(63_000 + (number / 1000) as u16);
                p.send(&format!("S 0:10 <mss 1000,FO {cookie}>"));
                p.expect(if past_queue { "SA 0 ack 11" } else { "SA 0 ack 1" });
                p.send(if past_queue { "A 11 ack 1" } else { "A 1 ack 1" });
                let id = p.accept(listener);
                p.stack.abort(p.now, id);
                p.expect(if past_queue { "RA 1 ack 11" } else { "RA 1 ack 1" });
            }
        }
        assert_eq!(p.sizes(), (0, 129, 0));
        p.skip(64_000);
        assert_eq!(p.sizes(), (0, 0, 0));
    }
}

/// The last ACK of the handshake and a first segment of few bytes are lost: what follows is no cookie, and the stream keeps its beginning.
#[test]
fn a_cookie_is_not_taken_from_what_follows_a_short_first_segment() {
    for mut p in servers(2) {
        let listener = listen(&mut p, 8);
        p.send("S 0 <mss 1460>");
        p.expect("SA 0 ack 1");
        for lost in 1..16 {
            p.send(&format!("PA {}:{} ack 1", 1 + lost, 101 + lost));
            assert!(p.stack.accept(p.now, listener).is_err(), "{lost} bytes lost");
            p.expect("R 1");
        }
        p.send("PA 1:3 ack 1");
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(pattern(1, 2)));
    }
}

/// The queue had no room for the first SYN and has some for the second: two SYN-ACKs with two numbers. The client completes the one it has heard
/// first, and the request must not go on to send the other.
#[test]
fn a_cookie_ends_the_request_of_a_repeated_syn() {
    for mut p in servers(2) {
        let listener = listen(&mut p, 8);
        p.send("S 0 <mss 1400>");
        p.expect("SA 0 ack 1");
        let ack = p.packet("PA 1:11 ack 1");
        p.stack.set(p.now, "net.ipv4.tcp_syncookies", "1").unwrap();
        assert_ne!(p.send_and_isn("S 0 <mss 1400>", "SA 0 ack 1"), 0, "another number");
        assert_eq!(p.sizes(), (0, 1, 0));
        p.send_rx(RxPacket::new(ack));
        assert_eq!((p.sizes(), cookies(&p)), ((1, 0, 0), [1, 1, 0]));
        let id = p.accept(listener);
        assert_eq!(p.read(id).unwrap(), pattern(1, 10));
        p.pass(200);
        assert!(p.sent_now().iter().all(|text| text.starts_with("A ")), "the delayed ACK alone");
        p.expect_nothing_for(10_000);
    }
}

/// A SYN cookie comes back after another listener has joined those who share the port, or the one that sent it has closed: whoever the client is dealt
/// to now takes it (Linux keeps one `synq_overflow_ts` for all of them).
#[test]
fn whoever_shares_the_port_takes_a_cookie() {
    for joins in [true, false] {
        for mut p in servers(2) {
            let options = ListenOptions { share_port: true, backlog: 20, ..ListenOptions::default() };
            let mut listeners = vec![p.listen_with(options.clone())];
            if !joins {
                listeners.push(p.listen_with(options.clone()));
            }
            for port in 0..16 {
                p.remote.set_port(40_000 + port);
                p.send("S 0 <mss 1460>");
                p.expect("SA 0 ack 1");
                p.skip(1);
            }
            if joins {
                listeners.push(p.listen_with(options));
            } else {
                p.stack.close_listener(p.now, listeners.remove(0));
            }
            for port in 0..16 {
                p.remote.set_port(40_000 + port);
                p.send("A 1 ack 1");
            }
            assert_eq!(cookies(&p), [16, 16, 0], "{joins}");
            p.expect_nothing();
        }
    }
}
