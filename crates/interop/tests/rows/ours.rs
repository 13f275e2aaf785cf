//! Where our stack as it comes differs from Linux on purpose.
use super::{Pair, ask, ask_record, assert_served, exchange, fetch_cookie, ready};
use interop::hook::{drop_first, drop_if, drop_syn_data, unreliable};
use interop::{Ask, Conversation, Direction, Maker, Serve, Way, counters};
use proto::{NotAcknowledged, Outcome, Skipped, Verdict};
use std::time::Duration;

const OURS_TO_KERNEL: Pair = Pair { client: Maker::Ours, server: Maker::Kernel };
const KERNEL_TO_OURS: Pair = Pair { client: Maker::Kernel, server: Maker::Ours };
const OURS_TO_OURS: Pair = Pair { client: Maker::Ours, server: Maker::Ours };

/// Reply and FIN ride on the SYN-ACK; an unmodified kernel client needs four packets.
#[test]
fn reply_on_the_syn_ack() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        for pair in [KERNEL_TO_OURS, OURS_TO_OURS] {
            let mut bed = pair.bed();
            bed.server.serve(&Serve::new());
            fetch_cookie(&mut bed);
            let visit = exchange(&mut bed, Way::FastOpen);
            assert_served(pair, &visit, 1, 4);
            assert_eq!(visit.1.shapes(), [">S(27)", "<SFPA(43)", ">FA", "<A"], "{}", visit.1);
            assert_eq!(visit.1.syn_data_acked(), 27);
            assert_eq!(bed.client.counters(), counters(&[("Active", 1)]));
            assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
        }
    });
}

/// Our client's FIN-ACK answers data and FIN of a kernel server; the SYN-ACK too when all three
/// arrive together.
#[test]
fn seven_packets_with_a_kernel_server() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        bed.server.serve(&Serve::new());
        fetch_cookie(&mut bed);
        let visit = exchange(&mut bed, Way::FastOpen);
        assert_served(OURS_TO_KERNEL, &visit, 1, 7);
        let sent = visit.1.shapes_of(Direction::ToServer);
        assert!(sent == [">S(27)", ">FA"] || sent == [">S(27)", ">A", ">FA"], "{}", visit.1);
    });
}

/// FIN on the SYN: three packets between two ends of ours. A kernel drops such a SYN, and that is
/// remembered.
#[test]
fn fin_on_the_syn() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let three = visits_with_fin_on_the_syn(Maker::Ours);
        assert_eq!(three[1].shapes(), [">SF(27)", "<SFPA(43)", ">A"], "{}", three[1]);
        let fallen_back = visits_with_fin_on_the_syn(Maker::Kernel);
        assert_eq!(fallen_back[1].shapes()[0], ">SF(27)", "{}", fallen_back[1]);
        assert_eq!(fallen_back[2].shapes()[0], ">S(27)", "not tried again\n{}", fallen_back[2]);
    });
}

/// Three visits with FIN on the SYN allowed: one for the cookie, two with it.
fn visits_with_fin_on_the_syn(server: Maker) -> [Conversation; 3] {
    let mut bed = Pair { client: Maker::Ours, server }.bed();
    bed.server.serve(&Serve::new());
    [0; 3].map(|_| {
        let (exchange, conversation) = exchange(&mut bed, Way::FinOnSyn);
        assert_eq!(exchange.reply, [b'r'; 43], "{conversation}");
        conversation
    })
}

/// A lost SYN-ACK is retransmitted without data; reply and FIN follow its ACK at once.
#[test]
fn lost_syn_ack_with_reply() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = KERNEL_TO_OURS.bed();
        bed.server.serve(&Serve::new());
        fetch_cookie(&mut bed);
        bed.wire.set_hook(drop_first(1, |_, segment| segment.is_syn_ack()));
        let (exchange, conversation) = exchange(&mut bed, Way::FastOpen);
        assert_eq!(exchange.reply, [b'r'; 43]);
        assert_eq!(conversation.shapes()[..2], [">S(27)", "<SFPA(43)"], "{conversation}");
        assert!(conversation.syn_ack(1).segment.payload.is_empty(), "{conversation}");
        let first = exchange.first_byte_ms.expect("a first byte");
        assert!(first < 1900.0, "no second time-out: {first:.1} ms\n{conversation}");
    });
}

