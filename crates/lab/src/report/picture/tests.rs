use super::*;
use crate::scenario::{congestion, fast_open};
use ::picture::Kind;

fn graphs(run: &Run) -> Vec<&str> {
    run.graphs.iter().map(|graph| graph.title.as_str()).collect()
}

#[test]
fn a_download_has_all_its_graphs() {
    let results = congestion::run(&congestion::Params { len: 300_000, ..Default::default() });
    let document = document("congestion", "How?", &results);
    assert_eq!(document.runs.len(), 2);
    let all = [
        "Time-sequence graph",
        "Windows",
        "Limits of the sender",
        "Round-trip time measured by the sender",
        "Queue",
        "Time in the queue",
    ];
    assert_eq!(graphs(&document.runs[0]), all);
    let names: Vec<&str> =
        document.runs[0].graphs[1].series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names[..2], ["in flight", "cwnd"]);
    let ladder = document.runs[0].ladder.as_ref().unwrap();
    // About 208 segments and an acknowledgment for every other one; 240 of them are drawn.
    assert!(ladder.left_out > 50, "{} left out", ladder.left_out);
}

#[test]
fn connections_that_follow_each_other_share_the_graphs_of_their_sender() {
    let text = "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n[path]\nrtt = \"20ms\"\n[client]\nconnections = 2\npause = \"1s\"\n\
                steps = [\"connect\", \"write 100\", \"read 50kB\", \"close\"]\n\
                [server]\nsteps = [\"read 100\", \"write 50kB\", \"close\"]\n\
                [[expect]]\nwhat = \"done\"\nthat = \"done()\"\nis = \"2\"\n";
    let outcome = crate::experiment::Experiment::parse(text).unwrap().run().unwrap();
    let document = document("own", "How?", &outcome);
    let graphs = &document.runs[0].graphs;
    assert_eq!(graphs[1].note, "2 connections, at the server");
    for graph in &graphs[1..4] {
        let points = &graph.series[0].points;
        assert!(points[0].0 < 100.0 && points.last().unwrap().0 > 1000.0, "{}: {points:?}", graph.title);
    }
    let rungs = &document.runs[0].ladder.as_ref().unwrap().rungs;
    assert_eq!(
        (rungs[0].said.as_str(), rungs.last().unwrap().said.as_str()),
        ("connection 1", "connection 2")
    );
}

/// Runs a scenario with this many clients, each reading 20 kB.
fn clients(count: u32) -> Document {
    let text = format!(
        "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n[path]\nrtt = \"20ms\"\nrate = \"5mbit\"\nrouter = \"1ms\"\n[client]\n\
         clients = {count}\nsteps = [\"connect\", \"read 20kB\", \"close\"]\n[server]\nsteps = [\"write 20kB\", \"close\"]\n\
         [[run]]\nname = \"one\"\n[[run]]\nname = \"two\"\n\
         [[expect]]\nwhat = \"done\"\nthat = \"done(one) + done(two)\"\nis = {}\n",
        2 * count
    );
    let outcome = crate::experiment::Experiment::parse(&text).unwrap().run().unwrap();
    assert!(outcome.holds());
    document("own", "How?", &outcome)
}

#[test]
fn every_client_of_every_run_is_drawn() {
    let document = clients(3);
    let names: Vec<&str> = document.runs.iter().map(|run| run.name.as_str()).collect();
    let expected = [
        "one, client 1",
        "one, client 2",
        "one, client 3",
        "two, client 1",
        "two, client 2",
        "two, client 3",
    ];
    assert_eq!(names, expected);
    for run in &document.runs {
        let graph = &run.graphs[0];
        let data = graph.series.iter().find(|series| series.name == "data").unwrap();
        assert_eq!(
            (graph.title.as_str(), data.greatest()),
            ("Time-sequence graph", 20_000.0),
            "{}",
            run.name
        );
        let windows = run.graphs.iter().find(|graph| graph.title == "Windows").unwrap();
        assert!(windows.series[0].greatest() <= 20_000.0, "{}: of this client alone", run.name);
        assert!(run.ladder.as_ref().is_some_and(|ladder| ladder.rungs.len() > 10), "{}", run.name);
    }
    let queues = document.runs.iter().filter(|run| run.graphs.iter().any(|graph| graph.title == "Queue"));
    assert_eq!(queues.count(), 2, "clients share the queue of a run");
}

