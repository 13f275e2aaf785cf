//! `firstbyte get`: HTTP requests over the kernel's sockets or our own stack, timed and explained.
//!
//! - `get/target.rs`: URLs and addresses; `get/request.rs`: the request, and those that follow it;
//! - `get/visit.rs`: one connection with one request; `get/watched.rs`: what it observes;
//! - `get/body.rs`: destinations of the reply; `get/partial.rs`: downloads that continue;
//!   `get/progress.rs`: the progress bar;
//! - `get/words.rs`: Fast Open outcomes and errors as sentences;
//! - `get/report.rs`: the output.
mod body;
mod partial;
mod progress;
mod report;
mod request;
mod target;
mod tls;
mod visit;
mod watched;
mod words;

use crate::backend::{self, BackendName};
use crate::failure::{Failure, warn};
use crate::recorder::Recorder;
use crate::signals::Signals;
use crate::stack::{Defaults, Running, StackArgs};
use crate::terminal::print;
use crate::values::{self, Resolved};
use body::Sink;
use clap::Args;
use firstbyte::{Backend, Config, Instant, StackHandle, TraceMask};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use partial::Partial;
use progress::Progress;
use report::Report;
use request::{Early, How, Limits};
use std::cell::OnceCell;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use target::Target;
use tls::Trust;
use visit::{Client, Visit};

/// Get a URL over HTTP with TCP Fast Open, and show where the time went
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    firstbyte get http://127.0.0.1:8080/\n  \
    firstbyte get -L -o page.html http://example.com/\n  \
    firstbyte get -d name=value http://127.0.0.1:8080/form\n\n\
    The page goes to stdout and the report to stderr; with -c, -o, --explain or --json the \
    report goes to stdout.\n\n\
    On our own stack, as root, with its packets (a web server on this machine: sysctl \
    net.ipv4.tcp_fastopen=3 and nginx with\n`listen 80 fastopen=16`):\n  \
    firstbyte get http://10.78.0.1/ -c 5 --explain\n\n\
    The stack is a host of its own, 10.78.0.2 behind the TUN device. It reaches this machine as \
    10.78.0.1, and other hosts\n\
    if the kernel forwards and masquerades:\n  \
    sysctl net.ipv4.ip_forward=1; iptables -t nat -A POSTROUTING -s 10.78.0.0/24 -j MASQUERADE")]
pub(crate) struct GetArgs {
    /// The URL.
    #[arg(help = "URL to get: http[s]://HOST[:PORT]/PATH", value_name = "URL")]
    url: Target,
    /// Send N requests, one after another, each on a new connection; the first requests a cookie,
    /// the others use it
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    count: u32,
    /// Use the sockets of this machine's kernel, or our own stack behind a TUN device, which needs
    /// root [default: $FIRSTBYTE_BACKEND; else the stack if an option or the URL needs it, such as
    /// --explain, --tun or an address of 10.78.0.0/24; else the kernel]
    #[arg(long, value_enum)]
    backend: Option<BackendName>,
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
    /// Use Fast Open even if the request has a body or an unsafe method; the network may duplicate
    /// the SYN, and so the request
    #[arg(long)]
    force_early: bool,
    /// Use this request method [default: GET, or POST with --data]
    #[arg(short = 'X', long, alias = "method", value_name = "METHOD")]
    request: Option<Method>,
    /// Send TEXT as the request body; @FILE reads it from a file, and @- from stdin
    #[arg(short = 'd', long, value_name = "TEXT")]
    data: Option<String>,
    /// Add a request header, such as `Name: value`; repeatable
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = request::header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Request only the status line and the headers, and show them
    #[arg(short = 'I', long, conflicts_with_all = ["count", "data", "request"])]
    head: bool,
    /// Follow redirects. Another host, port or scheme gets no credentials, cookies or `Host` of
    /// --header
    #[arg(short = 'L', long)]
    location: bool,
    /// Follow at most N redirects
    #[arg(long, value_name = "N", default_value_t = 10, requires = "location")]
    max_redirs: u32,
    /// Trust only servers with a certificate of an authority in FILE (PEM) [default: the
    /// certificates that the system trusts]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Accept every certificate of a server
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Use HTTP/1.1 over TLS even if the server offers HTTP/2
    #[arg(long = "http1.1")]
    http11: bool,
    /// Use ADDRESS for NAME:PORT instead of asking the system's resolver; repeatable
    #[arg(long, value_name = "NAME:PORT:ADDRESS")]
    resolve: Vec<Resolved>,
    /// Write the page to FILE; `-` is stdout. An old FILE is replaced when the page is complete
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "count")]
    output: Option<PathBuf>,
    /// Keep an incomplete page in FILE.part, and get only the rest of it the next time, if the
    /// server still has the same version
    #[arg(long = "continue", requires = "output", conflicts_with_all = ["include", "head", "data"])]
    continues: bool,
    /// Write the status line and headers of the reply before the page
    #[arg(short = 'i', long, conflicts_with = "count")]
    include: bool,
    /// Give up after this time without progress
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::positive_duration)]
    timeout: Duration,
    /// Limit the duration of each request
    #[arg(short = 'm', long, value_name = "TIME", value_parser = values::positive_duration)]
    max_time: Option<Duration>,
    /// Exit with code 1 if the status of a reply is 400 or above
    #[arg(short = 'f', long)]
    fail: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    stack: StackArgs,
}

