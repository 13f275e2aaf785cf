//! One end of the path: a stack, and a runtime on it.
use bytes::Bytes;
use firstbyte::tls::rustls::pki_types::CertificateDer;
use firstbyte::tls::{TlsAcceptor, TlsStream};
use firstbyte::{Net, TcpListener};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use interop::{Addresses, Host, OurEnd, SocketDevice};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::cell::RefCell;
use std::convert::Infallible;
use std::fs::File;
use std::future::Future;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The name in the certificate.
pub(crate) const NAME: &str = "www.example";

/// Protocol of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    pub(crate) fn alpn(self) -> &'static str {
        match self {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
        }
    }
}

/// A certificate for [`NAME`] and the server's address, and its key, as PEM, and the certificate as
/// DER.
pub(crate) fn certified() -> &'static (String, String, CertificateDer<'static>) {
    static CERTIFIED: OnceLock<(String, String, CertificateDer<'static>)> = OnceLock::new();
    CERTIFIED.get_or_init(|| {
        let names = [NAME, "10.77.0.2"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        (made.cert.pem(), made.signing_key.serialize_pem(), made.cert.der().clone())
    })
}

pub(crate) struct Side {
    pub(crate) net: Net,
    pub(crate) addresses: Addresses,
    stack: Stack,
    end: RefCell<Option<OwnedFd>>,
}

enum Stack {
    /// The kernel in a namespace, whose threads the runtime's are.
    Kernel(Host, Runtime),
    Ours(OurEnd),
}

impl Side {
    /// The kernel in a namespace of its own, with address 10.77.0.`n`.
    pub(crate) fn kernel(n: u8) -> Side {
        let (host, end) = Host::new(Addresses::nth(n));
        host.sysctl("net.ipv4.tcp_fastopen", "3");
        host.sysctl("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "0");
        let namespace = host.run(|| File::open("/proc/thread-self/ns/net").expect("a namespace"));
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().on_thread_start(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
        });
        let runtime = builder.build().expect("a runtime");
        let addresses = host.addresses;
        Side { net: Net::kernel(), addresses, stack: Stack::Kernel(host, runtime), end: Some(end).into() }
    }

    /// Our stack as it comes, with address 10.77.0.`n`.
    pub(crate) fn ours(n: u8) -> Side {
        let (here, partner) = (Addresses::nth(n), Addresses::nth(3 - n));
        let (device, end) = SocketDevice::new(1500);
        let ours = OurEnd::new(device, proto::Config::default(), here, partner);
        Side { net: ours.net.clone(), addresses: here, stack: Stack::Ours(ours), end: Some(end).into() }
    }

    /// The other side of its device, once.
    pub(crate) fn end(&self) -> OwnedFd {
        self.end.take().expect("taken once")
    }

    /// The namespace of the kernel.
    pub(crate) fn host(&self) -> &Host {
        match &self.stack {
            Stack::Kernel(host, _) => host,
            Stack::Ours(_) => panic!("our stack has no namespace"),
        }
    }

    /// Gives the server another key for cookies: this digit, thirty-two times.
    pub(crate) fn change_cookie_key(&self, digit: &str) {
        let part = digit.repeat(8);
        let key = [&part[..]; 4].join("-");
        match &self.stack {
            Stack::Kernel(host, _) => host.sysctl("net.ipv4.tcp_fastopen_key", &key),
            Stack::Ours(ours) => {
                let stack = ours.net.stack().expect("a stack of ours");
                stack.set_fast_open_key(key.parse().expect("a key"));
            }
        }
    }

    /// The time that a SYN-ACK waits for the answer: longer than by default, because a test's build
    /// does not optimise the cryptography.
    fn synack_hold(&self) -> Duration {
        match &self.stack {
            Stack::Kernel(..) => Duration::ZERO,
            Stack::Ours(_) => Duration::from_millis(10),
        }
    }

    /// Runs a future on the stack's runtime.
    pub(crate) fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        match &self.stack {
            Stack::Kernel(_, runtime) => {
                runtime.block_on(async { tokio::spawn(future).await.expect("the task ends well") })
            }
            Stack::Ours(ours) => ours.run(future),
        }
    }

    /// Starts a task on the stack's runtime.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        match &self.stack {
            Stack::Kernel(_, runtime) => drop(runtime.spawn(future)),
            Stack::Ours(ours) => ours.spawn(future),
        }
    }
}

/// Serves a page of 612 bytes at port 443 of both addresses, over HTTP/1.1 and HTTP/2. Returns the
/// number of requests that were executed.
pub(crate) fn serve(side: &Side) -> Arc<AtomicUsize> {
    let executed = Arc::new(AtomicUsize::new(0));
    let (certificate, key, _) = certified();
    let protocols = [Protocol::Http2.alpn(), Protocol::Http1.alpn()];
    let acceptor = TlsAcceptor::from_pem(certificate.as_bytes(), key.as_bytes(), protocols);
    let acceptor = acceptor.expect("a certificate");
    for address in [side.addresses.v4.into(), side.addresses.v6.into()] {
        let (net, acceptor) = (side.net.clone(), acceptor.clone());
        let address = std::net::SocketAddr::new(address, 443);
        let hold = side.synack_hold();
        let listener = side.run(async move {
            TcpListener::builder(&net).fast_open(256).synack_hold(hold).bind(address).await
        });
        let listener = listener.expect("a free port");
        let executed = Arc::clone(&executed);
        side.spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, executed) = (acceptor.clone(), Arc::clone(&executed));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(tcp).await {
                        answer(stream, &executed).await;
                    }
                });
            }
        });
    }
    executed
}

async fn answer(stream: TlsStream, executed: &AtomicUsize) {
    let service = service_fn(|_: Request<Incoming>| {
        executed.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(&[b'x'; 612])))) }
    });
    // A client that is done closes.
    if stream.alpn() == Some(Protocol::Http2.alpn().as_bytes()) {
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        drop(builder.serve_connection(TokioIo::new(stream), service).await);
    } else {
        let builder = hyper::server::conn::http1::Builder::new();
        drop(builder.serve_connection(TokioIo::new(stream), service).await);
    }
}
