//! `firstbyte lab sweep`: a scenario with several values and seeds.

use super::args::SweepArgs;
use super::{draw_document, parallel, shelf};
use crate::failure::Failure;
use crate::input;
use crate::output::write_with;
use crate::terminal::{page_style, print};
use ::lab::experiment::{SHELF, Sweep, Swept};
use ::lab::report::{Page, Report, document};
use ::lab::scenario::CATALOGUE;
use std::path::Path;
use std::process::ExitCode;

/// Runs the sweep and shows its results.
pub(super) fn run(args: &SweepArgs) -> Result<ExitCode, Failure> {
    #[cfg(not(feature = "parquet"))]
    if args.output.parquet.is_some() {
        return Err(crate::absent::failure("write Parquet", "parquet"));
    }
    let text = text_of(&args.what)?;
    let (repeats, seed, limits) = (args.repeat.into(), args.output.seed, args.limit.unwrap_or_default());
    let sweep = Sweep::new(&text, args.vary.clone(), repeats, seed, &args.measure, limits);
    let sweep = sweep.map_err(|error| Failure::failed(format!("{}: {error}", args.what)))?;
    let (i, n) = args.shard.unwrap_or((1, 1));
    let mine: Vec<usize> = (i - 1..sweep.plays()).step_by(n).collect();
    let samples = parallel::each(&mine, |play| format!("play {}", play + 1), |play| sweep.play(*play));
    let samples: Result<Vec<_>, String> = samples.into_iter().collect();
    let swept =
        Swept::new(&sweep, samples.map_err(|error| Failure::failed(format!("{}: {error}", args.what)))?);
    if let Some(path) = &args.output.csv {
        write_with(path, |out| swept.write_csv(out))?;
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &args.output.parquet {
        write_with(path, |out| swept.write_parquet(out))?;
    }
    draw_document(
        || document(&format!("sweep {}", args.what), sweep.question(), &swept),
        args.output.html.as_deref(),
        args.output.svg.as_deref(),
    )?;
    if args.output.json {
        return print(&format!("{:#}\n", swept.json()));
    }
    let mut page = Page::new(page_style());
    swept.render(&mut page);
    let output = &args.output;
    for path in [&output.csv, &output.parquet, &output.html, &output.svg].into_iter().flatten() {
        page.gap();
        page.line(&format!("More is in {}.", path.display()));
    }
    print(&page.into_text())
}

/// Returns the text of a built-in scenario or of a file.
fn text_of(what: &str) -> Result<String, Failure> {
    if let Some(shelved) = SHELF.iter().find(|shelved| shelved.name == what) {
        return Ok(shelved.text.to_owned());
    }
    if CATALOGUE.iter().any(|entry| entry.name == what) {
        return Err(Failure::usage(format!(
            "cannot sweep `{what}`: it is not a scenario file, and has its own options (`firstbyte \
            lab {what} --help`); use a scenario that is a file, such as round-trips"
        )));
    }
    let path = Path::new(what);
    if !path.exists() && !what.ends_with(".toml") {
        return Err(shelf::unknown(what));
    }
    input::text(path, input::WRITTEN_MAX)
}
