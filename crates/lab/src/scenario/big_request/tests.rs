use super::*;

fn case(habit: Habit, profile: Profile) -> Case {
    let found =
        run(&Params::default()).cases.into_iter().find(|case| case.habit == habit && case.profile == profile);
    found.unwrap()
}

#[test]
fn linux_puts_1420_bytes_into_the_syn() {
    let case = case(Habit::NeedsAll, Profile::Linux);
    assert_eq!((case.fast_open.syn_data_len, case.fast_open.syn_data_acked), (1420, 1420));
}

#[test]
fn ours_fills_the_syn_to_the_mtu() {
    let case = case(Habit::NeedsAll, Profile::Firstbyte);
    assert_eq!(case.fast_open.journeys[0].sent.bytes.len(), 1500);
    assert_eq!(case.fast_open.syn_data_acked, case.fast_open.syn_data_len);
}

#[test]
fn a_server_that_needs_all_gains_nothing_and_an_echo_gains_a_round_trip() {
    for profile in [Profile::Firstbyte, Profile::Linux] {
        let ms = |exchange: &Exchange| milliseconds(exchange.time_to_first_byte().unwrap());
        let whole = case(Habit::NeedsAll, profile);
        assert_eq!((ms(&whole.plain), ms(&whole.fast_open)), (200.0, 200.0), "{profile:?}");
        let echo = case(Habit::Echoes, profile);
        assert_eq!((ms(&echo.plain), ms(&echo.fast_open)), (200.0, 100.0), "{profile:?}");
    }
}
