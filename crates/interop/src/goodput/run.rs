//! One run: bulk data from one end to the other over a [`Bottleneck`], for a fixed time.
//!
//! ```text
//!   Linux   namespace: kernel TCP ── tun0 ──┐
//!                                           ├── Bottleneck ── …the same at the other end
//!   ours    library ── fb0 (GSO, checksum offload) ── namespace: forwarding ── tun0 ──┘
//! ```
//!
//! `tun0` has no offload, so that the path sees packets as a wire does. Goodput is what the
//! receiving application has read when `duration` has passed since `connect` returned to the
//! sender, slow start included. Every run has fresh namespaces and a fresh stack: nothing is
//! remembered from the one before.
use super::bottleneck::{Bottleneck, Crossed, Path};
use crate::netns::{Addresses, Host};
use crate::our_end::OurEnd;
use device::Device as _;
use device::tun::Tun;
use proto::Config;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The sender and the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pairing {
    /// The reference.
    LinuxToLinux,
    /// Our sender: recovery, congestion control, pacing.
    OursToLinux,
    /// Our receiver: acknowledgements and windows.
    LinuxToOurs,
}

impl Pairing {
    /// All three, the reference first.
    pub const ALL: [Pairing; 3] = [Pairing::LinuxToLinux, Pairing::OursToLinux, Pairing::LinuxToOurs];

    /// The name in the table's heading.
    pub fn name(self) -> &'static str {
        match self {
            Pairing::LinuxToLinux => "Linux → Linux",
            Pairing::OursToLinux => "ours → Linux",
            Pairing::LinuxToOurs => "Linux → ours",
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Read by the receiving application, bit/s.
    pub goodput: f64,
    /// Segments that the sender retransmitted.
    pub retransmitted: u64,
    /// Traffic that crossed the path.
    pub crossed: Crossed,
}

const PORT: u16 = 5001;
/// Bytes of one `write` and one `read`.
const CHUNK: usize = 128 << 10;
/// Packets that may wait in a TUN device.
const QUEUE_LEN: u32 = 5000;
/// Linux's own sizes of the receive and send buffer, whatever this machine has: least, first, most.
const KERNEL_BUFFERS: [(&str, &str); 2] =
    [("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")];

/// Settings: our stack's, and names and values of the kernel's.
pub type Settings<'a> = (&'a Config, &'a [(String, String)]);

/// Runs it, our end and the kernel's with these settings.
///
/// # Panics
/// Where there are no namespaces (see [`testnet::can`]), where the kernel does not know a setting,
/// or when no connection comes about.
pub fn run(
    pairing: Pairing,
    (config, sysctls): Settings<'_>,
    algorithm: &str,
    path: Path,
    duration: Duration,
) -> Run {
    let end = |n, ours| match pairing == ours {
        true => End::ours(n, config, algorithm),
        false => End::linux(n, sysctls, algorithm),
    };
    let (sender, sender_wire) = end(1, Pairing::OursToLinux);
    let (receiver, receiver_wire) = end(2, Pairing::LinuxToOurs);
    let bottleneck = Bottleneck::start(sender_wire, receiver_wire, path);
    let received = Arc::new(AtomicU64::new(0));
    receiver.receive(&received);
    let before = sender.retransmitted();
    let connected_at = sender.send(receiver.address());
    thread::sleep((connected_at + duration).saturating_duration_since(Instant::now()));
    let bytes = received.load(Relaxed);
    // A busy machine sleeps longer than it is asked to.
    let elapsed = connected_at.elapsed();
    let retransmitted = sender.retransmitted() - before;
    let crossed = bottleneck.end();
    sender.stop();
    receiver.stop();
    Run { goodput: bytes as f64 * 8.0 / elapsed.as_secs_f64(), retransmitted, crossed }
}

/// An end of the connection.
enum End {
    Linux { host: Host, algorithm: String, streams: Arc<Mutex<Vec<TcpStream>>> },
    Ours { _forwarding: Host, stack: OurEnd, address: SocketAddr },
}

impl End {
    /// The kernel as the `n`-th end, and its side of the path.
    fn linux(n: u8, sysctls: &[(String, String)], algorithm: &str) -> (End, OwnedFd) {
        let (host, wire) = host_with_wire(n);
        for (name, value) in KERNEL_BUFFERS {
            host.sysctl(name, value);
        }
        for (name, value) in sysctls {
            host.sysctl(name, value);
        }
        (End::Linux { host, algorithm: algorithm.to_owned(), streams: Arc::default() }, wire)
    }

    fn ours(n: u8, config: &Config, algorithm: &str) -> (End, OwnedFd) {
        let (host, wire) = host_with_wire(n);
        let subnet = |host| Addresses { v4: [10, 78, n, host].into(), v6: Addresses::nth(n).v6 };
        let device = host.run(|| {
            testnet::sysctl("net.ipv4.ip_forward", "1");
            open(&tun("fb0", subnet(1)))
        });
        let stack = OurEnd::new(device, config.clone(), subnet(2), Addresses::nth(3 - n));
        stack
            .net
            .stack()
            .expect("a stack of ours")
            .set("net.ipv4.tcp_congestion_control", algorithm)
            .expect("an algorithm of ours");
        (End::Ours { _forwarding: host, stack, address: SocketAddr::new(subnet(2).v4.into(), PORT) }, wire)
    }

