use super::*;

#[test]
fn linux_delivers_a_replayed_request_twice_and_ours_never() {
    let results = run(&Params::default());
    let count = |moment, profile| {
        let case = results.case(moment, profile).unwrap();
        assert_eq!(case.deliveries, case.program_deliveries, "{moment:?} {profile:?}");
        case.deliveries
    };
    let row = |profile| Moment::ALL.map(|moment| count(moment, profile));
    assert_eq!(row(Profile::Firstbyte), [1, 1, 1]);
    assert_eq!(row(Profile::Linux), [1, 2, 1]);
}

#[test]
fn the_copy_is_word_for_word() {
    for case in run(&Params::default()).cases {
        let copy = case.aftermath.iter().find(|journey| journey.injected_by.is_some()).unwrap();
        assert_eq!(copy.sent.bytes, case.original.journeys[0].sent.bytes);
        assert!(copy.received.is_some());
    }
}
