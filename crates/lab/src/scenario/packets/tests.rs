use super::*;

fn shape(results: &Results, title: &str) -> Vec<String> {
    let case = results.cases.iter().find(|case| case.title == title).unwrap();
    let ladder = Ladder::of(title, &case.exchange);
    let word = |rung: &crate::ladder::Rung| {
        let letters: String = rung.flags.split(' ').map(|flag| &flag[..1]).collect();
        let len = if rung.len > 0 { format!("({})", rung.len) } else { String::new() };
        format!("{letters}{len}")
    };
    ladder.rungs.iter().map(word).collect()
}

#[test]
fn counts() {
    let results = run(&Params::default());
    let packets = |title| results.packets(title).unwrap();
    assert_eq!(packets(LINUX_PLAIN), 10, "{:?}", shape(&results, LINUX_PLAIN));
    assert_eq!(packets(LINUX_FAST_OPEN), 8, "{:?}", shape(&results, LINUX_FAST_OPEN));
    assert_eq!(packets(LINUX_TO_OURS), 4, "{:?}", shape(&results, LINUX_TO_OURS));
    assert_eq!(packets(OURS), 4, "{:?}", shape(&results, OURS));
    assert_eq!(packets(OURS_SYN_FIN), 3, "{:?}", shape(&results, OURS_SYN_FIN));
    assert_eq!(packets(OURS_PLAIN), 7, "{:?}", shape(&results, OURS_PLAIN));
    assert_eq!(packets(LINUX_TO_OURS_PLAIN), 7, "{:?}", shape(&results, LINUX_TO_OURS_PLAIN));
    assert_eq!(packets(OURS_TO_LINUX), 6, "{:?}", shape(&results, OURS_TO_LINUX));
}

#[test]
fn linux_packet_lists_as_measured() {
    let results = run(&Params::default());
    assert_eq!(shape(&results, LINUX_PLAIN), ["S", "SA", "A", "PA(27)", "A", "PA(43)", "FA", "A", "FA", "A"]);
    assert_eq!(shape(&results, LINUX_FAST_OPEN), ["S(27)", "SA", "PA(43)", "FA", "A", "A", "FA", "A"]);
}

#[test]
fn fast_open_takes_one_round_trip_whoever_is_at_the_ends() {
    for case in run(&Params::default()).cases {
        let trips = if case.ends.opening == Opening::ConnectThenWrite { 2 } else { 1 };
        assert_eq!(
            case.exchange.time_to_first_byte(),
            Some(trips * Duration::from_millis(40)),
            "{}",
            case.title
        );
    }
}