    fn address(&self) -> SocketAddr {
        match self {
            End::Linux { host, .. } => SocketAddr::new(host.addresses.v4.into(), PORT),
            End::Ours { address, .. } => *address,
        }
    }

    /// Listens, and counts what the first connection brings.
    fn receive(&self, received: &Arc<AtomicU64>) {
        let (address, received) = (self.address(), received.clone());
        match self {
            End::Linux { host, streams, .. } => {
                let listener = host.run(|| TcpListener::bind(address)).expect("a listener");
                let streams = streams.clone();
                thread::spawn(move || {
                    let (mut stream, _) = listener.accept().expect("a connection");
                    keep(&streams, &stream);
                    let mut buffer = vec![0; CHUNK];
                    while let Ok(len @ 1..) = stream.read(&mut buffer) {
                        received.fetch_add(len as u64, Relaxed);
                    }
                });
            }
            End::Ours { stack, .. } => {
                let net = stack.net.clone();
                let listener = stack.run(async move {
                    firstbyte::TcpListener::builder(&net).bind(address).await.expect("a listener")
                });
                stack.spawn(async move {
                    let (mut stream, _) = listener.accept().await.expect("a connection");
                    let mut buffer = vec![0; CHUNK];
                    while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                        received.fetch_add(len as u64, Relaxed);
                    }
                });
            }
        }
    }

    /// Connects and writes until the end; when the connection was there.
    fn send(&self, peer: SocketAddr) -> Instant {
        let chunk = vec![b'g'; CHUNK];
        match self {
            End::Linux { host, algorithm, streams } => {
                let mut stream = host.run(|| connect_by(algorithm, peer)).expect("a connection");
                keep(streams, &stream);
                thread::spawn(move || while stream.write_all(&chunk).is_ok() {});
            }
            End::Ours { stack, .. } => {
                let net = stack.net.clone();
                let connect = async move { firstbyte::TcpStream::connect(&net, peer).await };
                let mut stream = stack.run(connect).expect("a connection");
                stack.spawn(async move { while stream.write_all(&chunk).await.is_ok() {} });
            }
        }
        Instant::now()
    }

    fn retransmitted(&self) -> u64 {
        match self {
            End::Linux { host, .. } => host.counters().of("TcpRetransSegs") as u64,
            End::Ours { stack, .. } => {
                let counters = stack.net.stack().expect("a stack of ours").counters();
                counters.all().find(|(name, _)| *name == "RetransSegs").expect("a counter").1
            }
        }
    }

    /// Ends the threads of the kernel's sockets; our runtime ends with its value.
    fn stop(self) {
        if let End::Linux { streams, .. } = self {
            for stream in streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                // It may have ended by itself.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// The `n`-th host, and the path's side of its device.
fn host_with_wire(n: u8) -> (Host, OwnedFd) {
    let host = Host::bare(Addresses::nth(n));
    let tun = host.run(|| open(&tun("tun0", host.addresses).route([10, 78, 0, 0].into(), 16).offload(false)));
    let wire = tun.as_fd().expect("it has one").try_clone_to_owned();
    (host, wire.expect("a descriptor"))
}

/// Is the algorithm there, or can the kernel load it?
///
/// # Errors
/// A sentence with the remedy.
pub fn kernel_knows(algorithm: &str) -> Result<(), String> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let set = socket.and_then(|socket| set_tcp_congestion(&socket, algorithm));
    set.map_err(|error| {
        format!("the kernel cannot use {algorithm} ({error}): load it by `modprobe tcp_{algorithm}`, or leave it out")
    })
}

/// The algorithm is chosen before the connection begins: one that was BBR's would go on being
/// paced.
fn connect_by(algorithm: &str, peer: SocketAddr) -> rustix::io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_tcp_congestion(&socket, algorithm)?;
    connect(&socket, &peer)?;
    Ok(socket.into())
}

fn keep(streams: &Mutex<Vec<TcpStream>>, stream: &TcpStream) {
    let copy = stream.try_clone().expect("a descriptor");
    streams.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
}

/// Opens it with room for packets while a busy machine lets a thread wait: what is lost shall be
/// lost on the path.
fn open(builder: &device::tun::Builder) -> Tun {
    let tun = builder.open().expect("a TUN device");
    device::interface::set_queue_len(tun.index(), QUEUE_LEN).expect("a longer queue");
    tun
}

fn tun(name: &str, addresses: Addresses) -> device::tun::Builder {
    Tun::builder().name(name).mtu(1500).address(addresses.v4.into(), 24)
}
