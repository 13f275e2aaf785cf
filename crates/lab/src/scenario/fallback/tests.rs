use super::*;

fn times(results: &Results, trouble: Trouble, profile: Profile) -> Vec<f64> {
    let case = results.case(trouble, profile).unwrap();
    case.exchanges.iter().map(|exchange| milliseconds(exchange.time_to_first_byte().unwrap())).collect()
}

fn resent(results: &Results, trouble: Trouble, profile: Profile) -> Vec<u64> {
    results.case(trouble, profile).unwrap().exchanges.iter().map(|exchange| exchange.bytes_resent).collect()
}

#[test]
fn a_refused_cookie_costs_no_time_beyond_plain() {
    let results = run(&Params::default());
    for profile in [Profile::Firstbyte, Profile::Linux] {
        assert_eq!(times(&results, Trouble::ServerOff, profile), [40.0; 4], "{profile:?}");
        assert_eq!(times(&results, Trouble::KeyChanged, profile), [40.0, 40.0, 20.0, 20.0], "{profile:?}");
        assert_eq!(times(&results, Trouble::KeyWithBackup, profile), [40.0, 20.0, 20.0, 20.0], "{profile:?}");
        assert_eq!(times(&results, Trouble::OtherAddress, profile), [40.0, 20.0, 40.0, 20.0], "{profile:?}");
        assert_eq!(times(&results, Trouble::AlternatingNat, profile), [40.0; 10], "{profile:?}");
    }
}

#[test]
fn linux_sends_the_data_twice_every_time_and_ours_once() {
    let results = run(&Params::default());
    assert_eq!(resent(&results, Trouble::ServerOff, Profile::Linux), [0, 200, 200, 200]);
    assert_eq!(resent(&results, Trouble::ServerOff, Profile::Firstbyte), [0, 200, 0, 0]);
}

#[test]
fn nine_of_ten_cookies_fail_behind_the_nat() {
    let results = run(&Params::default());
    for profile in [Profile::Firstbyte, Profile::Linux] {
        let case = results.case(Trouble::AlternatingNat, profile).unwrap();
        let refused = case
            .exchanges
            .iter()
            .filter(|exchange| exchange.syn_data_len > 0 && exchange.syn_data_acked == 0);
        assert_eq!(refused.count(), 9);
    }
}

#[test]
fn the_backup_key_brings_a_new_cookie_with_the_acceptance() {
    let results = run(&Params::default());
    let case = results.case(Trouble::KeyWithBackup, Profile::Firstbyte).unwrap();
    let [first, second, third, ..] = &case.exchanges[..] else { panic!("four visits") };
    assert_eq!(second.cookie, first.cookie_granted);
    assert_eq!(second.syn_data_acked, 200);
    assert!(second.cookie_granted.is_some() && second.cookie_granted != second.cookie);
    assert_eq!(third.cookie, second.cookie_granted);
    assert_eq!(third.cookie_granted, None);
}

#[test]
fn each_address_has_its_own_cookie() {
    let results = run(&Params::default());
    let case = results.case(Trouble::OtherAddress, Profile::Firstbyte).unwrap();
    assert_ne!(case.exchanges[0].cookie_granted, case.exchanges[2].cookie_granted);
    assert_eq!(case.exchanges[3].cookie, case.exchanges[2].cookie_granted);
}
