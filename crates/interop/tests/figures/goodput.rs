//! The goodput table, `docs/goodput.md`: one short cell, so that what measures it keeps working,
//! and the form of the page.
use crate::alone;
use interop::goodput::bottleneck::Path;
use interop::goodput::run::{Pairing, run};
use interop::goodput::table;
use proto::Config;
use qdisc::Probability;
use std::time::Duration;

/// Each pairing fills most of a path of 10 Mbit/s that loses a segment now and then, and none more
/// than it carries.
#[test]
fn a_path_of_ten_megabits() {
    let Some(_alone) = alone() else { return };
    let path =
        Path { rtt: Duration::from_millis(20), rate: 10_000_000, loss: Probability::percent(0.5), seed: 1 };
    for pairing in Pairing::ALL {
        let run = run(pairing, (&Config::default(), &[]), "cubic", path, Duration::from_secs(2));
        println!("{}: {run:?}", pairing.name());
        assert!((2e6..1e7).contains(&run.goodput), "{}: {run:?}", pairing.name());
        assert_eq!(run.crossed.undelivered, 0, "{run:?}");
        assert!(run.crossed.lost > 0 && run.retransmitted >= run.crossed.lost, "{run:?}");
    }
}

/// Every cell once, ratios that are quotients of the figures, and a reason for each goal that was
/// missed.
#[test]
fn the_page_is_whole_and_sound() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/goodput.md");
    let text = std::fs::read_to_string(page).expect("docs/goodput.md");
    let problems = table::problems(&text);
    assert!(problems.is_empty(), "docs/goodput.md:\n{}", problems.join("\n"));
}
