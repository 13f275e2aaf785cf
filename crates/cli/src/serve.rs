//! `firstbyte serve`: HTTP and echo, on a stack of our own behind a TUN device.
//!
//! - `serve/connection.rs`: one HTTP connection, from accept to the last FIN;
//! - `serve/reply.rs`: which answer a request gets; `serve/files.rs`: answers from a folder; `serve/body.rs`: their bytes;
//!   `serve/disk.rs`: the threads that wait for a disk;
//! - `serve/echo.rs`: the echo server;
//! - `serve/pace.rs`: the least rate of clients; `serve/crowd.rs`: the connections of one address;
//! - `serve/key.rs`: the cookie key; `serve/ending.rs`: from the first signal to the end;
//! - `serve/log.rs`: what is printed; `serve/outlet.rs`: the thread that writes it.
//!
//! Everything runs on one thread, the stack's driver included: an answer that is ready in the poll in which its request came
//! is written before the driver sends anything, which is what lets it ride on the SYN-ACK.
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

use crate::control::ControlSocket;
use crate::failure::{Failure, warn};
use crate::signals::Signals;
use crate::stack::{Defaults, StackArgs};
use crate::terminal::print;
use crate::values;
use clap::Args;
use connection::HttpServer;
use crowd::{Admission, Crowd};
use echo::EchoServer;
use firstbyte::{Config, KeyRing, Net, SocketOptions, TcpListener, TcpStream};
use log::Log;
use pace::LeastRate;
use reply::{Bodies, Site};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Serve HTTP (a folder, or a greeting) and echo with TCP Fast Open, on a stack of our own behind a TUN device.
#[derive(Args, Debug)]
#[command(
    after_help = "Example (as root; the second terminal shows four packets from the second visit on):\n  \
                  firstbyte serve\n  \
                  curl --tcp-fastopen http://10.77.0.2/\n\n\
                  Files are served from a folder, whose index.html is the answer to /:\n  \
                  firstbyte serve --root site\n\n\
                  With a fixed key, cookies survive a restart and are those of a Linux server with the same key:\n  \
                  firstbyte serve --key-file /proc/sys/net/ipv4/tcp_fastopen_key"
)]
pub(crate) struct ServeArgs {
    /// Serve the files of this folder, as it is at the start; without it, every path is answered with a greeting. Links are followed if
    /// they are relative and lead to a file beneath the folder.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Port of the HTTP server.
    #[arg(long, default_value_t = 80, value_parser = values::port)]
    port: u16,
    /// Serve echo (RFC 862) on this port too.
    #[arg(long, value_name = "PORT", value_parser = values::port)]
    echo: Option<u16>,
    /// The most connections with Fast Open whose handshake is not complete, per listener; 0 switches Fast Open off.
    #[arg(long, value_name = "QLEN", default_value_t = 256)]
    fast_open: u32,
    /// File with the cookie key as Linux writes it, aaaaaaaa-bbbbbbbb-cccccccc-dddddddd, with an optional backup after a comma
    /// [default: a random key].
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// What `--key-file` replaced, for the error that says so.
    #[arg(long, hide = true, value_name = "KEY")]
    key: Option<String>,
    /// The longest time a SYN-ACK waits for the reply that could ride on it; 0 sends it at once, as Linux does
    /// [default: the profile's, 1ms].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    synack_hold: Option<Duration>,
    /// Keep HTTP connections open for more requests. Without it replies say `Connection: close`, so that reply and FIN ride on
    /// the SYN-ACK.
    #[arg(long)]
    keep_alive: bool,
    /// Act on requests with unsafe methods (POST, PUT, …) even while they may be a replay, instead of 425 Too Early.
    #[arg(long)]
    allow_early_unsafe: bool,
    /// The most connections that wait to be accepted, per listener.
    #[arg(long, value_name = "N", default_value_t = 4096, allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    backlog: u32,
    /// The most connections that are served at once, per listener; more wait to be accepted.
    #[arg(long, value_name = "N", default_value_t = 4096, allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    max_connections: u32,
    /// The most connections of one IPv4 address or IPv6 /64 network, HTTP and echo together; more are reset [default: a quarter of
    /// --max-connections, at least 256].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = values::whole(1..=u32::MAX))]
    max_per_address: Option<u32>,
    /// Disconnect a client that keeps the server waiting for so long: to begin a request, for its head, for more of its body, or to take
    /// more of a reply; answer 503 if a file cannot be read in this time.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::positive_duration)]
    timeout: Duration,
    /// Disconnect a client that takes fewer bytes a second of a reply, measured over --timeout; 0 allows any rate.
    #[arg(long, value_name = "BYTES", default_value_t = 500, allow_negative_numbers = true, value_parser = values::whole(0..=u32::MAX))]
    min_rate: u32,
    /// Answer 408 if the body of a request is not complete in this time.
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = values::positive_duration)]
    body_timeout: Duration,
    /// One JSON object per line instead of text.
    #[arg(long)]
    json: bool,
    /// No line per request.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    stack: StackArgs,
}

