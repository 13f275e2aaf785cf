//! `firstbyte ss`: sockets in the words of ss(8), of the kernel or of a stack of ours. A stack's own process makes its list (`control/listing.rs`).
use crate::control::{ControlArgs, ask, sample as of_stack};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::{is_unread, print};
use crate::values;
use crate::whom::WhomArgs;
use clap::Args;
use control::{Listing, Request, Which};
use doctor::show::limits::Looks;
use doctor::show::sockets::{self, View};
use doctor::{Finding, Report, Sample, Window, sources};
use firstbyte::State;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// List TCP sockets as ss(8) does: queues, ends, and what a connection does just now.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte ss -tin\n  firstbyte ss -tlnp\n  firstbyte ss -l --explain\n  firstbyte ss --limits --interval 1s\n  firstbyte serve &\n  firstbyte ss -io --stack\n  firstbyte ss --trace --stack\n\n\
                  Without -a, -l and --state: connections that are neither half open nor in TIME-WAIT.\n\
                  Recv-Q and Send-Q: of a listener, what waits to be accepted and the backlog;\n\
                  of a connection, bytes that were not read and bytes that were not acknowledged."
)]
pub(crate) struct SsArgs {
    /// Every socket.
    #[arg(short, long, conflicts_with_all = ["listening", "summary"])]
    all: bool,
    /// Listeners.
    #[arg(short, long, conflicts_with = "summary")]
    listening: bool,
    /// Sockets in this state, e.g. established, syn-recv, close-wait.
    #[arg(long, value_parser = state, conflicts_with_all = ["all", "listening", "summary"])]
    state: Option<u8>,
    /// Sockets with this port at either end.
    #[arg(long, conflicts_with = "summary", value_parser = values::port)]
    port: Option<u16>,
    /// What TCP knows of each connection, under the names of ss(8).
    #[arg(short, long, conflicts_with = "summary")]
    info: bool,
    /// Memory of each socket.
    #[arg(short, long, conflicts_with = "summary")]
    memory: bool,
    /// The timer of each socket: what it waits for, how long still, how often in a row.
    #[arg(short = 'o', long, conflicts_with = "summary")]
    options: bool,
    /// User and inode of each socket.
    #[arg(short, long, conflicts_with = "summary")]
    extended: bool,
    /// The processes that hold each socket, as far as this user may see them.
    #[arg(short, long, conflicts_with = "summary")]
    processes: bool,
    /// Without the line of headings.
    #[arg(short = 'H', long, conflicts_with_all = ["summary", "json"])]
    no_header: bool,
    /// TCP, which is all there is here: for who is used to ss(8).
    #[arg(short, long)]
    tcp: bool,
    /// Numbers instead of names, which is how ports are always shown: for who is used to ss(8).
    #[arg(short, long)]
    numeric: bool,
    /// What ss(8) lists beside TCP.
    #[arg(short, long, hide = true)]
    udp: bool,
    /// How many sockets are in which state, and how much memory they take.
    #[arg(short, long)]
    summary: bool,
    /// Show the limit of each connection, and the rate that each limit would allow. Many looks
    /// within --interval decide.
    #[arg(long, conflicts_with = "summary")]
    limits: bool,
    /// With --limits: look for so long, and measure the rate in that time.
    #[arg(long, value_name = "TIME", requires = "limits", default_value = "1s", value_parser = values::positive_duration)]
    interval: Duration,
    /// Below the list, what each figure is, what is usual, and which rules of `firstbyte doctor` look at it.
    #[arg(long, conflicts_with_all = ["summary", "json"])]
    explain: bool,
    /// Instead of a list, tell what happens inside a running stack of ours until Ctrl-C: states, windows, round trips, retransmissions,
    /// drops and why.
    #[arg(long, conflicts_with_all = [
        "all", "listening", "state", "port", "info", "memory", "options", "extended", "processes", "no_header", "summary", "limits",
        "explain", "json", "ipv4", "ipv6", "kernel", "netns",
    ])]
    trace: bool,
    /// Only IPv4.
    #[arg(short = '4', long, conflicts_with_all = ["ipv6", "summary"])]
    ipv4: bool,
    /// Only IPv6.
    #[arg(short = '6', long, conflicts_with = "summary")]
    ipv6: bool,
    /// JSON instead of columns.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whom: WhomArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &SsArgs) -> Result<ExitCode, Failure> {
    if args.udp {
        return Err(Failure::usage("only TCP is listed here; ss -u lists UDP"));
    }
    if args.trace {
        let Some(control) = args.whom.stack() else {
            return Err(Failure::usage(
                "--trace is for a running stack of ours: add --stack or --control PATH",
            ));
        };
        return trace(control);
    }
    let Some(control) = args.whom.stack() else { return print(&headed(args, kernel(args)?)) };
    let only_kernel = [(args.extended, "--extended"), (args.processes, "--processes")];
    if let Some((_, name)) = only_kernel.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!("{name} is for the kernel's sockets; leave it out, or --stack")));
    }
    if args.limits || args.explain {
        return print(&headed(args, kernel(args)?));
    }
    let state = args.state.map(sockets::state_name);
    let which = match () {
        () if state == Some("LISTEN") => Which::Listening,
        () if args.summary => Which::Summary,
        () if args.all => Which::All,
        () if args.listening => Which::Listening,
        () => Which::Connected,
    };
    let listing = Listing {
        info: args.info,
        memory: args.memory,
        timers: args.options,
        state: State::ALL.into_iter().find(|known| state == Some(known.ss())),
        port: args.port,
        family: args.family(),
        json: args.json,
        ..Listing::of(which)
    };
    print(&headed(args, ask(control, &Request::Ss(listing))?))
}