const DEFAULTS: Defaults = Defaults {
    tun: "firstbyte1",
    address: "10.78.0.2/24",
    control: false,
    queue_len: None,
    without_root: "\n(without root, use the kernel's sockets: --backend kernel, without options of the stack)",
};

/// Runs the verb.
pub(crate) fn run(args: GetArgs) -> Result<ExitCode, Failure> {
    // Refuses contradictions before anything else.
    backend::choose(args.backend, &args.stack_only(), Backend::Stack)?;
    let config = args.stack.config()?;
    if let Some(settings) = args.stack.settings_text(&config) {
        return print(&settings);
    }
    let how = args.how()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(get(args, config, how))
}

impl GetArgs {
    fn method(&self) -> Method {
        let default = match (self.head, &self.data) {
            (true, _) => Method::HEAD,
            (false, Some(_)) => Method::POST,
            (false, None) => Method::GET,
        };
        self.request.clone().unwrap_or(default)
    }

    /// Returns the options in use that only our own stack has.
    fn stack_only(&self) -> Vec<&'static str> {
        let own = [("--explain", self.explain), ("--trace", self.trace), ("--syn-fin", self.syn_fin)];
        let own = own.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        own.chain(self.stack.given_names()).collect()
    }

    /// Chooses the backend. Without a choice of the user's, the stack is used only if something
    /// needs it: an option, or a server in the network of its device.
    fn backend(&self, peers: &[SocketAddr]) -> Result<Backend, Failure> {
        let stack_only = self.stack_only();
        let is_behind_device = peers.iter().any(|peer| is_in_network(peer.ip()));
        let default =
            if stack_only.is_empty() && !is_behind_device { Backend::Kernel } else { Backend::Stack };
        backend::choose(self.backend, &stack_only, default)
    }

    /// Collects the request and the way to connect.
    fn how(&self) -> Result<How, Failure> {
        let early = match (self.no_fast_open, self.force_early) {
            (true, _) => Early::Never,
            (false, true) => Early::Always,
            (false, false) => Early::Repeatable,
        };
        let how = How {
            target: self.url.clone(),
            method: self.method(),
            headers: self.header.clone(),
            body: self.data.as_deref().map(request::data).transpose()?.unwrap_or_default(),
            rest: None,
            follows: self.location,
            early,
            data_less: self.data_less,
            syn_fin: self.syn_fin,
            limits: Limits { pause: self.timeout, total: self.max_time },
        };
        if how.is_secure() && (self.syn_fin || self.data_less) {
            let option = if self.syn_fin { "--syn-fin" } else { "--data-less" };
            return Err(Failure::usage(format!(
                "cannot use {option} with https: the ClientHello is on the SYN, and more follows"
            )));
        }
        if !how.is_repeatable() && early == Early::Repeatable && (self.syn_fin || self.data_less) {
            let option = if self.syn_fin { "--syn-fin" } else { "--data-less" };
            return Err(Failure::usage(format!(
                "cannot use {option} for this {}: its SYN may be delivered twice; allow it with \
                 --force-early",
                how.method
            )));
        }
        if !how.is_repeatable() && early == Early::Always {
            warn(format!(
                "this {} may be delivered and executed twice: the network may duplicate a SYN",
                how.method
            ));
        }
        Ok(how)
    }

    /// Chooses the destination of the page, which decides where the report goes.
    fn sink(&self, how: &mut How) -> Result<Sink, Failure> {
        let head = self.include || self.head;
        let progress = || if self.json { Progress::off() } else { Progress::on_terminal() };
        match self.output.as_deref() {
            Some(path) if path == Path::new("-") && self.continues => {
                Err(Failure::usage("cannot use --continue with -o -: choose a FILE"))
            }
            Some(path) if path == Path::new("-") => Ok(Sink::stdout(head)),
            Some(path) if self.continues => {
                let partial = Partial::open(path)?;
                how.rest = partial.rest().cloned();
                Ok(Sink::partial(partial, progress()))
            }
            Some(path) => Sink::file(path, head, progress()),
            None if head && (self.json || self.explain) => Err(Failure::usage(format!(
                "{} needs the page, which --json and --explain omit; choose a file for it with -o FILE",
                if self.head { "--head" } else { "--include" }
            ))),
            None if self.count > 1 || self.json || self.explain => Ok(Sink::nowhere()),
            None => Ok(Sink::stdout(head)),
        }
    }
}

