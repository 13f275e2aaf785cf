//! Sources of samples: this namespace, another one, or a tree of files.
use super::{DoctorArgs, not_done};
use crate::control::sample as of_stack;
use crate::failure::Failure;
use crate::input;
use crate::source::in_namespace;
use doctor::{Mask, Record, Sample, sources};

/// Reads the samples for one verdict.
pub(super) fn record(args: &DoctorArgs) -> Result<Record, Failure> {
    if let Some(root) = &args.root {
        if !root.join("proc").is_dir() {
            let message = format!(
                "cannot read {}: it has no folder `proc`; give the folder that contains the copy of \
                /proc",
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

/// Number of samples of an HTML page.
const LOOKS: u32 = 10;

/// Reads a series of samples, oldest first: from the kernel within the interval, or from a file.
pub(super) fn series(args: &DoctorArgs) -> Result<Vec<Sample>, Failure> {
    if let Some(path) = &args.file {
        let text = input::text(path, input::RECORDED_MAX).map_err(not_done)?;
        let mut samples = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let record = Record::parse(line)
                .map_err(|error| not_done(Failure::failed(format!("{}: {error}", path.display()))))?;
            samples.extend(record.before.into_iter().chain([record.now]));
        }
        return Ok(samples);
    }
    if args.root.is_some() || args.since_boot {
        return Ok(vec![record(args)?.now]);
    }
    let mut samples = vec![sample(args)?];
    for _ in 0..LOOKS {
        std::thread::sleep(args.interval / LOOKS);
        samples.push(sample(args)?);
    }
    Ok(samples)
}

/// The samples of a continuous run, masked if requested.
pub(super) struct Looks<'a> {
    args: &'a DoctorArgs,
    mask: Option<Mask>,
}

impl<'a> Looks<'a> {
    pub(super) fn new(args: &'a DoctorArgs) -> Looks<'a> {
        Looks { args, mask: args.mask.then(Mask::default) }
    }

    pub(super) fn next(&mut self) -> Result<Sample, Failure> {
        let mut sample = sample(self.args)?;
        if let Some(mask) = &mut self.mask {
            mask.apply(&mut sample);
        }
        Ok(sample)
    }
}

/// Takes one sample of the running kernel.
fn sample(args: &DoctorArgs) -> Result<Sample, Failure> {
    let read = match args.stack.named() {
        Some(control) => of_stack(control),
        None => in_namespace(args.netns.as_deref(), sources::here),
    };
    read.map_err(not_done)
}
