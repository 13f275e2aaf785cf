//! Where packets may come from: the reverse path filter and routes that lead nowhere.

use crate::peer::*;
use core::net::IpAddr;
use proto::*;
use wire::{Icmp, IpHeader, protocol};

fn with_reject_route(settings: &[(&str, &str)], kind: &str) -> Peer {
    let mut p = Peer::ours();
    p.stack.set_device_name("eth7");
    for (name, value) in settings {
        assert_eq!(p.stack.set(p.now, name, value), Ok(None), "{name}");
    }
    p.listen();
    assert!(p.stack.set_route(p.now, "10.0.0.1".parse().unwrap(), kind.parse().unwrap()));
    p
}

/// Packets refused by the filter, and those that a route keeps us from answering; SYNs that a listener dropped.
fn refused(p: &Peer) -> (u64, u64, u64) {
    let counters = p.stack.counters();
    (counters.ip_reverse_path_filter, counters.ip_out_no_routes, counters.listen_drops)
}

/// The greater one of `all` and the device's own holds (`IN_DEV_RPFILTER`); off, what cannot be answered is dropped all the same, elsewhere.
#[test]
fn the_filter_is_the_greater_of_all_and_the_devices() {
    for all in 0..=2 {
        for own in 0..=2 {
            let (all_text, own_text) = (all.to_string(), own.to_string());
            let settings =
                [("net.ipv4.conf.all.rp_filter", &*all_text), ("net.ipv4.conf.eth7.rp_filter", &*own_text)];
            let mut p = with_reject_route(&settings, "unreachable");
            p.send("S 0 win 65535 <mss 1000>");
            p.expect_nothing();
            let filtered = all > 0 || own > 0;
            assert_eq!(refused(&p), if filtered { (1, 0, 0) } else { (0, 1, 1) }, "{all} {own}");
            assert_eq!(p.stack.drops().get(DropReason::ReversePath), u64::from(filtered));
            // Another source has a way back.
            p.remote.set_ip("10.0.0.3".parse().unwrap());
            p.send("S 0 win 65535 <mss 1000>");
            p.expect("SA 0 ack 1");
        }
    }
}

/// As in Linux, whose connections remember the way: a route that comes later ends none. Strangers get no reset.
#[test]
fn connections_are_not_asked_and_strangers_not_answered() {
    let mut p = Peer::ours();
    assert_eq!(p.stack.set(p.now, "net.ipv4.conf.all.rp_filter", "1"), Ok(None));
    let listener = p.listen();
    let id = p.establish(listener);
    assert!(p.stack.set_route(p.now, "10.0.0.0/24".parse().unwrap(), "blackhole".parse().unwrap()));
    p.send("A 1:1001 ack 1");
    assert_eq!(p.read(id).unwrap().len(), 1000);
    p.expect_nothing();
    p.remote.set_port(41_000);
    p.send("A 1 ack 1");
    p.expect_nothing();
    assert_eq!(refused(&p), (1, 0, 0));
    assert_eq!(p.stack.counters().out_rsts, 0);
    assert!(p.stack.remove_route(p.now, "10.0.0.0/24".parse().unwrap()).is_some());
    p.send("A 1 ack 1");
    p.expect("R 1");
}

/// IPv6 has no such filter in Linux either.
#[test]
fn ipv6_is_not_filtered_but_not_answered_either() {
    let mut p = Peer::ours().v6();
    assert_eq!(p.stack.set(p.now, "net.ipv4.conf.all.rp_filter", "1"), Ok(None));
    p.listen();
    assert!(p.stack.set_route(p.now, "fd00::1".parse().unwrap(), "prohibit".parse().unwrap()));
    p.send("S 0 win 65535 <mss 1000>");
    p.expect_nothing();
    assert_eq!(refused(&p), (0, 1, 1));
}

