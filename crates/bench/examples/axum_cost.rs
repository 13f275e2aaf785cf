//! axum over the kernel's sockets of `firstbyte`, beside axum over tokio's own listener: `cargo run
//! --profile dist -p firstbyte-bench --example axum_cost [ROUNDS]`.
//!
//! Each server has one thread; the load, connections of tokio, has another. Rounds of a tenth of a
//! second alternate between the servers, and so does the order within a pair. The results are
//! medians of the ratios of a pair: requests per second, and processor time of the server's thread
//! per request, which a busy machine disturbs less.
use axum::{Router, routing::get};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: usize = 101;
/// Connections of the load at once.
const CONNECTIONS: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Load {
    KeepAlive,
    ConnectionPerRequest,
}

fn main() -> io::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(ROUNDS);
    let tokios = start("tokio", |router| async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok((address, async move { axum::serve(listener, router).await }))
    });
    let ours = start("firstbyte", |router| async {
        let net = firstbyte::Net::kernel();
        let listener = firstbyte::TcpListener::builder(&net).fast_open(256).bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok((address, async move { axum::serve(listener, router).await }))
    });
    let runtime = runtime();
    for load in [Load::KeepAlive, Load::ConnectionPerRequest] {
        let mut pairs = Vec::new();
        for round in 0..=rounds {
            let play = |server| runtime.block_on(play(server, load));
            let (tokios, ours) = if round % 2 == 0 {
                let tokios = play(tokios)?;
                (tokios, play(ours)?)
            } else {
                let ours = play(ours)?;
                (play(tokios)?, ours)
            };
            // The first pair warms up.
            if round > 0 {
                pairs.push((tokios, ours));
            }
        }
        report(load, &pairs);
    }
    Ok(())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Starts a server on a thread of its own and returns its address.
fn start<F, S>(name: &str, open: impl FnOnce(Router) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = io::Result<(SocketAddr, S)>>,
    S: Future<Output = io::Result<()>>,
{
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let server = move || {
        runtime().block_on(async {
            let cpu = || async { clock_nanos(ClockId::ThreadCPUTime).to_string() };
            let router = Router::new().route("/", get(|| async { "hello" })).route("/cpu", get(cpu));
            let (address, server) = open(router).await.expect("a listener");
            sender.send(address).expect("the main thread waits");
            server.await
        })
    };
    thread.spawn(server).expect("a thread");
    receiver.recv().expect("the server starts")
}

fn clock_nanos(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The result of a round.
#[derive(Clone, Copy)]
struct Round {
    per_second: f64,
    /// Nanoseconds of the server's thread per request.
    cpu: f64,
}

async fn play(server: SocketAddr, load: Load) -> io::Result<Round> {
    let before = cpu(server).await?;
    let begun = Instant::now();
    let tasks: Vec<_> =
        (0..CONNECTIONS).map(|_| tokio::spawn(requests(server, load, begun + ROUND))).collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.map_err(io::Error::other)??;
    }
    let (elapsed, count) = (begun.elapsed().as_secs_f64(), f64::from(count));
    Ok(Round { per_second: count / elapsed, cpu: (cpu(server).await? - before) / count })
}

/// Requests until the end of the round, and returns how many.
async fn requests(server: SocketAddr, load: Load, end: Instant) -> io::Result<u32> {
    let mut count = 0;
    match load {
        Load::KeepAlive => {
            let mut stream = connect(server).await?;
            let mut answer = vec![0; 4096];
            while Instant::now() < end {
                stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await?;
                let mut len = 0;
                while !answer[..len].ends_with(b"hello") {
                    len += stream.read(&mut answer[len..]).await?;
                }
                count += 1;
            }
        }
        Load::ConnectionPerRequest => {
            while Instant::now() < end {
                let answer = once(server, "/").await?;
                assert!(answer.ends_with("hello"), "{answer}");
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Sends one request on a connection of its own.
async fn once(server: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = connect(server).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Nanoseconds that the server's thread has run.
async fn cpu(server: SocketAddr) -> io::Result<f64> {
    let answer = once(server, "/cpu").await?;
    answer.rsplit("\r\n").next().and_then(|body| body.parse().ok()).ok_or_else(|| io::Error::other(answer))
}

fn report(load: Load, pairs: &[(Round, Round)]) {
    println!("{load:?}, {} rounds", pairs.len());
    let row = |what: &str, unit: f64, of: fn(&Round) -> f64| {
        let tokios = median(pairs.iter().map(|(tokios, _)| of(tokios) / unit));
        let ours = median(pairs.iter().map(|(_, ours)| of(ours) / unit));
        let ratio = median(pairs.iter().map(|(tokios, ours)| of(ours) / of(tokios)));
        println!("  {what:<24} tokio {tokios:>9.2}  firstbyte {ours:>9.2}  ratio {ratio:.3}");
    };
    row("thousand requests/s", 1000.0, |round| round.per_second);
    row("CPU, µs per request", 1000.0, |round| round.cpu);
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
