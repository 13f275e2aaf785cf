//! Fields of `tcp_info` that no other test looks at, each in a conversation that gives it a figure.

use crate::peer::*;
use core::time::Duration;
use proto::*;

const MS: Duration = Duration::from_millis(1);

fn established(socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK>");
    p.expect_nothing();
    (p, id)
}

fn info(p: &Peer, id: ConnId) -> TcpInfo {
    p.stack.info(id).unwrap().tcp_info
}

/// Ten segments, of which the second is lost, is retransmitted and arrives.
#[test]
fn sacked_lost_retrans() {
    let (mut p, id) = established(SocketOptions::default());
    p.write(id, &pattern(1, 10_000));
    p.expect_range(1..10001);
    let seen = |p: &Peer| {
        let info = info(p, id);
        (info.sacked, info.lost, info.retrans, info.ca_state)
    };
    p.send("A 1 ack 1001");
    assert_eq!(seen(&p), (0, 0, 0, CaState::Open));
    p.send("A 1 ack 1001 <sack 2001:5001>");
    assert_eq!(seen(&p), (3000, 1000, 0, CaState::Recovery));
    p.expect("A 1001:2001 ack 1");
    assert_eq!(seen(&p), (3000, 1000, 1000, CaState::Recovery), "it was retransmitted");
    p.send("A 1 ack 10001");
    assert_eq!(seen(&p), (0, 0, 0, CaState::Open));
}

/// The third segment comes late: by a timestamp of its own it was not lost.
#[test]
fn reordering_seen() {
    let (mut p, id) = established(SocketOptions::default());
    p.write(id, &pattern(1, 6000));
    p.expect_range(1..6001);
    p.skip(20);
    p.send("A 1 ack 1 <sack 1001:3001>");
    assert_eq!(info(&p, id).reord_seen, 0);
    p.send("A 1 ack 3001");
    assert_eq!(info(&p, id).reord_seen, 1);
}

/// Two time-outs in a row, over when something is acknowledged.
#[test]
fn a_row_of_timeouts() {
    let (mut p, id) = established(SocketOptions::default());
    p.stack.set(p.now, "net.ipv4.tcp_early_retrans", "0").unwrap();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    let begun = p.stack.info(id).unwrap().rto;
    p.expect_after_exactly(begun, "PA 1:1001 ack 1");
    p.expect_after_exactly(2 * begun, "PA 1:1001 ack 1");
    let row = |p: &Peer| {
        let info = info(p, id);
        (info.total_rto, info.total_rto_recoveries, info.retransmits, info.backoff, info.total_rto_time)
    };
    assert_eq!(row(&p), (2, 1, 2, 2, Duration::ZERO));
    p.skip(30);
    p.send("A 1 ack 1001");
    assert_eq!(
        row(&p),
        (2, 1, 0, 2, 2 * begun + 30 * MS),
        "from the first time-out on; the back-off waits for a sample"
    );
}

/// It counts until what was out at the first is acknowledged; progress within that is not enough.
#[test]
fn a_row_of_timeouts_counts_until_its_losses_are_repaired() {
    let (mut p, id) = established(SocketOptions::default());
    for (setting, value) in [("net.ipv4.tcp_early_retrans", "0"), ("net.ipv4.tcp_frto", "0")] {
        p.stack.set(p.now, setting, value).unwrap();
    }
    p.write(id, &pattern(1, 3000));
    p.expect_range(1..3001);
    p.expect_after_exactly(p.stack.info(id).unwrap().rto, "A 1:1001 ack 1");
    p.skip(30);
    p.send("A 1 ack 1001");
    p.expect_range(1001..3001);
    p.skip(20);
    p.send("A 1 ack 2001");
    assert_eq!((info(&p, id).total_rto_time, info(&p, id).retransmits), (Duration::ZERO, 0));
    p.send("A 1 ack 3001");
    assert_eq!(info(&p, id).total_rto_time, 50 * MS);
}

/// What an application has asked for, and what keepalive keeps.
#[test]
fn options_and_keepalive() {
    let socket = SocketOptions {
        max_pacing_rate: Some(125_000),
        keepalive: true,
        window_clamp: Some(20_000),
        ..SocketOptions::default()
    };
    let (mut p, id) = established(socket);
    p.skip(500);
    p.send("A 1 ack 1");
    let heard = info(&p, id);
    assert_eq!((heard.max_pacing_rate, heard.last_ack_recv), (Some(125_000), Some(p.now)));
    assert_eq!((heard.ato, heard.rcv_mss), (5 * MS, 536));
}

