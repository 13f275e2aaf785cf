//! Every scenario of the lab, in virtual time: a program of its own, since nothing of it minds how long it takes, and it takes long.

use std::process::{Command, Stdio};

/// A minute of an idle machine; at the lowest priority beside a busy one it may wait long. What takes longer than this hangs.
const SECONDS: &str = "3600";

/// All criteria met, and the same words each time: also where the runs take turns in another order, as two programs at once make them.
#[test]
fn everything_runs_as_expected_and_comes_out_the_same_twice() {
    let begin = || {
        let mut command = Command::new("timeout");
        command.args([SECONDS, env!("CARGO_BIN_EXE_firstbyte"), "lab", "all"]);
        command.env_remove("COLUMNS").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let said = [begin(), begin()].map(|child| {
        let output = child.wait_with_output().unwrap();
        (output.status, String::from_utf8(output.stdout).unwrap())
    });
    let [(status, first), (_, second)] = &said;
    assert!(status.success() && first.ends_with(" 0 not as expected\n"), "{first}");
    assert_eq!(first, second);
}
