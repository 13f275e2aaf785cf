//! What the client's first SYN is, and how much it carries.

use super::*;
use proto::fast_open::PathEntry;

const OPTIONS: &str = "sackOK,TS 0 0,wscale 7";

/// The first SYN of a client that knows nothing, after `setting` and with `options`: text and outcome.
fn first_syn(mut p: Peer, options: ConnectOptions) -> (String, Option<Outcome>) {
    let id = p.connect(options);
    let mut sent = p.sent_now();
    assert_eq!(sent.len(), 1, "{sent:?}");
    (sent.remove(0), p.stack.outcome(id))
}

fn known() -> Peer {
    client(Config::default())
}

fn bits(bits: u32) -> Config {
    Config::default().tcp_fastopen(bits)
}

#[test]
fn what_the_syn_is() {
    let ask =
        |fast_open| ConnectOptions { fast_open, first_bytes: first_bytes(27), ..ConnectOptions::default() };
    let none = |fast_open| ConnectOptions { fast_open, ..ConnectOptions::default() };
    let data_less = ConnectOptions { data_less: true, ..none(FastOpen::Auto) };
    let unknown = || Peer::ours();
    let plain = format!("S 0:0(0) win 64240 <mss 1460,{OPTIONS}>");
    let request = format!("S 0:0(0) win 64240 <mss 1460,{OPTIONS},FO>");
    let with_cookie = format!("S 0:27(27) win 64240 <mss 1460,{OPTIONS},FO {COOKIE}>");
    let cookie_only = format!("S 0:0(0) win 64240 <mss 1460,{OPTIONS},FO {COOKIE}>");
    let cookie_less = format!("S 0:27(27) win 64240 <mss 1460,{OPTIONS}>");
    let skipped = |why| Some(Outcome::Skipped(why));
    let pending = Some(Outcome::Pending);
    let check = |p: Peer, options: ConnectOptions, syn: &str, outcome: Option<Outcome>| {
        assert_eq!(first_syn(p, options.clone()), (syn.to_string(), outcome), "{options:?}");
    };
    check(unknown(), ask(FastOpen::Off), &plain, skipped(Skipped::NotAsked));
    check(known(), ask(FastOpen::Off), &plain, skipped(Skipped::NotAsked));
    check(unknown(), ask(FastOpen::Auto), &request, pending);
    check(unknown(), none(FastOpen::Auto), &request, pending);
    check(known(), ask(FastOpen::Auto), &with_cookie, pending);
    check(known(), none(FastOpen::Auto), &plain, skipped(Skipped::NotAsked));
    check(known(), data_less.clone(), &cookie_only, pending);
    check(unknown(), data_less, &request, pending);
    check(known(), ask(FastOpen::Force), &with_cookie, pending);
    check(unknown(), ask(FastOpen::NoCookie), &cookie_less, pending);
    check(known(), ask(FastOpen::NoCookie), &cookie_less, pending);
    // The bits.
    check(client(bits(0x2)), ask(FastOpen::Auto), &plain, skipped(Skipped::Disabled));
    check(client(bits(0x1)), ask(FastOpen::Auto), &with_cookie, pending);
    check(client(bits(0x5)), ask(FastOpen::Auto), &cookie_less, pending);
    check(Peer::new(bits(0x5)), ask(FastOpen::Auto), &cookie_less, pending);
}

/// A SYN with neither data nor cookie is plain, whatever was asked for.
#[test]
fn without_data_there_is_nothing_to_open_fast_without_a_cookie() {
    let options =
        ConnectOptions { fast_open: FastOpen::NoCookie, data_less: true, ..ConnectOptions::default() };
    let (syn, outcome) = first_syn(Peer::ours(), options);
    assert_eq!(syn, format!("S 0:0(0) win 64240 <mss 1460,{OPTIONS}>"));
    assert_eq!(outcome, Some(Outcome::Skipped(Skipped::NothingToSend)));
}

#[test]
fn insisting_where_it_is_off_fails_at_once() {
    let mut p = Peer::new(bits(0x2));
    let options = ConnectOptions { fast_open: FastOpen::Force, ..ConnectOptions::default() };
    assert_eq!(p.stack.connect(p.now, p.remote, options), Err(ConnectError::FastOpenDisabled));
}

