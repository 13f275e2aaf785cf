//! Where samples come from: this namespace, another, or a tree of files.
use super::{DoctorArgs, not_done};
use crate::failure::Failure;
use doctor::{Record, Sample, sources};

/// What is to be judged once.
pub(super) fn record(args: &DoctorArgs) -> Result<Record, Failure> {
    if let Some(root) = &args.root {
        if !root.join("proc").is_dir() {
            let message = format!(
                "{} has no folder proc: give the folder that a copy of /proc lies in",
                root.display()
            );
            return Err(not_done(Failure::failed(message)));
        }
        return Ok(Record::new(None, sources::tree(root)));
    }
    let before = if args.since_boot { None } else { Some(sample(args)?) };
    if before.is_some() {
        std::thread::sleep(args.interval);
    }
    Ok(Record::new(before, sample(args)?))
}

/// One sample of the running kernel.
pub(super) fn sample(args: &DoctorArgs) -> Result<Sample, Failure> {
    let Some(name) = &args.netns else { return Ok(sources::here()) };
    sources::in_namespace(name, sources::here).map_err(|error| {
        not_done(Failure::failed(format!(
            "network namespace {name}: {error} (ip netns lists them; entering one needs root)"
        )))
    })
}
