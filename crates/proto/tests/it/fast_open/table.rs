//! The rows measured on Linux 6.18 (two namespaces, 20 ms each way), with Linux's counters at both ends; and what ours does
//! differently on purpose.
//!
//! Rows about one end only are with their subject: queue and 60 seconds in `pending`, pauses in `pause`, replays in `replay`, cookie
//! lengths in `syn_ack`, sizes in `syn` and `syn_received`.

use super::exchange::*;
use super::*;

type Counted = &'static [(&'static str, u64)];

/// What one exchange cost.
struct Row {
    packets: usize,
    first_byte_ms: u64,
    outcome: Outcome,
    client: Vec<(&'static str, u64)>,
    server: Vec<(&'static str, u64)>,
    /// `RetransSegs` and `TCPSynRetrans` of the client, `TCPSynRetrans` of the server.
    retrans: [u64; 3],
}

/// Runs one exchange and reports what it added to the counters.
fn visit(pair: &mut Pair, listener: ListenerId, options: ConnectOptions) -> Row {
    pair.log.clear();
    let before = pair.stacks.each_ref().map(|stack| stack.counters().clone());
    let mut exchange = Exchange::start(pair, listener, options).calls();
    exchange.run(pair, 10_000);
    assert!(exchange.complete && exchange.answer == REPLY && exchange.delivered == [REQUEST]);
    let added = |side: usize| {
        let base = &before[side];
        let counted = counters(&pair.stacks[side]).into_iter();
        let before = |name: &str| base.get(name).or(base.get(&format!("TCPFastOpen{name}"))).unwrap();
        counted.map(|(name, count)| (name, count - before(name))).filter(|(_, count)| *count > 0).collect()
    };
    let after = pair.stacks.each_ref().map(|stack| stack.counters().clone());
    Row {
        packets: pair.log.len(),
        first_byte_ms: exchange.first_byte.unwrap().as_millis() as u64,
        outcome: exchange.outcome.unwrap(),
        client: added(CLIENT),
        server: added(SERVER),
        retrans: [
            after[CLIENT].retrans_segs - before[CLIENT].retrans_segs,
            after[CLIENT].syn_retrans - before[CLIENT].syn_retrans,
            after[SERVER].syn_retrans - before[SERVER].syn_retrans,
        ],
    }
}

impl Row {
    #[track_caller]
    fn is(
        &self,
        packets: usize,
        first_byte_ms: u64,
        outcome: Outcome,
        client: Counted,
        server: Counted,
    ) -> &Row {
        assert_eq!((self.packets, self.first_byte_ms, self.outcome), (packets, first_byte_ms, outcome));
        assert_eq!((&self.client[..], &self.server[..]), (client, server));
        self
    }
}

fn ignored() -> Outcome {
    Outcome::NotAcknowledged(NotAcknowledged::Ignored)
}

fn bits(bits: u32) -> Config {
    linux().tcp_fastopen(bits)
}

/// The client holds a cookie for a server with these settings.
fn linux_to(server: Config) -> (Pair, ListenerId) {
    acquainted(linux(), server)
}

const REJECTED: (&str, u64) = ("SynDataRejectedBytes", 27);

#[test]
fn cookie_request_then_success() {
    let (mut pair, listener) = pair(linux(), linux());
    let first = visit(&mut pair, listener, fast());
    first.is(9, 80, Outcome::CookieRequested { granted: true }, &[], &[("CookieReqd", 1)]);
    let (_, _, path) = pair.stacks[CLIENT].path_cache().iter().next().unwrap();
    assert_eq!((path.mss, path.cookie.map(|cookie| cookie.as_bytes().len())), (Some(1460), Some(8)));
    let repeat = visit(&mut pair, listener, fast());
    repeat.is(8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]);
    assert_eq!(repeat.retrans, [0, 0, 0]);
}

/// A cookie is the address's, not the port's: another listener takes it, and the first visit there is a repeat visit.
#[test]
fn another_port_of_the_same_host() {
    let mut pair = Pair::ours();
    let listener = pair.listen(16);
    pair.obtain_cookie(listener);
    let (now, other) = (pair.now, core::net::SocketAddr::new(pair.server.ip(), 8443));
    let options = ListenOptions { fast_open: Some(16), ..ListenOptions::default() };
    let listener = pair.stacks[SERVER].listen(now, other, options).unwrap();
    pair.server = other;
    let id = pair.connect(auto(b"hello"));
    pair.run(25);
    let child = pair.accept(listener).expect("half a round trip later");
    assert_eq!(pair.read(SERVER, child).unwrap(), b"hello");
    pair.run(100);
    assert_eq!(pair.stacks[CLIENT].outcome(id), Some(Outcome::Accepted));
}

#[test]
fn stale_cookie() {
    let (mut pair, listener) = linux_to(linux());
    let old = cached(&pair);
    pair.stacks[SERVER].set_fast_open_key(ring(OTHER_KEY));
    let stale = Outcome::NotAcknowledged(NotAcknowledged::StaleCookie);
    let row = visit(&mut pair, listener, fast());
    row.is(9, 80, stale, &[("ActiveFail", 1), REJECTED], &[("PassiveFail", 1)]);
    assert_eq!(row.retrans, [1, 0, 0]);
    assert_ne!(cached(&pair), old, "replaced");
    visit(&mut pair, listener, fast()).is(8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]);
}

