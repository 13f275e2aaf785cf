//! Handshakes and their outcomes. Times in tenths of a millisecond. The capture is at the client,
//! and the round trip is 40 ms.
use crate::written::{Draft, connection, down, syn, syn_ack, up};
use capture::{Answer, Effect, FastOpen};
use core::time::Duration;
use wire::Flags;

const OWN: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8];
const OTHER: &[u8] = &[8, 7, 6, 5, 4, 3, 2, 1];

fn class(drafts: &[(u64, Draft)]) -> FastOpen {
    connection(drafts).fast_open()
}

#[test]
fn a_syn_without_option_and_text_tried_nothing() {
    assert_eq!(class(&[(0, syn()), (400, syn_ack(1)), (400, up(1, 1, 10))]), FastOpen::NotTried);
}

#[test]
fn a_request_is_granted_or_not() {
    let granted = [(0, syn().cookie(None)), (400, syn_ack(1).cookie(Some(OWN)))];
    assert_eq!(class(&granted), FastOpen::CookieRequested { granted: true });
    let silent = [(0, syn().cookie(None)), (400, syn_ack(1))];
    assert_eq!(class(&silent), FastOpen::CookieRequested { granted: false });
}

#[test]
fn accepted_text_saves_a_round_trip() {
    let accepted = connection(&[
        (0, syn().cookie(Some(OWN)).text(100)),
        (400, syn_ack(101)),
        (401, up(101, 1, 0)),
        (402, down(1, 101, 500)),
    ]);
    assert_eq!(accepted.fast_open(), FastOpen::Accepted { without_cookie: false });
    assert_eq!(accepted.rtt(), Some(Duration::from_micros(40_100)));
    assert_eq!(accepted.fast_open_effect(), Some(Effect::Saved(Duration::from_micros(40_100))));
    assert_eq!(accepted.time_to_first_byte(), Some(Duration::from_micros(40_200)));
    let without = [(0, syn().text(100)), (400, syn_ack(101))];
    assert_eq!(class(&without), FastOpen::Accepted { without_cookie: true });
    let part = [(0, syn().cookie(Some(OWN)).text(100)), (400, syn_ack(11))];
    assert_eq!(class(&part), FastOpen::AcceptedInPart);
}

#[test]
fn a_valid_cookie_without_text_opens_too() {
    let silent_client = [(0, syn().cookie(Some(OWN))), (400, syn_ack(1))];
    assert_eq!(class(&silent_client), FastOpen::Accepted { without_cookie: false });
    let stale = [(0, syn().cookie(Some(OWN))), (400, syn_ack(1).cookie(Some(OTHER)))];
    assert_eq!(class(&stale), FastOpen::NotAcknowledged(Answer::NewCookie));
}

#[test]
fn text_that_is_not_taken_tells_why_by_the_cookie() {
    let refused = |answer: Draft| class(&[(0, syn().cookie(Some(OWN)).text(100)), (400, answer)]);
    assert_eq!(refused(syn_ack(1)), FastOpen::NotAcknowledged(Answer::NoOption));
    assert_eq!(refused(syn_ack(1).cookie(Some(OTHER))), FastOpen::NotAcknowledged(Answer::NewCookie));
    assert_eq!(refused(syn_ack(1).cookie(Some(OWN))), FastOpen::NotAcknowledged(Answer::SameCookie));
}

#[test]
fn a_dropped_syn_costs_its_time_out() {
    let dropped = connection(&[
        (0, syn().cookie(Some(OWN)).text(100)),
        (10_000, syn()),
        (10_400, syn_ack(1)),
        (10_400, up(1, 1, 100)),
    ]);
    assert_eq!(dropped.fast_open(), FastOpen::Dropped);
    assert_eq!(dropped.fast_open_effect(), Some(Effect::Wasted(Duration::from_secs(1))));
    assert_eq!(
        dropped.rtt(),
        Some(Duration::from_millis(40)),
        "the answer belongs to the second SYN: the data of the first is not acknowledged"
    );
}

#[test]
fn a_lost_syn_ack_is_told_from_a_dropped_syn_by_what_it_acknowledges() {
    let lost = connection(&[(0, syn().cookie(Some(OWN)).text(100)), (10_000, syn()), (10_400, syn_ack(101))]);
    assert_eq!(lost.fast_open(), FastOpen::SynAckLost);
    assert_eq!(lost.rtt(), None, "it is unknown which SYN was answered");
}

#[test]
fn no_answer_and_a_reset() {
    let alone = [(0, syn().cookie(None)), (10_000, syn())];
    assert_eq!(class(&alone), FastOpen::Unanswered);
    let reset = [(0, syn().cookie(None)), (400, down(0, 1, 0).with(Flags::RST))];
    assert_eq!(class(&reset), FastOpen::Reset);
}

#[test]
fn what_is_taken_and_never_answered_has_stalled() {
    let mut packets = vec![(0, syn().cookie(Some(OWN)).text(100)), (400, syn_ack(101))];
    packets.extend((0..4).map(|again| (500 + 3000 * again, down(1, 101, 500))));
    assert_eq!(class(&packets), FastOpen::Stalled);
}

#[test]
fn a_capture_that_begins_later_says_so() {
    assert_eq!(class(&[(0, up(1, 1, 10)), (400, down(1, 11, 10))]), FastOpen::NotSeen);
}
