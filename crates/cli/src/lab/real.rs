//! `firstbyte lab … --host`: a scenario in real time, with the kernel's TCP at one or both ends of
//! its path.

mod kernel;

use super::args::{Hosts, OutputArgs};
use crate::failure::Failure;
use crate::link::end::{End, wait};
use crate::terminal::{page_style, print};
use ::lab::experiment::{Beside, Experiment, RealPlayed, RealRun, Standing};
use ::lab::report::{Align, Page, Table};
use kernel::{Clock, Kernel};
use serde_json::json;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// A run ends when nothing has happened for this long after its client's last step.
const STILL: Duration = Duration::from_millis(300);
/// A device that accepts nothing for this long is considered broken.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest sleep of the loop: a program may end without a packet.
const GLANCE: Duration = Duration::from_millis(10);

/// Highest priority (nice value) of a thread and its children.
const MOST_URGENT: i32 = -20;

/// Runs a scenario, one run after another, and shows the results beside those of virtual time.
pub(super) fn run(experiment: &Experiment, hosts: Hosts, output: &OutputArgs) -> Result<ExitCode, Failure> {
    let runs = experiment.real_runs(hosts.0).map_err(Failure::failed)?;
    let played: Result<Vec<RealPlayed>, Failure> = runs.iter().map(play).collect();
    let figures = experiment.beside(played?).map_err(Failure::failed)?;
    let holds = figures.iter().all(|figure| figure.real_time.as_ref().map_or(true, |finding| finding.holds));
    print(&if output.json { values(experiment, &figures) } else { page(experiment, &figures) })?;
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn play(run: &RealRun<'_>) -> Result<RealPlayed, Failure> {
    let told = |error: String| Failure::failed(format!("run `{}`: {error}", run.name()));
    // Reduces the influence of other processes. Needs root, as everything here does.
    let _ = rustix::process::setpriority_process(None, MOST_URGENT);
    // Twice the virtual time, plus a reserve.
    let clock = Clock::start(run.takes().map_err(told)? * 2 + Duration::from_secs(5));
    let mut standing = run.stand().map_err(told)?;
    let mut kernels = [None, None];
    let mut ends = [None, None];
    for end in [0, 1] {
        if let Some(plan) = run.kernel_end(end) {
            let (kernel, device) = Kernel::prepare(plan, run.mtu(), &clock)?;
            (kernels[end], ends[end]) = (Some(kernel), Some(End::new(device)));
        }
    }
    carry(run, &mut standing, &clock, &mut kernels, &mut ends)
        .map_err(|error| Failure::failed(format!("run `{}`: the path failed: {error}", run.name())))?;
    let mut seen = [None, None];
    for (kernel, seen) in kernels.into_iter().zip(&mut seen) {
        if let Some(kernel) = kernel {
            let kernel = kernel.told();
            *seen = Some(kernel.map_err(|error| told(format!("a program on the kernel: {error}")))?);
        }
    }
    Ok(run.played(standing, seen))
}

/// Moves packets until both programs have ended and no packet is in flight.
fn carry(
    run: &RealRun<'_>,
    standing: &mut Standing,
    clock: &Clock,
    kernels: &mut [Option<Kernel>; 2],
    ends: &mut [Option<End>; 2],
) -> io::Result<()> {
    standing.network.run_to(clock.now());
    run.start_client(standing);
    kernels.iter_mut().flatten().for_each(Kernel::start);
    let mut stirred_at = clock.now();
    while !clock.left().is_zero() {
        standing.network.run_to(clock.now());
        for (end, host) in ends.iter_mut().zip(standing.ends) {
            let Some(end) = end else { continue };
            for packet in end.read()?.into_iter().filter(|packet| is_of_interest(packet)) {
                standing.network.enter(host, packet);
                stirred_at = clock.now();
            }
        }
        // Includes the packets that have just left the path.
        for (end, host) in ends.iter_mut().zip(standing.ends) {
            let Some(end) = end else { continue };
            for packet in standing.network.take_arrived(host) {
                stirred_at = clock.now();
                if !end.give_within(&packet, PATIENCE)? {
                    return Err(io::Error::other("the kernel has accepted no packet for a second"));
                }
            }
            end.flush()?;
        }
        let client_is_over = kernels[0].as_ref().is_none_or(Kernel::is_over);
        let is_still = standing.network.is_quiet() && clock.now().since(stirred_at) > STILL;
        if client_is_over && is_still {
            kernels.iter().flatten().for_each(Kernel::end);
        }
        if is_still && kernels.iter().flatten().all(Kernel::is_over) {
            return Ok(());
        }
        let most = standing.network.idle_for(clock.now()).map_or(GLANCE, |idle| idle.min(GLANCE));
        let mut descriptors: Vec<_> = ends.iter().flatten().filter_map(End::poll_fd).collect();
        wait(&mut descriptors, Some(most))?;
    }
    Ok(())
}

/// True for TCP and ICMP over IPv4: a kernel sends other packets that no scenario is about.
fn is_of_interest(packet: &[u8]) -> bool {
    matches!(packet, [version, ..] if version >> 4 == 4) && matches!(packet.get(9), Some(1 | 6))
}

fn page(experiment: &Experiment, figures: &[Beside]) -> String {
    let mut page = Page::new(page_style());
    page.heading(experiment.question());
    let mut table = Table::new([
        ("", Align::Left),
        ("virtual", Align::Right),
        ("measured", Align::Right),
        ("difference", Align::Right),
        ("expected", Align::Left),
    ]);
    for figure in figures {
        let there = &figure.virtual_time;
        let here = figure.real_time.as_ref().map_or("–".to_owned(), |finding| finding.ours.clone());
        let difference =
            figure.difference().map_or("–".to_owned(), |share| format!("{:+.1} %", 100.0 * share));
        table.row([there.what.clone(), there.ours.clone(), here, difference, there.criterion.clone()]);
    }
    page.table(&table);
    page.gap();
    for figure in figures {
        match &figure.real_time {
            Ok(finding) => page.verdict(
                finding.holds,
                &format!("{}: {} ({})", finding.what, finding.ours, finding.criterion),
            ),
            Err(why) => page.line(&format!("not measured: {}: {why}", figure.virtual_time.what)),
        }
    }
    page.into_text()
}

fn values(experiment: &Experiment, figures: &[Beside]) -> String {
    let of = |figure: &Beside| {
        let real = figure.real_time.as_ref();
        json!({
            "what": figure.virtual_time.what, "expected": figure.virtual_time.criterion,
            "virtual": figure.virtual_time.value,
            "measured": real.ok().and_then(|finding| finding.value),
            "not_measured": real.err(),
            "difference": figure.difference(),
            "holds": real.ok().map(|finding| finding.holds),
        })
    };
    let figures: Vec<_> = figures.iter().map(of).collect();
    format!("{:#}\n", json!({ "question": experiment.question(), "figures": figures }))
}