/// Bytes of data on the SYN of a client with `first` bytes to send.
fn syn_data(mut p: Peer, first: usize, max_segment: Option<u16>) -> usize {
    let socket = SocketOptions { max_segment, ..SocketOptions::default() };
    let id = p.connect(ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(first),
        socket,
        ..ConnectOptions::default()
    });
    let packet = p.take_packet().unwrap();
    assert!(p.take_packet().is_none(), "one packet");
    let (_, header, payload) = wire::parse_tcp_packet(&packet).unwrap();
    assert!(header.flags == wire::Flags::SYN && packet.len() <= 1500);
    assert_eq!(packet[payload.clone()], pattern(1, payload.len()));
    assert_eq!(p.stack.info(id).unwrap().syn_data_len, payload.len());
    payload.len()
}

/// Measured on Linux 6.18: 1420, 1400 at MTU 1500; cached MSS 600: 560; no limit without a cached MSS.
#[test]
fn linux_reserves_all_of_the_option_space() {
    let p = |v6: bool, mss| {
        let p = Peer::new(linux());
        client_knowing(if v6 { p.v6() } else { p }, mss, None)
    };
    assert_eq!(syn_data(p(false, Some(1460)), 5000, None), 1420);
    assert_eq!(syn_data(p(true, Some(1440)), 5000, None), 1400);
    assert_eq!(syn_data(p(false, Some(600)), 5000, None), 560);
    assert_eq!(syn_data(p(false, None), 5000, None), 1420);
    assert_eq!(syn_data(p(true, None), 5000, None), 1400);
    assert_eq!(syn_data(p(false, Some(8960)), 5000, None), 1420, "the path's MTU holds");
    assert_eq!(syn_data(p(false, Some(1460)), 5000, Some(1000)), 960);
    assert_eq!(syn_data(p(false, Some(1460)), 1420, None), 1420);
    assert_eq!(syn_data(p(false, Some(1460)), 27, None), 27);
}

/// MSS 4, SACK permitted and timestamps 12, window scale 4, cookie 10, padding: 32.
#[test]
fn ours_takes_off_only_the_options_really_sent() {
    let p = |v6: bool, mss| {
        let p = Peer::ours();
        client_knowing(if v6 { p.v6() } else { p }, mss, None)
    };
    assert_eq!(syn_data(p(false, Some(1460)), 5000, None), 1428);
    assert_eq!(syn_data(p(true, Some(1440)), 5000, None), 1408);
    assert_eq!(syn_data(p(false, Some(600)), 5000, None), 568);
    // R12: without a cached MSS the least that every host must take; R13: not beyond Ethernet's.
    assert_eq!(syn_data(p(false, None), 5000, None), 536 - 32);
    assert_eq!(syn_data(p(true, None), 5000, None), 1220 - 32);
    assert_eq!(syn_data(p(false, Some(8960)), 5000, None), 1428);
    assert_eq!(syn_data(p(false, Some(1460)), 5000, Some(1000)), 968);
    let plain = Config::default().tcp_timestamps(0).tcp_sack(false).tcp_window_scaling(false);
    assert_eq!(syn_data(client_knowing(Peer::new(plain), Some(1460), None), 5000, None), 1444);
}

#[test]
fn a_narrow_path_carries_less() {
    let mut p = client(Config::default());
    path(&mut p).path_mtu = Some(1000);
    assert_eq!(syn_data(p, 5000, None), 1000 - 40 - 32);
    let jumbo = Capabilities { mtu: 9000, ..ethernet() };
    let mut p = client_knowing(Peer::with(linux(), jumbo), Some(8960), None);
    let id = p.connect(ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(10_000),
        ..ConnectOptions::default()
    });
    p.expect(&format!("S 0:8920 <mss 8960,{OPTIONS},FO {COOKIE}>"));
    assert_eq!(p.stack.info(id).unwrap().syn_data_len, 8920);
}

fn path(p: &mut Peer) -> &mut PathEntry {
    p.stack.path_cache_mut().entry(p.now, p.local.ip().into(), p.remote.ip().into())
}

