//! The first byte of a repeat visit over HTTPS: one round trip, with each stack at each end.
//!
//! The path has a round trip of 40 ms, or of `FIRSTBYTE_RTT_MS`. The times are printed; what fails
//! a test is another round trip, not the time of a busy machine.
mod losses;
mod others;
mod side;
mod visits;

use firstbyte::Outcome;
use firstbyte::tls::EarlyBytes;
use interop::programs::{NGINX, Nginx, ready};
use interop::{IpVersion, Wire};
use side::{Protocol, Side, certified, serve};
use std::time::Duration;
use visits::{Client, Visit};

const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn rtt() -> Duration {
    let text = std::env::var("FIRSTBYTE_RTT_MS").unwrap_or_else(|_| "40".to_owned());
    Duration::from_millis(text.parse().expect("FIRSTBYTE_RTT_MS is a number of milliseconds"))
}

/// Asserts that each of ten visits took one round trip. Prints their times.
fn assert_one_round_trip(what: &str, visits: &[Visit]) {
    let times: Vec<String> =
        visits.iter().map(|visit| format!("{:.1}", visit.first_byte.as_secs_f64() * 1e3)).collect();
    println!("{what}: first byte after {} ms", times.join(", "));
    assert_eq!(visits.len(), 10);
    for visit in visits {
        assert!(visit.first_byte < rtt() * 3 / 2, "{what}:\n{}", visit.conversation);
    }
}

/// Ten visits for each protocol and IP version, after one that leaves cookie and ticket.
fn one_round_trip(what: &str, client: Side, server: Side, packets: Option<usize>) {
    let wire = Wire::new(client.end(), server.end(), rtt() / 2);
    serve(&server);
    for protocol in PROTOCOLS {
        for version in VERSIONS {
            let visitor = Client::new(&client, server.addresses.of(version), protocol);
            visitor.prepare();
            let visits: Vec<Visit> = (0..10).map(|_| visitor.visit(&wire)).collect();
            assert_one_round_trip(&format!("{what}, {protocol:?}, {version:?}"), &visits);
            if let Some(packets) = packets {
                for visit in &visits {
                    assert_eq!(visit.packets_to_first_byte, packets, "{}", visit.conversation);
                }
            }
        }
    }
}

#[test]
fn kernel_to_kernel() {
    if ready(&[]) {
        interop::undisturbed(|| one_round_trip("kernel to kernel", Side::kernel(1), Side::kernel(2), None));
    }
}

#[test]
fn ours_to_ours() {
    if ready(&[]) {
        interop::undisturbed(|| one_round_trip("ours to ours", Side::ours(1), Side::ours(2), Some(2)));
    }
}

#[test]
fn kernel_to_ours() {
    if ready(&[]) {
        interop::undisturbed(|| one_round_trip("kernel to ours", Side::kernel(1), Side::ours(2), Some(2)));
    }
}

fn to_nginx(what: &str, client: Side) {
    let server = Side::kernel(2);
    let wire = Wire::new(client.end(), server.end(), rtt() / 2);
    let (certificate, key, _) = certified();
    let _nginx = Nginx::start_tls(server.host(), &"x".repeat(612), certificate, key);
    for protocol in PROTOCOLS {
        for version in VERSIONS {
            let visitor = Client::new(&client, server.addresses.of(version), protocol);
            visitor.prepare();
            let visits: Vec<Visit> = (0..10).map(|_| visitor.visit(&wire)).collect();
            assert_one_round_trip(&format!("{what}, {protocol:?}, {version:?}"), &visits);
        }
    }
}

#[test]
fn to_nginx_on_each_stack() {
    if ready(&[NGINX]) {
        interop::undisturbed(|| to_nginx("kernel to nginx", Side::kernel(1)));
        interop::undisturbed(|| to_nginx("ours to nginx", Side::ours(1)));
    }
}

/// The next visit begins with the answer of the last, before the last one's tickets are there.
#[test]
fn a_thousand_visits_in_a_row() {
    if !ready(&[]) {
        return;
    }
    interop::undisturbed(|| {
        for (client, server) in [(Side::kernel(1), Side::kernel(2)), (Side::ours(1), Side::ours(2))] {
            let _wire = Wire::new(client.end(), server.end(), Duration::from_millis(1));
            serve(&server);
            let visitor = Client::new(&client, server.addresses.of(IpVersion::V4), Protocol::Http1);
            visitor.prepare();
            let outcomes = visitor.visits_without_pause(1000);
            let early = outcomes.iter().filter(|outcome| outcome.early_data == EarlyBytes::Accepted).count();
            let syn = outcomes.iter().filter(|outcome| outcome.fast_open == Outcome::Accepted).count();
            println!("1000 visits: ClientHello on the SYN {syn}, one round trip {early}");
            // Without a ticket, a visit with its ClientHello on the SYN takes two round trips.
            assert_eq!(syn, 1000);
            assert!(early >= 990, "{early}");
        }
    });
}
