//! Properties of every scenario.

use super::pair::Run;
use super::*;
use crate::exchange::exchanges;
use crate::report::Report;
use crate::testing::agrees;

fn check(name: &str, runs: &[&Run]) {
    for run in runs {
        let seen = exchanges(&run.capture, run.client);
        assert_eq!(seen.len(), run.ends.len(), "{name}: every visit is seen");
        for (number, (end, exchange)) in run.ends.iter().zip(&seen).enumerate() {
            let end = end.unwrap_or_else(|| panic!("{name}: visit {number} has no end"));
            let outcome = end.outcome.expect("the connection was known");
            assert!(
                agrees(outcome, exchange.verdict),
                "{name}, visit {number}: {outcome:?}, {:?}",
                exchange.verdict
            );
            assert!(end.is_exact && end.failure.is_none(), "{name}, visit {number}: {end:?}");
        }
    }
}

#[test]
fn stacks_say_what_their_packets_show() {
    let fast_open = fast_open::run(&fast_open::Params::default());
    check("fast-open", &[&fast_open.plain.run, &fast_open.fast_open.run]);
    let fallback = fallback::run(&fallback::Params::default());
    check("fallback", &fallback.cases.iter().map(|case| &case.run).collect::<Vec<_>>());
    let middlebox = middlebox::run(&middlebox::Params::default());
    check("middlebox", &middlebox.cases.iter().map(|case| &case.run).collect::<Vec<_>>());
    let qlen = qlen::run(&qlen::Params::default());
    check("qlen", &qlen.cases.iter().map(|case| &case.run).collect::<Vec<_>>());
    let big_request = big_request::run(&big_request::Params::default());
    check("big-request", &big_request.cases.iter().map(|case| &case.run).collect::<Vec<_>>());
    let packets = packets::run(&packets::Params::default());
    check("packets", &packets.cases.iter().map(|case| &case.run).collect::<Vec<_>>());
}

#[test]
fn the_seed_changes_packets_and_not_figures() {
    let run = |seed| fallback::run(&fallback::Params { seed, ..fallback::Params::default() });
    let (mut one, mut two) = (run(1).json(), run(2).json());
    let isn = |results: &fallback::Results| results.cases[0].exchanges[0].client_isn;
    assert_ne!(isn(&run(1)), isn(&run(2)));
    one["parameters"]["seed"] = 0.into();
    two["parameters"]["seed"] = 0.into();
    assert_eq!(one, two);
}
