//! Tells the machines and stacks apart whose agents could have one host name.
use crate::failure::Failure;
use crate::source::SourceArgs;
use std::fs;
use std::path::Path;

/// Identifies this boot of the kernel; two machines never share it, also where one is a copy of the
/// other's disk (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The network namespace of the calling thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Identifies the stack whose keys an agent sets. The identity survives a restart of the agent. It
/// differs for another machine, network namespace or `firstbyte serve`.
pub(super) fn instance(source: &SourceArgs) -> Result<String, Failure> {
    let failure = |error: std::io::Error| Failure::file("read", Path::new(BOOT_ID), &error);
    let boot = fs::read_to_string(BOOT_ID).map_err(failure)?;
    let stack = match source.stack() {
        Some(control) => control.option(),
        None => source.read(|| fs::read_link(NAMESPACE))?.map_err(failure)?.display().to_string(),
    };
    Ok(format!("{} {stack}", boot.trim()))
}
