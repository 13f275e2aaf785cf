//! `firstbyte get`: HTTP requests over our own stack, timed and explained.
//!
//! - `get/target.rs`: turns a URL into a peer and a request;
//! - `get/visit.rs`: one connection with one request;
//! - `get/body.rs`: destinations of the reply;
//! - `get/words.rs`: Fast Open outcomes and errors as sentences;
//! - `get/report.rs`: the output.
mod body;
mod report;
mod target;
mod visit;
mod words;

use crate::failure::{Failure, warn};
use crate::recorder::Recorder;
use crate::signals::Signals;
use crate::stack::{Defaults, Running, StackArgs};
use crate::terminal::print;
use crate::values::{self, Resolved};
use body::Sink;
use clap::Args;
use firstbyte::{Config, FastOpen, Instant, StackHandle, TraceMask};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use report::Report;
use std::cell::OnceCell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use target::Target;
use visit::{How, Visit};

/// Get a URL over HTTP with TCP Fast Open, and time each phase
#[derive(Args, Debug)]
#[command(
    after_help = "Example (as root, with a web server on this machine: sysctl net.ipv4.tcp_fastopen=3 and \
    nginx with `listen 80 fastopen=16`):\n  \
    firstbyte get http://10.78.0.1/ -c 5 --explain\n\n\
    The page goes to stdout and the report to stderr; with -c, -o, --explain or --json the \
    report goes to stdout.\n\
    The stack is a host of its own, 10.78.0.2 behind the TUN device. It reaches this machine as \
    10.78.0.1, and other hosts\n\
    if the kernel forwards and masquerades:\n  \
    sysctl net.ipv4.ip_forward=1; iptables -t nat -A POSTROUTING -s 10.78.0.0/24 -j MASQUERADE"
)]
pub(crate) struct GetArgs {
    /// The URL.
    #[arg(help = "URL to get: http://HOST[:PORT]/PATH", value_name = "URL")]
    url: Target,
    /// Send N requests, one after another, each on a new connection; the first requests a cookie,
    /// the others use it
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    count: u32,
    /// Draw the packets of the first and the last connection
    #[arg(long)]
    explain: bool,
    /// Print the stack's events to stderr: states, windows, round trips, retransmissions, drops and
    /// their reasons
    #[arg(long)]
    trace: bool,
    /// Make a plain handshake, without a cookie or a cookie request
    #[arg(long)]
    no_fast_open: bool,
    /// Send the cookie on a SYN without data; the request follows the handshake
    #[arg(long, conflicts_with_all = ["no_fast_open", "syn_fin"])]
    data_less: bool,
    /// Send a FIN on the SYN behind the request: three packets if both ends are Firstbyte; Linux
    /// drops such a SYN
    #[arg(long, conflicts_with = "no_fast_open")]
    syn_fin: bool,
    /// Use Fast Open even if the method is not idempotent; the network may duplicate the SYN, and
    /// so the request
    #[arg(long)]
    force_early: bool,
    /// Use this request method [default: GET, or POST with --data]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<Method>,
    /// Send TEXT as the request body; @FILE reads it from a file
    #[arg(short = 'd', long, value_name = "TEXT")]
    data: Option<String>,
    /// Add a request header, such as `Name: value`; repeatable
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = target::header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Use ADDRESS for NAME:PORT instead of asking the system's resolver; repeatable
    #[arg(long, value_name = "NAME:PORT:ADDRESS")]
    resolve: Vec<Resolved>,
    /// Write the page to FILE; `-` is stdout
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "count")]
    output: Option<PathBuf>,
    /// Write the status line and headers of the reply before the page
    #[arg(short = 'i', long, conflicts_with = "count")]
    include: bool,
    /// Limit the duration of each request
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    timeout: Duration,
    /// Exit with code 1 if the status of a reply is 400 or above
    #[arg(short = 'f', long)]
    fail: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    stack: StackArgs,
}

const DEFAULTS: Defaults =
    Defaults { tun: "firstbyte1", address: "10.78.0.2/24", control: false, queue_len: None };

/// Runs the verb.
pub(crate) fn run(args: GetArgs) -> Result<ExitCode, Failure> {
    let config = args.stack.config()?;
    if let Some(settings) = args.stack.settings_text(&config) {
        return print(&settings);
    }
    let how = args.how()?;
    let sink = args.sink()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(get(args, config, how, sink))
}

impl GetArgs {
    fn method(&self) -> Method {
        let default = if self.data.is_some() { Method::POST } else { Method::GET };
        self.method.clone().unwrap_or(default)
    }

