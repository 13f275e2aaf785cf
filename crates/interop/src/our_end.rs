//! Our stack as an end: the library `firstbyte` on a runtime of its own.
use crate::ends::{Ask, ClientEnd, Closes, End, Exchange, FastOpenCounters, Serve, ServerEnd, Way};
use crate::netns::{Addresses, IpVersion};
use device::Device;
use firstbyte::{Net, TcpListener, TcpStream};
use proto::fast_open::KeyRing;
use proto::{Config, FastOpen, NotAcknowledged, Outcome};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

/// What each connection of a port sent, in order of acceptance.
type Received = Arc<Mutex<Vec<Vec<u8>>>>;

/// One stack of ours with its runtime (one worker thread, so that application and driver share it
/// as in a small server).
pub struct OurEnd {
    /// The stack.
    pub net: Net,
    runtime: Runtime,
    here: Addresses,
    partner: Addresses,
    received: BTreeMap<u16, Received>,
    /// Written bytes leave before the application's next call, as with a kernel's `write`.
    /// Otherwise a reply and the end behind it leave together.
    pub writes_leave_at_once: bool,
}

impl OurEnd {
    /// Starts a stack with these addresses on `device`; `partner` is the other end.
    pub fn new(
        device: impl Device + Send + 'static,
        config: Config,
        here: Addresses,
        partner: Addresses,
    ) -> OurEnd {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let entered = runtime.enter();
        let addresses = [format!("{}/24", here.v4), format!("{}/64", here.v6)];
        let builder = addresses.iter().fold(Net::builder(), |builder, address| builder.address(address));
        let net = builder.config(config).device(device).start().expect("a stack");
        drop(entered);
        OurEnd { net, runtime, here, partner, received: BTreeMap::new(), writes_leave_at_once: false }
    }

    /// Its address of one IP version.
    pub fn addresses_of(&self, version: IpVersion) -> IpAddr {
        self.here.of(version)
    }

    /// Runs a future on the worker thread, where the driver runs too.
    pub fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        self.runtime.block_on(async { tokio::spawn(future).await.expect("the task ends well") })
    }

    /// Starts a task on the worker thread.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }
}

impl End for OurEnd {
    fn counters(&self) -> FastOpenCounters {
        let counters = self.net.stack().expect("a stack of ours").counters();
        let named = counters
            .all()
            .filter_map(|(name, value)| Some((name.strip_prefix("TCPFastOpen")?.to_owned(), value)));
        named.filter(|(_, value)| *value != 0).map(|(name, value)| (name, value as i64)).collect()
    }

    fn counter(&self, name: &str) -> i64 {
        let counters = self.net.stack().expect("a stack of ours").counters();
        let found = counters.all().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no counter is called {name}")).1 as i64
    }

    fn set(&mut self, name: &str, value: &str) {
        let warning = self
            .net
            .stack()
            .expect("a stack of ours")
            .set(name, value)
            .unwrap_or_else(|error| panic!("{name} = {value}: {error:?}"));
        assert_eq!(warning, None, "{name} = {value}");
    }

    fn addresses(&self) -> Addresses {
        self.here
    }
}

impl Drop for OurEnd {
    /// A test that is over does not wait for peers.
    fn drop(&mut self) {
        let net = self.net.clone();
        drop(self.runtime.block_on(async move { net.shutdown_timeout(Duration::from_millis(1)).await }));
    }
}

impl ClientEnd for OurEnd {
    fn exchange(&mut self, ask: &Ask) -> Exchange {
        let peer = SocketAddr::new(self.partner.of(ask.version), ask.port);
        let (net, ask) = (self.net.clone(), ask.clone());
        self.run(async move { exchange(&net, peer, &ask).await })
    }
}

impl ServerEnd for OurEnd {
    fn serve(&mut self, serve: &Serve) {
        let received = Received::default();
        self.received.insert(serve.port, received.clone());
        let local = SocketAddr::new(self.here.of(serve.version), serve.port);
        let mut builder =
            TcpListener::builder(&self.net).fast_open(serve.qlen).fast_open_no_cookie(serve.no_cookie);
        if let Some(key) = &serve.key {
            builder = builder.key(KeyRing::from_bytes(key).expect("a key"));
        }
        let listener = self.run(async move { builder.bind(local).await.expect("a listener") });
        let (serve, writes_leave_at_once) = (serve.clone(), self.writes_leave_at_once);
        self.spawn(async move {
            if serve.accept {
                accept_all(&listener, &serve, writes_leave_at_once, &received).await;
            }
            std::future::pending::<()>().await;
        });
    }

