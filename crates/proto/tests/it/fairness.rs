//! What flows get of a link they share, and one flow of a link that loses.

use crate::bottleneck::{Bottleneck, Path, jain};
use proto::CongestionControl::{self, Bbr, Cubic, Reno, Vegas};

const DSL: Path = Path { bits_per_second: 10_000_000, rtt_ms: 20, queue_percent: 200, loss: 0.0 };

/// What each of the flows gets in 12 seconds, after two that are not looked at.
fn shares(path: Path, flows: &[CongestionControl], seed: u64) -> Vec<u64> {
    let mut link = Bottleneck::new(path, flows, seed);
    link.run(2000);
    let rates = link.goodput(12_000);
    println!("{flows:?}: {rates:?} bit/s, Jain's index {}", jain(&rates));
    rates
}

/// Two and four flows of a kind: Jain's index is 0.95 at least, and the link is full.
fn share_fairly(algorithm: CongestionControl) {
    for flows in [2, 4] {
        let rates = shares(DSL, &vec![algorithm; flows], 1);
        let sum: u64 = rates.iter().sum();
        assert!(jain(&rates) >= 950, "{algorithm:?} × {flows}: {rates:?}");
        assert!(sum >= 9_300_000, "{algorithm:?} × {flows}: {sum} of 10 000 000 bit/s");
    }
}

#[test]
fn flows_of_reno_share_fairly() {
    share_fairly(Reno);
}

#[test]
fn flows_of_cubic_share_fairly() {
    share_fairly(Cubic);
}

#[test]
fn flows_of_vegas_share_fairly() {
    share_fairly(Vegas);
}

#[test]
fn flows_of_bbr_share_fairly() {
    share_fairly(Bbr);
}

/// RFC 9438 §4.3: where Reno would be faster than the cubic function, CUBIC does as Reno. Their averages are equal by design where both
/// meet the same rate of loss. Where a full queue decides who loses CUBIC gets more (162 % of Reno when this was written), but
/// nobody is pushed aside.
#[test]
fn cubic_beside_reno_takes_no_more_than_its_part() {
    for (loss, least, most) in [(2.0, 85, 120), (0.03, 67, 200)] {
        let mut sums = [0, 0];
        for seed in 1..=4 {
            let rates = shares(Path { loss, ..DSL }, &[Cubic, Reno], seed);
            sums = [sums[0] + rates[0], sums[1] + rates[1]];
        }
        let percent = sums[0] * 100 / sums[1];
        assert!((least..=most).contains(&percent), "{loss} % loss: CUBIC gets {percent} % of Reno");
    }
}

/// A loss that has nothing to do with congestion: BBR keeps the link full, Reno and CUBIC take it for congestion.
#[test]
fn random_loss_does_not_slow_bbr_down() {
    let path = Path { bits_per_second: 10_000_000, rtt_ms: 100, queue_percent: 100, loss: 1.0 };
    let [bbr, cubic, reno] = [Bbr, Cubic, Reno].map(|algorithm| shares(path, &[algorithm], 1)[0]);
    assert!(bbr >= 7_500_000, "BBR: {bbr} bit/s");
    assert!(bbr > 4 * reno && cubic >= reno, "{bbr} {cubic} {reno}");
}
