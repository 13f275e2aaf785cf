//! The server's decision about a SYN: option formats, cookies, keys, and the bits of `tcp_fastopen`.

use super::*;
use smallvec::SmallVec;
use wire::{Flags, TcpHeader};

#[test]
fn a_request_is_granted_in_its_own_format() {
    for mut p in servers() {
        p.listen_with(qlen(1));
        let (cookie, mss) = (cookie(&p), mss(&p));
        p.send("S 0 <mss 1460,FO>");
        p.expect(&format!("SA 0 ack 1 <mss {mss},FO {cookie}>"));
        p.remote.set_port(40001);
        p.send("S 0 <mss 1460,FOEXP>");
        p.expect(&format!("SA 0 ack 1 <mss {mss},FOEXP {cookie}>"));
        assert_eq!(p.sizes(), (0, 2, 0), "nothing but requests");
        assert_eq!(counters(&p.stack), [("CookieReqd", 2)]);
    }
}

#[test]
fn the_cookie_is_linuxs() {
    let vectors = [
        (KEY, "10.77.0.1", "10.77.0.2", "1d0aa246d060bffa"),
        (OTHER_KEY, "10.77.0.1", "10.77.0.2", "200da0545bae4387"),
        (KEY, "fd77::1", "fd77::2", "440340d4fa43d746"),
    ];
    for (key, client, server, cookie) in vectors {
        let mut p = Peer::ours();
        p.stack.add_address(server.parse().unwrap(), 24);
        p.stack.set_fast_open_key(ring(key));
        p.local.set_ip(server.parse().unwrap());
        p.remote.set_ip(client.parse().unwrap());
        p.listen_with(qlen(1));
        p.send("S 0 <mss 1400,FO>");
        let sent = p.expect("SA 0 ack 1");
        assert_eq!(sent.options.fast_open.unwrap().cookie.unwrap().to_string(), cookie);
    }
}

#[test]
fn data_with_a_request_is_not_taken() {
    for mut p in servers() {
        let listener = p.listen_with(qlen(1));
        let (cookie, mss) = (cookie(&p), mss(&p));
        p.send("S 0:10 <mss 1460,FO>");
        p.expect(&format!("SA 0 ack 1 <mss {mss},FO {cookie}>"));
        assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
        assert_eq!(counters(&p.stack), [("CookieReqd", 1)]);
    }
}

#[test]
fn a_valid_cookie_makes_the_data_readable_before_the_final_ack() {
    for format in ["FO", "FOEXP"] {
        for mut p in servers() {
            let listener = p.listen_with(qlen(1));
            p.send_bytes(&format!("S 0 <mss 1460,{format} {}>", cookie(&p)), b"GET /");
            assert_eq!(p.events(), [(SocketId::Listener(listener), Events::ACCEPTABLE)]);
            let id = p.accept(listener);
            assert_eq!(p.state(id), State::SynReceived);
            assert_eq!(p.stack.early_data(id), Some(EarlyData { len: 5, confirmed: false }));
            assert_eq!(p.read(id), Ok(b"GET /".to_vec()));
            let hold = p.stack.config().synack_hold;
            let mss = mss(&p);
            p.expect_after_exactly(hold, &format!("SA 0 ack 6 <mss {mss}>"));
            assert_eq!(p.read(id), Err(ReadError::Blocked));
            p.send("A 6 ack 1");
            assert_eq!(p.state(id), State::Established);
            assert_eq!(p.stack.early_data(id), Some(EarlyData { len: 5, confirmed: true }));
            assert_eq!(counters(&p.stack), [("Passive", 1)]);
            assert_eq!(p.stack.counters().passive_opens, 1);
        }
    }
}

#[test]
fn only_eight_bytes_match_and_any_other_cookie_is_answered_by_a_fresh_one() {
    for mut p in servers() {
        p.listen_with(qlen(1));
        let (good, mss) = (cookie(&p), mss(&p));
        let longer = format!("{good}0000000000000000");
        let wrong = ["01020304", "010203040506", &good[..14], "0102030405060708", &longer[..20], &longer];
        // The seventh byte alone would make an odd length, which no option can have.
        let wrong = wrong.map(|cookie| if cookie.len() == 14 { &cookie[..12] } else { cookie });
        for (n, wrong) in wrong.iter().enumerate() {
            p.remote.set_port(41000 + n as u16);
            p.send(&format!("S 0:10 <mss 1460,FO {wrong}>"));
            p.expect(&format!("SA 0 ack 1 <mss {mss},FO {good}>"));
        }
        assert_eq!(counters(&p.stack), [("PassiveFail", wrong.len() as u64)]);
    }
}

