//! The backend of the kernel's sockets: what it can and cannot do.
//!
//! [`Net::kernel`](crate::Net::kernel) gives the same listeners and streams over the sockets of
//! this host. No rights are needed. An item that the kernel cannot do fails with
//! [`Unsupported`](std::io::ErrorKind::Unsupported) when it is asked for; nothing is ignored
//! silently.
//!
//! | item | our stack | the kernel's sockets |
//! |---|---|---|
//! | `connect`, `connect_with`, `connect_deferred` | yes | yes |
//! | the answer on the SYN-ACK | yes | no: Linux sends it after the SYN-ACK |
//! | [`outcome`](crate::TcpStream::outcome) | every reason | `CookieAsked` instead of `CookieRequested`, `NotAcknowledged(Unknown)` or `(Lost)`, `Skipped(Paused)` |
//! | [`early_data`](crate::TcpStream::early_data) | yes | yes, from the saved SYN |
//! | [`info`](crate::TcpStream::info) | yes | yes |
//! | [`connection_info`](crate::TcpStream::connection_info), [`ss`](crate::TcpStream::ss) | yes | no |
//! | [`TcpListener::info`](crate::TcpListener::info) | yes | no |
//! | [`read_urgent`](crate::TcpStream::read_urgent), [`urgent_mark`](crate::TcpStream::urgent_mark) | yes | no |
//! | [`END_OF_RECORD`](crate::WriteFlags::END_OF_RECORD) in the first write of a deferred stream | ends a packet | opens the stream; the mark is lost |
//! | [`delivered`](crate::TcpStream::delivered) | wakes when acknowledged | asks the kernel every few milliseconds |
//! | [`FastOpen::Force`](crate::FastOpen::Force), [`syn_fin`](crate::TcpSocket::syn_fin) | yes | no |
//! | [`synack_hold`](crate::TcpListenerBuilder::synack_hold) | yes | zero only |
//! | [`set_linger`](crate::TcpStream::set_linger) | any time | `None` or zero: another time would block the thread on close |
//! | [`options`](crate::TcpStream::options) | as the stack has them | as they were set through this stream or its listener |
//! | [`into_std`](crate::TcpStream::into_std), [`from_std`](crate::TcpStream::from_std), [`reuse_port`](crate::TcpListenerBuilder::reuse_port) | no | yes |
//! | `Net::shutdown` | delivers, then resets | does nothing; sockets close when they are dropped |
//! | [`Net::stack`](crate::Net::stack): settings, counters, paths, routes, trace | yes | no |
//!
//! Fast Open on a listener needs bit 2 of `net.ipv4.tcp_fastopen`, which only root can set. Without
//! it every connection is accepted after a plain handshake.

mod connect;
mod connection;
mod info;
mod listener;
mod options;

pub(crate) use connect::connect;
pub(crate) use connection::{KernelConnection, Open};
pub(crate) use listener::KernelListener;

use crate::error::unsupported;