const DEFAULTS: Defaults =
    Defaults { tun: "firstbyte0", address: "10.77.0.2/24", control: true, queue_len: Some(QUEUE_LEN) };

/// Packets that may wait on the device while the stack does something else: a SYN, an ACK, a request and a FIN of 5,000 clients. A TUN
/// device has room for 500 at first and loses what is more, and a lost SYN costs its client a second.
const QUEUE_LEN: u32 = 20_000;

/// Runs the verb until a signal comes.
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
    if args.echo == Some(args.port) {
        return Err(Failure::usage(format!(
            "--port and --echo are both {}: choose another for one",
            args.port
        )));
    }
    let key = match args.key_file.as_deref() {
        Some(file) => Some(key::read(file)?),
        None => args.stack.key()?,
    };
    let bodies = Bodies { pause: args.timeout, total: args.body_timeout };
    let site = Site::open(args.root.as_deref(), args.allow_early_unsafe, bodies)?;
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let done = runtime.block_on(serve(args, config, key, site));
    // Not waiting for helper threads: a file system that hangs would hold up the end.
    runtime.shutdown_background();
    done
}

async fn serve(
    args: ServeArgs,
    config: Config,
    key: Option<KeyRing>,
    site: Site,
) -> Result<ExitCode, Failure> {
    let signals = Signals::install().map_err(Failure::no_signals)?;
    warn_about(&args, &config);
    let running = args.stack.start(&DEFAULTS, config, None, |builder| match key {
        Some(key) => builder.fast_open_key(key),
        None => builder,
    })?;
    let log = Log::start(args.json, args.quiet);
    let log = Arc::new(log.map_err(|error| Failure::failed(format!("cannot start: {error}")))?);
    let (stop, stopped) = watch::channel(false);
    let (alive, all_gone) = mpsc::channel(1);
    let task = Task { log: log.clone(), stopped, crowded: watch::channel(false).1, _alive: alive };
    let crowd = Crowd::new(args.max_per_address());
    let mut places = Vec::new();
    for own in &running.addresses {
        let http = listen(&running.net, &args, SocketAddr::new(own.addr, args.port)).await?;
        places.push(format!(
            "http://{}/",
            url_authority(http.local_addr().unwrap_or((own.addr, args.port).into()))
        ));
        let server = HttpServer {
            site: site.clone(),
            keep_alive: args.keep_alive,
            timeout: args.timeout,
            least_rate: args.least_rate(),
        };
        let each = move |stream, peer, task| server.clone().handle(stream, peer, task);
        tokio::spawn(accept(http, args.limits(&crowd), task.clone(), each));
        if let Some(port) = args.echo {
            let echo = listen(&running.net, &args, SocketAddr::new(own.addr, port)).await?;
            let server = EchoServer { timeout: args.timeout, least_rate: args.least_rate() };
            let each = move |stream, peer, task| server.clone().handle(stream, peer, task);
            tokio::spawn(accept(echo, args.limits(&crowd), task.clone(), each));
        }
    }
    drop(task);
    let control = running.control.as_ref().map(ControlSocket::path);
    log.banner(&args, &running.tun, &places, control);
    let ended = ending::until_stopped(&running, signals, stop, all_gone, &log).await;
    log.summary(&running.stack);
    log.finish();
    running.finish()?;
    ended.map(|()| ExitCode::SUCCESS)
}

