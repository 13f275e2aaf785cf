//! `firstbyte serve`: HTTP and echo, on our own stack or on the kernel's sockets.
//!
//! - `serve/connection.rs`: one HTTP connection, from accept to the last FIN; `serve/secure.rs`:
//!   one with TLS;
//! - `serve/reply.rs`: chooses replies; `serve/files.rs`: replies from a folder; `serve/body.rs`:
//!   their bytes; `serve/disk.rs`: the threads that wait for a disk;
//! - `serve/echo.rs`: the echo server;
//! - `serve/pace.rs`: the least rate of clients; `serve/crowd.rs`: the connections of one address;
//! - `serve/key.rs`: the cookie key; `serve/ending.rs`: shutdown after the first signal;
//! - `serve/request.rs`: requests as the logs describe them; `serve/access.rs`: the access log;
//! - `serve/log.rs`: the output; `serve/outlet.rs`: the thread that writes it.
//!
//! Everything runs on one thread, including the stack's driver. A reply that is ready in the poll
//! of its request is written before the driver sends anything, so it can be on the SYN-ACK.
mod access;
mod body;
mod connection;
mod crowd;
mod disk;
mod echo;
mod ending;
mod files;
pub(crate) mod key;
mod log;
mod outlet;
mod pace;
mod page;
mod reply;
mod request;
mod secure;

use crate::backend::{self, BackendName};
use crate::failure::{Failure, warn};
use crate::signals::Signals;
use crate::stack::{Defaults, Running, StackArgs};
use crate::terminal::print;
use crate::values;
use access::{AccessLog, Format};
use clap::Args;
use connection::HttpServer;
use crowd::{Admission, Crowd};
use echo::EchoServer;
use files::Extras;
use firstbyte::tls::TlsAcceptor;
use firstbyte::{Backend, Config, KeyRing, Net, SocketOptions, TcpListener, TcpStream};
use log::{Access, Log};
use pace::LeastRate;
use reply::{Bodies, Site};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use secure::SecureServer;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Serve HTTP and echo with TCP Fast Open, on our own stack or on the kernel's sockets
#[derive(Args, Debug)]
#[command(after_help = "Serve a folder at http://127.0.0.1:8080/, without root:\n  \
    firstbyte serve --backend kernel --root site --listing\n\n\
    The same over HTTPS, at https://127.0.0.1:8443/:\n  \
    firstbyte serve --backend kernel --root site --cert cert.pem --cert-key key.pem\n\n\
    On our own stack, as root; curl gets its answer in four packets from the second visit on:\n  \
    firstbyte serve\n  \
    curl --tcp-fastopen -H 'Connection: close' http://10.77.0.2/\n\n\
    With a fixed key, cookies stay valid after a restart, and on Linux servers with the same \
    key:\n  \
    firstbyte serve --key-file /proc/sys/net/ipv4/tcp_fastopen_key")]