/// The first refusal is remembered: later connects to that port do not try.
#[test]
fn listener_without_fast_open_is_remembered() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        bed.server.serve(&Serve::new());
        fetch_cookie(&mut bed);
        bed.server.serve(&Serve { port: 81, qlen: 0, ..Serve::new() });
        let visit = ask(&mut bed, &Ask { port: 81, ..Ask::new(Way::FastOpen) });
        assert_served(OURS_TO_KERNEL, &visit, 2, 8);
        assert_eq!(visit.0.client_fail, 2);
        for _ in 0..2 {
            let visit = ask(&mut bed, &Ask { port: 81, ..Ask::new(Way::FastOpen) });
            assert_served(OURS_TO_KERNEL, &visit, 2, 9);
            assert_eq!(
                (visit.1.shapes()[0].as_str(), visit.1.syn(0).segment.fast_open.clone()),
                (">S", None)
            );
        }
        assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 1)]));
        let other_port = exchange(&mut bed, Way::FastOpen);
        assert_served(OURS_TO_KERNEL, &other_port, 1, 8);
    });
}

/// A server that answers no request is not asked again for a while.
#[test]
fn unanswered_requests_are_remembered() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        bed.server.serve(&Serve { qlen: 0, ..Serve::new() });
        let asked = [0; 4].map(|_| exchange(&mut bed, Way::FastOpen).1.syn(0).segment.fast_open.is_some());
        assert!(asked[0], "{asked:?}");
        assert!(!asked[2] && !asked[3], "not for ever: {asked:?}");
    });
}

/// The plain SYN follows after max(100 ms, 2.5 SRTT); later connects are plain from the start.
#[test]
fn syn_data_dropped() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        bed.server.serve(&Serve::new());
        fetch_cookie(&mut bed);
        bed.wire.set_hook(drop_syn_data());
        let (first, conversation) = exchange(&mut bed, Way::FastOpen);
        assert_eq!((first.reply.len(), first.client_fail), (43, 3));
        assert_eq!(conversation.shapes()[..4], [">S(27)", ">S", "<SA", ">PA(27)"], "{conversation}");
        let waited = conversation.syn(1).at - conversation.syn(0).at;
        // 2.5 SRTT is 100 ms here; a busy machine may have measured more. Linux waits a second.
        assert!((99..500).contains(&waited.as_millis()), "{waited:?}");
        let visit = exchange(&mut bed, Way::FastOpen);
        assert_served(OURS_TO_KERNEL, &visit, 2, 9);
        assert_eq!(visit.1.shapes()[0], ">S");
        assert_eq!(bed.client.counters(), counters(&[("ActiveFail", 1)]));
    });
}

/// Over the limit the data is not taken, but the client learns that Fast Open is there: the cookie
/// comes back.
#[test]
fn overflow_still_hands_out_cookies() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let (bed, syn) = super::queue::bed_with_queue_of_two(KERNEL_TO_OURS, true);
        let (taken, record) = super::queue::send_syns(&bed, &syn, &[50001, 50002, 50003]);
        assert_eq!(taken, [27, 27, 0], "{record}");
        let conversations = record.conversations();
        let refused = conversations[2].syn_ack(0).segment.cookie();
        assert_eq!(refused, conversations[2].syn(0).segment.cookie(), "the same cookie\n{record}");
        assert_eq!(
            bed.server.counters(),
            counters(&[("CookieReqd", 1), ("Passive", 2), ("ListenOverflow", 1)])
        );
    });
}

/// The guard knows the SYN: its data is not taken a second time.
#[test]
fn replay_is_not_delivered() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let (mut bed, syn) = super::replay::pay(KERNEL_TO_OURS, interop::Closes::ClientFirst);
        let record = super::replay::replay(&bed, syn);
        assert_eq!(super::replay::orders(&mut bed), 1, "{record}");
        assert_eq!(record.only().syn_data_acked(), 0, "{record}");
    });
}

