//! The reply on the SYN-ACK: who may get it, how much of it, what ends the wait for it, and its loss.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Our server with a long hold, so that nothing but the event under test ends it.
fn patient() -> (Peer, ListenerId) {
    let mut p = server(Config::default());
    let listener = p.listen_with(ListenOptions { synack_hold: Some(5 * MS), ..qlen(4) });
    (p, listener)
}

/// A request of ten bytes arrives; the application has accepted and read it.
fn requested(p: &mut Peer, listener: ListenerId) -> ConnId {
    p.send(&format!("S 0:10 win 65535 <mss 1000,FO {}>", cookie(p)));
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap().len(), 10);
    p.expect_nothing();
    id
}

#[test]
fn data_and_fin_ride_once_the_application_has_closed() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hel");
    p.write(id, b"lo");
    p.expect_nothing_for(2);
    p.close(id);
    p.expect_bytes("SFPA 0:5 ack 11", b"hello");
    assert_eq!(counters(&p.stack), [("Passive", 1), ("SynAckData", 1)]);
    p.send("FA 11 ack 7");
    p.expect("A 7 ack 12");
    assert_eq!(p.sizes(), (0, 0, 1));
}

#[test]
fn a_fin_alone_rides_too() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.close(id);
    p.expect("SFA 0 ack 11");
    assert_eq!(counters(&p.stack), [("Passive", 1), ("SynAckData", 1)]);
}

#[test]
fn shutdown_ends_the_hold_as_close_does() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.stack.shutdown(p.now, id).unwrap();
    p.expect_bytes("SFPA 0:5 ack 11", b"hello");
    p.send("A 11 ack 7");
    assert_eq!(p.state(id), State::FinWait2);
    p.send("PA 11:21 ack 7");
    assert_eq!(p.read(id), Ok(pattern(11, 10)));
}

#[test]
fn push_ends_the_hold() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.stack.push(p.now, id);
    p.expect_bytes("SPA 0:5 ack 11", b"hello");
    assert_eq!(p.stack.info(id).unwrap().synack_data_len, 5);
    p.send("A 11 ack 6");
    assert_eq!(p.stack.info(id).unwrap().flight_size, 0);
}

#[test]
fn a_read_that_would_block_ends_the_hold_after_a_write() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.expect_nothing_for(1);
    p.write(id, b"hello");
    p.expect_nothing_for(1);
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.expect_bytes("SPA 0:5 ack 11", b"hello");
}

/// A SYN filled to its room is hardly the whole request: the rest waits for the SYN-ACK.
#[test]
fn a_reader_of_a_full_syn_ends_the_hold() {
    for (len, ends) in [(1420, true), (1419, false)] {
        let (mut p, listener) = patient();
        let cookie = cookie(&p);
        p.send_bytes(&format!("S 0 win 65535 <mss 1460,FO {cookie}>"), &pattern(1, len));
        let id = p.accept(listener);
        assert_eq!(p.read(id).unwrap().len(), len);
        p.expect_nothing();
        assert_eq!(p.read(id), Err(ReadError::Blocked));
        assert_eq!(p.sent_now().len(), usize::from(ends), "{len} bytes");
    }
}