/// An acknowledgement counts whether or not it tells anything new, and without keepalive, too.
#[test]
fn when_the_peer_last_acknowledged() {
    let (mut p, id) = established(SocketOptions::default());
    let begun = p.now;
    assert_eq!(info(&p, id).last_ack_recv, Some(begun), "the handshake's last");
    p.skip(500);
    assert_eq!(info(&p, id).last_ack_recv, Some(begun));
    p.send("A 1 ack 1");
    assert_eq!(info(&p, id).last_ack_recv, Some(p.now));
    p.skip(700);
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    assert_eq!(info(&p, id).last_ack_recv, Some(p.now - 700 * MS));
}

/// The window of Linux's profile begins with what fits the first segments, less one in reserve, and grows by twice what arrives; a reader who takes what
/// comes is measured.
#[test]
fn the_receivers_own_estimates() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1460,sackOK,TS 1000 0,wscale 7>");
    p.expect("SA 0 ack 1");
    p.skip(50);
    p.send("A 1 ack 1 win 512 <TS 1050 0>");
    let id = p.accept(listener);
    let first = info(&p, id);
    assert_eq!((first.rcv_ssthresh, first.rcv_rtt), (64_088, None));
    let mut seq = 1;
    for round in 1..=4 {
        for _ in 0..10 {
            let ts = 1000 + 50 * round;
            p.send(&format!("A {seq}:{} ack 1 win 512 <TS {ts} {}>", seq + 1448, 50 * (round - 1)));
            seq += 1448;
        }
        assert_eq!(p.read(id).unwrap().len(), 14_480);
        p.expect_only_acks();
        p.skip(50);
    }
    let later = info(&p, id);
    assert!(later.rcv_ssthresh > first.rcv_ssthresh, "{later:?}");
    let (rtt, space) = (later.rcv_rtt.unwrap(), later.rcv_space.unwrap());
    assert!((40 * MS..=60 * MS).contains(&rtt), "{rtt:?}");
    assert!(space >= 14_480, "{space}");
}

/// A client whose SYN's data was refused.
#[test]
fn why_fast_open_failed() {
    let mut p = Peer::ours();
    let cookie = wire::Cookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let (now, local, remote) = (p.now, p.local.ip().into(), p.remote.ip().into());
    p.stack.path_cache_mut().entry(now, local, remote).store_cookie(cookie, wire::FastOpenKind::Standard);
    let options =
        ConnectOptions { fast_open: FastOpen::Auto, first_bytes: pattern(1, 9).into(), ..Default::default() };
    let id = p.connect(options);
    p.expect("S 0:9");
    assert_eq!(info(&p, id).fastopen_client_fail, None);
    p.send("SA 0 ack 1 <mss 1460>");
    assert_eq!(info(&p, id).fastopen_client_fail, Some(NotAcknowledged::Ignored));
}

/// The conversation of `sacked_lost_retrans`, in the words of `ss -i`.
#[test]
fn a_line_as_ss_has_it() {
    let (mut p, id) = established(SocketOptions::default());
    let line = |p: &Peer| p.stack.info(id).unwrap().ss(p.now).to_string();
    p.stack.set(p.now, "net.ipv4.tcp_early_retrans", "0").unwrap();
    let begun = line(&p);
    assert!(begun.starts_with("sack cubic rto:"), "{begun}");
    assert!(begun.ends_with(" snd_wnd:65535 rcv_wnd:65535"), "{begun}");
    assert!(!begun.contains("bytes_") && !begun.contains("retrans"), "{begun}");
    p.write(id, &pattern(1, 10_000));
    p.expect_range(1..10001);
    p.skip(20);
    p.send("A 1 ack 1001");
    p.send("A 1 ack 1001 <sack 2001:5001>");
    p.expect("A 1001:2001 ack 1");
    p.skip(5);
    assert_eq!(
        line(&p),
        "sack cubic rto:200 rtt:4.687/8.124 ato:5 mss:1000 pmtu:1500 rcvmss:536 advmss:1460 cwnd:7 ssthresh:7 bytes_sent:11000 \
         bytes_retrans:1000 bytes_acked:1000 segs_out:11 segs_in:4 data_segs_out:11 send 13141246bps lastsnd:5 lastack:5 \
         delivery_rate 1600000bps app_limited busy:25ms unacked:9 retrans:1/1 lost:1 sacked:3 rcv_ssthresh:524288 minrtt:0 \
         snd_wnd:65535 rcv_wnd:65535"
    );
}