pub(crate) struct ServeArgs {
    /// Serve the files of this folder [default: reply to every path with a greeting]. Links are
    /// followed if they are relative and lead to a file beneath the folder
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// List the files of a folder that has no index.html
    #[arg(long, requires = "root")]
    listing: bool,
    /// Send FILE.br, FILE.zst or FILE.gz in place of FILE, unless it is older or the client does
    /// not accept the coding
    #[arg(long, requires = "root")]
    precompressed: bool,
    /// Serve on the sockets of this machine's kernel, or on our own stack behind a TUN device, for
    /// root [default: $FIRSTBYTE_BACKEND, else stack]
    #[arg(long, value_enum)]
    backend: Option<BackendName>,
    /// Listen on this address of the machine, with the kernel's sockets; repeatable, 0.0.0.0 and ::
    /// are all addresses [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = values::address)]
    bind: Vec<IpAddr>,
    /// Speak HTTPS (HTTP/1.1 and HTTP/2) with the certificate chain in this file (PEM)
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Read the private key of --cert from this file (PEM) [default: the file of --cert]
    #[arg(long, value_name = "FILE", requires = "cert")]
    cert_key: Option<PathBuf>,
    /// Port of the HTTP server [default: 80 and for HTTPS 443; 8080 and 8443 on the kernel's
    /// sockets]
    #[arg(long, value_parser = values::port)]
    port: Option<u16>,
    /// Serve echo (RFC 862) on this port as well
    #[arg(long, value_name = "PORT", value_parser = values::port)]
    echo: Option<u16>,
    /// Limit Fast Open connections whose handshake is not complete, per listener; 0 disables Fast
    /// Open
    #[arg(long, value_name = "QLEN", default_value_t = 256)]
    fast_open: u32,
    /// Read the cookie key from this file: aaaaaaaa-bbbbbbbb-cccccccc-dddddddd as on Linux, with an
    /// optional backup after a comma [default: a random key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Rejected, with an error that names `--key-file`.
    #[arg(long, hide = true, value_name = "KEY")]
    key: Option<String>,
    /// Hold a SYN-ACK at most this long for a reply; 0 sends it at once, like Linux [default: the
    /// profile's, 1ms]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    synack_hold: Option<Duration>,
    /// Close each HTTP connection after its first reply, as for requests with `Connection: close`:
    /// reply and FIN are on the SYN-ACK
    #[arg(long)]
    no_keep_alive: bool,
    /// Accepted for old scripts: connections are kept open by default.
    #[arg(long, hide = true, conflicts_with = "no_keep_alive")]
    keep_alive: bool,
    /// Execute requests with unsafe methods (POST, PUT, …) even if they may be a replay, instead of
    /// answering 425 Too Early
    #[arg(long)]
    allow_early_unsafe: bool,
    /// Limit connections that wait to be accepted, per listener
    #[arg(long, value_name = "N", default_value_t = 4096, allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    backlog: u32,
    /// Limit connections served at once, per listener; more wait to be accepted
    #[arg(long, value_name = "N", default_value_t = 4096, allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    max_connections: u32,
    /// Limit connections of one IPv4 address or IPv6 /64 network, HTTP and echo together; more are
    /// reset [default: a quarter of --max-connections, at least 256]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    max_per_address: Option<u32>,
    /// Disconnect a client after this time without progress: until its request, its head, more of
    /// its body, or until it accepts more of a reply; answer 503 if reading a file takes longer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    timeout: Duration,
    /// Disconnect a client that accepts a reply more slowly than this many bytes per second,
    /// measured over --timeout; 0 allows any rate
    #[arg(long, value_name = "BYTES", default_value_t = 500, allow_negative_numbers = true, value_parser = values::whole(0..=u32::MAX))]
    min_rate: u32,
    /// Answer 408 if the body of a request takes longer than this
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = values::positive_duration)]
    body_timeout: Duration,
    /// Write a line per request to FILE, which may be rotated; `-` is stdout, in place of other
    /// lines about requests
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Use this format for --access-log
    #[arg(long, value_enum, default_value_t = Format::Combined, requires = "access_log")]
    log_format: Format,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
    /// Print no line per request
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    stack: StackArgs,
}

const DEFAULTS: Defaults = Defaults {
    tun: "firstbyte0",
    address: "10.77.0.2/24",
    control: true,
    queue_len: Some(QUEUE_LEN),
    without_root: "\n(to serve without root, use the kernel's sockets: --backend kernel)",
};

/// Length of the device's queue, packets: room for a SYN, an ACK, a request and a FIN of 5,000
/// clients while the stack is busy. A TUN device has room for 500 by default and drops more; a lost
/// SYN costs its client a second.
const QUEUE_LEN: u32 = 20_000;

/// Runs the verb until a signal arrives.
pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    if args.key.is_some() {
        return Err(key::given_openly("--key"));
    }
    let mut config = args.stack.config()?;
    if let Some(hold) = args.synack_hold {
        config.synack_hold = hold;
    }
    if let Some(settings) = args.stack.settings_text(&config) {
        return print(&settings);
    }
    let backend = args.backend()?;
    let port = args.port(backend);
    if args.echo == Some(port) {
        return Err(Failure::usage(format!(
            "cannot serve HTTP and echo on port {port}; choose another --port or --echo"
        )));
    }
    let key = match args.key_file.as_deref() {
        Some(file) => Some(key::read(file)?),
        None => args.stack.key()?,
    };
    let extras = Extras { listing: args.listing, precompressed: args.precompressed };
    let bodies = Bodies { pause: args.timeout, total: args.body_timeout };
    let acceptor = args.acceptor()?;
    let access = args.access()?;
    let site = Site::open(args.root.as_deref(), extras, args.allow_early_unsafe, bodies)?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let plan = Plan { backend, config, key, site, acceptor, access };
    let done = runtime.block_on(serve(args, plan));
    // Does not wait for helper threads: an unresponsive file system would delay the end.
    runtime.shutdown_background();
    done
}

