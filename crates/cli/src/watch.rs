//! `firstbyte watch`: a host's connections, queues, counters and findings on a terminal, as they change.
//!
//! - `watch/ending.rs`: signals and closed terminals, after which the terminal is as it was;
//! - `watch/series.rs`: samples one after another, of the kernel or of a recorded series;
//! - `watch/state.rs`: what is shown, and what keys do to it; `watch/view.rs`: how it looks.
mod ending;
mod series;
mod state;
mod view;

use crate::failure::Failure;
use crate::terminal::{is_dumb, is_utf8};
use crate::values;
use crate::whom::KernelArgs;
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

/// Watch this host's TCP on a terminal: connections with their rates and limits, counters that move, queues, and findings as they come and go.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte watch\n  firstbyte watch --record series.jsonl    then elsewhere: firstbyte watch --replay series.jsonl\n\n\
                  Keys: up and down choose a connection, Enter shows it over time, s sorts by the next column and r the other way,\n\
                  / filters, f shows the findings in full, c the counters, Space stops, q ends.\n\
                  Without a terminal: firstbyte doctor --watch."
)]
pub(crate) struct WatchArgs {
    /// The time between two looks.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::positive_duration)]
    interval: Duration,
    /// Show a series that --record has saved; the right arrow key goes on.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["netns", "record"])]
    replay: Option<PathBuf>,
    /// Save every sample, a line each.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Look less often than --interval where looking would take more than this share of a core.
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = values::percent)]
    budget: f64,
    #[command(flatten)]
    whom: KernelArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode, Failure> {
    // A series of --record empties its file.
    if !stdout().is_terminal() {
        return Err(Failure::usage("this needs a terminal; firstbyte doctor --watch prints lines"));
    }
    if is_dumb() {
        return Err(Failure::usage(
            "this terminal cannot draw a page (TERM is dumb); firstbyte doctor --watch prints lines",
        ));
    }
    let mut series = match &args.replay {
        Some(path) => Series::replay(path)?,
        None => Series::live(&args.whom, args.record.as_deref())?,
    };
    let pace = Pace::new(args.interval, args.budget);
    let first = first(&mut series)?;
    let mut state = State::new(first, args.replay.is_some());
    let ending = Ending::install().map_err(Failure::no_signals)?;
    // After a panic, too, the terminal is as it was: a hook of its own restores it.
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
    let failed = |error: std::io::Error| Failure::failed(format!("the terminal: {error}"));
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