impl ServeArgs {
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

/// Divisor of all places that gives the default limit of one address.
const SHARE: u32 = 4;
/// Smallest default limit of one address. Many people may be behind one address.
const SHARE_MIN: u32 = 256;

/// Bit of `net.ipv4.tcp_fastopen`: servers may use Fast Open.
const SERVER_BIT: u32 = 0x2;

/// Every file that is being sent is open: as many as the system lets this process have.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where it may not be raised, clients beyond it are told so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Things that are allowed, but hardly what was meant.
fn warn_about(args: &ServeArgs, config: &Config) {
    let server_bit = config.tcp_fastopen & SERVER_BIT != 0;
    if args.fast_open > 0 && !server_bit {
        warn(format!(
            "Fast Open is off for servers: net.ipv4.tcp_fastopen is {:#x}; add --set net.ipv4.tcp_fastopen=0x3",
            config.tcp_fastopen
        ));
    }
    if args.keep_alive && config.synack_data && args.fast_open > 0 {
        warn("with --keep-alive the FIN cannot ride on the SYN-ACK: more than four packets per exchange");
    }
}

async fn listen(net: &Net, args: &ServeArgs, at: SocketAddr) -> Result<TcpListener, Failure> {
    // The user timeout is for who takes nothing of what was written, be it that he keeps his window closed; keepalive for who vanished
    // without a word.
    let options = SocketOptions {
        nodelay: true,
        keepalive: true,
        keepalive_time: Some(Duration::from_secs(60)),
        keepalive_intvl: Some(Duration::from_secs(15)),
        user_timeout: Some(args.timeout),
        ..SocketOptions::default()
    };
    let builder =
        TcpListener::builder(net).backlog(args.backlog).fast_open(args.fast_open).socket_options(options);
    builder.bind(at).await.map_err(|error| Failure::failed(format!("cannot listen on {at}: {error}")))
}

/// `addr`, or `addr:port` where the port is not HTTP's.
fn url_authority(at: SocketAddr) -> String {
    match (at.port(), at) {
        (80, SocketAddr::V6(at)) => format!("[{}]", at.ip()),
        (80, SocketAddr::V4(at)) => at.ip().to_string(),
        _ => at.to_string(),
    }
}

/// What every connection's task has of the server.
#[derive(Clone)]
struct Task {
    log: Arc<Log>,
    /// True once no new requests are wanted.
    stopped: watch::Receiver<bool>,
    /// True while every place of its listener is taken.
    crowded: watch::Receiver<bool>,
    /// Dropped with the task.
    _alive: mpsc::Sender<()>,
}

impl Task {
    /// Waits until no new requests are wanted.
    async fn stopped(&mut self) {
        // An error means that the server is gone already.
        let _ = self.stopped.wait_for(|stopped| *stopped).await;
    }

    /// Waits until every place is taken.
    async fn crowded(&mut self) {
        if self.crowded.wait_for(|crowded| *crowded).await.is_err() {
            // Nobody is accepted any more.
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

/// Hands every connection to a task of its own, within the limits, until the server stops.
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
        // Only a stack that has ended refuses; `until_stopped` says why.
        let Some((place, stream, peer)) = accepted else { return };
        let Some(admission) = admit(&limits.addresses, peer, &task.log) else {
            pace::reset(stream);
            // Not more of them in one turn than anybody else gets.
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

/// The next connection, once there is a place for it.
async fn accept_one(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    crowd: &watch::Sender<bool>,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    crowd.send_replace(places.available_permits() == 0);
    let place = places.clone().acquire_owned().await.ok()?;
    crowd.send_replace(false);
    let (stream, peer) = listener.accept().await.ok()?;
    Some((place, stream, peer))
}

/// Takes the first step of a connection at once, before the driver gets its turn: a request that came in the SYN has its answer
/// then, whatever the machine is busy with. A task of its own does the rest.
async fn begin(connection: impl Future<Output = ()> + Send + 'static) {
    let mut connection = Box::pin(connection);
    let first_step = poll_fn(|cx| Poll::Ready(connection.as_mut().poll(cx))).await;
    if first_step.is_pending() {
        tokio::spawn(connection);
    }
}