/// The arguments, checked, and the files that they name.
struct Plan {
    backend: Backend,
    config: Config,
    key: Option<KeyRing>,
    site: Site,
    acceptor: Option<TlsAcceptor>,
    access: Access,
}

async fn serve(args: ServeArgs, plan: Plan) -> Result<ExitCode, Failure> {
    let Plan { backend, config, key, site, acceptor, access } = plan;
    let signals = Signals::install().map_err(Failure::no_signals)?;
    warn_about(&args, backend, &config);
    let running = match backend {
        Backend::Kernel => Running::on_kernel(),
        Backend::Stack => args.stack.start(&DEFAULTS, config, None, |builder| match &key {
            Some(key) => builder.fast_open_key(key.clone()),
            None => builder,
        })?,
    };
    let listeners = Listeners { net: &running.net, args: &args, key };
    let log = Log::start(args.json, args.quiet, access);
    let log = Arc::new(log.map_err(|error| Failure::failed(format!("cannot start: {error}")))?);
    let (stop, stopped) = watch::channel(false);
    let (alive, all_gone) = mpsc::channel(1);
    let task = Task { log: log.clone(), stopped, crowded: watch::channel(false).1, _alive: alive };
    let crowd = Crowd::new(args.max_per_address());
    let mut places = Vec::new();
    for addr in args.addresses(&running) {
        let at = SocketAddr::new(addr, args.port(backend));
        let http = listeners.listen(at).await?;
        places.push(url(http.local_addr().unwrap_or(at), acceptor.is_some()));
        let server = HttpServer {
            site: site.clone(),
            keep_alive: !args.no_keep_alive,
            timeout: args.timeout,
            least_rate: args.least_rate(),
        };
        let (limits, own) = (args.limits(&crowd), task.clone());
        match &acceptor {
            Some(acceptor) => {
                let server = SecureServer { http: server, acceptor: acceptor.clone() };
                let each = move |stream, peer, task| {
                    let server = server.clone();
                    async move { server.handle(stream, peer, task).await }
                };
                tokio::spawn(accept(http, limits, own, each));
            }
            None => {
                let each = move |stream, peer, task| server.clone().handle(stream, peer, task);
                tokio::spawn(accept(http, limits, own, each));
            }
        }
        if let Some(port) = args.echo {
            let echo = listeners.listen(SocketAddr::new(addr, port)).await?;
            let server = EchoServer { timeout: args.timeout, least_rate: args.least_rate() };
            let each = move |stream, peer, task| server.clone().handle(stream, peer, task);
            tokio::spawn(accept(echo, args.limits(&crowd), task.clone(), each));
        }
    }
    drop(task);
    log.banner(&args, &running, &places);
    let ended = ending::until_stopped(&running, signals, stop, all_gone, &log).await;
    log.summary(running.own.as_ref().map(|own| &own.stack));
    log.finish();
    running.finish()?;
    ended.map(|()| ExitCode::SUCCESS)
}

impl ServeArgs {
    fn backend(&self) -> Result<Backend, Failure> {
        let mut stack_only = self.stack.given_names();
        if self.synack_hold.is_some_and(|hold| !hold.is_zero()) {
            stack_only.push("--synack-hold");
        }
        let backend = backend::choose(self.backend, &stack_only, Backend::Stack)?;
        if backend == Backend::Stack && !self.bind.is_empty() {
            return Err(Failure::usage(
                "cannot use --bind with our own stack: its addresses are its own; use --address, or \
                 --backend kernel",
            ));
        }
        Ok(backend)
    }

