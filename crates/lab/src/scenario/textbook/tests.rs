use super::*;

fn figure(params: &Params) -> Vec<u32> {
    let results = run(params);
    assert!(results.missed.is_empty() && results.run.ends[0].is_some_and(|end| end.is_exact));
    results.figure().map(|round| round.window as u32).collect()
}

#[test]
fn it_is_the_figure_of_the_books() {
    let first = [1, 2, 4, 8, 16, 17, 18, 19, 20, 21, 22, 23, 24];
    let after_timeout = [1, 2, 4, 8, 12, 13, 14, 15, 16];
    let after_duplicates = [8, 9, 10];
    assert_eq!(figure(&Params::default()), [&first[..], &after_timeout, &after_duplicates].concat());
}

#[test]
fn the_figure_is_drawn() {
    let graphs = run(&Params::default()).graphs();
    let [graph] = &graphs[..] else { panic!("{graphs:?}") };
    let [threshold, window, _, lost] = &graph.series[..] else { panic!("{graph:?}") };
    assert_eq!(threshold.points[12..14], [(13.0, 16.0), (14.0, 12.0)]);
    assert_eq!(window.points[11..14], [(12.0, 23.0), (13.0, 24.0), (14.0, 1.0)]);
    assert_eq!(lost.points, [(13.0, 24.0), (22.0, 16.0)]);
}

#[test]
fn tahoe_starts_over_after_either() {
    let params = Params {
        algorithm: CongestionControl::Tahoe,
        losses: vec!["first:20".parse().unwrap(), "all:12".parse().unwrap()],
        rounds: 20,
        ..Params::default()
    };
    let expected = [1, 2, 4, 8, 16, 17, 18, 19, 20, 1, 2, 4, 8, 10, 11, 12, 1, 2, 4, 6];
    assert_eq!(figure(&params), expected);
    let causes: Vec<Cause> = run(&params).rounds.iter().map(|round| round.cause).collect();
    assert_eq!(causes[9..11], [Cause::Duplicates, Cause::Progress]);
    assert_eq!(causes[16..18], [Cause::Timeout, Cause::GoBack]);
}

/// A round is in flight together, and its losses are retransmitted.
#[test]
fn rounds_are_what_was_sent() {
    let results = run(&Params::default());
    for round in &results.rounds {
        assert!(round.sent as f64 <= round.window && round.lost <= round.sent, "{round:?}");
    }
    let lost: Vec<usize> = results.rounds.iter().map(|round| round.lost).filter(|lost| *lost > 0).collect();
    assert_eq!(lost, [24, 1]);
    let repair =
        results.rounds.iter().find(|round| round.is_recovering()).expect("the second loss is repaired");
    assert_eq!((repair.again, repair.ssthresh), (1, Some(8.0)));
}

#[test]
fn a_window_that_is_never_reached_is_told() {
    let far = Loss { window: 900, share: Share::All };
    let results = run(&Params { losses: vec![far], rounds: 8, ..Params::default() });
    assert_eq!(results.missed, [far]);
    assert_eq!(results.rounds.len(), 8);
}

#[test]
fn losses_are_written_as_they_are_read() {
    for text in ["all:24", "first:1", "all:1000"] {
        assert_eq!(text.parse::<Loss>().unwrap().to_string(), text);
    }
    for text in ["", "all", "all:", "all:0", "first:1001", "last:3", "first:-1"] {
        assert_eq!(text.parse::<Loss>(), Err(FORM), "{text:?}");
    }
}
