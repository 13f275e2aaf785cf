//! What the SYN-ACK means to the client: what was accepted, what is retransmitted, what comes with it, what is remembered.

use super::*;
use crate::peer::PEER_ISN;
use wire::{Flags, TcpHeader};

/// A SYN with cookie and 27 bytes has left; the client knows an RTT of 40 ms.
fn asked(config: Config) -> (Peer, ConnId) {
    asked_by(client(config))
}

fn asked_by(mut p: Peer) -> (Peer, ConnId) {
    let options = ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: first_bytes(27),
        ..ConnectOptions::default()
    };
    let id = p.connect(options);
    p.expect_bytes("S 0:27", &pattern(1, 27));
    (p, id)
}

/// Both profiles, both IP versions.
fn all() -> [(Peer, ConnId); 4] {
    let v6 = |config| asked_by(client_knowing(Peer::new(config).v6(), Some(1440), Some(40)));
    [asked(Config::default()), asked(linux()), v6(Config::default()), v6(linux())]
}

fn outcome(p: &Peer, id: ConnId) -> Outcome {
    p.stack.outcome(id).unwrap()
}

#[test]
fn everything_accepted() {
    for (mut p, id) in all() {
        assert_eq!(outcome(&p, id), Outcome::Pending);
        p.events();
        p.send("SA 0 ack 28 <mss 1460>");
        assert!(p.events_of(id).contains(Events::CONNECTED | Events::WRITABLE));
        p.expect("A 28 ack 1");
        assert_eq!(outcome(&p, id), Outcome::Accepted);
        assert_eq!(counters(&p.stack), [("Active", 1)]);
        let info = p.stack.info(id).unwrap();
        assert_eq!((info.syn_data_len, info.syn_data_acked, info.bytes_acked), (27, 27, 27));
        assert_eq!((info.send_queue, info.total_retrans), (0, 0));
        p.expect_nothing_for(10_000);
    }
}

#[test]
fn nothing_accepted_all_goes_at_once_with_the_first_ack() {
    for (mut p, id) in all() {
        p.send("SA 0 ack 1 <mss 1460>");
        p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
        p.expect_nothing();
        assert_eq!(outcome(&p, id), Outcome::NotAcknowledged(NotAcknowledged::Ignored));
        assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("SynDataRejectedBytes", 27)]);
        assert_eq!(p.stack.counters().retrans_segs, 1);
        assert_eq!(cached_cookie(&p).as_deref(), Some(COOKIE), "kept");
        let info = p.stack.info(id).unwrap();
        assert_eq!((info.cwnd, info.ssthresh), (10 * u32::from(mss(&p)), u32::MAX), "no loss");
    }
}

#[test]
fn a_part_accepted_the_rest_goes_at_once() {
    for (mut p, id) in all() {
        p.send("SA 0 ack 11 <mss 1460>");
        p.expect_bytes("PA 11:28 ack 1", &pattern(11, 17));
        p.expect_nothing();
        assert_eq!(outcome(&p, id), Outcome::NotAcknowledged(NotAcknowledged::Partial));
        assert_eq!(counters(&p.stack), [("ActiveFail", 1), ("SynDataRejectedBytes", 17)]);
        assert_eq!(verdict(&p), None, "the path carries SYN data");
        p.send("A 1 ack 28");
        assert_eq!(p.stack.info(id).unwrap().send_queue, 0);
    }
}

#[test]
fn big_first_bytes_go_on_with_the_first_ack() {
    for (config, on_syn) in [(Config::default(), 1428), (linux(), 1420)] {
        let mut p = client(config);
        let id = p.connect(ConnectOptions {
            fast_open: FastOpen::Auto,
            first_bytes: first_bytes(5000),
            ..ConnectOptions::default()
        });
        p.expect_bytes(&format!("S 0:{on_syn}"), &pattern(1, on_syn));
        p.send(&format!("SA 0 ack {} <mss 1460>", 1 + on_syn));
        let mut at = 1 + on_syn;
        while at < 5001 {
            let end = (at + 1460).min(5001);
            let flags = if end == 5001 { "PA" } else { "A" };
            p.expect_bytes(&format!("{flags} {at}:{end} ack 1"), &pattern(at as u32, end - at));
            at = end;
        }
        p.expect_nothing();
        assert_eq!(outcome(&p, id), Outcome::Accepted);
    }
}

#[test]
fn an_ack_beyond_what_was_sent_is_reset_and_changes_nothing() {
    for (mut p, id) in all() {
        let mss = mss(&p);
        p.send("SA 0 ack 29 <mss 900,FO 0102030405060708>");
        p.expect("R 29");
        assert_eq!(p.state(id), State::SynSent);
        let entry = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
        assert_eq!((entry.mss, cached_cookie(&p).as_deref()), (Some(mss), Some(COOKIE)));
        p.send("SA 0 ack 28 <mss 1460>");
        p.expect("A 28 ack 1");
    }
}

