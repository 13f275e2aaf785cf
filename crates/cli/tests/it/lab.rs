//! Captures of `firstbyte lab`, as Wireshark interprets them.
use crate::{run, skipped_without, stdout};
use std::path::PathBuf;

/// Runs a scenario. Returns its values, and for each run (an interface of the capture) the packets
/// that Wireshark considers retransmissions.
fn retransmissions(scenario: &str, option: &str) -> (serde_json::Value, Vec<usize>) {
    retransmissions_of(&[scenario], scenario, option)
}

fn retransmissions_of(words: &[&str], name: &str, option: &str) -> (serde_json::Value, Vec<usize>) {
    let capture: PathBuf =
        std::env::temp_dir().join(format!("firstbyte-lab-{name}{option}-{}.pcapng", std::process::id()));
    let file = capture.to_str().unwrap();
    let output = run(&[&["lab"], words, &["--json", option, file]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let values = serde_json::from_str(stdout(&output)).unwrap();
    let mut tshark = testnet::command("tshark");
    tshark.args([
        "-r",
        file,
        "-T",
        "fields",
        "-e",
        "frame.interface_id",
        "-e",
        "tcp.analysis.retransmission",
    ]);
    let read = tshark.arg("-e").arg("tcp.analysis.out_of_order").output().unwrap();
    assert!(read.status.success(), "{read:?}");
    std::fs::remove_file(capture).unwrap();
    let mut counts = Vec::new();
    for line in stdout(&read).lines() {
        let mut fields = line.split('\t');
        let run: usize = fields.next().unwrap().parse().unwrap();
        counts.resize(counts.len().max(run + 1), 0);
        counts[run] += usize::from(fields.any(|field| !field.is_empty()));
    }
    (values, counts)
}

/// Each run has its own addresses: otherwise Wireshark would take the second run for
/// retransmissions of the first.
#[test]
fn runs_in_one_capture_are_no_retransmissions_of_each_other() {
    if skipped_without("tshark") {
        return;
    }
    for (scenario, runs) in [("fast-open", 2), ("packets", 8), ("big-request", 4)] {
        for option in ["--pcap", "--pcap-server"] {
            assert_eq!(
                retransmissions(scenario, option).1,
                vec![0; runs],
                "{scenario} {option}: nothing was lost"
            );
        }
    }
    let (values, seen) = retransmissions("congestion", "--pcap");
    let downloads = values["downloads"].as_array().unwrap();
    assert_eq!(seen.len(), downloads.len());
    for (download, seen) in downloads.iter().zip(seen) {
        // The capture is the receiver's: of two packets, it only has the second if the first was
        // lost.
        let sent_again = download["sent_again"].as_u64().unwrap();
        assert!(seen as u64 <= sent_again, "{seen} of {sent_again}: {}", download["algorithm"]);
        assert!(sent_again > 0, "the bottleneck loses some");
    }
}

/// The runs end while data is in flight, because the client closes when it has everything it reads.
#[test]
fn a_run_beside_another_has_as_many_retransmissions_as_alone() {
    if skipped_without("tshark") {
        return;
    }
    let text = include_str!("../../../lab/scenarios/bufferbloat.toml");
    let beside = retransmissions("bufferbloat", "--pcap").1;
    let alone = ["fifo", "fq_codel"].map(|name| {
        let (head, rest) = text.split_once("[[run]]").unwrap();
        let run = rest.split("[[run]]").find(|run| run.contains(&format!("\"{name}\""))).unwrap();
        let run = run.split("[[expect]]").next().unwrap();
        let expect = "[[expect]]\nwhat = \"done\"\nthat = \"done()\"\nis = 1\n";
        let file = std::env::temp_dir().join(format!("firstbyte-lab-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, format!("{head}[[run]]{run}{expect}")).unwrap();
        let (_, counts) = retransmissions_of(&["run", file.to_str().unwrap()], name, "--pcap");
        std::fs::remove_file(file).unwrap();
        counts[0]
    });
    assert_eq!(beside, alone);
}

#[test]
fn a_single_run_is_not_given_a_name() {
    let output = run(&["lab", "loss-and-rtt", "--trace"]);
    assert!(stdout(&output).contains("\nTrace: ms, end, connection, what\n"), "{:.300}", stdout(&output));
}

/// Returns the error of `lab check` for an invalid file.
fn mistake(name: &str, text: &str) -> String {
    let file = std::env::temp_dir().join(format!("firstbyte-lab-{name}-{}.toml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let output = run(&["lab", "check", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_next_hop_that_is_on_no_link_is_refused_before_anything_runs() {
    let text = include_str!("../../../lab/scenarios/dual-homed.toml");
    let told = mistake("next-hop", &text.replace("via 198.18.0.254", "via 198.19.0.254"));
    assert!(told.contains("198.19.0.254 is not on a link; eth0 is on 198.51.100.0/24"), "{told}");
}

#[test]
fn a_file_with_a_mistake_is_refused_with_its_line() {
    let told = mistake("word", "# Why?\nchapter = \"x\"\nlesson = \"y\"\n[path]\nrtf = \"5ms\"\n");
    assert!(told.contains("line 5") && told.contains("did you mean `rtt`?"), "{told}");
    // Errors that would only appear in a run are found before it, with their line.
    let text = include_str!("../../../lab/scenarios/bufferbloat.toml");
    let told =
        mistake("discipline", &text.replacen("[path]\n", "[path]\nqdisc = \"fq_codl target 5ms\"\n", 1));
    let line = text.lines().position(|line| line == "[path]").unwrap() + 2;
    assert!(
        told.contains(&format!("line {line}, column 1\n")) && told.contains("did you mean `fq_codel`?"),
        "{told}"
    );
    assert!(!told.contains("run `"), "it is the whole file's: {told}");
}

#[test]
fn a_sweep_gives_a_row_for_each_play_and_its_shards_make_the_whole() {
    let file =
        |name: &str| std::env::temp_dir().join(format!("firstbyte-sweep-{name}-{}.csv", std::process::id()));
    let rows = |name: &str, more: &[&str]| {
        let path = file(name);
        let line = ["lab", "sweep", "tail-loss", "--vary", "path.rtt=20ms,40ms", "--repeat", "2", "--csv"];
        let output = run(&[&line[..], &[path.to_str().unwrap()], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = rows("whole", &[]);
    assert_eq!(
        (whole.len(), whole[0].as_str()),
        (5, "path.rtt,seed,tail loss probes,timeouts with the probe,timeouts without the probe")
    );
    let mut parts = [rows("1", &["--shard", "1/2"]), rows("2", &["--shard", "2/2"])[1..].to_vec()].concat();
    parts.sort();
    let mut sorted = whole;
    sorted.sort();
    assert_eq!(parts, sorted);
    let path = file("parquet");
    let output = run(&["lab", "sweep", "tail-loss", "--parquet", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "a Parquet file");
    std::fs::remove_file(path).unwrap();
    let wrong = run(&["lab", "sweep", "tail-loss", "--vary", "path.rtf=5ms"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean `rtt`?"), "{wrong:?}");
}
