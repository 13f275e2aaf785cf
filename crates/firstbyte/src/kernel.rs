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
//! | [`take_error`](crate::TcpStream::take_error) | the error stays | the error is taken once |
//! | [`options`](crate::TcpStream::options) | as the stack has them | as they were set through this stream or its listener |
//! | [`into_std`](crate::TcpStream::into_std), [`from_std`](crate::TcpStream::from_std), [`reuse_port`](crate::TcpListenerBuilder::reuse_port) | no | yes |
//! | `Net::shutdown` | delivers, then resets | does nothing; sockets close when they are dropped |
//! | [`Net::stack`](crate::Net::stack): settings, counters, paths, routes, trace | yes | no |
//!
//! Fast Open on a listener needs bit 2 of `net.ipv4.tcp_fastopen`, which only root can set. Without
//! it every connection is accepted after a plain handshake.
//!
//! # macOS and FreeBSD
//! **This backend was never run there.** It compiles for both systems, and follows the manual pages
//! and the sources of their kernels. A stack of our own needs Linux:
//! [`start`](crate::NetBuilder::start) fails with `Unsupported` elsewhere.
//!
//! | item | Linux | macOS | FreeBSD |
//! |---|---|---|---|
//! | call behind `connect_with` | `MSG_FASTOPEN` | `connectx` | `TCP_FASTOPEN`, `sendto` |
//! | connect without first bytes | asks for a cookie | plain | plain |
//! | `outcome` | as above | also `CookieRequested`; `Unknown` if Fast Open is off | `Unknown`, or `Skipped` |
//! | length of [`early_data`](crate::TcpStream::early_data) | exact | 65,535 if the SYN had data | 65,535 if the listener has Fast Open |
//! | queue length of [`fast_open`](crate::TcpListenerBuilder::fast_open) | as given | on or off | on or off |
//! | listener while the system has Fast Open off | plain handshakes | error | error |
//! | [`FastOpen::NoCookie`](crate::FastOpen::NoCookie), keys of a listener, `defer_accept` | yes | no | no |
//! | [`info`](crate::TcpStream::info) | yes | no | no |
//! | [`delivered`](crate::TcpStream::delivered) | yes | yes | no |
//! | [`push`](crate::TcpStream::push) | sends | no effect | no effect |
//! | [`MORE`](crate::WriteFlags::MORE), [`END_OF_RECORD`](crate::WriteFlags::END_OF_RECORD) | yes | no | no |
//! | an urgent byte in its place | yes | no | yes |
//! | options of [`SocketOption`](crate::SocketOption) | most | `NoDelay`, keep-alive, buffers, `MaxSegment`, DSCP, hop limit, linger | as macOS |
//!
//! The switches are `net.inet.tcp.fastopen` (macOS: 1 for clients, 2 for listeners, both by
//! default), and `net.inet.tcp.fastopen.client_enable` and `server_enable` (FreeBSD).

mod connect;
mod connection;
mod listener;
mod options;
mod sys;

pub(crate) use connect::connect;
pub(crate) use connection::{KernelConnection, Open};
pub(crate) use listener::KernelListener;

use crate::error::unsupported;