#[test]
fn an_echo_of_a_time_never_sent_is_reset() {
    for (mut p, id) in all() {
        p.send("SA 0 ack 28 <mss 1460,TS 700 4000>");
        p.expect("R 28");
        assert_eq!(p.state(id), State::SynSent);
        assert_eq!(p.stack.counters().paws_active_rejected, 1);
        p.send("SA 0 ack 28 <mss 1460,TS 700 0>");
        p.expect("A 28 ack 1 <TS 0 700>");
    }
}

#[test]
fn the_new_cookie_and_mss_replace_the_old() {
    const WHY: [(&str, NotAcknowledged); 4] = [
        ("0102030405060708", NotAcknowledged::StaleCookie),
        (COOKIE, NotAcknowledged::Busy),
        ("01020304", NotAcknowledged::StaleCookie),
        ("0102030405060708090a0b0c0d0e0f10", NotAcknowledged::StaleCookie),
    ];
    for (config, (cookie, why)) in both_profiles().into_iter().flat_map(|c| WHY.map(|row| (c.clone(), row))) {
        let (mut p, id) = asked(config);
        p.send(&format!("SA 0 ack 1 <mss 1200,FO {cookie}>"));
        p.expect("PA 1:28 ack 1");
        assert_eq!(outcome(&p, id), Outcome::NotAcknowledged(why));
        assert_eq!(cached_cookie(&p).as_deref(), Some(cookie));
        let entry = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
        assert_eq!(entry.mss, Some(1200));
        assert_eq!(verdict(&p), None, "a SYN-ACK with a cookie is never held against the path");
    }
}

#[test]
fn a_new_cookie_may_come_with_acceptance() {
    for (mut p, id) in all() {
        p.send("SA 0 ack 28 <mss 1460,FOEXP 0102030405060708>");
        p.expect("A 28 ack 1");
        assert_eq!(outcome(&p, id), Outcome::Accepted);
        assert_eq!(cached_cookie(&p).as_deref(), Some("0102030405060708"));
        let entry = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
        assert_eq!(entry.kind, FastOpenKind::Experimental);
    }
}

#[test]
fn a_request_granted_and_refused() {
    for config in both_profiles() {
        for cookie in ["01020304", "010203040506", "0102030405060708", "0102030405060708090a0b0c0d0e0f10"] {
            let mut p = Peer::new(config.clone());
            let id = p.connect(auto(b"hello"));
            p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO>");
            p.send(&format!("SA 0 ack 1 <mss 1460,FO {cookie}>"));
            p.expect_bytes("PA 1:6 ack 1", b"hello");
            assert_eq!(outcome(&p, id), Outcome::CookieRequested { granted: true });
            assert_eq!(cached_cookie(&p).as_deref(), Some(cookie));
        }
        let mut p = Peer::new(config);
        let id = p.connect(auto(b"hello"));
        p.expect("S 0");
        p.send("SA 0 ack 1 <mss 1460>");
        p.expect_bytes("PA 1:6 ack 1", b"hello");
        assert_eq!(outcome(&p, id), Outcome::CookieRequested { granted: false });
        assert_eq!(cached_cookie(&p), None);
        assert_eq!(counters(&p.stack), []);
    }
}

#[test]
fn a_cookie_of_impossible_length_is_none() {
    for len in [1, 2, 3, 5, 13, 15] {
        let mut p = Peer::ours();
        let id = p.connect(auto(b"hello"));
        let syn = p.expect("S 0");
        let mut header = TcpHeader {
            seq: PEER_ISN,
            ack: syn.seq + 1,
            flags: Flags::SYN | Flags::ACK,
            window: 65535,
            ..TcpHeader::new(p.remote.port(), p.local.port())
        };
        header.options.unknown = vec![(34, smallvec::SmallVec::from_elem(1, len))].into();
        p.send_rx(RxPacket::new(wire::build_tcp_packet(&p.ip(), &header, b"")));
        p.expect("PA 1:6 ack 1");
        assert_eq!(outcome(&p, id), Outcome::CookieRequested { granted: false });
        assert_eq!(cached_cookie(&p), None);
    }
}