    fn received(&mut self, port: u16) -> Vec<Vec<u8>> {
        self.received[&port].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_key(&mut self, text: &str) {
        self.net.stack().expect("a stack of ours").set_fast_open_key(text.parse().expect("a key"));
    }
}

async fn accept_all(listener: &TcpListener, serve: &Serve, writes_leave_at_once: bool, received: &Received) {
    while let Ok((stream, _)) = listener.accept().await {
        let number = {
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            received.push(Vec::new());
            received.len() - 1
        };
        let (serve, received) = (serve.clone(), received.clone());
        tokio::spawn(async move {
            // A peer that resets is part of some rows; what it sent until then is in `received`.
            drop(
                serve_one(stream, &serve, writes_leave_at_once, |data| {
                    received.lock().unwrap_or_else(PoisonError::into_inner)[number].extend_from_slice(data);
                })
                .await,
            );
        });
    }
}

async fn serve_one(
    mut stream: TcpStream,
    serve: &Serve,
    writes_leave_at_once: bool,
    mut note: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; 65536];
    let mut seen = 0;
    while seen < serve.expect {
        let len = stream.read(&mut buffer).await?;
        if len == 0 {
            break;
        }
        note(&buffer[..len]);
        seen += len;
    }
    stream.write_all(&serve.reply).await?;
    if writes_leave_at_once {
        stream.push();
        // The driver is a task of the same worker; it comes first.
        tokio::task::yield_now().await;
    }
    match serve.closes {
        Closes::ServerFirst => stream.shutdown().await,
        Closes::ClientFirst => {
            stream.push();
            loop {
                match stream.read(&mut buffer).await? {
                    0 => return stream.shutdown().await,
                    len => note(&buffer[..len]),
                }
            }
        }
        Closes::Never => {
            stream.push();
            std::future::pending().await
        }
    }
}

/// One exchange, timed at the application's calls.
async fn exchange(net: &Net, peer: SocketAddr, ask: &Ask) -> Exchange {
    let start = Instant::now();
    let ms = || start.elapsed().as_secs_f64() * 1000.0;
    let mut report = Exchange {
        reply: Vec::new(),
        first_byte_ms: None,
        total_ms: 0.0,
        client_fail: 0,
        outcome: None,
        error: None,
    };
    let mut open = None;
    let whole = async {
        let stream = open.insert(connect(net, peer, ask).await?);
        if ask.closes_first {
            stream.shutdown().await?;
        }
        let mut buffer = vec![0; 65536];
        loop {
            let len = stream.read(&mut buffer).await?;
            if len == 0 {
                return io::Result::Ok(());
            }
            report.first_byte_ms.get_or_insert_with(ms);
            report.reply.extend_from_slice(&buffer[..len]);
        }
    };
    report.error = match tokio::time::timeout(ask.limit, whole).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the client's own limit".to_owned()),
    };
    report.total_ms = ms();
    report.outcome = open.as_ref().map(TcpStream::outcome);
    report.client_fail = report.outcome.map_or(0, client_fail);
    report
}

async fn connect(net: &Net, peer: SocketAddr, ask: &Ask) -> io::Result<TcpStream> {
    let socket = net.socket().data_less(ask.data.is_empty());
    let mut stream = match ask.way {
        Way::FastOpen => return socket.fast_open(FastOpen::Auto).connect_with(peer, ask.data.clone()).await,
        Way::NoCookie => {
            return socket.fast_open(FastOpen::NoCookie).connect_with(peer, ask.data.clone()).await;
        }
        Way::FinOnSyn => {
            let socket = socket.fast_open(FastOpen::Auto).fin(true).syn_fin(true);
            return socket.connect_with(peer, ask.data.clone()).await;
        }
        Way::Plain => socket.connect(peer).await?,
        Way::FastOpenConnect => socket.connect_deferred(peer).await?,
    };
    stream.write_all(&ask.data).await?;
    stream.flush().await?;
    Ok(stream)
}

/// Our outcome in the numbers of `tcpi_fastopen_client_fail`.
fn client_fail(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Accepted | Outcome::Pending | Outcome::Unknown | Outcome::Skipped(_) => 0,
        Outcome::CookieRequested { .. } | Outcome::CookieAsked => 1,
        Outcome::NotAcknowledged(
            NotAcknowledged::Lost | NotAcknowledged::TooBig | NotAcknowledged::OldConnection,
        ) => 3,
        Outcome::NotAcknowledged(_) => 2,
    }
}
