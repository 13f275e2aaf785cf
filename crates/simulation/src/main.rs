//! `cargo xtask simulate`: plays random worlds, shows failures, makes them smaller, and plays saved
//! ones again.

mod progress;

use clap::Parser;
use progress::Progress;
use simulation::campaign::{ATTACKED_EVERY, Campaign, Outcome, attempt};
use simulation::excuse::EXCUSES;
use simulation::journal::{Journal, Part};
use simulation::open::Open;
use simulation::shrink::shrink;
use simulation::world::{Ends, Summary};
use simulation::{Intensity, Scenario, greedy};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Two stacks in virtual time with everything drawn at random, and what must hold in every such
/// world.
#[derive(Parser)]
#[command(name = "cargo xtask simulate")]
struct Arguments {
    /// Worlds to play.
    #[arg(long, default_value_t = 20_000)]
    worlds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this seed, with every packet.
    #[arg(long, conflicts_with_all = ["worlds", "from", "replay"])]
    seed: Option<u64>,
    /// A scenario that was saved, with every packet.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["worlds", "from", "intensity", "attacked_every", "differential", "threads", "failures"]
    )]
    replay: Option<PathBuf>,
    /// defaults, one, few, many or all rows off their defaults; each in turn without it.
    #[arg(long, value_parser = parse_intensity)]
    intensity: Option<Intensity>,
    /// One in so many worlds has an attacker who knows every number; 0: none.
    #[arg(long, default_value_t = ATTACKED_EVERY)]
    attacked_every: u64,
    /// Plays each world on stacks with fast paths and on stacks without, which must send, tell and
    /// count the same.
    #[arg(long)]
    differential: bool,
    /// Threads; without it one for each core.
    #[arg(long)]
    threads: Option<usize>,
    /// Failures after which it ends.
    #[arg(long, default_value_t = 20)]
    failures: usize,
    /// Makes the first failure of each kind smaller, and prints it.
    #[arg(long)]
    shrink: bool,
    /// Writes what is shrunk into this folder, for --replay; without --shrink, the world of --seed
    /// as it is.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Writes what has been played into this file, 10,000 worlds a line, and plays only what it
    /// does not have: a campaign can be ended and goes on. --failures counts for each line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "replay", "shrink"])]
    journal: Option<PathBuf>,
    /// Plays worlds with greedy peers beside an honest one, which must be served; no other option
    /// than --worlds, --from, --seed and --threads matters then.
    #[arg(long)]
    greedy: bool,
    /// Prints every excuse there is, with its words, and plays nothing.
    #[arg(long)]
    excuses: bool,
}

fn parse_intensity(text: &str) -> Result<Intensity, String> {
    let known = Intensity::ALL.iter().find(|(name, _)| *name == text);
    known
        .map(|(_, intensity)| *intensity)
        .ok_or_else(|| "not one of: defaults, one, few, many, all".to_owned())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("simulate: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.excuses {
        EXCUSES.iter().for_each(|excuse| println!("{}\n    {}", excuse.name, excuse.words));
        return Ok(true);
    }
    if arguments.greedy {
        return Ok(play_greedy(arguments));
    }
    if arguments.differential && !cfg!(debug_assertions) {
        return Err("--differential needs a build with debug assertions: cargo xtask simulate".to_owned());
    }
    let campaign = Campaign {
        seeds: arguments.from..arguments.from.saturating_add(arguments.worlds),
        intensities: match arguments.intensity {
            Some(intensity) => vec![intensity],
            None => Intensity::ALL.map(|(_, intensity)| intensity).to_vec(),
        },
        attacked_every: arguments.attacked_every,
        differential: arguments.differential,
        open: match arguments.intensity.is_some() || arguments.attacked_every != ATTACKED_EVERY {
            true => Open::default(),
            false => Open::listed(),
        },
        threads: arguments
            .threads
            .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
            .unwrap_or(1),
        most_failures: arguments.failures.max(1),
    };
    if let Some(file) = &arguments.replay {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let scenario = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        return play_one(arguments, &scenario);
    }
    if let Some(seed) = arguments.seed {
        return play_one(arguments, &campaign.scenario(seed));
    }
    if let Some(file) = &arguments.journal {
        return play_on(campaign, file);
    }
    let mut progress = Progress::new(arguments.worlds);
    let mut outcome = campaign.run(|outcome| progress.show(&campaign, outcome));
    progress.end(&campaign, &outcome);
    let (open, gone) = set_open_apart(&campaign, &mut outcome);
    report(&outcome, open, progress.seconds());
    if arguments.shrink {
        let mut kinds = BTreeMap::new();
        outcome.failures.iter().for_each(|(seed, failure)| {
            kinds.entry(&failure.kind).or_insert(*seed);
        });
        for seed in kinds.into_values() {
            show_smaller(arguments, seed, &campaign.scenario(seed))?;
        }
    }
    Ok(outcome.failures.is_empty() && !gone)
}

/// Plays worlds with greedy peers. True: the honest one was served in all.
fn play_greedy(arguments: &Arguments) -> bool {
    let seeds = match arguments.seed {
        Some(seed) => seed..seed.saturating_add(1),
        None => arguments.from..arguments.from.saturating_add(arguments.worlds),
    };
    let worlds = seeds.end - seeds.start;
    let threads =
        arguments.threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let (held, failures) = greedy::play_all(seeds, threads);
    for (seed, failure) in failures.iter().take(arguments.failures) {
        println!("FAILED {seed}: {failure}");
    }
    println!(
        "{worlds} worlds with greedy peers, {} packets: {} answers to the honest one, the latest after {} ms; {} connections reset for \
         their memory, {} SYNs refused",
        held.packets, held.served, held.longest_ms, held.gave_way, held.refused
    );
    println!("{} passed, {} failed", worlds - failures.len() as u64, failures.len());
    failures.is_empty()
}