    /// Collects the request and the way to connect.
    fn how(&self) -> Result<How, Failure> {
        let method = self.method();
        let is_risky = !method.is_idempotent() && !self.no_fast_open;
        if is_risky && !self.force_early {
            if self.syn_fin || self.data_less {
                return Err(Failure::usage(format!(
                    "{method} is not idempotent, so it does not use Fast Open; allow it with \
                    --force-early"
                )));
            }
            warn(format!(
                "no Fast Open for {method}: a SYN and its data may be delivered twice (RFC 7413 \
                §6.1); --force-early uses it anyway"
            ));
        } else if is_risky {
            warn(format!(
                "this {method} may be delivered and executed twice: the network may duplicate a SYN"
            ));
        }
        let fast_open =
            if self.no_fast_open || (is_risky && !self.force_early) { FastOpen::Off } else { FastOpen::Auto };
        Ok(How {
            target: self.url.clone(),
            method,
            headers: self.header.clone(),
            body: self.data.as_deref().map(target::data).transpose()?.unwrap_or_default(),
            fast_open,
            data_less: self.data_less,
            syn_fin: self.syn_fin,
            timeout: self.timeout,
        })
    }

    /// Chooses the destination of the page, which decides where the report goes.
    fn sink(&self) -> Result<Sink, Failure> {
        match &self.output {
            Some(path) if path.as_os_str() == "-" => Ok(Sink::Stdout { head: self.include }),
            Some(path) => Sink::file(path, self.include),
            None if self.include && (self.json || self.explain) => Err(Failure::usage(
                "--include needs the page, which --json and --explain omit; choose a file for it \
                with -o FILE",
            )),
            None if self.count > 1 || self.json || self.explain => Ok(Sink::Nowhere),
            None => Ok(Sink::Stdout { head: self.include }),
        }
    }
}

async fn get(args: GetArgs, config: Config, how: How, mut sink: Sink) -> Result<ExitCode, Failure> {
    let peer = how.target.resolve(&args.resolve).await?;
    if peer.ip().is_loopback() || peer.ip().is_unspecified() {
        return Err(Failure::failed(format!(
            "cannot reach {}: it is this stack's own loopback, because the stack is a host of its \
            own behind a TUN device; to reach this machine, use the device's other address, \
            http://10.78.0.1:{}/ (unless changed with --address or --host-address)",
            peer.ip(),
            peer.port()
        )));
    }
    let recorder = args.explain.then(Recorder::new);
    let running = args.stack.start(&DEFAULTS, config, recorder.as_ref(), |builder| builder)?;
    if running.addresses.iter().any(|own| own.addr == peer.ip()) {
        return Err(Failure::failed(format!(
            "cannot get from {}: it is this stack's own address, and nothing listens there; use the \
            other end of its TUN device, or another host",
            peer.ip()
        )));
    }
    if args.trace {
        running.stack.set_trace(TraceMask::all());
    }
    let begun = Begun::default();
    let mut report = Report::new(args.json, sink.uses_stdout(), args.count > 1, &how, peer, &running);
    report.begin();
    // Installed late: until here there is nothing to write, and a signal may end the process at
    // once.
    let mut signals = Signals::install().map_err(Failure::no_signals)?;
    // A run that is interrupted before the first reply fails.
    let mut is_well = true;
    let mut is_empty = true;
    for number in 1..=args.count {
        let visited = tokio::select! {
            visited = visit_once(&how, peer, &running, recorder.as_ref(), &mut sink) => visited,
            () = signals.next() => break,
        };
        begun.tell_trace(&running.stack);
        for visit in visited? {
            is_well &= visit.is_well(args.fail);
            is_empty = false;
            report.add(number, visit);
        }
    }
    report.end();
    // Packets that are still pending do not matter any more.
    let _ = running.net.shutdown_timeout(LAST_PACKETS).await;
    begun.tell_trace(&running.stack);
    running.finish()?;
    Ok(if is_well && !is_empty { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Time of the first trace event; other events are relative to it.
#[derive(Default)]
struct Begun(OnceCell<Instant>);

impl Begun {
    /// Prints the trace events since the last call, if tracing is on.
    fn tell_trace(&self, net: &StackHandle) {
        let (events, lost) = net.take_trace();
        for mut event in events {
            let begun = *self.0.get_or_init(|| event.at);
            event.at = Instant::ZERO + event.at.since(begun);
            // Failing to write the trace does not stop the run.
            let _ = writeln!(io::stderr(), "{event}");
        }
        if lost > 0 {
            warn(format!("{lost} trace events were dropped: the buffer was full"));
        }
    }
}

/// Time for the last packets after the last connection has ended.
const LAST_PACKETS: Duration = Duration::from_millis(200);

/// Sends one request, or two if the server rejects the first as early data (RFC 8470 §5.2). Fails
/// only if the sink fails.
async fn visit_once(
    how: &How,
    peer: std::net::SocketAddr,
    running: &Running,
    recorder: Option<&Recorder>,
    sink: &mut Sink,
) -> Result<Vec<Visit>, Failure> {
    let mut first = visit::visit(&running.net, peer, how, sink).await?;
    first.keep_packets(recorder);
    if !first.is_too_early() {
        return Ok(vec![first]);
    }
    let plain = How { fast_open: FastOpen::Off, syn_fin: false, data_less: false, ..how.clone() };
    let mut second = visit::visit(&running.net, peer, &plain, sink).await?;
    second.keep_packets(recorder);
    second.is_retry = true;
    // The second visit has the answer.
    first.is_superseded = true;
    Ok(vec![first, second])
}