#[test]
fn an_echo_from_without_a_way_back_is_not_answered() {
    for (filter, expected) in [("0", (0, 1, 0)), ("2", (1, 0, 0))] {
        let mut p = with_reject_route(&[("net.ipv4.conf.eth7.rp_filter", filter)], "unreachable");
        let request = Icmp::EchoRequest { ident: 1, seq: 2, data: b"ping" };
        let (from, to) = (p.remote.ip().into(), p.local.ip().into());
        let mut body = vec![0; request.emit_len()];
        request.emit(from, to, &mut body);
        let ip = IpHeader::new(from, to, protocol::ICMP);
        let mut packet = [0; 40];
        ip.emit(body.len(), &mut packet);
        let packet = [&packet[..ip.emit_len()], &body].concat();
        p.send_rx(RxPacket::new(packet.into()));
        assert_eq!(refused(&p), expected);
        assert!(p.take_packet().is_none());
    }
}

/// `log_martians` of all or of the device; Linux's words.
#[test]
fn martians_are_told_of_where_they_shall_be() {
    let cases = [
        (&[][..], 0),
        (&[("net.ipv4.conf.all.log_martians", "1")], 1),
        (&[("net.ipv4.conf.eth7.log_martians", "1")], 1),
    ];
    for (settings, told) in cases {
        let settings = [settings, &[("net.ipv4.conf.all.rp_filter", "1")]].concat();
        let mut p = with_reject_route(&settings, "unreachable");
        p.stack.set_trace(TraceMask::MARTIAN);
        p.send("S 0 win 65535 <mss 1000>");
        let lines: Vec<TraceEvent> = std::iter::from_fn(|| p.stack.poll_trace()).collect();
        assert_eq!(lines.len(), told);
        for event in lines {
            let (source, to) = ("10.0.0.1".parse::<IpAddr>().unwrap(), "10.0.0.2".parse().unwrap());
            assert_eq!(event.what, Traced::Martian { source, to, device: "eth7".to_owned() });
            assert_eq!(event.to_string(), "1000.000000 martian source 10.0.0.2 from 10.0.0.1, on dev eth7");
        }
    }
}

#[test]
fn only_the_device_that_is_there_has_settings() {
    let mut p = Peer::ours();
    let unknown = Err(SettingError::Unknown);
    assert_eq!(p.stack.set(p.now, "net.ipv4.conf.eth7.rp_filter", "1"), unknown);
    assert_eq!(p.stack.set(p.now, "net.ipv4.conf..rp_filter", "1"), unknown);
    p.stack.set_device_name("eth7.100");
    assert_eq!(p.stack.set(p.now, "net.ipv4.conf.eth7.100.rp_filter", "2"), Ok(None));
    let settings = p.stack.device_settings();
    assert_eq!(settings[0], ("net.ipv4.conf.eth7.100.rp_filter".to_owned(), "2".to_owned()));
    assert_eq!(p.stack.set(p.now, "net.ipv4.conf.eth7.100.accept_local", "1"), unknown);
    assert!(p.stack.set(p.now, "net.ipv4.conf.eth7.100.rp_filter", "3").is_err());
}

/// Linux's errors of a connect are EINVAL, EHOSTUNREACH and EACCES.
#[test]
fn a_route_may_keep_us_from_connecting() {
    let kinds = [
        ("blackhole", RejectRoute::Blackhole),
        ("unreachable", RejectRoute::Unreachable),
        ("prohibit", RejectRoute::Prohibit),
    ];
    for (kind, reject) in kinds {
        let mut p = with_reject_route(&[], kind);
        let refused = p.stack.connect(p.now, p.remote, ConnectOptions::default());
        assert_eq!(refused, Err(ConnectError::Rejected(reject)));
        assert_eq!(p.stack.counters().active_opens, 0);
        // A longer prefix leads on.
        p.remote.set_ip("10.0.0.3".parse().unwrap());
        p.connect(ConnectOptions::default());
        p.expect_syn();
    }
}
