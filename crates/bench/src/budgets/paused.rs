//! callgrind over a part of a process: until it is told to begin, by valgrind's own `vgdb`, the
//! process runs ten times as fast.

use crate::instructions::{collected, under_callgrind};
use crate::report::Failure;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the process says when it waits.
const READY: &[u8] = b"ready\n";

/// In the process: says that it is ready, and waits for a line. Nothing is allocated: where the
/// heap ends decides which of the engine's vectors have to be copied as they grow.
pub(super) fn pause() -> Result<(), Failure> {
    File::options().write(true).open("/dev/stdout")?.write_all(READY)?;
    File::open("/dev/stdin")?.read_exact(&mut [0])?;
    Ok(())
}

/// Instructions of this program inside functions whose names are like `pattern`, from where it has
/// [paused](pause), and the number that it says at its end.
pub(super) fn count_inside(pattern: &str, arguments: &[&str]) -> Result<(u64, u64), Failure> {
    let inside = format!("--toggle-collect={pattern}");
    let options = ["--instr-atstart=no", &inside];
    let mut child = under_callgrind(Path::new("/dev/null"), &options, arguments)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let number = begin_and_read(&mut child);
    // Standard input is closed with it: one that still waits goes on, and ends.
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let failure = |why: &str| {
        let last = said.lines().last().unwrap_or_default();
        Failure::from(format!("callgrind on {}: {why}: {}: {last}", arguments.join(" "), output.status))
    };
    let number = number.map_err(|why| failure(&why.to_string()))?;
    match collected(&said) {
        Some(instructions) if output.status.success() && instructions > 0 => Ok((instructions, number)),
        Some(0) => Err(failure("it found nothing to count")),
        _ => Err(failure("it failed")),
    }
}

/// Lets callgrind begin where the process waits, and the process go on; its number.
fn begin_and_read(child: &mut Child) -> Result<u64, Failure> {
    let mut lines = BufReader::new(child.stdout.take().ok_or("no standard output")?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    if line.as_bytes() != READY {
        return Err("it was never ready".into());
    }
    let process = format!("--pid={}", child.id());
    let told = Command::new("vgdb").args([&process, "instrumentation", "on"]).output()?;
    if !told.status.success() {
        let why = String::from_utf8_lossy(&told.stderr);
        return Err(format!("vgdb: {}: {}", told.status, why.lines().last().unwrap_or_default()).into());
    }
    child.stdin.take().ok_or("no standard input")?.write_all(b"\n")?;
    line.clear();
    lines.read_to_string(&mut line)?;
    match line.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("it told no number".into()),
    }
}
