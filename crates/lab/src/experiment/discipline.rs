//! A queueing discipline from the command line, for every run that has a place for it.

use super::file::{EndPart, File, RunPart};
use super::play::Variant;

/// The result of placing a discipline.
pub(super) struct Placed {
    pub(super) runs: Vec<RunPart>,
    /// Names of the runs that use it.
    pub(super) taken: Vec<String>,
}

/// Puts `words` before the bottleneck of each run: that of its path, or, if the path has no rate,
/// that of a card. Runs that name their own discipline keep it, and so does a file whose `[path]`
/// names one.
///
/// # Errors
/// The reason why no run can use it.
pub(super) fn placed(file: &File, runs: &[RunPart], words: &str) -> Result<Placed, String> {
    let mut placed = Placed { runs: runs.to_vec(), taken: Vec::new() };
    let mut keeps = 0;
    for run in &mut placed.runs {
        let variant = Variant::of(file, run);
        let has_line = |end: &EndPart| end.device.as_ref().is_some_and(|device| device.rate.is_some());
        let card = match variant.ends.each_ref().map(has_line) {
            _ if variant.path.rate.is_some() => None,
            [_, true] => Some(&mut run.server.device),
            [true, false] => Some(&mut run.client.device),
            [false, false] => continue,
        };
        let discipline = match card {
            Some(device) => &mut device.get_or_insert_default().qdisc,
            None => &mut run.path.qdisc,
        };
        if discipline.is_some() {
            keeps += 1;
            continue;
        }
        *discipline = Some(words.to_owned());
        placed.taken.push(run.name.clone());
    }
    match (placed.taken.is_empty(), keeps) {
        (false, _) => Ok(placed),
        (true, 0) => {
            Err("neither its path nor a card has a rate, so no packet waits and a discipline has no effect"
                .into())
        }
        (true, _) => {
            Err("every run has its own discipline; vary them with `firstbyte lab sweep --vary run.NAME.path.qdisc=…`"
                .into())
        }
    }
}