#[test]
fn a_cookie_nobody_asked_for_is_ignored() {
    let mut p = Peer::ours();
    p.connect(ConnectOptions { first_bytes: first_bytes(5), ..ConnectOptions::default() });
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7>");
    p.send("SA 0 ack 1 <mss 1460,FO 0102030405060708>");
    p.expect("PA 1:6 ack 1");
    assert_eq!(cached_cookie(&p), None);
    // Nor where no cookie is needed.
    let mut p = Peer::ours();
    p.connect(ConnectOptions { fast_open: FastOpen::NoCookie, ..auto(b"hello") });
    p.expect("S 0:5 <mss 1460,sackOK,TS 0 0,wscale 7>");
    p.send("SA 0 ack 6 <mss 1460,FO 0102030405060708>");
    p.expect("A 6 ack 1");
    assert_eq!(cached_cookie(&p), None);
}

#[test]
fn data_on_the_syn_ack_is_read_and_acknowledged_at_once() {
    for (mut p, id) in all() {
        p.send_bytes("SPA 0 ack 28 <mss 1460>", b"hello");
        p.expect("A 28 ack 6");
        assert_eq!(p.read(id), Ok(b"hello".to_vec()));
        p.send("PA 6:16 ack 28");
        assert_eq!(p.read(id), Ok(pattern(6, 10)));
    }
}

/// Also in answer to a request: RFC 7413 does not forbid it, Linux takes it.
#[test]
fn data_on_the_syn_ack_of_a_first_visit() {
    for config in both_profiles() {
        let mut p = Peer::new(config);
        let id = p.connect(ConnectOptions { fast_open: FastOpen::Auto, ..ConnectOptions::default() });
        p.expect("S 0");
        p.send_bytes("SPA 0 ack 1 <mss 1460,FO 0102030405060708>", b"220 ready");
        p.expect("A 1 ack 10");
        assert_eq!(p.read(id), Ok(b"220 ready".to_vec()));
    }
}

#[test]
fn one_fin_ack_answers_syn_ack_data_and_fin() {
    for len in [0, 5, 1000, 1440] {
        for (mut p, id) in all() {
            p.send_bytes("SFPA 0 ack 28 <mss 1460>", &pattern(1, len));
            p.expect_nothing();
            if len > 0 {
                assert_eq!(p.read(id), Ok(pattern(1, len)));
            }
            assert_eq!(p.read(id), Ok(vec![]));
            p.close(id);
            p.expect(&format!("FA 28 ack {}", len + 2));
            p.send(&format!("A {} ack 29", len + 2));
            assert_eq!(p.sizes(), (0, 0, 0), "the server closed first");
        }
    }
}

/// Its FIN would acknowledge all: Linux waits for that as long as it waits for anything.
#[test]
fn an_application_that_does_not_close_acknowledges_late() {
    for ((mut p, id), late) in all().into_iter().zip([40, 200, 40, 200]) {
        p.send_bytes("SFPA 0 ack 28 <mss 1460>", b"hello");
        p.expect_after(late, "A 28 ack 7");
        assert_eq!(p.state(id), State::CloseWait);
        assert_eq!(p.read(id), Ok(b"hello".to_vec()));
        p.close(id);
        p.expect("FA 28 ack 7");
    }
}

/// RFC 9293 allows the data; whoever sent a plain SYN did not ask for it (measured: Linux acknowledges the SYN only).
#[test]
fn a_plain_syn_takes_neither_data_nor_fin_from_the_syn_ack() {
    for config in both_profiles() {
        let mut p = Peer::new(config);
        let id = p.connect(ConnectOptions::default());
        p.expect("S 0");
        p.send_bytes("SFPA 0 ack 1 <mss 1460>", b"hello");
        p.expect("A 1 ack 1");
        assert_eq!(p.read(id), Err(ReadError::Blocked));
        assert_eq!(p.state(id), State::Established);
        p.send_bytes("FPA 1 ack 1", b"hello");
        assert_eq!(p.read(id), Ok(b"hello".to_vec()));
        assert_eq!(p.read(id), Ok(vec![]));
    }
}

#[test]
fn a_copy_of_the_syn_ack_is_only_acknowledged() {
    for (mut p, id) in all() {
        p.send_bytes("SPA 0 ack 28 <mss 1460>", b"hello");
        p.expect("A 28 ack 6");
        p.send_bytes("SPA 0 ack 28 <mss 1460>", b"hello");
        p.expect("A 28 ack 6");
        assert_eq!(p.read(id), Ok(b"hello".to_vec()));
        assert_eq!(p.read(id), Err(ReadError::Blocked));
    }
}

#[test]
fn a_syn_ack_with_data_is_the_first_srtt_but_no_minimum() {
    let (mut p, id) = asked(Config::default());
    p.skip(41);
    p.send_bytes("SPA 0 ack 28 <mss 1460>", b"hello");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.srtt, info.min_rtt), (Some(Duration::from_millis(41)), None));
    let (mut p, id) = asked(Config::default());
    p.skip(41);
    p.send("SA 0 ack 28 <mss 1460>");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.srtt, info.min_rtt), (Some(Duration::from_millis(41)), Some(Duration::from_millis(41))));
}