/// Whichever packet of an exchange is lost, request and reply arrive whole and once.
#[test]
fn any_single_loss() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let cases = [(KERNEL_TO_OURS, 5), (OURS_TO_KERNEL, 7)];
        std::thread::scope(|scope| {
            for (pair, lost) in
                cases.into_iter().flat_map(|(pair, packets)| (0..packets).map(move |lost| (pair, lost)))
            {
                scope.spawn(move || survives_loss_of(pair, lost));
            }
        });
    });
}

fn survives_loss_of(pair: Pair, lost: usize) {
    let mut bed = pair.bed();
    bed.server.serve(&Serve::new());
    fetch_cookie(&mut bed);
    let mut entered = 0;
    bed.wire.set_hook(drop_if(move |_, _| {
        entered += 1;
        entered == lost + 1
    }));
    let (exchange, conversation) = exchange(&mut bed, Way::FastOpen);
    assert_eq!(exchange.reply, [b'r'; 43], "packet {lost} lost\n{conversation}");
    let requests: Vec<Vec<u8>> =
        bed.server.received(80).into_iter().filter(|data| !data.is_empty()).collect();
    assert_eq!(
        requests, [[b'q'; 27]; 2],
        "packet {lost} lost: the cookie visit's request and this one\n{conversation}"
    );
}

/// A path that loses and duplicates: every byte arrives, once and in order, whoever stands at the
/// ends.
#[test]
fn unreliable_path() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        std::thread::scope(|scope| {
            for seed in 1..=3 {
                for pair in [KERNEL_TO_OURS, OURS_TO_KERNEL, OURS_TO_OURS] {
                    scope.spawn(move || exchanges_on_an_unreliable_path(pair, seed));
                }
            }
        });
    });
}

fn exchanges_on_an_unreliable_path(pair: Pair, seed: u64) {
    const EXCHANGES: u32 = 15;
    let mut bed = interop::Bed::new(pair.client, pair.server, Duration::from_millis(2));
    bed.wire.set_hook(unreliable(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), 30));
    let reply: Vec<u8> = (0..20_000_u32).map(|at| ((at * 31) >> 3) as u8).collect();
    bed.server.serve(&Serve { expect: 3000, reply: reply.clone(), ..Serve::new() });
    let request = |number: u32| (0..3000).map(|at| ((at * 7 + number) >> 2) as u8).collect::<Vec<u8>>();
    for number in 0..EXCHANGES {
        let exchange = bed.client.exchange(&Ask { data: request(number), ..Ask::new(Way::FastOpen) });
        assert_eq!(exchange.error, None, "seed {seed}, exchange {number}\n{}", bed.record());
        assert!(exchange.reply == reply, "seed {seed}, exchange {number}: {} bytes", exchange.reply.len());
    }
    let requests: Vec<Vec<u8>> = (0..EXCHANGES).map(request).collect();
    assert!(bed.server.received(80) == requests, "seed {seed}: each request once");
}

/// A duplicate made by the network while the first copy is being answered changes nothing.
#[test]
fn duplicated_syn() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = KERNEL_TO_OURS.bed();
        bed.server.serve(&Serve::new());
        fetch_cookie(&mut bed);
        bed.wire.set_hook(Box::new(|_, segment, _| {
            let after = Duration::from_millis(5);
            if segment.is_syn() { interop::Verdict::Duplicate { after } } else { interop::Verdict::Pass }
        }));
        let (exchange, conversation) = exchange(&mut bed, Way::FastOpen);
        assert_eq!(exchange.reply, [b'r'; 43], "{conversation}");
        assert_eq!(
            bed.server.received(80).iter().filter(|data| !data.is_empty()).count(),
            2,
            "cookie visit and this one"
        );
        assert_eq!(bed.server.counters(), counters(&[("CookieReqd", 1), ("Passive", 1)]));
    });
}