#[test]
fn an_option_of_impossible_length_is_no_option() {
    for mut p in servers() {
        p.listen_with(qlen(1));
        let mss = mss(&p);
        for (n, len) in [1, 2, 3, 5, 13, 15].into_iter().enumerate() {
            p.remote.set_port(41000 + n as u16);
            let mut header = TcpHeader {
                flags: Flags::SYN,
                seq: PEER_ISN,
                window: 65535,
                ..TcpHeader::new(p.remote.port(), 80)
            };
            header.options.mss = Some(1460);
            header.options.unknown = vec![(34, SmallVec::from_elem(7, len))].into();
            let packet = wire::build_tcp_packet(&p.ip(), &header, b"data");
            p.send_rx(RxPacket::new(packet));
            p.expect(&format!("SA 0 ack 1 <mss {mss}>"));
        }
        assert_eq!(counters(&p.stack), []);
    }
}

#[test]
fn the_option_means_nothing_after_the_syn() {
    for mut p in servers() {
        let listener = p.listen_with(qlen(1));
        let cookie = cookie(&p);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1");
        p.send(&format!("PA 1:11 ack 1 <FO {cookie}>"));
        let id = p.accept(listener);
        assert_eq!(p.read(id), Ok(pattern(1, 10)));
        assert_eq!(p.stack.early_data(id), Some(EarlyData { len: 0, confirmed: true }));
        p.send("PA 11:21 ack 1 <FO>");
        assert_eq!(p.read(id), Ok(pattern(11, 10)));
        assert_eq!(counters(&p.stack), []);
    }
}

#[test]
fn a_backup_key_accepts_and_hands_out_the_new_cookie() {
    for mut p in servers() {
        let listener = p.listen_with(qlen(1));
        let (old, new) = (cookie(&p), cookie_under(&p, OTHER_KEY));
        p.stack.set(p.now, "net.ipv4.tcp_fastopen_key", &format!("{OTHER_KEY},{KEY}")).unwrap();
        p.send(&format!("S 0:10 <mss 1460,FOEXP {old}>"));
        let (hold, mss) = (p.stack.config().synack_hold, mss(&p));
        p.expect_after_exactly(hold, &format!("SA 0 ack 11 <mss {mss},FOEXP {new}>"));
        let id = p.accept(listener);
        assert_eq!(p.state(id), State::SynReceived);
        assert_eq!(counters(&p.stack), [("Passive", 1), ("PassiveAltKey", 1)]);
    }
}

#[test]
fn without_the_backup_an_old_cookie_is_stale() {
    for mut p in servers() {
        p.listen_with(qlen(1));
        let (old, new) = (cookie(&p), cookie_under(&p, OTHER_KEY));
        p.stack.set_fast_open_key(ring(OTHER_KEY));
        let mss = mss(&p);
        p.send(&format!("S 0:10 <mss 1460,FO {old}>"));
        p.expect(&format!("SA 0 ack 1 <mss {mss},FO {new}>"));
        assert_eq!(counters(&p.stack), [("PassiveFail", 1)]);
    }
}

#[test]
fn a_listener_may_have_keys_of_its_own() {
    for mut p in servers() {
        p.listen_with(ListenOptions { key: Some(ring(OTHER_KEY)), ..qlen(1) });
        let (stacks, own, mss) = (cookie(&p), cookie_under(&p, OTHER_KEY), mss(&p));
        p.send(&format!("S 0:10 <mss 1460,FO {stacks}>"));
        p.expect(&format!("SA 0 ack 1 <mss {mss},FO {own}>"));
        p.remote.set_port(40001);
        p.send(&format!("S 0:10 <mss 1460,FO {own}>"));
        let hold = p.stack.config().synack_hold;
        p.expect_after_exactly(hold, &format!("SA 0 ack 11 <mss {mss}>"));
        assert_eq!(counters(&p.stack), [("Passive", 1), ("PassiveFail", 1)]);
    }
}

