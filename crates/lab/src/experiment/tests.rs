use super::*;

const FILE: &str = "# Does a request take two round trips?
chapter = \"Opening\"
lesson = \"A handshake, then the request.\"
[path]
rtt = \"100ms\"
[client]
steps = [\"connect\", \"write 100\", \"read 500\", \"close\"]
[server]
steps = [\"read 100\", \"write 500\", \"read to end\", \"close\"]
[[expect]]
what = \"time of a request\"
that = \"time()\"
is = \"200 ms\"
";

#[test]
fn a_file_is_run_and_judged() {
    let outcome = Experiment::parse(FILE).unwrap().run().unwrap();
    assert_eq!(outcome.findings()[0].ours, "200 ms");
    assert!(outcome.holds());
    let wrong = FILE.replace("200 ms", "210 ms");
    assert!(!Experiment::parse(&wrong).unwrap().run().unwrap().holds());
}

#[test]
fn mistakes_are_told_with_line_and_nearest_word() {
    let told = |from: &str, to: &str| Experiment::parse(&FILE.replace(from, to)).unwrap_err();
    let cases = [
        ("rtt =", "rt =", "line 5"),
        ("rtt =", "rt =", "did you mean `rtt`?"),
        ("100ms", "100", "write 35ms"),
        ("write 100", "wriet 100", "no step"),
        ("time()", "tme()", "did you mean `time`?"),
        ("# Does", "Does", "line 1"),
        ("is = ", "at_least = \"5 apples\" #", "no quantity"),
    ];
    for (from, to, part) in cases {
        let text = told(from, to);
        assert!(text.contains(part), "{to}: {text}");
    }
}

/// Every experiment of the shelf is as expected, and comes out the same each time.
#[test]
fn the_shelf_is_as_expected() {
    let mut failed = Vec::new();
    for shelved in SHELF {
        match Experiment::parse(shelved.text).and_then(|experiment| experiment.run()) {
            Ok(outcome) => {
                let misses = outcome.findings().iter().filter(|finding| !finding.holds);
                failed.extend(misses.map(|miss| {
                    format!("{}: {}: {} ({})", shelved.name, miss.what, miss.ours, miss.criterion)
                }));
            }
            Err(error) => failed.push(format!("{}: {error}", shelved.name)),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
