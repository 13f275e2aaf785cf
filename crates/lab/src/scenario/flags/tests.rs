use super::*;
use crate::exchange::Verdict;

/// Returns the verdicts of both visits, by (server, listener asks, client).
fn early(results: &Results) -> Vec<(u32, bool, u32, bool, bool)> {
    let is_early = |exchange: &Exchange| exchange.syn_data_len > 0 && exchange.verdict == Verdict::Accepted;
    let row = |c: &Combination| {
        (c.server_bits, c.listener_asks, c.client_bits, is_early(&c.first), is_early(&c.second))
    };
    results.combinations.iter().map(row).collect()
}

#[test]
fn only_the_listed_combinations_deliver_early() {
    for profile in [Profile::Firstbyte, Profile::Linux] {
        let results = run(&Params { profile, ..Params::default() });
        let delivering: Vec<_> = early(&results).into_iter().filter(|row| row.3 || row.4).collect();
        assert_eq!(
            delivering,
            [
                // With cookies: the second visit.
                (0x3, true, 0x1, false, true),
                // Without cookies on either side: both visits. A client without 0x4 requests a
                // cookie and never gets one.
                (0x203, true, 0x5, true, true),
                (0x403, false, 0x1, false, true),
                (0x603, false, 0x5, true, true),
            ],
            "{profile:?}"
        );
    }
}

#[test]
fn a_spoofed_syn_delivers_only_where_cookies_are_not_checked() {
    for profile in [Profile::Firstbyte, Profile::Linux] {
        for spoof in run(&Params { profile, ..Params::default() }).spoofs {
            let unchecked = spoof.server_bits & 0x200 != 0;
            assert_eq!(spoof.wrong_cookie_delivered, unchecked, "{profile:?} {:#x}", spoof.server_bits);
            assert_eq!(spoof.no_option_delivered, unchecked, "{profile:?} {:#x}", spoof.server_bits);
        }
    }
}

#[test]
fn disabled_combinations_take_the_time_of_a_plain_connection() {
    for combination in run(&Params::default()).combinations {
        for exchange in [&combination.first, &combination.second] {
            let trips = if exchange.verdict == Verdict::Accepted { 1 } else { 2 };
            let expected = Some(trips * Duration::from_millis(40));
            assert_eq!(
                exchange.time_to_first_byte(),
                expected,
                "{:#x} {:#x}",
                combination.server_bits,
                combination.client_bits
            );
        }
    }
}
