//! A cargo command that runs while others do, with what they leave of the processors.

use std::process::{Child, Command};

/// It is stopped if nobody waits for its end.
pub(crate) struct Beside {
    command: String,
    child: Child,
}

impl Beside {
    pub(crate) fn start(arguments: &[&str]) -> Result<Beside, String> {
        let command = format!("cargo {}", arguments.join(" "));
        println!("\n=== {command}, beside what follows");
        let mut nice = Command::new("nice");
        nice.args(["-n", "19", env!("CARGO")]).args(arguments).env("CARGO_INCREMENTAL", "0");
        let child = nice.spawn().map_err(|error| format!("cannot run nice: {error}"))?;
        Ok(Beside { command, child })
    }

    pub(crate) fn wait(mut self) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| format!("`{}`: {error}", self.command))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", self.command)) }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended; what it would have said is of no interest any more.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
