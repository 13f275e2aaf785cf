//! `firstbyte ss`: sockets as ss(8) shows them, of the kernel or of a running stack. The stack's
//! process formats its own list (`control/listing.rs`).
use crate::control::{ControlArgs, ask, sample as of_stack};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::source::SourceArgs;
use crate::terminal::{is_unread, print};
use crate::values;
use clap::Args;
use control::{Listing, Request, Which};
use doctor::show::limits::Looks;
use doctor::show::sockets::{self, View};
use doctor::{Finding, Report, Sample, Window, sources};
use firstbyte::State;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// List TCP sockets like ss(8): queues, addresses, and the state of each connection
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte ss -tin\n  \
    firstbyte ss -tlnp\n  \
    firstbyte ss -l --explain\n  \
    firstbyte ss --limits --interval 1s\n  \
    firstbyte serve &\n  \
    firstbyte ss -io --stack\n  \
    firstbyte ss --trace --stack\n\n\
    Without -a, -l and --state: connections that are neither half open nor in TIME-WAIT.\n\
    Recv-Q and Send-Q: for a listener, the accept queue and the backlog;\n\
    for a connection, unread bytes and unacknowledged bytes.")]
pub(crate) struct SsArgs {
    /// Show every socket
    #[arg(short, long, conflicts_with_all = ["listening", "summary"])]
    all: bool,
    /// Show listeners
    #[arg(short, long, conflicts_with = "summary")]
    listening: bool,
    /// Show sockets in this state, such as established, syn-recv or close-wait
    #[arg(long, value_parser = state, conflicts_with_all = ["all", "listening", "summary"])]
    state: Option<u8>,
    /// Show sockets with this port at either end
    #[arg(long, conflicts_with = "summary", value_parser = values::port)]
    port: Option<u16>,
    /// Show TCP's state of each connection, with the names of ss(8)
    #[arg(short, long, conflicts_with = "summary")]
    info: bool,
    /// Show the memory of each socket
    #[arg(short, long, conflicts_with = "summary")]
    memory: bool,
    /// Show the timer of each socket: its purpose, the time left, the number of expirations in a
    /// row
    #[arg(short = 'o', long, conflicts_with = "summary")]
    options: bool,
    /// Show user and inode of each socket
    #[arg(short, long, conflicts_with = "summary")]
    extended: bool,
    /// Show the processes that hold each socket, as far as this user may see them
    #[arg(short, long, conflicts_with = "summary")]
    processes: bool,
    /// Omit the header line
    #[arg(short = 'H', long, conflicts_with_all = ["summary", "json"])]
    no_header: bool,
    /// Show TCP sockets; accepted for compatibility with ss(8), because there are no others
    #[arg(short, long)]
    tcp: bool,
    /// Show numeric ports; accepted for compatibility with ss(8), because they always are
    #[arg(short, long)]
    numeric: bool,
    /// Rejected, because only TCP is listed.
    #[arg(short, long, hide = true)]
    udp: bool,
    /// Count the sockets by state, and show their memory
    #[arg(short, long)]
    summary: bool,
    /// Show the limit of each connection, and the rate that each limit would allow; samples many
    /// times within --interval
    #[arg(long, conflicts_with = "summary")]
    limits: bool,
    /// With --limits: sample and measure rates for this long
    #[arg(long, value_name = "TIME", requires = "limits", default_value = "1s", value_parser = values::positive_duration)]
    interval: Duration,
    /// Explain each value below the list, and name the rules of `firstbyte doctor` that use it
    #[arg(long, conflicts_with_all = ["summary", "json"])]
    explain: bool,
    /// Instead of a list, trace a running stack until Ctrl-C: states, windows, round trips,
    /// retransmissions, drops and their reasons
    #[arg(long, conflicts_with_all = [
        "all", "listening", "state", "port", "info", "memory", "options", "extended", "processes", "no_header", "summary", "limits",
        "explain", "json", "ipv4", "ipv6", "kernel", "netns",
    ])]
    trace: bool,
    /// Show only IPv4
    #[arg(short = '4', long, conflicts_with_all = ["ipv6", "summary"])]
    ipv4: bool,
    /// Show only IPv6
    #[arg(short = '6', long, conflicts_with = "summary")]
    ipv6: bool,
    /// Print JSON instead of columns
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &SsArgs) -> Result<ExitCode, Failure> {
    if args.udp {
        return Err(Failure::usage("only TCP sockets can be listed here; for UDP use ss -u"));
    }
    if args.trace {
        let Some(control) = args.source.stack() else {
            return Err(Failure::usage("--trace needs a running stack; add --stack or --control PATH"));
        };
        return trace(control);
    }
    let Some(control) = args.source.stack() else { return print(&headed(args, kernel(args)?)) };
    let only_kernel = [(args.extended, "--extended"), (args.processes, "--processes")];
    if let Some((_, name)) = only_kernel.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!(
            "{name} only works for the kernel's sockets; leave it out, or leave out --stack"
        )));
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

/// Prints trace events until a signal arrives, the output is closed, or the stack ends; then turns
/// tracing off.
fn trace(control: &ControlArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    // Installed before tracing starts: a signal that ended this process would leave tracing on.
    let mut signals = runtime.block_on(async { Signals::install() }).map_err(Failure::no_signals)?;
    // Discards events that were traced for an earlier reader.
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

/// Pause between two requests for events: a stack keeps 65,536.
const TRACE_PAUSE: Duration = Duration::from_millis(100);

/// Removes the header line if requested.
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
    // An explanation lists firing rules, which need all data.
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

/// Samples needed to distinguish a steady transfer from chance.
const LOOKS: u32 = 20;

/// Samples repeatedly within the interval, and returns the last sample. Takes fewer samples if they
/// are slow.
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
    let sample = match args.source.stack() {
        Some(control) => of_stack(control)?,
        None => args.source.read(read)?,
    };
    match sample.unread.iter().find(|unread| unread.source == doctor::Source::Sockets) {
        Some(unread) => Err(Failure::failed(format!("cannot read sockets: {}", unread.reason))),
        None => Ok(sample),
    }
}

fn state(name: &str) -> Result<u8, String> {
    sockets::state_number(name).ok_or_else(|| {
        let names = (1..=11).map(|number| sockets::state_name(number).to_ascii_lowercase());
        format!("one of {}", names.collect::<Vec<_>>().join(", "))
    })
}