fn cached(pair: &Pair) -> Option<Cookie> {
    pair.stacks[CLIENT].path_cache().iter().next().unwrap().2.cookie
}

#[test]
fn key_rotated_with_a_backup() {
    let (mut pair, listener) = linux_to(linux());
    let old = cached(&pair);
    let keys = format!("{OTHER_KEY},{}", pair.stacks[SERVER].fast_open_key());
    pair.stacks[SERVER].set_fast_open_key(ring(&keys));
    let row = visit(&mut pair, listener, fast());
    row.is(8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1), ("PassiveAltKey", 1)]);
    assert_ne!(cached(&pair), old);
    visit(&mut pair, listener, fast()).is(8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]);
}

/// Linux pays every time, ours once.
#[test]
fn a_listener_without_fast_open() {
    for client in [linux(), Config::default()] {
        let ours = client.fast_open_verdicts;
        let (mut pair, listener) = acquainted(client, linux());
        pair.stacks[SERVER].close_listener(pair.now, listener);
        let listener = pair.listen(0);
        let cookie = cached(&pair);
        let first = visit(&mut pair, listener, fast());
        let packets = if ours { first.packets } else { 9 };
        first.is(packets, 80, ignored(), &[("ActiveFail", 1), REJECTED], &[]);
        let again = visit(&mut pair, listener, fast());
        if ours {
            let verdict = Outcome::Skipped(Skipped::Verdict(Verdict::NotAcknowledged));
            again.is(again.packets, 80, verdict, &[], &[]);
        } else {
            again.is(9, 80, ignored(), &[("ActiveFail", 1), REJECTED], &[]);
        }
        assert_eq!(cached(&pair), cookie, "kept");
    }
}

#[test]
fn requests_to_a_listener_without_fast_open() {
    let (mut pair, _) = pair(linux(), linux());
    pair.server.set_port(81);
    let listener = pair.listen(0);
    for kind in [34, 254, 34] {
        let row = visit(&mut pair, listener, fast());
        row.is(row.packets, 80, Outcome::CookieRequested { granted: false }, &[], &[("CookieReqd", 1)]);
        let format = pair.log[0].header.options.fast_open.unwrap().kind;
        assert_eq!(format, if kind == 34 { FastOpenKind::Standard } else { FastOpenKind::Experimental });
    }
}

#[test]
fn the_bits_between_two_ends() {
    // The client's bits, the server's bits and qlen, whether it has met the server while that had 0x3, and what comes of it.
    type Case = (u32, u32, u32, bool, usize, u64, Outcome, Counted, Counted);
    let fail: Counted = &[("ActiveFail", 1), REJECTED];
    let requested = |granted| Outcome::CookieRequested { granted };
    #[rustfmt::skip]
    let cases: [Case; 8] = [
        (0x1, 0x403, 0,  true,  8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]),
        (0x1, 0x1,   16, true,  9, 80, ignored(), fail, &[]),
        (0x1, 0x1,   16, false, 9, 80, requested(false), &[], &[("CookieReqd", 1)]),
        (0x5, 0x203, 16, false, 8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]),
        (0x5, 0x3,   16, false, 9, 80, ignored(), fail, &[]),
        (0x1, 0x203, 16, false, 9, 80, requested(false), &[], &[("Passive", 1), ("CookieReqd", 1)]),
        (0x1, 0x203, 16, true,  8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]),
        (0x2, 0x3,   16, true,  9, 80, Outcome::Skipped(Skipped::Disabled), &[], &[]),
    ];
    for (client, server, qlen, acquaint, packets, ms, outcome, of_client, of_server) in cases {
        let (mut pair, listener) = if acquaint { linux_to(linux()) } else { pair(linux(), linux()) };
        pair.stacks[CLIENT].set(pair.now, "net.ipv4.tcp_fastopen", &client.to_string()).unwrap();
        pair.stacks[SERVER].set(pair.now, "net.ipv4.tcp_fastopen", &server.to_string()).unwrap();
        pair.stacks[SERVER].close_listener(pair.now, listener);
        let listener = pair.listen(qlen);
        let row = visit(&mut pair, listener, fast());
        row.is(packets, ms, outcome, of_client, of_server);
    }
}

#[test]
fn no_cookie_at_both_ends() {
    let (mut pair, listener) = pair(bits(0x3), bits(0x3));
    pair.stacks[SERVER].close_listener(pair.now, listener);
    let options = ListenOptions { fast_open_no_cookie: true, ..qlen(16) };
    let listener = pair.stacks[SERVER].listen(pair.now, pair.server, options).unwrap();
    let row = visit(&mut pair, listener, ConnectOptions { fast_open: FastOpen::NoCookie, ..fast() });
    row.is(8, 40, Outcome::Accepted, &[("Active", 1)], &[("Passive", 1)]);
    assert_eq!(pair.log[0].header.options.fast_open, None);
}