/// Prints what is traced until a signal comes, nobody reads on, or the stack ends; then the stack traces no more.
fn trace(control: &ControlArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    // Not later: a signal that ended this process at once would leave the stack tracing.
    let mut signals = runtime.block_on(async { Signals::install() }).map_err(Failure::no_signals)?;
    // What was traced for somebody else before is not told.
    ask(control, &Request::Trace { on: true })?;
    let told = runtime.block_on(tell_trace(control, &mut signals));
    let rest = ask(control, &Request::Trace { on: false });
    told?;
    print(&rest?)
}

async fn tell_trace(control: &ControlArgs, signals: &mut Signals) -> Result<(), Failure> {
    loop {
        tokio::select! {
            () = signals.next() => return Ok(()),
            () = tokio::time::sleep(TRACE_PAUSE) => {}
        }
        print(&ask(control, &Request::Trace { on: true })?)?;
        if is_unread() {
            return Ok(());
        }
    }
}

/// Between two questions for what was traced: a stack keeps 65,536 events.
const TRACE_PAUSE: Duration = Duration::from_millis(100);

/// With or without its first line.
fn headed(args: &SsArgs, text: String) -> String {
    match text.split_once('\n') {
        Some((_, rest)) if args.no_header => rest.to_owned(),
        _ => text,
    }
}

impl SsArgs {
    fn family(&self) -> Option<u8> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(4),
            (_, true) => Some(6),
            _ => None,
        }
    }

    fn view(&self) -> View {
        let which = match self.state {
            Some(state) => sockets::Which::State(state),
            None if self.all => sockets::Which::All,
            None if self.listening => sockets::Which::Listening,
            None => sockets::Which::Connected,
        };
        View {
            which,
            family: self.family(),
            port: self.port,
            info: self.info || self.explain,
            memory: self.memory || self.explain,
            timers: self.options || self.explain,
            extended: self.extended,
            limits: self.limits.then(Looks::default),
            holders: self.processes.then(sources::holders),
        }
    }
}

fn kernel(args: &SsArgs) -> Result<String, Failure> {
    if args.summary {
        return Ok(sockets::summary(&sample(args, sources::sockets)?, args.json));
    }
    // An explanation says which rules fire, for which everything is read.
    let read = if args.explain { sources::here } else { sources::sockets };
    let first = sample(args, read)?;
    let mut view = args.view();
    let (before, now) = match &mut view.limits {
        Some(looks) => {
            let last = look(args, read, looks, &first)?;
            (Some(first), last)
        }
        None => (None, first),
    };
    let window =
        before.as_ref().map_or_else(|| Window::since_boot(&now), |before| Window::between(before, &now));
    if args.json {
        return Ok(format!("{}\n", sockets::json(&view, &window)));
    }
    let text = sockets::text(&view, &window);
    if !args.explain {
        return Ok(text);
    }
    let findings: Vec<Finding> = Report::of(&window).findings;
    Ok(format!("{text}\n{}", sockets::explained(&view, &now, &findings)))
}

/// Looks needed to tell a steady transfer from chance.
const LOOKS: u32 = 20;

/// Looks again and again within the interval, and returns the last sample. Slow looks are fewer.
fn look(args: &SsArgs, read: fn() -> Sample, looks: &mut Looks, first: &Sample) -> Result<Sample, Failure> {
    let end = Instant::now() + args.interval;
    looks.take(first);
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        std::thread::sleep(rest.min(args.interval / LOOKS));
        let sample = sample(args, read)?;
        looks.take(&sample);
        if Instant::now() >= end {
            return Ok(sample);
        }
    }
}

fn sample(args: &SsArgs, read: fn() -> Sample) -> Result<Sample, Failure> {
    let sample = match args.whom.stack() {
        Some(control) => of_stack(control)?,
        None => args.whom.read(read)?,
    };
    match sample.unread.iter().find(|unread| unread.source == doctor::Source::Sockets) {
        Some(unread) => Err(Failure::failed(format!("sockets could not be read: {}", unread.reason))),
        None => Ok(sample),
    }
}

fn state(name: &str) -> Result<u8, String> {
    sockets::state_number(name).ok_or_else(|| {
        let names = (1..=11).map(|number| sockets::state_name(number).to_ascii_lowercase());
        format!("one of {}", names.collect::<Vec<_>>().join(", "))
    })
}
