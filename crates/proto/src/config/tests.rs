use super::*;

#[test]
fn every_row_shows_what_it_parses() {
    for mut config in [Config::default(), Config::linux()] {
        let before = config.clone();
        for (name, value) in before.all() {
            assert_eq!(config.get(name).as_ref(), Some(&value), "{name}");
            assert_eq!(config.set(name, &value), Ok(None), "{name} = {value}");
        }
        assert_eq!(config, before);
    }
}

#[test]
fn obsolete_fast_open_bits_are_refused_with_a_warning() {
    let mut config = Config::default();
    let warning = config.set("net.ipv4.tcp_fastopen", "0x903").unwrap().unwrap();
    assert!(warning.contains("0x900"), "{warning}");
    assert_eq!(config.tcp_fastopen, 0x3);
}

#[test]
fn a_setting_that_means_nothing_any_more_says_so() {
    let mut config = Config::default();
    let warning = config.set("net.ipv4.tcp_adv_win_scale", "-2").unwrap().unwrap();
    assert!(warning.contains("no effect"), "{warning}");
    assert!(config.set("net.ipv4.tcp_adv_win_scale", "x").is_err());
    assert_eq!(config, Config::default());
}

#[test]
fn values_out_of_range_change_nothing() {
    let mut config = Config::default();
    assert!(matches!(config.set("net.ipv4.tcp_syn_retries", "0"), Err(SettingError::Invalid(_))));
    assert!(matches!(config.set("net.ipv4.tcp_rmem", "1 2"), Err(SettingError::Invalid(_))));
    assert!(matches!(config.set("firstbyte.synack_hold", "1 fortnight"), Err(SettingError::Invalid(_))));
    assert_eq!(config.set("net.ipv4.no_such", "1"), Err(SettingError::Unknown));
    assert_eq!(config, Config::default());
}
