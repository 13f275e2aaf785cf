use super::*;

fn times(results: &Results, fault: Fault, client: Client) -> Vec<f64> {
    results.case(fault, client).unwrap().times_ms().into_iter().map(|time| time.unwrap()).collect()
}

#[test]
fn a_path_that_drops_syn_data_costs_once_with_us_and_every_time_with_linux() {
    let results = run(&Params::default());
    // Plain is 80 ms. With an SRTT of 40 ms the plain SYN follows after max(100 ms, 2.5 SRTT) = 100
    // ms.
    assert_eq!(times(&results, Fault::DropsSynData, Client::Firstbyte), [180.0, 80.0, 80.0, 80.0, 80.0]);
    assert_eq!(
        times(&results, Fault::DropsSynData, Client::FirstbyteWithoutRtt),
        [1080.0, 80.0, 80.0, 80.0, 80.0]
    );
    assert_eq!(times(&results, Fault::DropsSynData, Client::Linux), [1080.0; 5]);
}

#[test]
fn a_long_round_trip_waits_two_and_a_half_of_it() {
    let results = run(&Params { rtt: Duration::from_millis(200), count: 2, ..Params::default() });
    assert_eq!(times(&results, Fault::DropsSynData, Client::Firstbyte), [900.0, 400.0]);
}

#[test]
fn a_stripped_option_costs_no_time() {
    let results = run(&Params::default());
    for client in Client::ALL {
        assert_eq!(times(&results, Fault::StripsOption, client), [80.0; 5], "{client:?}");
    }
    let resent = |client| -> Vec<u64> {
        results
            .case(Fault::StripsOption, client)
            .unwrap()
            .exchanges
            .iter()
            .map(|exchange| exchange.bytes_resent)
            .collect()
    };
    assert_eq!(resent(Client::Firstbyte), [200, 0, 0, 0, 0]);
    assert_eq!(resent(Client::Linux), [200; 5]);
}

#[test]
fn a_lost_syn_ack_costs_no_more_with_us_than_with_linux() {
    let results = run(&Params::default());
    let (ours, linux) = (
        times(&results, Fault::DropsSynAck, Client::Firstbyte),
        times(&results, Fault::DropsSynAck, Client::Linux),
    );
    for (ours, linux) in ours.iter().zip(&linux) {
        assert!(ours <= linux, "{ours} {linux}");
    }
}
