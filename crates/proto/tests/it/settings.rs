//! Settings that no mechanism's own tests show: those that hold for all connections what a socket may also ask for itself, and thresholds.

use crate::peer::{Peer, pattern};
use crate::sack::established_with;
use bytes::Bytes;
use core::time::Duration;
use proto::{Config, ConnectOptions, ListenOptions, SocketOptions};
use wire::RxPacket;

/// Five segments beyond a hole mean a loss; four are waited for, a quarter of the least round trip.
#[test]
fn tcp_reordering_is_what_means_a_loss() {
    for (end, wait) in [(5001, 25), (6001, 0)] {
        let (mut p, id) = established_with(Config::default().tcp_reordering(5));
        p.write(id, &pattern(1, 10_000));
        assert_eq!(p.sent_now().len(), 10);
        p.now = p.now + Duration::from_millis(100);
        p.send(&format!("A 1 ack 1 <sack 1001:{end}>"));
        p.expect_after(wait, "A 1:1001 ack 1");
    }
}

/// Whatever the socket says; six time-outs do not double.
#[test]
fn tcp_thin_linear_timeouts_holds_for_all() {
    let config = Config::default().tcp_thin_linear_timeouts(true).tcp_early_retrans(0);
    let (mut p, id) = established_with(config);
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    for wait in [300, 300, 300, 300, 300, 300, 300, 600] {
        p.expect_after(wait, "PA 1:2 ack 1");
    }
}