/// What the library tells its caller, case by case.
#[test]
fn outcomes() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        let outcome = |bed: &mut interop::Bed, port| {
            ask(bed, &Ask { port, ..Ask::new(Way::FastOpen) }).0.outcome.expect("an outcome")
        };
        bed.server.serve(&Serve::new());
        assert_eq!(outcome(&mut bed, 80), Outcome::CookieRequested { granted: true });
        assert_eq!(outcome(&mut bed, 80), Outcome::Accepted);
        bed.server.set_key("deadbeef-00000001-00000002-00000003");
        assert_eq!(outcome(&mut bed, 80), Outcome::NotAcknowledged(NotAcknowledged::StaleCookie));
        assert_eq!(outcome(&mut bed, 80), Outcome::Accepted);
        bed.server.serve(&Serve { port: 81, qlen: 0, ..Serve::new() });
        // SYN data has passed before: the first answer that ignores it is a doubt, the second a
        // verdict.
        for _ in 0..2 {
            assert_eq!(outcome(&mut bed, 81), Outcome::NotAcknowledged(NotAcknowledged::Ignored));
        }
        assert_eq!(outcome(&mut bed, 81), Outcome::Skipped(Skipped::Verdict(Verdict::NotAcknowledged)));
        bed.server.serve(&Serve { port: 82, ..Serve::new() });
        bed.wire.set_hook(drop_syn_data());
        // Where SYN data has passed before, one that is lost is only a doubt.
        assert_eq!(outcome(&mut bed, 82), Outcome::NotAcknowledged(NotAcknowledged::Lost));
        assert_eq!(outcome(&mut bed, 82), Outcome::NotAcknowledged(NotAcknowledged::Lost));
        assert_eq!(outcome(&mut bed, 82), Outcome::Skipped(Skipped::Verdict(Verdict::Dropped)));
        bed.client.set("net.ipv4.tcp_fastopen", "0");
        assert_eq!(outcome(&mut bed, 80), Outcome::Skipped(Skipped::Disabled));
    });
}

/// SYN data leaves room for the options really sent only.
#[test]
fn syn_data_up_to_the_mss() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        bed.server.serve(&Serve { expect: 3000, ..Serve::new() });
        let big = Ask { data: vec![b'q'; 3000], ..Ask::new(Way::FastOpen) };
        ask(&mut bed, &big);
        let (exchange, conversation) = ask(&mut bed, &big);
        assert_eq!(exchange.reply, [b'r'; 43]);
        let syn = &conversation.syn(0).segment;
        assert_eq!(syn.payload.len() + syn.options.len(), 1460, "{conversation}");
        assert_eq!(conversation.syn_data_acked() as usize, syn.payload.len());
    });
}

/// Nothing the server sends after its SYN-ACK arrives: the path is remembered as one that stalls,
/// and is left alone.
#[test]
fn stall_after_the_handshake_is_remembered() {
    if !ready() {
        return;
    }
    interop::undisturbed(|| {
        let mut bed = OURS_TO_KERNEL.bed();
        bed.server.serve(&Serve::new());
        fetch_cookie(&mut bed);
        // What the client sends after the SYN is lost too: no ACK ever makes progress.
        bed.wire.set_hook(drop_if(|_, segment| !segment.is_syn() && !segment.is_syn_ack()));
        let stalled =
            Ask { data: vec![b'q'; 3000], limit: Duration::from_secs(3), ..Ask::new(Way::FastOpen) };
        let (lost, record) = ask_record(&mut bed, &stalled);
        assert_eq!(lost.first_byte_ms, None, "{record}");
        bed.wire.set_hook(interop::hook::pass());
        drop(bed.record());
        let visit = ask_record(&mut bed, &Ask::new(Way::FastOpen));
        let fresh = visit.1.only_opened();
        assert_eq!((visit.0.reply.len(), fresh.shapes()[0].as_str()), (43, ">S"), "{fresh}");
        assert!(bed.server.received(80).len() >= 2 && fresh.payload_bytes(Direction::ToServer) >= 27);
    });
}
