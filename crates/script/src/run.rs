//! Runs a script in virtual time on the sockets of `posix`. It uses nothing of the system and waits
//! for no real time.
//!
//! | module | subject |
//! |---|---|
//! | `setup` | addresses, ports, tolerance |
//! | `world` | one host, its clock, the packets that left, the blocked call |
//! | `files` | the files that `open` finds |
//! | `flow`, `segment` | numbers of a connection; conversion of packets between values and bytes |
//! | `packets` | packets that arrive, and packets that are expected |
//! | `constants`, `values`, `calls` | names of numbers, arguments, and system calls |
//! | `shell`, `commands`, `settings` | the supported shell commands; the names of `sysctl` |
//! | `tcp_info` | the values that snippets can query |
//! | `failure` | a failed expectation |

mod calls;
mod commands;
mod constants;
mod failure;
mod files;
mod flow;
mod packets;
mod segment;
mod settings;
mod setup;
mod shell;
mod tcp_info;
mod values;
mod world;

pub use failure::Failure;
pub use setup::Setup;
pub use world::Passed;

use crate::ast::{Action, Call, Direction, Event, Script, When};
use crate::code::Variables;
use crate::print::Seconds;
use files::OpenFile;
use flow::Flow;
use posix::{Sockets, scripted};
use proto::Counters;
use std::collections::BTreeMap;
use world::{Ended, World};

/// What packetdrill's `set_sysctls.py` leaves behind to undo what it did; here that ends with the run.
const RESTORES: &str = "/tmp/sysctl_restore_${PPID}.sh";
/// How long a call may wait of which the script does not say that it waits, microseconds.
const CALL_TIMEOUT: i64 = 1_000_000_000;

/// Runs a script on a stack with Linux's profile.
///
/// # Errors
/// The first event that does not hold.
pub fn run(script: &Script, setup: Setup) -> Result<(), Failure> {
    let setup = setup.with_options_of(script)?;
    if setup.dry_run {
        return check_in(script, setup);
    }
    Runner::new(setup).all(script)
}

/// Runs a script like [`run`]. Also returns every packet that passed, up to a failure.
pub fn run_captured(script: &Script, setup: Setup) -> (Result<(), Failure>, Vec<Passed>) {
    let setup = match setup.with_options_of(script) {
        Ok(setup) if setup.dry_run => return (check_in(script, setup), Vec::new()),
        Ok(setup) => setup,
        Err(failure) => return (Err(failure), Vec::new()),
    };
    let mut runner = Runner::new(setup);
    runner.world.passed = Some(Vec::new());
    let outcome = runner.all(script);
    (outcome, runner.world.passed.take().unwrap_or_default())
}

/// Checks that all of a script is supported: calls, names, commands, snippets. Nothing is run.
///
/// # Errors
/// Returns the first event that is not supported.
pub fn check(script: &Script, setup: Setup) -> Result<(), Failure> {
    check_in(script, setup.with_options_of(script)?)
}

fn check_in(script: &Script, setup: Setup) -> Result<(), Failure> {
    let mut runner = Runner::new(setup);
    for file in &runner.setup.init_scripts {
        runner.check_command(1, file)?;
    }
    if let Some(init) = &script.init {
        runner.check_command(init.line, &init.value)?;
    }
    for event in &script.events {
        runner.check_action(event.action.line, &event.action.value)?;
    }
    match &script.cleanup {
        Some(cleanup) if cleanup.value.trim() != RESTORES => {
            runner.check_command(cleanup.line, &cleanup.value)
        }
        _ => Ok(()),
    }
}

struct Runner<'a> {
    setup: Setup,
    world: World,
    flows: Vec<Flow>,
    /// The flow that packets of the script belong to.
    under_test: usize,
    next_peer_port: u16,
    /// Descriptors of the script and of the stack.
    fds: BTreeMap<i64, i32>,
    /// Files that commands made, and how long they are: they hold zeros.
    files: BTreeMap<String, u64>,
    /// The script's descriptors of files that were opened.
    open_files: BTreeMap<i64, OpenFile>,
    pending: Option<Pending<'a>>,
    /// Script's time of the event before, microseconds.
    before: i64,
    variables: Variables,
    /// What `nstat` counts from.
    counted: Counters,
}

