//! TCP with Fast Open: tokio-style streams over our own stack or over the kernel's sockets.
//!
//! [`Net::kernel`] uses the sockets of this host, which need no root and no device. The same
//! listeners and streams run over our own stack, with features that no kernel has; the module
//! [`kernel`] compares both.
//!
//! ```
//! use firstbyte::{Net, TcpListener, TcpStream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let net = Net::kernel();
//! let listener = TcpListener::builder(&net).fast_open(256).bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! let (stream, accepted) =
//!     tokio::try_join!(TcpStream::connect_with(&net, address, "hello"), listener.accept())?;
//! println!("{:?}", stream.outcome());
//! # let (mut server, _) = accepted;
//! # let mut question = [0; 5];
//! # server.read_exact(&mut question).await?;
//! # assert_eq!(&question, b"hello");
//! # server.write_all(b"world").await?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Net`] of [`Net::builder`] is a running host of its own, with addresses, TCP, and a device
//! for its packets ([`device::tun`] connects to the kernel, [`device::memory`] is for tests). Its
//! [`TcpListener`] and [`TcpStream`] have most of the methods of tokio's, and additional ones that
//! the kernel's sockets lack:
//!
//! - [`TcpStream::connect_with`] sends the first bytes of the stream on the SYN (TCP Fast Open, RFC
//!   7413), and [`outcome`](TcpStream::outcome) reports whether that worked.
//! - [`TcpStream::connect_deferred`] does the same for code that connects first and writes later.
//! - A listener with [`fast_open`](TcpListenerBuilder::fast_open) returns a connection when its SYN
//!   arrives, and **the reply is sent on the SYN-ACK** if it is written before the task waits
//!   again. [`early_data`] tells which bytes may be a replay.
//!
//! # Early data may arrive twice
//! The network may duplicate a SYN with data, and a restarted server cannot distinguish the copy
//! from a new connection (RFC 7413 §6.1). Use [`connect_with`](TcpStream::connect_with), and
//! process data before it is [`confirmed`](EarlyData::confirmed), only for requests that may be
//! executed twice.
//!
//! # Example
//! Two hosts in one process; needs no root.
//!
//! ```
//! use firstbyte::{Net, Outcome, TcpListener, TcpStream, device};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let wire = device::Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
//! let (left, right) = device::memory::pair(wire);
//! let server = Net::builder().device(left).address("10.0.0.1/24").start()?;
//! let client = Net::builder().device(right).address("10.0.0.2/24").start()?;
//!
//! let listener = TcpListener::builder(&server).fast_open(16).bind("10.0.0.1:7").await?;
//! tokio::spawn(async move {
//!     while let Ok((mut stream, _)) = listener.accept().await {
//!         let mut question = [0; 5];
//!         stream.read_exact(&mut question).await?;
//!         stream.write_all(b"world").await?;
//!         stream.shutdown().await?;
//!     }
//!     std::io::Result::Ok(())
//! });
//!
//! // The first visit asks for a cookie, the second has one.
//! for outcome in [Outcome::CookieRequested { granted: true }, Outcome::Accepted] {
//!     let mut stream = TcpStream::connect_with(&client, "10.0.0.1:7", "hello").await?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await?;
//!     assert_eq!(answer, "world");
//!     assert_eq!(stream.outcome(), outcome);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The runtime
//! [`NetBuilder::start`] spawns one task, the driver, on the current tokio runtime of either
//! flavour. The runtime needs I/O and time enabled
//! ([`enable_all`](tokio::runtime::Builder::enable_all)). Everything else runs in the application's
//! own tasks. The driver waits; it never polls in a loop. It needs Linux, because of its timer. The
//! kernel's sockets are also known on [macOS and FreeBSD](kernel#macos-and-freebsd), untested.
//!
//! # Features
//! None is on by default.
//!
//! | feature | adds |
//! |---|---|
//! | `axum` | [`TcpListener`] for `axum::serve`, [`PeerInfo`] for its handlers |
//! | `hyper-util` | the module `http`: a connector for the clients of hyper-util, tonic and others |
//! | `stream` | [`TcpListener`] as a `futures_core::Stream` of connections |
//! | `tonic` | [`TcpStream`] for the server of tonic; with `stream` |
//!
//! # What it is not
//! Not a resolver: names in addresses are looked up by the operating system.
//!
//! [`early_data`]: TcpStream::early_data
#![forbid(unsafe_code)]
mod driver;
mod error;
mod happy_eyeballs;
#[cfg(any(feature = "hyper-util", feature = "tls"))]
pub mod http;
pub mod kernel;
mod listener;
mod net;
mod socket;
mod stream;
#[cfg_attr(not(target_os = "linux"), path = "timer/absent.rs")]
mod timer;
#[cfg(feature = "tls")]
pub mod tls;
mod watched;

pub use listener::{TcpListener, TcpListenerBuilder};
pub use net::{Backend, Net, NetBuilder, SHUTDOWN_TIMEOUT, StackHandle};
pub use socket::TcpSocket;
pub use stream::{
    OwnedReadHalf, OwnedWriteHalf, PeerInfo, ReadHalf, ReuniteError, StreamInfo, TcpStream, WriteHalf,
};

/// The path cache, as values ([`StackHandle::paths`](crate::StackHandle::paths)) and in files.
pub mod paths {
    pub use host::paths::{LoadError, check_writable, load, save};
    pub use proto::{PathRecord, Paths, PathsError, VerdictRecord};
}

pub use proto::fast_open::{self, KeyRing};
pub use proto::{
    CaState, CloseReason, Config, CongestionControl, ConnectionInfo, Counters, EarlyData, FastOpen, Instant,
    ListenerInfo, Metric, NotAcknowledged, Outcome, RejectRoute, RouteError, RouteMetrics, RunningTimer,
    SettingError, Skipped, SocketInfo, SocketOption, SocketOptions, Stack, State, TableSizes, TcpInfo,
    TimerKind, TraceEvent, TraceMask, Traced, Verdict, WriteFlags, parse_route, show_route,
};
pub use tokio::net::lookup_host;

/// Devices for packets: [`device::tun`], [`device::memory`], captures, or your own.
pub mod device {
    pub use ::device::*;
    pub use wire::{Arrival, Capabilities, RxBatch, RxChecksum, RxData, RxPacket, TxChecksum, TxPacket};
}