/// Linux's `tcp_rcv_fastopen_synack`: the data is lost and is retransmitted, and new data waits neither for it nor behind smaller windows.
#[test]
fn data_in_vain_counts_as_lost_and_holds_no_small_write_back() {
    for options in ["mss 1460,sackOK", "mss 1460"] {
        for (mut p, id) in all() {
            p.send(&format!("SA 0 ack 1 win 20000 <{options}>"));
            p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
            let info = p.stack.info(id).unwrap();
            assert_eq!((info.flight_size, info.total_retrans, info.ssthresh), (27, 1, u32::MAX));
            assert_eq!(info.tcp_info.ca_state, CaState::Loss);
            let counted =
                if p.stack.config().window_unit == WindowUnit::Segments { info.snd_mss.into() } else { 27 };
            assert_eq!((info.tcp_info.lost, info.tcp_info.retrans), (counted, counted));
            p.write(id, &pattern(28, 10));
            p.expect("PA 28:38 ack 1");
            p.send("A 1 ack 38");
            let info = p.stack.info(id).unwrap();
            assert_eq!((info.tcp_info.ca_state, info.ssthresh), (CaState::Open, u32::MAX));
            p.expect_nothing_for(10_000);
        }
    }
}

/// RFC 9293 figure 7, where the peer's SYN-ACK acknowledges the data too: it is acknowledged as what comes twice (RFC 2883).
#[test]
fn simultaneous_fast_open_acknowledges_the_syn_ack() {
    for (mut p, id) in all() {
        p.send("S 0:10 <mss 1460,sackOK,FO>");
        p.expect("SA 0 ack 1");
        p.send("SA 0 ack 28 <mss 1460,sackOK>");
        p.expect("A 28 ack 1 <sack 0:1>");
        assert_eq!(p.state(id), State::Established);
        p.expect_nothing_for(10_000);
    }
}

#[test]
fn simultaneous_fast_open_acknowledges_the_syn_only() {
    for (mut p, id) in all() {
        p.send("S 0:10 <mss 1460,FO>");
        p.expect("SA 0 ack 1");
        assert_eq!(outcome(&p, id), Outcome::Skipped(Skipped::Simultaneous));
        assert_eq!(p.state(id), State::SynReceived);
        assert_eq!(p.read(id), Err(ReadError::Blocked), "the peer's data waits for the handshake");
        p.send("SA 0 ack 1 <mss 1460>");
        assert_eq!(p.state(id), State::Established);
        if p.stack.config().crossed_syns == CrossedSyns::Rfc {
            p.expect_bytes("PA 1:28 ack 1", &pattern(1, 27));
        } else {
            p.expect("A 28 ack 1");
            p.expect_nothing_for(190);
            p.expect_after(50, "PA 1:28 ack 1");
        }
        p.send("PA 1:11 ack 28");
        assert_eq!(p.read(id), Ok(pattern(1, 10)));
        assert_eq!(verdict(&p), None);
    }
}

#[test]
fn data_less() {
    let options =
        || ConnectOptions { fast_open: FastOpen::Auto, data_less: true, ..ConnectOptions::default() };
    for config in both_profiles() {
        let mut p = client(config);
        let id = p.connect(options());
        p.expect(&format!("S 0 <mss 1460,sackOK,TS 0 0,wscale 7,FO {COOKIE}>"));
        p.send_bytes("SPA 0 ack 1 <mss 1460>", b"220 ready");
        p.expect("A 1 ack 10");
        assert_eq!(outcome(&p, id), Outcome::Accepted);
        assert_eq!(counters(&p.stack), [], "no data, no Active");
        assert_eq!(p.read(id), Ok(b"220 ready".to_vec()));
        // The server's key has changed.
        let id = p.connect(options());
        p.expect("S 0");
        p.send("SA 0 ack 1 <mss 1460,FO 0102030405060708>");
        p.expect("A 1 ack 1");
        assert_eq!(outcome(&p, id), Outcome::NotAcknowledged(NotAcknowledged::StaleCookie));
        assert_eq!(counters(&p.stack), []);
    }
}

/// The application has gone before the answer came: nobody will read it, and the server is told.
#[test]
fn an_answer_that_nobody_will_read_is_reset() {
    for (mut p, id) in all() {
        p.close(id);
        p.send_bytes("SPA 0 ack 28 <mss 1460>", b"hello");
        p.expect("R 28");
        assert_eq!(p.sizes(), (0, 0, 0));
        p.expect_nothing_for(10_000);
    }
}