/// Linux pays a second every time; ours once max(100 ms, 2.5 SRTT), then nothing.
#[test]
fn syn_data_dropped_on_the_path() {
    let lost = Outcome::NotAcknowledged(NotAcknowledged::Lost);
    let drop_syn_data = |pair: &mut Pair| {
        pair.filter = Box::new(|sent| !(sent.header.flags == wire::Flags::SYN && sent.len > 0));
    };
    let (mut pair, listener) = linux_to(linux());
    drop_syn_data(&mut pair);
    for _ in 0..2 {
        let row = visit(&mut pair, listener, fast());
        row.is(10, 1080, lost, &[("ActiveFail", 1), REJECTED], &[]);
        assert_eq!(row.retrans[1..], [1, 0]);
    }
    assert_eq!(pair.stacks[CLIENT].path_cache().iter().next().unwrap().2.syn_drops, 2);

    let (mut pair, listener) = acquainted(Config::default(), linux());
    drop_syn_data(&mut pair);
    let first = visit(&mut pair, listener, fast());
    first.is(first.packets, 180, lost, &[("ActiveFail", 1), REJECTED], &[]);
    let later = visit(&mut pair, listener, fast());
    later.is(later.packets, 80, Outcome::Skipped(Skipped::Verdict(Verdict::Dropped)), &[], &[]);
}

#[test]
fn the_option_stripped_on_the_path() {
    for client in [linux(), Config::default()] {
        let ours = client.fast_open_verdicts;
        let (mut pair, listener) = acquainted(client, linux());
        pair.rewrite = Box::new(|sent| {
            let (ip, mut header, payload) = wire::parse_tcp_packet(&sent.packet).unwrap();
            header.options.fast_open = None;
            wire::build_tcp_packet(&ip, &header, &sent.packet[payload])
        });
        let first = visit(&mut pair, listener, fast());
        first.is(first.packets, 80, ignored(), &[("ActiveFail", 1), REJECTED], &[]);
        let again = visit(&mut pair, listener, fast());
        let outcome =
            if ours { Outcome::Skipped(Skipped::Verdict(Verdict::NotAcknowledged)) } else { ignored() };
        assert_eq!(again.outcome, outcome);
        // Who has no cookie never gets one.
        pair.stacks[CLIENT].path_cache_mut().clear();
        let row = visit(&mut pair, listener, fast());
        row.is(row.packets, 80, Outcome::CookieRequested { granted: false }, &[], &[]);
        let expected = ours.then_some(Verdict::Stripped);
        let verdict = pair.stacks[CLIENT].path_cache().verdicts().next().map(|(_, entry)| entry.reason);
        assert_eq!(verdict, expected);
    }
}

/// The response arrives before the SYN is answered and is thrown away; it comes again as soon as it is.
#[test]
fn the_first_syn_ack_lost() {
    for (client, wait) in [(linux(), 1000), (Config::default(), 100)] {
        let (mut pair, listener) = acquainted(client, linux());
        let mut lost = false;
        pair.filter = Box::new(move |sent| {
            let syn_ack = sent.header.flags == wire::Flags::SYN | wire::Flags::ACK;
            let first = syn_ack && !lost;
            lost |= first;
            !first
        });
        let row = visit(&mut pair, listener, fast());
        // SYN again, SYN-ACK again, its ACK, and at once the response.
        assert_eq!(row.first_byte_ms, wait + 80);
        assert_eq!(row.outcome, Outcome::Accepted);
        assert_eq!((&row.client[..], &row.server[..]), (&[("Active", 1)][..], &[("Passive", 1)][..]));
        assert_eq!((row.retrans[1], row.retrans[2] >= 1), (1, true));
    }
}

#[test]
fn the_server_speaks_first() {
    let banner = |data_less: bool| {
        let (mut pair, listener) = linux_to(linux());
        let start = pair.now;
        let id = pair.connect(ConnectOptions {
            fast_open: FastOpen::Auto,
            data_less,
            ..ConnectOptions::default()
        });
        pair.flush();
        let child = loop {
            match pair.accept(listener) {
                Some(child) => break child,
                None => assert!(pair.step()),
            }
        };
        pair.write(SERVER, child, b"220 ready\r\n");
        while pair.read(CLIENT, id) == Err(ReadError::Blocked) {
            assert!(pair.step());
        }
        let counted = (counters(&pair.stacks[CLIENT]), counters(&pair.stacks[SERVER]));
        (pair.ms_since(start), pair.stacks[CLIENT].outcome(id).unwrap(), counted)
    };
    let (ms, outcome, counted) = banner(true);
    assert_eq!((ms, outcome), (40, Outcome::Accepted));
    assert_eq!(counted, (vec![], vec![("Passive", 1), ("CookieReqd", 1)]));
    assert_eq!(banner(false).0, 80);
}