#[test]
fn clients_that_a_page_has_no_room_for_are_counted() {
    let document = clients(10);
    assert_eq!(document.runs.len(), 16);
    let told =
        ::picture::Block::Text("4 more clients are not drawn; `--pcap` writes the packets of all.".into());
    assert!(document.answer.contains(&told), "{:?}", document.answer);
}

#[test]
fn a_run_without_a_client_shows_what_spoofed_syns_bring_about() {
    let text = "# How?\nchapter = \"Own\"\nlesson = \"So.\"\nfor = \"4s\"\n[server]\nbacklog = 8\n\
                [[event]]\nat = \"10ms\"\ndo = \"spoof 2 SYNs\"\n\
                [[expect]]\nwhat = \"half-open\"\nthat = \"state(server, SYN-RECEIVED)\"\nis = \"2\"\n";
    let outcome = crate::experiment::Experiment::parse(text).unwrap().run().unwrap();
    let document = document("own", "How?", &outcome);
    assert_eq!(document.runs[0].name, "", "a single run needs no name");
    let ladder = document.runs[0].ladder.as_ref().unwrap();
    assert_eq!(ladder.left, "spoofed address");
    let labels: Vec<&str> = ladder.rungs.iter().map(|rung| rung.label.split(',').next().unwrap()).collect();
    assert_eq!(labels[..4], ["SYN", "SYN", "SYN ACK", "SYN ACK"]);
    assert_eq!(labels.iter().filter(|label| **label == "SYN ACK").count(), 6, "after 1 and 3 s again");
}

/// A copy of a SYN, after its connection is over, is answered with another initial sequence number.
#[test]
fn a_stream_that_begins_anew_is_counted_from_its_own_beginning() {
    let document = document("replay", "How?", &crate::scenario::replay::run(&Default::default()));
    for graph in document.runs.iter().flat_map(|run| &run.graphs) {
        if let Some(data) = graph.series.iter().find(|series| series.name == "data") {
            assert_eq!(data.greatest(), 500.0, "the reply has 500 bytes");
        }
    }
}

#[test]
fn what_waits_in_a_card_is_drawn() {
    let text = "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n[client]\nsteps = [\"connect\", \"read 50kB\", \"close\"]\n\
                [server]\nsteps = [\"write 50kB\", \"close\"]\ndevice = { rate = \"1mbit\", tx_ring = 2 }\n\
                [[expect]]\nwhat = \"waited\"\nthat = \"device(server, qdisc_backlog_max)\"\nat_least = \"8\"\n";
    let outcome = crate::experiment::Experiment::parse(text).unwrap().run().unwrap();
    let document = document("own", "How?", &outcome);
    let graphs = &document.runs[0].graphs;
    let graph =
        graphs.iter().find(|graph| graph.title == "Queue of packets that the server's card sends").unwrap();
    let tops: Vec<f64> = graph.series.iter().map(::picture::Series::greatest).collect();
    assert_eq!((tops[0], Some(tops[1])), (2.0, outcome.findings()[0].value), "ring, discipline");
}

/// The row shows the queues of the sender's own host, and a scenario can measure the share.
#[test]
fn queues_of_its_own_host_hold_a_sender_back() {
    let rows = |limit: &str| {
        let text = format!(
            "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n[client]\nprofile = \"linux\"\n\
             steps = [\"connect\", \"write 100\", \"read 2MB\", \"close\"]\n\
             [server]\nprofile = \"linux\"\nsteps = [\"read 100\", \"write 2MB\", \"close\"]\n\
             device = {{ rate = \"100mbit\"{limit} }}\n\
             [[expect]]\nwhat = \"held back\"\nthat = \"limited(device)\"\nat_least = \"30 %\"\n"
        );
        let outcome = crate::experiment::Experiment::parse(&text).unwrap().run().unwrap();
        let graphs = &document("own", "How?", &outcome).runs[0].graphs;
        let graph = graphs.iter().find(|graph| graph.title == "Limits of the sender").unwrap();
        let ::picture::Axis::Names(names) = &graph.y else { panic!("rows have names") };
        (names.join(" "), outcome.findings()[0].value)
    };
    assert_eq!(rows(""), ("idle app sndbuf rwnd cwnd opening".to_owned(), Some(0.0)));
    let (names, share) = rows(", tcp_limit_output_bytes = \"32KiB\"");
    assert_eq!(names, "idle app sndbuf rwnd cwnd opening device");
    assert!(share > Some(0.3), "{share:?}");
}