/// R33: neither by the timer nor in answer to a copy of the SYN.
#[test]
fn only_the_first_syn_ack_brings_a_cookie() {
    for config in both_profiles() {
        // An accepted child with a cookie of the backup key.
        let mut p = server(config);
        p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(1) });
        let (old, new) = (cookie(&p), cookie_under(&p, OTHER_KEY));
        p.stack.set_fast_open_key(ring(&format!("{OTHER_KEY},{KEY}")));
        p.send(&format!("S 0:10 <mss 1460,FO {old}>"));
        p.expect(&format!("SA 0 ack 11 <mss 1460,FO {new}>"));
        p.expect_after(1000, "SA 0 ack 11 <mss 1460>");
        p.send("S 0 <mss 1460>");
        p.expect("SA 0 ack 11 <mss 1460>");
        p.send("A 11 ack 1");
        // An ordinary request.
        p.remote.set_port(40_001);
        p.send("S 0 <mss 1460,FO>");
        p.expect(&format!("SA 0 ack 1 <mss 1460,FO {new}>"));
        p.send("S 0 <mss 1460,FO>");
        p.expect("SA 0 ack 1 <mss 1460>");
        p.expect_after(1000, "SA 0 ack 1 <mss 1460>");
    }
}

/// What becomes of a SYN: the bits, the listener, the SYN's option and data; then the SYN-ACK, and the counters.
#[test]
fn the_matrix_of_bits_and_listeners() {
    type Row = (u32, Option<u32>, &'static str, &'static str, &'static [(&'static str, u64)]);
    const ON: Option<u32> = Some(4);
    #[rustfmt::skip]
    let rows: [Row; 16] = [
        // Server off, or listener off: no cookie, no data; requests are counted all the same.
        (0x1,   ON,   "S 0:10 <mss 1460,FO COOKIE>", "ack 1",         &[]),
        (0x1,   ON,   "S 0 <mss 1460,FO>",           "ack 1",         &[("CookieReqd", 1)]),
        (0x201, ON,   "S 0:10 <mss 1460>",           "ack 1",         &[]),
        (0x3,   None, "S 0:10 <mss 1460,FO COOKIE>", "ack 1",         &[]),
        (0x3,   None, "S 0 <mss 1460,FO>",           "ack 1",         &[("CookieReqd", 1)]),
        (0x203, None, "S 0:10 <mss 1460>",           "ack 1",         &[]),
        // On.
        (0x3,   ON,   "S 0:10 <mss 1460>",           "ack 1",         &[]),
        (0x3,   ON,   "S 0 <mss 1460,FO COOKIE>",    "ack 1 fast",    &[("Passive", 1)]),
        (0x3,   ON,   "S 0:10 <mss 1460,FO COOKIE>", "ack 11 fast",   &[("Passive", 1)]),
        // Every listener.
        (0x403, None, "S 0:10 <mss 1460,FO COOKIE>", "ack 11 fast",   &[("Passive", 1)]),
        (0x401, None, "S 0:10 <mss 1460,FO COOKIE>", "ack 1",         &[]),
        // No cookie needed, and none ever issued.
        (0x203, ON,   "S 0:10 <mss 1460>",           "ack 11 fast",   &[("Passive", 1)]),
        (0x203, ON,   "S 0:10 <mss 1460,FO 01020304>", "ack 11 fast", &[("Passive", 1)]),
        (0x203, ON,   "S 0 <mss 1460,FO>",           "ack 1 fast",    &[("Passive", 1), ("CookieReqd", 1)]),
        (0x203, ON,   "S 0 <mss 1460>",              "ack 1",         &[]),
        (0x603, None, "S 0:10 <mss 1460>",           "ack 11 fast",   &[("Passive", 1)]),
    ];
    for profile in both_profiles() {
        for (bits, fast_open, syn, answer, counted) in &rows {
            let mut p = server(profile.clone().tcp_fastopen(*bits));
            let listener = p.listen_with(ListenOptions { fast_open: *fast_open, ..ListenOptions::default() });
            p.send(&syn.replace("COOKIE", &cookie(&p)));
            let fast = answer.ends_with("fast");
            // A request without data is not worth a wait, though a server without cookies opens at once.
            let held = fast && !syn.ends_with("FO>");
            let hold = if held { p.stack.config().synack_hold } else { Duration::ZERO };
            p.expect_after_exactly(hold, &format!("SA 0 {} <mss 1460>", answer.trim_end_matches(" fast")));
            assert_eq!(p.stack.accept(p.now, listener).is_ok(), fast, "{bits:#x} {syn}");
            assert_eq!(counters(&p.stack), *counted, "{bits:#x} {syn}");
        }
    }
}

#[test]
fn a_listener_may_do_without_cookies() {
    for mut p in servers() {
        let listener = p.listen_with(ListenOptions { fast_open_no_cookie: true, ..qlen(1) });
        p.send("S 0:10 <mss 1460>");
        let (hold, mss) = (p.stack.config().synack_hold, mss(&p));
        p.expect_after_exactly(hold, &format!("SA 0 ack 11 <mss {mss}>"));
        p.accept(listener);
        assert_eq!(counters(&p.stack), [("Passive", 1)]);
    }
}