/// Of a socket that only switches it on.
#[test]
fn keepalive_asks_as_the_settings_say() {
    let mut p = Peer::new(
        Config::default()
            .tcp_keepalive_time(Duration::from_secs(10))
            .tcp_keepalive_intvl(Duration::from_secs(3))
            .tcp_keepalive_probes(2),
    );
    let socket = SocketOptions { keepalive: true, ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.establish(listener);
    p.expect_after(10_000, "A 0 ack 1");
    p.expect_after(3000, "A 0 ack 1");
    p.expect_after(3000, "RA 1 ack 1");
}

/// RFC 7323 §7.1's offset is of `tcp_timestamps` 1 alone; with 2 all connections tell the same clock, SYN cookies' but for their low bits.
#[test]
fn tcp_timestamps_may_tell_the_plain_clock() {
    for (tcp_timestamps, tcp_syncookies, plain) in [(1, 0, false), (2, 0, true), (3, 2, true)] {
        let config = Config::default().tcp_timestamps(tcp_timestamps).tcp_syncookies(tcp_syncookies);
        let mut p = Peer::new(config.clone());
        p.now = p.now + Duration::from_millis(12_345);
        p.connect(ConnectOptions::default());
        let syn = p.expect("S 0").options.timestamps.unwrap();
        let mut p = Peer::new(config);
        p.listen();
        p.now = p.now + Duration::from_millis(12_345);
        p.send("S 0 <mss 1460,TS 100 0>");
        let syn_ack = p.expect("SA 0 ack 1").options.timestamps.unwrap();
        let clock = p.now.as_millis() as u32;
        assert_eq!(syn.tsval == clock, plain);
        assert_eq!(clock.wrapping_sub(syn_ack.tsval) < 64, plain);
    }
}

/// A SYN of class 46 (RFC 3246): its SYN-ACK and all that follows go in that, with `tcp_reflect_tos`; else in the listener's.
#[test]
fn tcp_reflect_tos_answers_in_the_class_of_the_syn() {
    for (tcp_reflect_tos, class) in [(true, 46), (false, 8)] {
        let mut p = Peer::new(Config::linux().tcp_reflect_tos(tcp_reflect_tos));
        p.listen_with(ListenOptions {
            socket: SocketOptions { dscp: 8, ..SocketOptions::default() },
            ..ListenOptions::default()
        });
        let mut classes = Vec::new();
        for text in ["S 0 <mss 1460>", "A 1 ack 1", "PA 1:2 ack 1"] {
            let mut packet = p.packet(text);
            if text.starts_with('S') {
                let mut bytes = packet.to_vec();
                bytes[1] = 46 << 2;
                // The header's sum, anew.
                let sum = u16::from_be_bytes([bytes[10], bytes[11]]);
                let (sum, carry) = sum.overflowing_sub(46 << 2);
                bytes[10..12].copy_from_slice(&(sum - u16::from(carry)).to_be_bytes());
                packet = Bytes::from(bytes);
            }
            p.send_rx(RxPacket::new(packet));
            classes.extend(std::iter::from_fn(|| p.take_packet()).map(|packet| packet[1] >> 2));
        }
        assert_eq!(classes, [class, class], "the SYN-ACK, and the ACK of text");
    }
}

/// 2⁻ⁿ of the buffer is the application's, and a segment at least: where there is nothing of it the window grows further.
#[test]
fn tcp_app_win_sets_a_part_of_the_buffer_aside() {
    let clamp = |tcp_app_win| {
        let mut p = Peer::new(Config::linux().tcp_app_win(tcp_app_win));
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,wscale 7>");
        p.stack.info(id).unwrap().tcp_info.rcv_ssthresh
    };
    assert_eq!([0, 31, 3, 1].map(clamp), [64_240, 64_076, 57_344, 32_768]);
}

/// Neither the SYN-ACK nor what follows tells of more than a signed number holds, if the peer scales no windows.
#[test]
fn tcp_workaround_signed_windows_bounds_what_is_told() {
    for (config, first) in [(Config::default(), 22 * 1460), (Config::linux(), 32_767)] {
        let mut p = Peer::new(config.tcp_workaround_signed_windows(true));
        p.listen();
        p.send("S 0 win 65535 <mss 1460>");
        assert_eq!(p.expect("SA 0 ack 1").window, first);
        p.send("A 1 ack 1");
        p.send("A 1:1461 ack 1");
        p.skip_until_sent();
        assert!(p.expect("A 1 ack 1461").window <= 32_767);
    }
}

fn refusal(config: Config) -> String {
    match proto::Stack::try_new(config, crate::pair::ethernet(), [1; 32]) {
        Err(proto::SettingError::Invalid(sentence)) => sentence,
        _ => panic!("TCP cannot work with that"),
    }
}

/// Alone each of the values would do; the sentence names both rows.
#[test]
fn values_that_contradict_each_other_are_refused_with_a_sentence_that_names_both() {
    let ours = Config::default;
    let secs = Duration::from_secs;
    let pairs = [
        (ours().port_low(2000).port_high(1999), ["ip_local_port_low", "ip_local_port_high"]),
        (ours().vegas_alpha(4).vegas_beta(3), ["vegas_alpha", "vegas_beta"]),
        (ours().tcp_reordering(9).tcp_max_reordering(8), ["tcp_reordering", "tcp_max_reordering"]),
        (ours().tcp_mtu_probe_floor(1025), ["tcp_mtu_probe_floor", "tcp_base_mss"]),
        (ours().tcp_rto_min_us(2_000_000).tcp_rto_max_ms(1000), ["tcp_rto_min_us", "tcp_rto_max_ms"]),
        (ours().mtu_expires(Duration::from_millis(999)), ["rto_initial", "mtu_expires"]),
        (ours().reo_timer_slack(secs(121)), ["reo_timer_slack", "tcp_rto_max_ms"]),
    ];
    for (config, names) in pairs {
        let sentence = refusal(config);
        assert!(names.iter().all(|name| sentence.contains(name)), "{sentence}");
    }
    let mut config = ours();
    let before = config.clone();
    assert!(config.set("firstbyte.ip_local_port_low", "61000").is_err());
    assert_eq!(config, before);
}

/// Linux's one file for both: neither port is looked at beside what the other was, and nothing changes where one is refused.
#[test]
fn a_range_of_ports_is_set_at_once() {
    let mut config = Config::default();
    for (range, low, high) in [("61000 62000", 61_000, 62_000), ("1024\t2000", 1024, 2000)] {
        assert_eq!(config.set("net.ipv4.ip_local_port_range", range), Ok(None));
        assert_eq!((config.port_low, config.port_high), (low, high));
    }
    for (wrong, said) in [
        ("3000 2000", "firstbyte.ip_local_port_low (3000) is more than firstbyte.ip_local_port_high (2000)"),
        ("3000 70000", "70000 is out of range for firstbyte.ip_local_port_high"),
        ("3000", "`3000` is not two ports, the lowest and the highest, such as 32768 60999"),
    ] {
        let before = config.clone();
        let error = config.set("net.ipv4.ip_local_port_range", wrong).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
        assert_eq!(config, before);
    }
}

/// A deadline that is always now, a window or a buffer of nothing, a search without end.
#[test]
fn values_that_tcp_cannot_work_with_are_refused() {
    for (name, value) in [
        ("firstbyte.rto_initial", "0"),
        ("net.ipv4.tcp_keepalive_time", "0"),
        ("net.ipv4.tcp_keepalive_intvl", "0"),
        ("net.ipv4.tcp_probe_interval", "0"),
        ("net.ipv4.tcp_probe_threshold", "0"),
        ("net.ipv4.tcp_notsent_lowat", "0"),
        ("net.ipv4.tcp_base_mss", "47"),
        ("net.ipv4.tcp_rmem", "1 2303 6291456"),
        ("net.ipv4.tcp_wmem", "1 4607 4194304"),
    ] {
        let refused = Config::default().set(name, value);
        assert!(
            matches!(&refused, Err(proto::SettingError::Invalid(why)) if !why.is_empty()),
            "{name} = {value}"
        );
    }
    let config = Config::default().tcp_rmem([4096, 8192, 4096]);
    assert!(refusal(config).contains("must not decrease"));
    let config = Config::default().tcp_notsent_lowat(0);
    assert!(refusal(config).contains("tcp_notsent_lowat"));
}