#[test]
fn a_read_that_gives_data_does_not_end_the_hold() {
    let (mut p, listener) = patient();
    p.send(&format!("S 0:10 win 65535 <mss 1000,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, b"hello");
    assert_eq!(p.stack.read(p.now, id, &mut [0; 4]), Ok(4));
    p.expect_nothing_for(4);
    p.expect_after(1, "SPA 0:5 ack 11");
}

#[test]
fn a_full_segment_ends_the_hold() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    // The client's MSS of 1000 less the four option bytes that the SYN-ACK really carries.
    p.write(id, &pattern(0, 995));
    p.expect_nothing_for(1);
    p.write(id, &pattern(995, 5));
    p.expect_bytes("SA 0:996 ack 11 <mss 1460>", &pattern(0, 996));
    // The rest goes at once, within the initial window.
    p.expect_bytes("PA 997:1001 ack 11", &pattern(996, 4));
}

#[test]
fn options_really_sent_come_off_the_mss() {
    let rows = [
        ("mss 1460", 1456),
        ("mss 1460,sackOK,TS 9 0", 1444),
        ("mss 1460,sackOK,TS 9 0,wscale 7", 1440),
        ("mss 600,sackOK,TS 9 0,wscale 7", 580),
        ("TS 9 0", 536 - 16),
    ];
    for (options, room) in rows {
        let (mut p, listener) = patient();
        p.send(&format!("S 0:10 win 65535 <{options},FO {}>", cookie(&p)));
        let id = p.accept(listener);
        p.write(id, &pattern(0, 3000));
        p.expect(&format!("SA 0:{room} ack 11"));
    }
    // A fresh cookie takes its room.
    let (mut p, listener) = patient();
    let old = cookie(&p);
    p.stack.set(p.now, "net.ipv4.tcp_fastopen_key", &format!("{OTHER_KEY},{KEY}")).unwrap();
    p.send(&format!("S 0:10 win 65535 <mss 1460,FO {old}>"));
    let id = p.accept(listener);
    p.write(id, &pattern(0, 3000));
    let new = cookie_under(&p, OTHER_KEY);
    p.expect(&format!("SA 0:1444 ack 11 <mss 1460,FO {new}>"));
}

#[test]
fn the_answer_fits_the_window_of_the_syn_and_the_path() {
    let (mut p, listener) = patient();
    p.send(&format!("S 0:10 win 300 <mss 1460,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, &pattern(0, 3000));
    p.expect("SA 0:300 ack 11");
    p.expect_nothing_for(900);
    // A client that offers nothing.
    p.remote.set_port(40001);
    p.send(&format!("S 0:10 win 0 <mss 1460,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, b"hello");
    p.expect("SA 0 ack 11");
    // The path to the client is narrower than its MSS.
    let (mut p, listener) = patient();
    p.stack.path_cache_mut().entry(p.now, p.local.ip().into(), p.remote.ip().into()).path_mtu = Some(1000);
    p.send(&format!("S 0:10 win 65535 <mss 1460,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, &pattern(0, 3000));
    p.expect("SA 0:956 ack 11");
}

#[test]
fn the_deadline_is_the_hold_or_a_quarter_of_the_round_trip() {
    let least = Duration::from_micros(250);
    let rows = [(None, 5 * MS), (Some(200 * MS), 5 * MS), (Some(8 * MS), 2 * MS), (Some(MS / 2), least)];
    for (srtt, wait) in rows {
        let (mut p, listener) = patient();
        p.stack.path_cache_mut().entry(p.now, p.local.ip().into(), p.remote.ip().into()).set_rtt(srtt);
        p.send(&format!("S 0:10 win 65535 <mss 1000,FO {}>", cookie(&p)));
        let id = p.accept(listener);
        p.write(id, b"hello");
        assert_eq!(p.stack.poll_timeout(), Some(p.now + wait));
        p.expect_after_exactly(wait, "SPA 0:5 ack 11");
    }
    let mut p = server(Config::default());
    p.listen_with(qlen(1));
    p.send(&format!("S 0:10 <mss 1000,FO {}>", cookie(&p)));
    p.expect_after_exactly(MS, "SA 0 ack 11");
}

#[test]
fn without_a_hold_the_syn_ack_leaves_before_the_application_runs() {
    for config in [Config::default().synack_hold(Duration::ZERO), linux()] {
        let mut p = server(config);
        let listener = p.listen_with(qlen(1));
        p.send(&format!("S 0:10 win 65535 <mss 1000,FO {}>", cookie(&p)));
        p.expect("SA 0 ack 11");
        let id = p.accept(listener);
        p.write(id, b"hello");
        p.expect_bytes("PA 1:6 ack 11", b"hello");
        p.close(id);
        // The request was not read.
        p.expect("RA 6 ack 11");
        assert_eq!(p.sizes(), (0, 0, 0));
    }
}

#[test]
fn linux_never_answers_on_the_syn_ack_whatever_the_listener_says() {
    let mut p = server(linux());
    let listener = p.listen_with(ListenOptions { synack_hold: Some(5 * MS), ..qlen(1) });
    p.send(&format!("S 0:10 win 65535 <mss 1000,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, b"hello");
    p.expect("SA 0 ack 11");
    p.expect("PA 1:6 ack 11");
}

#[test]
fn a_duplicate_syn_ends_the_hold_and_only_the_first_syn_ack_answers() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.send("S 0 win 65535 <mss 1000>");
    p.expect_bytes("SPA 0:5 ack 11", b"hello");
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 11 <mss 1460>");
    assert_eq!(counters(&p.stack), [("Passive", 1), ("SynAckData", 1)]);
}

#[test]
fn only_an_accepted_fast_open_is_answered_on_the_syn_ack() {
    let (mut p, _) = patient();
    let mss_only = "SA 0 ack 1 <mss 1460>";
    for (port, syn, answer) in [
        (41000, "S 0:10 <mss 1000>".to_string(), mss_only.to_string()),
        (41001, "S 0 <mss 1000>".to_string(), mss_only.to_string()),
        (41002, "S 0 <mss 1000,FO>".to_string(), format!("SA 0 ack 1 <mss 1460,FO {}>", cookie(&p))),
        (
            41003,
            "S 0:10 <mss 1000,FO 01020304>".to_string(),
            format!("SA 0 ack 1 <mss 1460,FO {}>", cookie(&p)),
        ),
    ] {
        p.remote.set_port(port);
        p.send(&syn);
        // At once, and as a request that the application does not see.
        p.expect(&answer);
    }
    assert_eq!(p.sizes(), (0, 4, 0));
}

#[test]
fn tsval_and_the_round_trip_use_the_true_time_of_transmission() {
    let (mut p, listener) = patient();
    p.send(&format!("S 0:10 win 65535 <mss 1000,TS 200 0,FO {}>", cookie(&p)));
    let id = p.accept(listener);
    p.write(id, b"hello");
    let sent = p.expect_after(5, "SPA 0:5 ack 11").options.timestamps.unwrap();
    assert_eq!(sent.tsecr, 200);
    p.expect_nothing_for(40);
    p.send("A 11 ack 6 <TS 240 0>");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.srtt, info.min_rtt), (Some(40 * MS), Some(40 * MS)));
    p.write(id, b"more");
    let later = p.expect("PA 6:10 ack 11").options.timestamps.unwrap();
    assert_eq!(later.tsval.wrapping_sub(sent.tsval), 40, "not since the SYN came");
    let path = p.stack.path_cache().lookup(p.local.ip().into(), p.remote.ip().into()).unwrap();
    assert_eq!(path.rtt(), Some(40 * MS));
}

#[test]
fn a_lost_syn_ack_is_repeated_plain_and_data_and_fin_follow_its_ack_at_once() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.close(id);
    p.expect("SFPA 0:5 ack 11");
    p.expect_after(1000, "SA 0 ack 11 <mss 1460>");
    p.expect_nothing_for(40);
    p.send("A 11 ack 1");
    p.expect_bytes("FPA 1:6 ack 11", b"hello");
    p.send("FA 11 ack 7");
    p.expect("A 7 ack 12");
}

#[test]
fn a_client_that_ignores_data_on_a_syn_ack_gets_it_again_at_once() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.stack.push(p.now, id);
    p.expect("SPA 0:5 ack 11");
    p.expect_nothing_for(40);
    p.send("A 11 ack 1");
    p.expect_bytes("PA 1:6 ack 11", b"hello");
    // No time-out, so no loss either.
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (10_000, u32::MAX));
}

#[test]
fn or_after_the_time_out_where_that_is_wanted() {
    let mut p = server(Config::default().resend_after_synack(false));
    let listener = p.listen_with(ListenOptions { synack_hold: Some(5 * MS), ..qlen(4) });
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.stack.push(p.now, id);
    p.expect("SPA 0:5 ack 11");
    p.expect_nothing_for(40);
    p.send("A 11 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_after_exactly(rto, "PA 1:6 ack 11");
}

#[test]
fn the_syn_ack_is_not_ect() {
    let (mut p, listener) = patient();
    let id = requested(&mut p, listener);
    p.write(id, b"hello");
    p.close(id);
    let packet = p.take_packet().unwrap();
    let (ip, _, _) = wire::parse_tcp_packet(&packet).unwrap();
    assert_eq!(ip.ecn, wire::Ecn::from_bits(0));
}