#[test]
fn obsolete_bits_are_refused_with_a_warning() {
    for value in ["0x103", "0x803", "0x903"] {
        let mut p = server(Config::default());
        let warning = p.stack.set(p.now, "net.ipv4.tcp_fastopen", value).unwrap();
        assert!(warning.unwrap().contains("obsolete"));
        assert_eq!(p.stack.config().tcp_fastopen, 0x3);
        // 0x100 once switched off the cookie check, 0x800 a listener's own queue length.
        p.listen_with(qlen(1));
        p.send("S 0:10 <mss 1460>");
        p.expect("SA 0 ack 1 <mss 1460>");
    }
}

#[test]
fn the_queue_length_is_capped_at_somaxconn() {
    let mut p = server(Config::default());
    let listener = p.listen_with(qlen(5000));
    assert_eq!(p.stack.listener_info(listener).unwrap().fast_open_max, 4096);
    p.local.set_port(81);
    p.stack.set(p.now, "net.ipv4.tcp_fastopen", "0x403").unwrap();
    let all = p.listen_with(ListenOptions { backlog: 7, ..ListenOptions::default() });
    assert_eq!(p.stack.listener_info(all).unwrap().fast_open_max, 7);
}

/// The server speaks first.
#[test]
fn a_cookie_without_data_opens_at_once() {
    for mut p in servers() {
        let listener = p.listen_with(ListenOptions { synack_hold: Some(Duration::ZERO), ..qlen(1) });
        p.send(&format!("S 0 <mss 1000,FO {}>", cookie(&p)));
        p.expect("SA 0 ack 1");
        let id = p.accept(listener);
        assert_eq!(p.read(id), Err(ReadError::Blocked));
        p.write(id, b"220 ready\r\n");
        p.expect_bytes("PA 1:12 ack 1", b"220 ready\r\n");
    }
}

/// Its first words may ride on the SYN-ACK.
#[test]
fn who_speaks_first_speaks_on_the_syn_ack() {
    let mut p = server(Config::default());
    let listener = p.listen_with(qlen(1));
    p.send(&format!("S 0 win 65535 <mss 1000,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.write(id, b"220 ready\r\n");
    p.expect_nothing();
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.expect_bytes("SPA 0:11 ack 1", b"220 ready\r\n");
    p.send("PA 1:11 ack 12");
    assert_eq!(p.read(id), Ok(pattern(1, 10)));
}

#[test]
fn syn_with_fin() {
    // Accepted: the FIN too.
    let mut p = server(Config::default());
    let listener = p.listen_with(qlen(1));
    let cookie = cookie(&p);
    p.send_bytes(&format!("SF 0 <mss 1000,FO {cookie}>"), b"GET /");
    p.expect_after(1, "SA 0 ack 7");
    let id = p.accept(listener);
    assert_eq!(p.state(id), State::CloseWait);
    assert_eq!(p.read(id), Ok(b"GET /".to_vec()));
    assert_eq!(p.read(id), Ok(vec![]));
    // Not accepted: a plain SYN.
    p.remote.set_port(40001);
    p.send("SF 0:10 <mss 1000,FO 0102030405060708>");
    p.expect(&format!("SA 0 ack 1 <mss 1460,FO {cookie}>"));
    p.remote.set_port(40002);
    p.send("SF 0 <mss 1000>");
    p.expect("SA 0 ack 1 <mss 1460>");
    // Linux drops it.
    let mut p = server(linux());
    p.listen_with(qlen(1));
    p.send(&format!("SF 0:10 <mss 1000,FO {cookie}>"));
    p.expect_nothing_for(10_000);
    assert_eq!(p.sizes(), (0, 0, 0));
    assert_eq!(p.stack.drops().get(DropReason::NotForListener), 1);
}

#[test]
fn more_data_than_the_window_is_acknowledged_in_part() {
    let mut p = server(Config::default());
    let socket = SocketOptions { recv_buffer: Some(4096), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..qlen(1) });
    p.send(&format!("S 0:8000 <mss 9000,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    let offered = p.stack.info(id).unwrap().recv_queue as u32;
    assert_eq!(p.stack.early_data(id), Some(EarlyData { len: offered as usize, confirmed: false }));
    assert_eq!(offered, 4096);
    // The answer must wait: the SYN-ACK does not acknowledge all of the SYN's data.
    p.write(id, b"too early");
    assert_eq!(p.stack.shutdown(p.now, id), Ok(()));
    p.expect("SA 0 ack 4097 win 0");
    p.expect_bytes("FPA 1:10 ack 4097", b"too early");
}
