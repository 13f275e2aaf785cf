use super::*;
use crate::report::Report;
use crate::scenario::congestion::{Params, Results, run};

fn download() -> Results {
    run(&Params { algorithms: vec![proto::CongestionControl::Reno], len: 500_000, ..Params::default() })
}

fn of_the_sender(results: &Results) -> Vec<Row> {
    let [recording] = &results.recordings()[..] else { panic!("one run") };
    rows(recording).into_iter().filter(|row| row.end == "server").collect()
}

#[test]
fn the_window_is_followed_from_the_first_to_the_last() {
    let results = download();
    let told = &results.downloads[0].windows;
    let rows = of_the_sender(&results);
    assert_eq!((rows[0].cwnd, rows[0].ssthresh), (Some(14_480), None), "ten segments, and no threshold yet");
    assert_eq!(rows.last().and_then(|row| row.cwnd), told.last().map(|at| at.cwnd));
    assert!(
        rows.iter().any(|row| row.ca_state == "recovery") && rows.iter().any(|row| row.ssthresh.is_some())
    );
    assert!(rows.iter().any(|row| row.limited_by == "cwnd"));
}

#[test]
fn a_moment_has_one_row_for_a_connection() {
    let rows = of_the_sender(&download());
    assert!(rows.is_sorted_by(|a, b| a.ms < b.ms));
}

#[test]
fn the_file_has_a_head_and_as_many_fields_in_each_line() {
    let (results, mut file) = (download(), Vec::new());
    write_series(&mut file, &results.recordings()).expect("memory takes it");
    let text = String::from_utf8(file).expect("text");
    let (head, rows) = text.split_once('\n').expect("lines");
    assert_eq!(head, "run,end,connection,ms,cwnd,ssthresh,srtt_ms,rttvar_ms,rto_ms,ca_state,limited_by");
    assert!(rows.starts_with("reno,"), "{rows:.80}");
    assert!(rows.lines().count() > 50 && rows.lines().all(|row| row.split(',').count() == 11));
}
