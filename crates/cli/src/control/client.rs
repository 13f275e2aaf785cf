//! The client of a control socket.
use super::place;
use crate::failure::Failure;
use clap::Args;
use control::Request;
use doctor::Sample;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options that select a running stack.
#[derive(Args, Debug)]
pub(crate) struct ControlArgs {
    /// Use the control socket at PATH (`firstbyte serve --control PATH`)
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// Returns the option that selects this stack, for a command to copy.
    pub(crate) fn option(&self) -> String {
        self.control.as_ref().map_or("--stack".to_owned(), |path| format!("--control {}", path.display()))
    }

    /// True if a stack was selected.
    pub(crate) fn is_named(&self) -> bool {
        self.control.is_some()
    }

    #[cfg(test)]
    pub(super) fn at(path: &Path) -> ControlArgs {
        ControlArgs { control: Some(path.to_owned()) }
    }
}

/// A stack that does not answer for this long is considered stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer, bytes.
const ANSWER_MAX: u64 = 256 << 20;

/// Sends a request to the stack and returns the answer.
pub(crate) fn ask(source: &ControlArgs, request: &Request) -> Result<String, Failure> {
    let path = match &source.control {
        Some(path) => path.clone(),
        None => the_one(place::running().map_err(|error| unreadable(&error))?)?,
    };
    let mut stream = UnixStream::connect(&path).map_err(|error| unreachable(&path, error.kind(), &error))?;
    let text = exchange(&mut stream, request)
        .map_err(|error| Failure::failed(format!("{} does not answer: {error}", path.display())))?;
    match text.split_once('\n') {
        Some(("ok", body)) => Ok(body.to_owned()),
        Some(("error", why)) => Err(Failure::failed(why)),
        _ => Err(Failure::failed(format!("{} is not a control socket of firstbyte", path.display()))),
    }
}

/// Reads a sample for the doctor from the stack.
pub(crate) fn sample(source: &ControlArgs) -> Result<Sample, Failure> {
    let text = ask(source, &Request::Sample)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::failed(format!("cannot read the stack's answer: {error}")))
}

fn exchange(stream: &mut UnixStream, request: &Request) -> std::io::Result<String> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(format!("{}\n", request.line()).as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(error: &std::io::Error) -> Failure {
    let folder = place::folder();
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::failed(format!(
            "cannot read {}: it belongs to another user; run this as the user who runs the stack",
            folder.display()
        )),
        _ => Failure::file("read", &folder, error),
    }
}

fn the_one(mut running: Vec<PathBuf>) -> Result<PathBuf, Failure> {
    match running.len() {
        1 => Ok(running.remove(0)),
        0 => Err(Failure::failed(format!(
            "cannot find a running stack: there is no control socket in {}; start one with \
            `firstbyte serve`, or name its socket with --control PATH",
            place::folder().display()
        ))),
        count => {
            let all: Vec<String> =
                running.iter().map(|path| format!("  --control {}", path.display())).collect();
            Err(Failure::usage(format!("{count} stacks are running; choose one:\n{}", all.join("\n"))))
        }
    }
}

fn unreachable(path: &Path, kind: ErrorKind, error: &std::io::Error) -> Failure {
    let advice = match kind {
        ErrorKind::NotFound => "there is no such socket; `firstbyte serve --control PATH` creates one",
        ErrorKind::ConnectionRefused => "the stack that created it is not running any more",
        ErrorKind::PermissionDenied => "run this as the user who runs the stack",
        _ => return Failure::file("connect to the control socket", path, error),
    };
    Failure::failed(format!("{}: {advice}", path.display()))
}
