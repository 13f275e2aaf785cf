//! The cookie keys that a host uses: those of the kernel or of a running stack.
use crate::control::ask;
use crate::failure::Failure;
use crate::nstat::of_stack;
use crate::serve::key::SETTING;
use crate::source::SourceArgs;
use control::Request;
use doctor::{Sample, sources};
use firstbyte::KeyRing;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::time::Duration;

const FILE: &str = "/proc/sys/net/ipv4/tcp_fastopen_key";
const COUNTER: &str = "TcpExtTCPFastOpenPassiveAltKey";

/// Number of accepted cookies of the backup key, and the start of the count.
pub(super) struct Uses {
    pub(super) uptime: Duration,
    pub(super) count: u64,
}

/// Makes sure that these keys are in use.
pub(super) fn hold(source: &SourceArgs, keys: &KeyRing) -> Result<(), Failure> {
    if let Some(control) = source.stack() {
        let request = Request::Set { name: SETTING.to_owned(), value: keys.to_string() };
        return ask(control, &request).map(drop);
    }
    source
        .read(|| {
            let found = fs::read_to_string(FILE);
            if found.is_ok_and(|text| text.trim().parse() == Ok(keys.clone())) {
                return Ok(());
            }
            // A single write sets both keys at once.
            fs::write(FILE, format!("{keys}\n"))
        })?
        .map_err(|error| not_written(&error))
}

/// Checks that the keys could be set, without changing any.
pub(super) fn check(source: &SourceArgs) -> Result<(), Failure> {
    if source.stack().is_none() {
        source.read(|| OpenOptions::new().write(true).open(FILE))?.map_err(|error| not_written(&error))?;
    }
    uses(source).map(drop)
}

fn not_written(error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::failed(format!("cannot write {SETTING}: this needs root")),
        _ => Failure::failed(format!("cannot write {SETTING}: {error}")),
    }
}

/// Returns how often the backup key was used.
pub(super) fn uses(source: &SourceArgs) -> Result<Uses, Failure> {
    let sample: Sample = match source.stack() {
        Some(control) => of_stack(&ask(control, &Request::Counters)?)?,
        None => source.read(sources::procfs)?,
    };
    let count = *sample.counters.get(COUNTER).ok_or_else(|| {
        Failure::failed(format!(
            "this kernel has no counter {COUNTER}, so nothing shows when the old key is unused"
        ))
    })?;
    Ok(Uses { uptime: Duration::try_from_secs_f64(sample.uptime).unwrap_or_default(), count })
}
