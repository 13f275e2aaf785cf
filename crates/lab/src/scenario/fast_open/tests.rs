use super::*;
use crate::report::PageStyle;

fn run_at(rtt_ms: u64, profile: Profile) -> Results {
    run(&Params { rtt: Duration::from_millis(rtt_ms), profile, ..Params::default() })
}

#[test]
fn plain_takes_two_round_trips_and_fast_open_one_but_for_the_first() {
    for profile in [Profile::Firstbyte, Profile::Linux] {
        for rtt in [50, 100, 170, 270] {
            let results = run_at(rtt, profile);
            let ms = rtt as f64;
            assert_eq!(results.plain.round_trips_ms(), vec![2.0 * ms; 10], "{profile:?} {rtt}");
            let mut expected = vec![ms; 10];
            expected[0] = 2.0 * ms;
            assert_eq!(results.fast_open.round_trips_ms(), expected, "{profile:?} {rtt}");
        }
    }
}

#[test]
fn ipv6_takes_the_same_time() {
    let results = run(&Params { ipv6: true, ..Params::default() });
    assert!(results.fast_open.exchanges.iter().all(|exchange| exchange.server == SERVER_V6));
    assert_eq!(results.fast_open.summary().unwrap().avg_ms, 187.0);
    assert_eq!(results.plain.summary().unwrap().avg_ms, 340.0);
}

#[test]
fn a_client_that_forgets_gains_nothing() {
    let results = run(&Params { forget: true, ..Params::default() });
    assert_eq!(results.fast_open.round_trips_ms(), [340.0; 10]);
    assert_eq!(results.saving_percent(), Some(0.0));
}

#[test]
fn the_client_remembers_the_path() {
    let results = run(&Params::default());
    let [remembered] = &results.fast_open.run.remembered[..] else { panic!("one path") };
    assert_eq!((remembered.rtt_ms, remembered.mss), (Some(170.0), Some(1460)));
    assert_eq!(remembered.cookie, results.fast_open.exchanges[1].cookie.map(|cookie| cookie.to_string()));
}

#[test]
fn long_series_show_equal_visits_as_one_row() {
    let results = run(&Params { count: 30, ..Params::default() });
    let lines = results.table().lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[2].trim_start().starts_with("2-30  340.0 ms   170.0 ms"), "{lines:#?}");
}

#[test]
fn the_articles_figure_at_170_ms() {
    let results = run_at(170, Profile::Firstbyte);
    assert_eq!(results.plain.summary(), Some(Summary { min_ms: 340.0, avg_ms: 340.0, max_ms: 340.0 }));
    assert_eq!(results.fast_open.summary(), Some(Summary { min_ms: 170.0, avg_ms: 187.0, max_ms: 340.0 }));
    let saving = results.saving_percent().unwrap();
    assert!((saving - 45.0).abs() < 1e-9, "{saving}");
}

#[test]
fn the_stack_says_what_the_packets_say() {
    use crate::exchange::Verdict;
    use proto::Outcome;
    for profile in [Profile::Firstbyte, Profile::Linux] {
        let results = run_at(170, profile);
        let said: Vec<_> =
            results.fast_open.run.ends.iter().map(|end| end.unwrap().outcome.unwrap()).collect();
        let seen: Vec<_> = results.fast_open.exchanges.iter().map(|exchange| exchange.verdict).collect();
        assert_eq!(
            (said[0], seen[0]),
            (Outcome::CookieRequested { granted: true }, Verdict::CookieRequested { granted: true })
        );
        assert!(said[1..].iter().all(|outcome| *outcome == Outcome::Accepted), "{said:?}");
        assert!(seen[1..].iter().all(|verdict| *verdict == Verdict::Accepted), "{seen:?}");
    }
}

#[test]
fn every_reply_is_whole() {
    let results = run_at(50, Profile::Firstbyte);
    for run in [&results.plain.run, &results.fast_open.run] {
        assert!(
            run.ends.iter().all(
                |end| end.is_some_and(|end| end.is_exact && end.received == 500 && end.failure.is_none())
            )
        );
    }
}

#[test]
fn the_ladder_of_a_repeat_visit() {
    let results = run_at(170, Profile::Firstbyte);
    let mut page = Page::new(PageStyle::default());
    page.ladder(&results.ladders()[1]);
    let text = page.into_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "With Fast Open, repeat visit: first byte after 170.0 ms, 4 packets");
    let cookie = &results.fast_open.exchanges[1].cookie.unwrap().to_string()[..8];
    assert_eq!(
        lines[2..],
        [
            format!("     0.0 ms ├─ SYN     seq 0 len 200  cookie {cookie}…  mss 1460 ──────────────────────▶   85.0 ms"),
            "   170.0 ms ◀──────────────────────── SYN FIN PSH ACK seq 0 ack 201 len 500  mss 1460 ─┤   85.0 ms".into(),
            "   170.0 ms ├─ FIN ACK seq 201 ack 502 ────────────────────────────────────────────────▶  255.0 ms".into(),
            "   340.0 ms ◀──────────────────────────────────────────────── ACK     seq 502 ack 202 ─┤  255.0 ms".into(),
        ]
    );
}

#[test]
fn json_holds_the_same_figures() {
    let json = run_at(170, Profile::Firstbyte).json();
    assert_eq!(json["fast_open"]["summary"]["avg_ms"], 187.0);
    assert_eq!(json["fast_open"]["visits"][1]["packets"], 4);
    assert_eq!(json["fast_open"]["visits"][1]["fast_open"], "accepted");
    assert_eq!(json["ladders"][1]["rungs"][0]["len"], 200);
}
