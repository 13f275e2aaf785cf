//! One short cell of the goodput table, so that what measures it keeps working. The table is `docs/goodput.md`.
use crate::alone;
use interop::goodput::bottleneck::Path;
use interop::goodput::run::{Pairing, run};
use proto::Config;
use qdisc::Probability;
use std::time::Duration;

/// Each pairing fills most of a path of 10 Mbit/s that loses a segment now and then, and none more than it carries.
#[test]
fn a_path_of_ten_megabits() {
    let Some(_alone) = alone() else { return };
    let path =
        Path { rtt: Duration::from_millis(20), rate: 10_000_000, loss: Probability::percent(0.5), seed: 1 };
    for pairing in Pairing::ALL {
        let run = run(pairing, &Config::default(), "cubic", path, Duration::from_secs(2));
        println!("{}: {run:?}", pairing.name());
        assert!((2e6..1e7).contains(&run.goodput), "{}: {run:?}", pairing.name());
        assert!(run.crossed.lost > 0 && run.retransmitted >= run.crossed.lost, "{run:?}");
    }
}