/// True for the network of the stack's device: 10.78.0.0/24.
fn is_in_network(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V4(addr) if addr.octets()[..3] == [10, 78, 0])
}

async fn get(args: GetArgs, config: Config, mut how: How) -> Result<ExitCode, Failure> {
    let mut sink = args.sink(&mut how)?;
    let (peers, name) = resolve(&how.target, &args).await?;
    let backend = args.backend(&peers)?;
    let recorder = args.explain.then(Recorder::new);
    let running = start(&args, backend, &peers, config, recorder.as_ref())?;
    let begun = Begun::default();
    let mut report = Report::new(args.json, sink.uses_stdout(), args.count > 1, &how, peers[0], &running);
    report.begin();
    // Installed late: until here there is nothing to write, and a signal may end the process at
    // once.
    let mut signals = Signals::install().map_err(Failure::no_signals)?;
    // A run that is interrupted before the first reply fails.
    let mut is_well = true;
    let mut is_empty = true;
    let client = Client { net: &running.net, tls: None };
    let mut way = Way { args: &args, client, recorder: recorder.as_ref() };
    for number in 1..=args.count {
        let visited = tokio::select! {
            visited = way.visit(&how, &peers, &mut sink) => visited,
            () = signals.next() => break,
        };
        begun.tell_trace(&running);
        let mut visited = visited?;
        if number == 1
            && let Some(first) = visited.first_mut()
        {
            first.name = name;
        }
        for visit in visited {
            is_well &= visit.is_well(args.fail);
            is_empty = false;
            report.add(number, visit);
        }
    }
    let is_done = is_well && !is_empty;
    let kept = if is_done { sink.complete().map(|()| None)? } else { sink.give_up() };
    report.end();
    if let Some(advice) = kept {
        warn(advice);
    }
    // Packets that are still pending do not matter any more.
    let _ = running.net.shutdown_timeout(LAST_PACKETS).await;
    begun.tell_trace(&running);
    running.finish()?;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Resolves a name, and measures the time. A literal address has none.
async fn resolve(target: &Target, args: &GetArgs) -> Result<(Vec<SocketAddr>, Option<Duration>), Failure> {
    let stack_only = args.stack_only();
    let backend = (!stack_only.is_empty()).then_some(Backend::Stack).or(args.backend.map(Backend::from));
    let begun = std::time::Instant::now();
    let peers = target.resolve(&args.resolve, backend).await?;
    Ok((peers, target.literal().is_none().then(|| begun.elapsed())))
}

/// Starts the stack, unless the kernel's sockets are used.
fn start(
    args: &GetArgs,
    backend: Backend,
    peers: &[SocketAddr],
    config: Config,
    recorder: Option<&Recorder>,
) -> Result<Running, Failure> {
    if backend == Backend::Kernel {
        return Ok(Running::on_kernel());
    }
    if let Some(peer) = peers.iter().find(|peer| peer.ip().is_loopback() || peer.ip().is_unspecified()) {
        return Err(Failure::failed(format!(
            "cannot reach {}: it is this stack's own loopback, because the stack is a host of its \
            own behind a TUN device; to reach this machine, use the device's other address, \
            http://10.78.0.1:{}/ (unless changed with --address or --host-address)",
            peer.ip(),
            peer.port()
        )));
    }
    let running = args.stack.start(&DEFAULTS, config, recorder, |builder| builder)?;
    let Some(own) = &running.own else { return Ok(running) };
    if let Some(peer) = peers.iter().find(|peer| own.addresses.iter().any(|own| own.addr == peer.ip())) {
        return Err(Failure::failed(format!(
            "cannot get from {}: it is this stack's own address, and nothing listens there; use the \
            other end of its TUN device, or another host",
            peer.ip()
        )));
    }
    if args.trace {
        own.stack.set_trace(TraceMask::all());
    }
    Ok(running)
}

/// Time of the first trace event; other events are relative to it.
#[derive(Default)]
struct Begun(OnceCell<Instant>);

impl Begun {
    /// Prints the trace events since the last call, if tracing is on.
    fn tell_trace(&self, running: &Running) {
        let Some(own) = &running.own else { return };
        let (events, lost) = StackHandle::take_trace(&own.stack);
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

/// The way of requests.
struct Way<'a> {
    args: &'a GetArgs,
    client: Client<'a>,
    recorder: Option<&'a Recorder>,
}

impl Way<'_> {
    /// Sends a request; again if the server rejects it as early data (RFC 8470 §5.2); and the
    /// requests that follow redirects. Fails only if the sink fails.
    async fn visit(
        &mut self,
        how: &How,
        peers: &[SocketAddr],
        sink: &mut Sink,
    ) -> Result<Vec<Visit>, Failure> {
        let mut visits = Vec::new();
        let (mut how, mut peers, mut name) = (how.clone(), peers.to_vec(), None);
        let mut redirects = 0;
        let mut is_retry = false;
        loop {
            if how.is_secure() && self.client.tls.is_none() {
                let trust = Trust::of(self.args.cacert.as_ref(), self.args.insecure);
                self.client.tls = Some(tls::connector(&trust, how.early, !self.args.http11)?);
            }
            let mut visit = self.client.visit(&peers, &how, sink).await?;
            visit.keep_packets(self.recorder);
            visit.is_retry = is_retry;
            visit.name = name.take();
            is_retry = visit.is_too_early();
            // The next visit has the answer.
            visit.is_superseded = is_retry || visit.redirect().is_some();
            let next = match visit.redirect() {
                Some((status, location)) if redirects < self.args.max_redirs => {
                    redirects += 1;
                    self.redirected(&how, status, location)
                }
                Some(_) => Err(format!("more than {redirects} redirects (--max-redirs)")),
                None if is_retry => Ok(how.late()),
                None => {
                    visits.push(visit);
                    return Ok(visits);
                }
            };
            visits.push(visit);
            how = match next {
                Ok(next) => next,
                Err(why) => return Ok(failed(visits, why)),
            };
            if !is_retry {
                (peers, name) = match resolve(&how.target, self.args).await {
                    Ok(resolved) => resolved,
                    Err(failure) => return Ok(failed(visits, failure.message().to_owned())),
                };
            }
        }
    }

    /// Returns the request that follows a redirect.
    fn redirected(&self, how: &How, status: StatusCode, location: &HeaderValue) -> Result<How, String> {
        let location = String::from_utf8_lossy(location.as_bytes());
        let target = how.target.join(&location);
        let target = target.map_err(|why| format!("cannot follow the redirect to {location}: {why}"))?;
        Ok(how.redirected(status, target))
    }
}

/// Makes the last visit, a redirect that cannot be followed, a failure.
fn failed(mut visits: Vec<Visit>, why: String) -> Vec<Visit> {
    if let Some(last) = visits.last_mut() {
        last.is_superseded = false;
        last.result = Err(why);
    }
    visits
}