    fn port(&self, backend: Backend) -> u16 {
        self.port.unwrap_or(match (backend, &self.cert) {
            (Backend::Stack, None) => 80,
            (Backend::Stack, Some(_)) => 443,
            // Ports that need no root.
            (Backend::Kernel, None) => 8080,
            (Backend::Kernel, Some(_)) => 8443,
        })
    }

    fn acceptor(&self) -> Result<Option<TlsAcceptor>, Failure> {
        let Some(cert) = &self.cert else { return Ok(None) };
        let key = self.cert_key.as_ref().unwrap_or(cert);
        secure::acceptor(cert, key, self.timeout).map(Some)
    }

    /// Opens the access log.
    fn access(&self) -> Result<Access, Failure> {
        match self.access_log.as_deref() {
            None => Ok(Access::None),
            Some(path) if path == Path::new("-") => Ok(Access::Output(self.log_format)),
            Some(path) => AccessLog::start(path, self.log_format).map(Access::File),
        }
    }

    fn addresses(&self, running: &Running) -> Vec<IpAddr> {
        match (&running.own, &self.bind[..]) {
            (Some(own), _) => own.addresses.iter().map(|own| own.addr).collect(),
            (None, []) => vec![Ipv4Addr::LOCALHOST.into()],
            (None, given) => given.to_vec(),
        }
    }

    fn least_rate(&self) -> LeastRate {
        LeastRate { bytes_per_second: self.min_rate.into(), window: self.timeout }
    }

    fn max_per_address(&self) -> u32 {
        self.max_per_address.unwrap_or((self.max_connections / SHARE).max(SHARE_MIN))
    }

    fn limits(&self, addresses: &Crowd) -> Limits {
        Limits { connections: self.max_connections, addresses: addresses.clone() }
    }
}

/// Divisor of `--max-connections` for the default limit of one address.
const SHARE: u32 = 4;
/// Smallest default limit of one address: many people may share an address.
const SHARE_MIN: u32 = 256;

/// Bit of `net.ipv4.tcp_fastopen` that enables Fast Open for servers.
const SERVER_BIT: u32 = 0x2;

/// Raises the limit of open files to the maximum: every file being sent is open.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, clients above it get a 503.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Warns about options that are allowed but unlikely to be intended.
fn warn_about(args: &ServeArgs, backend: Backend, config: &Config) {
    let (setting, fix) = match backend {
        Backend::Stack => (Some(config.tcp_fastopen), "add --set net.ipv4.tcp_fastopen=0x3"),
        Backend::Kernel => (kernel_fast_open(), "run as root: sysctl net.ipv4.tcp_fastopen=3"),
    };
    if let Some(bits) = setting
        && args.fast_open > 0
        && bits & SERVER_BIT == 0
    {
        warn(format!("Fast Open is off for servers: net.ipv4.tcp_fastopen is {bits:#x}; {fix}"));
    }
}

/// Reads the kernel's setting.
fn kernel_fast_open() -> Option<u32> {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").ok()?.trim().parse().ok()
}

/// Opens listeners.
struct Listeners<'a> {
    net: &'a Net,
    args: &'a ServeArgs,
    /// The cookie key, which on the kernel's sockets belongs to the listener.
    key: Option<KeyRing>,
}

impl Listeners<'_> {
    async fn listen(&self, at: SocketAddr) -> Result<TcpListener, Failure> {
        let Listeners { net, args, key } = self;
        // The user timeout ends connections whose peer accepts nothing, even with a closed window;
        // keep-alive ends those whose peer has disappeared.
        let options = SocketOptions {
            nodelay: true,
            keepalive: true,
            keepalive_time: Some(Duration::from_secs(60)),
            keepalive_intvl: Some(Duration::from_secs(15)),
            user_timeout: Some(args.timeout),
            ..SocketOptions::default()
        };
        let mut builder =
            TcpListener::builder(net).backlog(args.backlog).fast_open(args.fast_open).socket_options(options);
        if let Some(key) = key.as_ref().filter(|_| net.backend() == Backend::Kernel) {
            builder = builder.key(key.clone());
        }
        builder.bind(at).await.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::PermissionDenied => "; choose a --port of 1024 or more, or run as root",
                io::ErrorKind::AddrInUse => "; choose another --port, or stop the other server",
                io::ErrorKind::AddrNotAvailable => "; choose an address of this machine with --bind",
                _ => "",
            };
            Failure::failed(format!("cannot listen on {at}: {error}{advice}"))
        })
    }
}

