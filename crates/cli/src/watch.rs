//! `firstbyte watch`: a host's connections, queues, counters and findings on a terminal, live.
//!
//! - `watch/ending.rs`: signals and closed terminals, with the terminal restored;
//! - `watch/series.rs`: a series of samples, of the kernel or a recording;
//! - `watch/state.rs`: the state, and the keys that change it; `watch/view.rs`: its appearance.
mod ending;
mod series;
mod state;
mod view;

use crate::failure::Failure;
use crate::source::KernelArgs;
use crate::terminal::{is_dumb, is_utf8};
use crate::values;
use clap::Args;
use doctor::{Pace, Sample};
use ending::Ending;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use series::Series;
use state::{Next, State};
use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Watch this host's TCP live on a terminal: connections, limits, counters, findings
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte watch\n  \
    firstbyte watch --record series.jsonl    then elsewhere: firstbyte watch --replay \
    series.jsonl\n\n\
    Keys: up and down select a connection, Enter shows its history, s sorts by the next column \
    and r reverses the order,\n\
    / filters, f shows the findings in full, c the counters, Space pauses, q quits.\n\
    Without a terminal, use firstbyte doctor --watch.")]
pub(crate) struct WatchArgs {
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    interval: Duration,
    /// Show a series saved with --record; the right arrow key shows the next sample
    #[arg(long, value_name = "FILE", conflicts_with_all = ["netns", "record"])]
    replay: Option<PathBuf>,
    /// Save every sample to FILE, one per line
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Sample less often than --interval if sampling takes more than this share of a core
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = values::percent)]
    budget: f64,
    #[command(flatten)]
    source: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode, Failure> {
    // `--record` empties its file, so check the terminal first.
    if !stdout().is_terminal() {
        return Err(Failure::usage("watch needs a terminal; use `firstbyte doctor --watch` to print lines"));
    }
    if is_dumb() {
        return Err(Failure::usage(
            "this terminal cannot draw pages (TERM is dumb); use `firstbyte doctor --watch` to \
            print lines",
        ));
    }
    let mut series = match &args.replay {
        Some(path) => Series::replay(path)?,
        None => Series::live(&args.source, args.record.as_deref())?,
    };
    let pace = Pace::new(args.interval, args.budget);
    let first = first(&mut series)?;
    let mut state = State::new(first, args.replay.is_some());
    let ending = Ending::install().map_err(Failure::no_signals)?;
    // Its hook also restores the terminal after a panic.
    let mut terminal = ratatui::init();
    let done = watch(args, &mut series, pace, &mut state, &mut terminal, &ending);
    // Shows the cursor again.
    drop(terminal);
    ratatui::restore();
    let _ = stdout().flush();
    ending.follow();
    done.map(|()| ExitCode::SUCCESS)
}

fn first(series: &mut Series<'_>) -> Result<Sample, Failure> {
    series.next()?.ok_or_else(|| Failure::failed("the series has no sample"))
}

fn watch(
    args: &WatchArgs,
    series: &mut Series<'_>,
    mut pace: Pace,
    state: &mut State,
    terminal: &mut ratatui::DefaultTerminal,
    ending: &Ending,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("terminal error: {error}"));
    let mut next_at = Instant::now() + pace.rest();
    let has_unicode = is_utf8();
    loop {
        terminal.draw(|frame| view::draw(frame, state, has_unicode)).map_err(failed)?;
        let mut step = false;
        ending.wait(next_at.saturating_duration_since(Instant::now())).map_err(failed)?;
        if ending.is_asked() {
            return Ok(());
        }
        if event::poll(Duration::ZERO).map_err(failed)?
            && let Event::Key(key) = event::read().map_err(failed)?
            && key.kind == KeyEventKind::Press
        {
            match state.key(key) {
                Next::End => return Ok(()),
                Next::Step => step = true,
                Next::Stay => {}
            }
        }
        if step || (Instant::now() >= next_at && !state.is_paused()) {
            match series.next()? {
                Some(sample) => state.take(sample, pace.slowed()),
                None => state.end(),
            }
            next_at = Instant::now() + if state.replayed { args.interval } else { pace.rest() };
        } else if state.is_paused() {
            next_at = Instant::now() + args.interval;
        }
    }
}