/// Plays one with every packet.
fn play_one(arguments: &Arguments, scenario: &Scenario) -> Result<bool, String> {
    let held = show(scenario);
    match (&arguments.save, arguments.shrink) {
        (_, true) if !held => show_smaller(arguments, scenario.seed, scenario)?,
        (Some(folder), false) => save(folder, scenario.seed, &json(scenario)?)?,
        _ => {}
    }
    Ok(held)
}

/// Takes the listed failures out of the outcome, and names them: how many there were, and whether
/// one that is listed fails no more, or otherwise.
fn set_open_apart(campaign: &Campaign, outcome: &mut Outcome) -> (u64, bool) {
    let listed = &campaign.open;
    let played = campaign.seeds.start..campaign.seeds.start + outcome.worlds;
    let gone: Vec<u64> = listed.gone(played, &outcome.failures).collect();
    let all = outcome.failures.len();
    outcome.failures.retain(|(seed, failure)| {
        let is_listed = listed.has(*seed, failure);
        if is_listed {
            println!("open, as listed in crates/simulation/open.txt: {seed}: {}", failure.kind);
        }
        !is_listed
    });
    gone.iter().for_each(|seed| {
        println!("FAILED {seed}: it does not fail as crates/simulation/open.txt says; take it out there")
    });
    ((all - outcome.failures.len()) as u64, !gone.is_empty())
}

/// Plays what a journal does not have yet.
fn play_on(mut campaign: Campaign, file: &Path) -> Result<bool, String> {
    let mut journal = Journal::open(file)?;
    let all = campaign.seeds.clone();
    let mut progress = Progress::new(journal.missing(&campaign));
    let mut held = true;
    while let Some(seeds) = journal.next(&campaign) {
        campaign.seeds = seeds;
        let outcome = campaign.run(|outcome| progress.show(&campaign, outcome));
        progress.end(&campaign, &outcome);
        held &= outcome.failures.is_empty();
        if campaign.unlisted(&outcome) >= campaign.most_failures {
            return Err("too many failures: the part is not written down".to_owned());
        }
        journal.add(Part::new(&campaign, &outcome))?;
        campaign.seeds = all.clone();
    }
    println!("this run: {:.0} s; the journal: {}", progress.seconds(), journal.sum());
    Ok(held)
}

/// Plays one and prints what happens. True: it held.
fn show(scenario: &Scenario) -> bool {
    for (side, host) in ["client", "server"].into_iter().zip(&scenario.hosts) {
        let base = if host.linux { "Linux's settings" } else { "our settings" };
        println!("{side}: {base}, MTU {}", host.mtu);
        host.settings.iter().for_each(|(name, value)| println!("    {name} = {value}"));
    }
    println!("scenario {}", scenario.hash());
    scenario.refused().iter().for_each(|refused| println!("REFUSED, and left out: {refused}"));
    match attempt(scenario, true) {
        Ok(summary) => {
            println!("held; {} packets, excused: {:?}", summary.packets, summary.excused);
            true
        }
        Err(failure) => {
            println!("FAILED: {failure}");
            false
        }
    }
}

fn show_smaller(arguments: &Arguments, seed: u64, scenario: &Scenario) -> Result<(), String> {
    let Err(failure) = attempt(scenario, false) else { return Ok(()) };
    let text = json(&shrink(scenario, &failure.kind))?;
    println!("\n--- seed {seed}, made smaller: {} ---", failure.kind);
    match &arguments.save {
        Some(folder) => save(folder, seed, &text),
        None => {
            println!("{text}");
            Ok(())
        }
    }
}

fn json(scenario: &Scenario) -> Result<String, String> {
    serde_json::to_string_pretty(scenario).map_err(|error| error.to_string())
}

fn save(folder: &Path, seed: u64, text: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join(format!("{seed}.json"));
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("saved: cargo xtask simulate --replay {}", file.display());
    Ok(())
}

fn report(outcome: &Outcome, open: u64, seconds: f64) {
    let Outcome { worlds, totals, failures, core } = outcome;
    let Summary { packets, bytes, ends, drops, fingerprint, .. } = totals;
    println!(
        "{worlds} worlds, {seconds:.1} s ({:.1} of processors): {packets} packets, {bytes} bytes read, {drops} packets dropped by a stack",
        core.as_secs_f64()
    );
    let Ends { complete, left, ended, without } = ends;
    println!(
        "  ends of connections: {complete} complete, {left} left early, {ended} told that it is over, {without} without one"
    );
    let moved = totals.counters.iter().filter(|count| **count > 0).count();
    println!(
        "  counters that moved: {moved} of {}; fingerprint of all packets {fingerprint:016x}",
        totals.counters.len()
    );
    if !totals.fast_paths.is_empty() {
        let taken: Vec<String> =
            totals.fast_paths.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("  fast paths taken: {}", taken.join(", "));
    }
    for (name, count) in &totals.excused {
        println!("  excused {count:>8}  {name}");
    }
    let mut kinds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    failures.iter().for_each(|(seed, failure)| kinds.entry(&failure.kind).or_default().push(*seed));
    for (kind, seeds) in &kinds {
        println!("  FAILED {:>4}  {kind}; seeds {:?}", seeds.len(), &seeds[..seeds.len().min(8)]);
        if let Some((seed, failure)) = failures.iter().find(|(_, failure)| failure.kind == **kind) {
            println!("        {seed}: {}", failure.seen);
        }
    }
    println!("{open} are known to fail and open");
    println!("{} passed, {} failed", worlds - failures.len() as u64 - open, failures.len());
}
