//! Runs every scenario of the lab in virtual time. A program of its own, because it takes long and
//! does not depend on timing.

use std::process::{Command, Stdio};

/// A minute on an idle machine; at low priority on a busy one it may wait long. Longer than this is
/// a hang.
const SECONDS: &str = "3600";

/// All checks pass, and the output is identical each time, also when two programs run at once.
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
