//! Packets per exchange, in order, with sequence numbers and times.

use super::exchange::*;
use super::*;

/// The packets as `time ms, who, flags, seq:len, ack`, relative to the two initial numbers and the start.
fn ladder(pair: &Pair, start: Instant) -> Vec<String> {
    let isn = |from: usize| pair.log.iter().find(|sent| sent.from == from).unwrap().header.seq;
    let isns = [isn(CLIENT), isn(SERVER)];
    let mut lines = Vec::new();
    for sent in &pair.log {
        let at = sent.at.since(start).as_millis();
        let who = if sent.from == CLIENT { '>' } else { '<' };
        let seq = sent.header.seq.since(isns[sent.from]);
        let mut line = format!("{at} {who} {} {seq}", sent.short());
        if sent.header.flags.contains(wire::Flags::ACK) {
            line += &format!(" ack {}", sent.header.ack.since(isns[1 - sent.from]));
        }
        lines.push(line);
    }
    lines
}

fn finished(pair: &Pair, exchange: &Exchange) {
    assert!(exchange.complete && exchange.answer == REPLY && exchange.delivered == [REQUEST]);
    for stack in &pair.stacks {
        let sizes = stack.table_sizes();
        assert_eq!((sizes.connections, sizes.requests), (0, 0));
    }
    assert_eq!(pair.stacks[SERVER].table_sizes().time_wait, 1, "the server closed first");
}

/// Measured: A1.
#[test]
fn linux_plain_takes_ten() {
    let (mut pair, listener) = pair(linux(), linux());
    let mut exchange =
        Exchange::start(&mut pair, listener, ConnectOptions::default()).calls().request_later();
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(80)));
    let expected = [
        "0 > S 0",
        "20 < SA 0 ack 1",
        "40 > A 1 ack 1",
        "40 > PA(27) 1 ack 1",
        "60 < A 1 ack 28",
        "60 < PA(43) 1 ack 28",
        "60 < FA 44 ack 28",
        "80 > A 28 ack 44",
        "80 > FA 28 ack 45",
        "100 < A 45 ack 29",
    ];
    assert_eq!(ladder(&pair, exchange.start), expected);
}

/// Measured: A2, the first visit: the ACK goes with the data.
#[test]
fn linux_cookie_request_takes_nine_at_most() {
    let (mut pair, listener) = pair(linux(), linux());
    let mut exchange = Exchange::start(&mut pair, listener, fast()).calls();
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(80)));
    assert_eq!(exchange.outcome, Some(Outcome::CookieRequested { granted: true }));
    let shown = ladder(&pair, exchange.start);
    assert_eq!(shown[..3], ["0 > S 0", "20 < SA 0 ack 1", "40 > PA(27) 1 ack 1"]);
    assert!(shown.len() <= 9, "{shown:#?}");
}

/// Measured: A3.
#[test]
fn linux_fast_open_takes_eight() {
    let (mut pair, listener) = acquainted(linux(), linux());
    let mut exchange = Exchange::start(&mut pair, listener, fast()).calls();
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(40)));
    let expected = [
        "0 > S(27) 0",
        "20 < SA 0 ack 28",
        "20 < PA(43) 1 ack 28",
        "20 < FA 44 ack 28",
        "40 > A 28 ack 1",
        "40 > A 28 ack 44",
        "40 > FA 28 ack 45",
        "60 < A 45 ack 29",
    ];
    assert_eq!(ladder(&pair, exchange.start), expected);
}

/// Measured: L3, with a real curl.
#[test]
fn a_linux_client_to_our_server_takes_four() {
    for calls in [false, true] {
        let (mut pair, listener) = acquainted(linux(), Config::default());
        let mut exchange = Exchange::start(&mut pair, listener, fast());
        if calls {
            exchange = exchange.calls();
        }
        exchange.run(&mut pair, 1000);
        finished(&pair, &exchange);
        assert_eq!(exchange.first_byte, Some(Duration::from_millis(40)));
        let expected = ["0 > S(27) 0", "20 < SFPA(43) 0 ack 28", "40 > FA 28 ack 45", "60 < A 45 ack 29"];
        assert_eq!(ladder(&pair, exchange.start), expected);
        assert_eq!(counters(&pair.stacks[SERVER]), [("Passive", 1), ("CookieReqd", 1), ("SynAckData", 1)]);
    }
}

/// Measured: L4: one FIN-ACK answers what came in the same moment.
#[test]
fn our_client_to_a_linux_server_takes_six() {
    let (mut pair, listener) = acquainted(Config::default(), linux());
    pair.one_by_one = false;
    let mut exchange = Exchange::start(&mut pair, listener, fast()).calls();
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    let expected = [
        "0 > S(27) 0",
        "20 < SA 0 ack 28",
        "20 < PA(43) 1 ack 28",
        "20 < FA 44 ack 28",
        "40 > FA 28 ack 45",
        "60 < A 45 ack 29",
    ];
    assert_eq!(ladder(&pair, exchange.start), expected);
}