/// Formats the URL of the server, without the scheme's own port.
fn url(at: SocketAddr, is_secure: bool) -> String {
    let (scheme, own_port) = if is_secure { ("https", 443) } else { ("http", 80) };
    match at {
        SocketAddr::V6(at) if at.port() == own_port => format!("{scheme}://[{}]/", at.ip()),
        SocketAddr::V4(at) if at.port() == own_port => format!("{scheme}://{}/", at.ip()),
        at => format!("{scheme}://{at}/"),
    }
}

/// State shared by the tasks of all connections.
#[derive(Clone)]
struct Task {
    log: Arc<Log>,
    /// True when the server is stopping.
    stopped: watch::Receiver<bool>,
    /// True while every place of the listener is taken.
    crowded: watch::Receiver<bool>,
    /// Dropped with the task.
    _alive: mpsc::Sender<()>,
}

impl Task {
    /// Waits until the server is stopping.
    async fn stopped(&mut self) {
        // An error means that the server is already gone.
        let _ = self.stopped.wait_for(|stopped| *stopped).await;
    }

    /// Waits until every place is taken.
    async fn crowded(&mut self) {
        if self.crowded.wait_for(|crowded| *crowded).await.is_err() {
            // The listener is gone.
            std::future::pending().await
        }
    }
}

/// Limits on the connections of a listener.
struct Limits {
    connections: u32,
    /// Connections by address, of all listeners together.
    addresses: Crowd,
}

/// Spawns a task for every connection, within the limits, until the server stops.
async fn accept<F: Future<Output = ()> + 'static + Send>(
    listener: TcpListener,
    limits: Limits,
    mut task: Task,
    each: impl Fn(TcpStream, SocketAddr, Task) -> F,
) {
    let places = Arc::new(Semaphore::new(limits.connections as usize));
    let crowd = watch::Sender::new(false);
    task.crowded = crowd.subscribe();
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = accept_one(&listener, &places, &crowd) => accepted,
            () = task.stopped() => return,
        };
        // Accept fails only if the stack has ended; `until_stopped` reports why.
        let Some((place, stream, peer)) = accepted else { return };
        let Some(admission) = admit(&limits.addresses, peer, &task.log) else {
            pace::reset(stream);
            // Yields to other tasks after a fair share of accepts.
            tokio::task::consume_budget().await;
            continue;
        };
        let connection = each(stream, peer, task.clone());
        begin(async move {
            connection.await;
            drop((place, admission));
        })
        .await;
    }
}

fn admit(addresses: &Crowd, peer: SocketAddr, log: &Log) -> Option<Admission> {
    addresses.admit(peer.ip()).map_err(|turned_away| log.turned_away(peer, &turned_away)).ok()
}

/// Accepts the next connection when there is a place for it.
async fn accept_one(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    crowd: &watch::Sender<bool>,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    set(crowd, places.available_permits() == 0);
    let place = places.clone().acquire_owned().await.ok()?;
    set(crowd, false);
    let (stream, peer) = listener.accept().await.ok()?;
    Some((place, stream, peer))
}

/// Sets a value. Wakes the tasks that wait for it only if it changes: every idle connection waits.
fn set(value: &watch::Sender<bool>, to: bool) {
    value.send_if_modified(|value| std::mem::replace(value, to) != to);
}

/// Polls a connection once before the driver's turn, so that a request on the SYN gets its reply
/// immediately, even on a busy machine. A task does the rest.
async fn begin(connection: impl Future<Output = ()> + Send + 'static) {
    let mut connection = Box::pin(connection);
    let first_step = poll_fn(|cx| Poll::Ready(connection.as_mut().poll(cx))).await;
    if first_step.is_pending() {
        tokio::spawn(connection);
    }
}
