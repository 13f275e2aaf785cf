use super::*;

fn short(algorithms: &[CongestionControl]) -> Results {
    run(&Params { algorithms: algorithms.to_vec(), len: 2_000_000, ..Params::default() })
}

#[test]
fn every_algorithm_uses_the_link_and_delivers_all() {
    for download in short(CongestionControl::ALL).downloads {
        let goodput = download.goodput(2_000_000).expect("all of it came");
        // Tahoe restarts at each loss.
        let least = if download.algorithm == CongestionControl::Tahoe { 800_000.0 } else { 1_000_000.0 };
        assert!(goodput > least, "{:?}: {goodput}", download.algorithm);
        assert!(download.windows.len() > 10 && download.windows.is_sorted_by(|a, b| a.ms <= b.ms));
        assert_eq!(download.timeouts, 0, "{:?}", download.algorithm);
    }
}

/// Once BBR knows the path. CUBIC continues until the queue is full.
#[test]
fn bbr_keeps_the_queue_shorter_than_cubic() {
    let results = run(&Params::default());
    let [cubic, bbr] = [0, 1].map(|index| results.downloads[index].srtt_mean.expect("measured"));
    assert!(bbr * 10 < cubic * 9, "{bbr:?} {cubic:?}");
}

#[test]
fn what_is_lost_shows() {
    let lossy = Params { loss_percent: 1.0, len: 1_000_000, ..Params::default() };
    for download in run(&lossy).downloads {
        assert!(download.again > 0 && download.took.is_some(), "{:?}", download.algorithm);
    }
}