/// A call that waits.
struct Pending<'a> {
    line: usize,
    call: &'a Call,
    /// When it should return.
    end: i64,
    /// How much earlier or later it may.
    tolerance: i64,
}

impl<'a> Runner<'a> {
    fn new(setup: Setup) -> Runner<'a> {
        let mut stack = scripted::stack(setup.local, setup.mtu, setup.seed);
        stack.fix_isn(setup.local_isn);
        let counted = stack.counters().clone();
        Runner {
            next_peer_port: setup.first_peer_port,
            world: World::new(Sockets::new(stack, scripted::FD_BASE), scripted::start()),
            setup,
            flows: Vec::new(),
            under_test: 0,
            fds: BTreeMap::new(),
            files: BTreeMap::new(),
            open_files: BTreeMap::new(),
            pending: None,
            before: 0,
            variables: Variables::default(),
            counted,
        }
    }

    fn all(&mut self, script: &'a Script) -> Result<(), Failure> {
        for file in self.setup.init_scripts.clone() {
            self.command(1, &file)?;
        }
        if let Some(init) = &script.init {
            self.command(init.line, &init.value)?;
        }
        for event in &script.events {
            self.event(event)?;
        }
        // What the last command undoes ends with the run.
        self.finish_call()
    }

    fn event(&mut self, event: &'a Event) -> Result<(), Failure> {
        let line = event.action.line;
        let base = self.world.micros();
        let after = |at: i64| self.world.after(at).map_err(|message| Failure::new(line, message));
        let (from, to) = match event.time {
            When::Absolute(at) => (at, at),
            When::Relative(at) => (after(at)?, after(at)?),
            When::Any => (base, i64::MAX),
            When::AbsoluteRange(from, to) => (from, to),
            When::RelativeRange(from, to) => (after(from)?, after(to)?),
        };
        let tolerance = self.tolerance(from - self.before);
        let action = &event.action.value;
        let happened = match action {
            Action::Packet(packet) if packet.direction == Direction::Out => self.expect(line, packet)?,
            _ => {
                self.world.wait_until(from);
                let now = self.world.micros();
                self.act(line, action, event.time)?;
                now
            }
        };
        self.before = from;
        if event.time != When::Any {
            check_time(line, action, happened, (from, to), tolerance)?;
        }
        self.look_at_call()
    }

    fn act(&mut self, line: usize, action: &'a Action, time: When) -> Result<(), Failure> {
        match action {
            Action::Packet(packet) => self.inject(line, packet),
            Action::Call(call) => self.call(line, call, time),
            Action::Command(text) => self.command(line, text),
            Action::Code(text) => self.code(line, text),
        }
    }

    fn check_action(&mut self, line: usize, action: &Action) -> Result<(), Failure> {
        match action {
            Action::Packet(packet) => segment::check(packet, self.setup.local.is_ipv4()),
            Action::Command(text) => return self.check_command(line, text),
            Action::Code(text) => crate::code::check(text),
            Action::Call(call) => {
                self.check_call(call).map_err(|message| format!("{}: {message}", call.name))
            }
        }
        .map_err(|message| Failure::new(line, message))
    }

    /// How far an event may be off that comes so long after the one before.
    fn tolerance(&self, since: i64) -> i64 {
        let part = since as f64 * self.setup.tolerance_percent / 100.0;
        self.setup.tolerance_usecs.max(part as i64)
    }

    fn call(&mut self, line: usize, call: &'a Call, time: When) -> Result<(), Failure> {
        self.finish_call()?;
        let begun = self.world.micros();
        let attempt =
            self.attempt(call).map_err(|message| Failure::new(line, format!("{}: {message}", call.name)))?;
        self.world.begin(attempt);
        self.learn_local_ends();
        let Some(end) = call.end else {
            while self.world.is_waiting() && self.world.step(begun + CALL_TIMEOUT) {}
            return match self.world.take_ended() {
                Some(ended) => self.judge(line, call, ended),
                None => {
                    let name = &call.name;
                    let message = format!(
                        "{name} waits, and nothing ends it: say when it returns, as in `+0...0.2 {name}(…)`"
                    );
                    Err(Failure::new(line, message))
                }
            };
        };
        let end = match time {
            When::Relative(at) => begun - at + end,
            When::Any | When::RelativeRange(..) => begun + end,
            When::Absolute(_) | When::AbsoluteRange(..) => end,
        };
        let tolerance = self.tolerance(end - begun);
        self.pending = Some(Pending { line, call, end, tolerance });
        Ok(())
    }

    /// The call that waits must end before there is another, and before the script ends.
    fn finish_call(&mut self) -> Result<(), Failure> {
        if let Some(pending) = &self.pending {
            let latest = pending.end + pending.tolerance;
            while self.world.is_waiting() && self.world.step(latest) {}
        }
        self.look_at_call()?;
        match self.pending.take() {
            None => Ok(()),
            Some(Pending { line, call, end, .. }) => {
                let message = format!("{} has not returned", call.name);
                let seen = format!("still waits at {} s", Seconds(self.world.micros()));
                Err(Failure::new(line, message).beside(format!("returns at {} s", Seconds(end)), seen))
            }
        }
    }

    /// Has the call that waits ended by now?
    fn look_at_call(&mut self) -> Result<(), Failure> {
        let Some(ended) = self.world.take_ended() else { return Ok(()) };
        let Some(Pending { line, call, end, tolerance }) = self.pending.take() else { return Ok(()) };
        let at = ended.at;
        self.judge(line, call, ended)?;
        if (at - end).abs() <= tolerance {
            return Ok(());
        }
        let expected = format!("returns at {} s (give or take {} s)", Seconds(end), Seconds(tolerance));
        let message = format!("{} returned at another time", call.name);
        Err(Failure::new(line, message).beside(expected, format!("returns at {} s", Seconds(at))))
    }

    /// Compares what a call gave with what the script says.
    fn judge(&mut self, line: usize, call: &Call, ended: Ended) -> Result<(), Failure> {
        let seen = match &ended.result {
            Ok(answer) => answer.value.to_string(),
            Err(errno) => format!("-1 {errno:?}"),
        };
        let expected = match &call.errno {
            Some(errno) => format!("{} {errno}", call.result),
            None => call.result.to_string(),
        };
        let same = self.is_expected(call, &ended.result).map_err(|message| Failure::new(line, message))?;
        if !same {
            let message = format!("{} returned something else", call.name);
            return Err(Failure::new(line, message).beside(expected, seen));
        }
        for told in ended.result.iter().flat_map(|answer| &answer.told) {
            if told.expected != told.seen {
                let message = format!("{} told something else", call.name);
                let show = |value: i64| format!("{} {value} ({value:#x})", told.what);
                return Err(Failure::new(line, message).beside(show(told.expected), show(told.seen)));
            }
        }
        self.learn(call, ended.result.ok());
        Ok(())
    }
}

fn check_time(
    line: usize,
    action: &Action,
    happened: i64,
    (from, to): (i64, i64),
    tolerance: i64,
) -> Result<(), Failure> {
    if (from - tolerance..=to + tolerance).contains(&happened) {
        return Ok(());
    }
    let (what, text) = match action {
        Action::Packet(packet) => ("the packet is right, but not its time", format!("{packet} ")),
        _ => ("time has gone on beyond this event", String::new()),
    };
    let range =
        if from == to { Seconds(from).to_string() } else { format!("{}~{}", Seconds(from), Seconds(to)) };
    let expected = format!("{text}at {range} s (give or take {} s)", Seconds(tolerance));
    Err(Failure::new(line, what).beside(expected, format!("{text}at {} s", Seconds(happened))))
}