/// A device that cuts large segments must still get a SYN that is one packet.
#[test]
fn a_syn_is_never_cut() {
    let gso = Capabilities { gso_max_size: 65_536, tx_checksum: true, mtu: 1500 };
    let mut p = client_knowing(Peer::with(Config::default(), gso), Some(1460), None);
    p.connect(ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(20_000),
        ..ConnectOptions::default()
    });
    let tx = p.stack.poll_transmit(p.now).unwrap();
    assert_eq!((tx.gso_size, tx.payload_len()), (0, 1428));
}

/// The longest cookie in the longest format fills the option space to the last byte.
#[test]
fn every_cookie_length_and_format_fits() {
    for len in [4, 6, 8, 10, 12, 14, 16] {
        for (kind, name) in [(FastOpenKind::Standard, "FO"), (FastOpenKind::Experimental, "FOEXP")] {
            let mut p = client(Config::default());
            path(&mut p).store_cookie(Cookie::new(&[0xab; 16][..len]).unwrap(), kind);
            p.connect(auto(b"hello"));
            let cookie = "ab".repeat(len);
            p.expect_bytes(&format!("S 0:5 <mss 1460,{OPTIONS},{name} {cookie}>"), b"hello");
        }
    }
}

#[test]
fn the_fin_rides_only_if_all_of_the_data_does() {
    let with_fin = |len, syn_fin| ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(len),
        fin: true,
        syn_fin,
        ..ConnectOptions::default()
    };
    let syn = |options| first_syn(known(), options).0;
    assert!(syn(with_fin(27, true)).starts_with("SF 0:27(27) "));
    assert!(syn(with_fin(27, false)).starts_with("S 0:27(27) "));
    assert!(syn(with_fin(1428, true)).starts_with("SF 0:1428(1428) "));
    assert!(syn(with_fin(1429, true)).starts_with("S 0:1428(1428) "));
}

/// The first write makes the SYN's data as first bytes do, if it comes before the SYN has left.
#[test]
fn bytes_written_before_the_syn_leaves_are_first_bytes() {
    let mut p = known();
    let id = p.connect(auto(b"hel"));
    p.write(id, b"lo");
    p.expect_bytes("S 0:5", b"hello");
    p.write(id, b" again");
    p.expect_nothing();
    p.send("SA 0 ack 6 <mss 1460>");
    p.expect_bytes("PA 6:12 ack 1", b" again");
}

/// `TCP_FASTOPEN_CONNECT`: the connection has its name, sends nothing whatever comes, and its SYN leaves with the first data.
#[test]
fn a_held_syn_leaves_when_it_is_sent() {
    for config in both_profiles() {
        let mut p = client(config);
        let id = p.connect(ConnectOptions { held: true, ..ConnectOptions::default() });
        p.expect_nothing_for(60_000);
        assert_eq!((p.state(id), p.stack.counters().active_opens), (State::SynSent, 0));
        let named = ConnectOptions { local: Some(p.local), ..ConnectOptions::default() };
        assert_eq!(p.stack.connect(p.now, p.remote, named), Err(ConnectError::AddrInUse));
        // There is no SYN that this could answer.
        p.send("A 77 ack 5000");
        p.expect("R 5000");
        p.expect_nothing_for(60_000);
        assert!(p.stack.send_held_syn(p.now, id, auto(b"hello")));
        assert!(p.expect("S 0:5").options.fast_open.is_some());
        assert!(!p.stack.send_held_syn(p.now, id, auto(b"again")), "it has left");
        p.send("SA 0 ack 6 <mss 1460>");
        p.expect("A 6 ack 1");
        assert_eq!(p.stack.outcome(id), Some(Outcome::Accepted));
        assert_eq!(p.stack.counters().active_opens, 1);
        // Closed before: nothing was ever said.
        let id = p.connect(ConnectOptions { held: true, ..ConnectOptions::default() });
        p.close(id);
        p.expect_nothing_for(60_000);
        assert!(!p.stack.send_held_syn(p.now, id, auto(b"hello")));
    }
}