#[test]
fn ours_take_four() {
    for v6 in [false, true] {
        let (mut pair, mut listener) = acquainted(Config::default(), Config::default());
        if v6 {
            listener = to_v6(&mut pair);
            pair.obtain_cookie(listener);
        }
        let mut exchange = Exchange::start(&mut pair, listener, fast());
        exchange.run(&mut pair, 1000);
        finished(&pair, &exchange);
        assert_eq!(exchange.first_byte, Some(Duration::from_millis(40)));
        let expected = ["0 > S(27) 0", "20 < SFPA(43) 0 ack 28", "40 > FA 28 ack 45", "60 < A 45 ack 29"];
        assert_eq!(ladder(&pair, exchange.start), expected);
    }
}

/// All further traffic of the pair is IPv6.
fn to_v6(pair: &mut Pair) -> ListenerId {
    pair.server = "[fd00::2]:80".parse().unwrap();
    pair.listen(16)
}

#[test]
fn ours_take_three_with_a_fin_on_the_syn() {
    let (mut pair, listener) = acquainted(Config::default(), Config::default());
    let options = ConnectOptions { fin: true, syn_fin: true, ..fast() };
    let mut exchange = Exchange::start(&mut pair, listener, options);
    exchange.run(&mut pair, 1000);
    assert!(exchange.complete && exchange.answer == REPLY && exchange.delivered == [REQUEST]);
    let expected = ["0 > SF(27) 0", "20 < SFPA(43) 0 ack 29", "40 > A 29 ack 45"];
    assert_eq!(ladder(&pair, exchange.start), expected);
    let sizes = pair.stacks.each_ref().map(|stack| stack.table_sizes());
    assert_eq!(sizes.map(|sizes| (sizes.connections, sizes.requests)), [(0, 0); 2]);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(40)));
}

#[test]
fn a_fin_on_the_syn_costs_a_linux_server_one_fallback() {
    let (mut pair, listener) = acquainted(Config::default(), linux());
    let options = || ConnectOptions { fin: true, syn_fin: true, ..fast() };
    let mut exchange = Exchange::start(&mut pair, listener, options());
    exchange.run(&mut pair, 1000);
    assert!(exchange.complete && exchange.answer == REPLY && exchange.delivered == [REQUEST]);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(180)));
    assert_eq!(exchange.outcome, Some(Outcome::NotAcknowledged(NotAcknowledged::Lost)));
    let shown = ladder(&pair, exchange.start);
    assert_eq!(shown[..4], ["0 > SF(27) 0", "100 > S 0", "120 < SA 0 ack 1", "140 > FPA(27) 1 ack 1"]);
    // Now it is known: data yes, FIN no.
    pair.log.clear();
    let mut exchange = Exchange::start(&mut pair, listener, options());
    exchange.run(&mut pair, 1000);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(40)));
    assert_eq!(exchange.outcome, Some(Outcome::Accepted));
    assert_eq!(ladder(&pair, exchange.start)[0], "0 > S(27) 0");
}

#[test]
fn ours_plain_take_six_or_seven() {
    let first_bytes = || ConnectOptions { first_bytes: REQUEST.into(), ..ConnectOptions::default() };
    let (mut pair, listener) = pair(Config::default(), Config::default());
    let mut exchange = Exchange::start(&mut pair, listener, first_bytes());
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(80)));
    let expected = [
        "0 > S 0",
        "20 < SA 0 ack 1",
        "40 > PA(27) 1 ack 1",
        "60 < FPA(43) 1 ack 28",
        "80 > FA 28 ack 45",
        "100 < A 45 ack 29",
    ];
    assert_eq!(ladder(&pair, exchange.start), expected);
    // An application whose write and close leave separately.
    let (mut pair, listener) = self::pair(Config::default(), Config::default());
    let mut exchange = Exchange::start(&mut pair, listener, first_bytes()).calls();
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    assert_eq!(pair.log.len(), 7, "{:#?}", ladder(&pair, exchange.start));
}

#[test]
fn our_first_visit_takes_as_many_as_plain() {
    let (mut pair, listener) = pair(Config::default(), Config::default());
    let mut exchange = Exchange::start(&mut pair, listener, fast());
    exchange.run(&mut pair, 1000);
    finished(&pair, &exchange);
    assert_eq!(pair.log.len(), 6);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(80)));
}

#[test]
fn a_reply_that_outgrows_the_syn_ack_goes_on_behind_it() {
    const BIG: &[u8] = &[7; 43_000];
    let (mut pair, listener) = acquainted(Config::default(), Config::default());
    let mut exchange = Exchange::start(&mut pair, listener, fast()).reply(BIG);
    exchange.run(&mut pair, 20);
    // One SYN-ACK of 1460 − 20 bytes of options, nine segments of 1448 and the rest of the initial window.
    let sent: Vec<usize> = pair.log.iter().filter(|sent| sent.from == SERVER).map(|sent| sent.len).collect();
    assert_eq!(sent[..10], [1440, 1448, 1448, 1448, 1448, 1448, 1448, 1448, 1448, 1448]);
    assert!(sent.iter().sum::<usize>() <= 14_480);
    exchange.run(&mut pair, 1000);
    assert!(exchange.complete && exchange.answer == BIG);
    assert_eq!(exchange.first_byte, Some(Duration::from_millis(40)));
}
