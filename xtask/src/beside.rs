//! A cargo command that runs while others do.

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
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).env("CARGO_INCREMENTAL", "0");
        let child = cargo.spawn().map_err(|error| format!("cannot run cargo: {error}"))?;
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
