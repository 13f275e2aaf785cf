//! Packets that are lost, changed or copied on the way: every request is executed once.
use crate::side::{Protocol, Side, serve};
use crate::visits::Client;
use firstbyte::Outcome;
use firstbyte::tls::{EarlyBytes, NotSent, Ticket, TlsOutcome};
use interop::hook::{Hook, drop_first, strip_fast_open};
use interop::programs::ready;
use interop::{Direction, IpVersion, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Visits before which something happens to the path, on each stack.
struct Visits<'a> {
    client: Client<'a>,
    wire: &'a Wire,
    executed: Arc<AtomicUsize>,
}

impl Visits<'_> {
    /// Makes a request on a path with `hook`. Asserts that it was executed once.
    fn ask(&self, method: &'static str, hook: Hook) -> TlsOutcome {
        let before = self.executed.load(Ordering::Relaxed);
        self.wire.set_hook(hook);
        let outcome = self.client.ask(method);
        self.wire.set_hook(interop::hook::pass());
        assert_eq!(self.executed.load(Ordering::Relaxed) - before, 1, "{method} {outcome:?}");
        self.client.wait_for_ticket();
        outcome
    }
}

/// Runs `test` with the kernel at both ends, and with our stack at both ends.
fn on_each_stack(test: impl Fn(&Visits<'_>, &Side)) {
    if !ready(&[]) {
        return;
    }
    for (client, server) in [(Side::kernel(1), Side::kernel(2)), (Side::ours(1), Side::ours(2))] {
        let wire = Wire::new(client.end(), server.end(), Duration::from_millis(2));
        let executed = serve(&server);
        let visitor = Client::new(&client, server.addresses.of(IpVersion::V4), Protocol::Http1);
        visitor.prepare();
        test(&Visits { client: visitor, wire: &wire, executed }, &server);
    }
}

const METHODS: [(&str, bool); 2] = [("GET", true), ("POST", false)];

fn assert_early(outcome: TlsOutcome, is_repeatable: bool) {
    let late = EarlyBytes::NotSent(NotSent::NotRepeatable);
    assert_eq!(outcome.early_data, if is_repeatable { EarlyBytes::Accepted } else { late });
    assert_eq!(outcome.ticket, Ticket::Accepted);
}

#[test]
fn a_lost_syn_is_retransmitted() {
    on_each_stack(|visits, _| {
        for (method, is_repeatable) in METHODS {
            let hook = drop_first(1, |_, segment| segment.is_syn());
            assert_early(visits.ask(method, hook), is_repeatable);
        }
    });
}

#[test]
fn a_lost_syn_ack_repeats_no_request() {
    on_each_stack(|visits, _| {
        for (method, is_repeatable) in METHODS {
            let hook = drop_first(1, |_, segment| segment.is_syn_ack());
            assert_early(visits.ask(method, hook), is_repeatable);
        }
    });
}

#[test]
fn a_stripped_option_costs_a_round_trip() {
    on_each_stack(|visits, _| {
        for (method, is_repeatable) in METHODS {
            let outcome = visits.ask(method, strip_fast_open());
            assert_early(outcome, is_repeatable);
            assert_ne!(outcome.fast_open, Outcome::Accepted);
        }
    });
}

#[test]
fn a_refused_cookie_costs_a_round_trip() {
    on_each_stack(|visits, server| {
        for ((method, is_repeatable), key) in METHODS.into_iter().zip(["1", "2"]) {
            server.change_cookie_key(key);
            let outcome = visits.ask(method, interop::hook::pass());
            assert_early(outcome, is_repeatable);
            assert_ne!(outcome.fast_open, Outcome::Accepted);
            let outcome = visits.ask(method, interop::hook::pass());
            assert_early(outcome, is_repeatable);
            assert_eq!(outcome.fast_open, Outcome::Accepted);
        }
    });
}

#[test]
fn a_copied_syn_executes_nothing() {
    on_each_stack(|visits, _| {
        drop(visits.wire.settle(Duration::from_millis(50)));
        assert_early(visits.ask("GET", interop::hook::pass()), true);
        let record = visits.wire.settle(Duration::from_millis(50));
        let syn = record.only_opened().syn(0).bytes.clone();
        let before = visits.executed.load(Ordering::Relaxed);
        for _ in 0..3 {
            visits.wire.inject(Direction::ToServer, syn.clone());
            drop(visits.wire.settle(Duration::from_millis(50)));
        }
        assert_eq!(visits.executed.load(Ordering::Relaxed), before);
        assert_early(visits.ask("GET", interop::hook::pass()), true);
    });
}