/// Bytes that the receiver is known to hold are not in flight; otherwise a loss would look like a
/// larger window.
#[test]
fn what_sack_told_of_is_not_in_flight() {
    let text = "# How?\nchapter = \"Own\"\nlesson = \"So.\"\n[path]\nrtt = \"100ms\"\nlose = [4]\n[client]\n\
                steps = [\"connect\", \"write 100\", \"read 100kB\", \"close\"]\n\
                [server]\nsteps = [\"read 100\", \"write 100kB\", \"close\"]\n\
                [[expect]]\nwhat = \"largest window\"\nthat = \"cwnd()\"\nat_least = \"1\"\n";
    let outcome = crate::experiment::Experiment::parse(text).unwrap().run().unwrap();
    let run = &document("own", "How?", &outcome).runs[0];
    let series = &run.graphs.iter().find(|graph| graph.title == "Windows").unwrap().series;
    let [flight, window] = ["in flight", "cwnd"]
        .map(|name| series.iter().find(|series| series.name == name).unwrap().greatest());
    assert!(flight <= window + 1460.0, "{flight} in flight, {window} allowed");
}

#[test]
fn a_visit_with_a_cookie_is_marked_in_the_ladder() {
    let results = fast_open::run(&fast_open::Params { count: 2, ..Default::default() });
    let document = document("fast-open", "How?", &results);
    let ladder = document.runs[0].ladder.as_ref().unwrap();
    let cookies = ladder.rungs.iter().filter(|rung| rung.kind == Kind::Cookie).count();
    assert_eq!(cookies, 4, "asked for, granted, used, answered with the reply");
    assert!(ladder.rungs[0].detail.contains("window 64240 bytes"), "{}", ladder.rungs[0].detail);
}

/// Splits the points of a line by connection.
fn pieces(series: &::picture::Series) -> Vec<Vec<(f64, f64)>> {
    let pieces = series.points.split(|(_, value)| value.is_nan());
    pieces.filter(|piece| !piece.is_empty()).map(<[_]>::to_vec).collect()
}

/// A reply on the SYN-ACK is acknowledged by a single segment: one point of a staircase that begins
/// with the SYN.
#[test]
fn the_acknowledgement_of_a_reply_on_the_syn_ack_is_drawn() {
    let results = fast_open::run(&fast_open::Params { count: 3, ..Default::default() });
    let document = document("fast-open", "How?", &results);
    let graph = document.runs[0].graphs.iter().find(|graph| graph.title == "Time-sequence graph").unwrap();
    for name in ["acknowledged", "window's end"] {
        let stairs = pieces(graph.series.iter().find(|series| series.name == name).unwrap());
        assert_eq!(stairs.len(), 3, "{name}");
        for stair in &stairs {
            assert!(
                stair.len() >= 2 && stair[0].0 < stair[stair.len() - 1].0,
                "{name} has no width: {stair:?}"
            );
        }
    }
    let acked = pieces(&graph.series[0]);
    assert!(acked.iter().all(|stair| stair[0].1 == 0.0 && stair[stair.len() - 1].1 == 501.0), "{acked:?}");
}

/// The next connection begins before the last bytes of the previous one are acknowledged: they stay
/// in flight until then.
#[test]
fn what_is_in_flight_is_the_sum_of_connections_that_overlap() {
    let text = include_str!("../../../scenarios/round-trips.toml");
    let outcome = crate::experiment::Experiment::parse(text).unwrap().run().unwrap();
    let document = document("round-trips", "How?", &outcome);
    for run in &document.runs[..2] {
        let windows = run.graphs.iter().find(|graph| graph.title == "Windows").unwrap();
        let flight = &windows.series[0];
        assert_eq!(flight.name, "in flight");
        let stairs = flight.points.windows(2).filter(|pair| pair[0].1 >= 500.0);
        let lasted: f64 = stairs.map(|pair| pair[1].0 - pair[0].0).sum();
        assert_eq!(lasted.round(), 10.0 * 170.0, "{}: {:?}", run.name, flight.points);
        assert_eq!(flight.points.last().unwrap().1, 0.0);
    }
}
