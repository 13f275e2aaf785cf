//! Berkeley sockets with Linux's semantics on top of the engine.
//!
//! [`Sockets`] is the sockets of one process on one [`proto::Stack`]: descriptors, states, options,
//! errors. It is sans-IO like the engine. Each system call is one attempt at a given time, which
//! succeeds, fails, or reports that it must wait. A driver decides who waits, and provides the
//! time:
//!
//! - [`VirtualProcess`]: calls of several threads that really sleep, with a clock that jumps from
//!   event
//!   to event. The packetdrill plug-in uses it.
//! - [`RealProcess`]: the same in real time, over a device. [`Running`] adds its thread. The C
//!   library
//!   uses it.
//!
//! | module | subject |
//! |---|---|
//! | `files`, `socket` | descriptors and sockets |
//! | `parting` | names of closed sockets whose connections continue |
//! | `open`, `connect`, `send`, `receive`, `sockets` | the calls; blocking ones are values to try again ([`Connect`], [`Accept`], [`Send`], [`Receive`], [`Close`]) |
//! | `error_queue` | time stamps, completions of zero-copy sends, ICMP errors |
//! | `readiness`, `epoll` | calls that would not block |
//! | `options`, `tcp_info`, `ioctl` | options and queries |
//! | `pipe` | `pipe` and `splice` |
//! | `description` | the text that describes a stack in real time |
//! | `sysctl` | settings from files, counters into files |
//! | [`scripted`] | the host for packetdrill scripts |
//! | [`tools`] | commands of `ip` and `tc` about the network below, for scripts that run them |
//! | `errno` | error numbers |
//! | [`c`] | the calls with C's types, for libraries that export them; besides `system` the only `unsafe` code |
//! | `system` | kernel calls while a call waits: descriptors, signals, a semaphore |
#![cfg_attr(not(target_env = "gnu"), allow(dead_code, reason = "the calls with C's types use it"))]

// The layout of C's types is glibc's; other C libraries differ, and nobody loads a library there.
#[cfg(target_env = "gnu")]
pub mod c;
mod connect;
mod description;
mod destination;
mod epoll;
mod errno;
pub mod error_queue;
mod files;
pub mod ioctl;
mod name;
mod open;
mod options;
mod parting;
mod pipe;
mod process;
mod readiness;
mod ready;
mod real_time;
mod receive;
pub mod scripted;
mod send;
mod socket;
mod sockets;
pub mod sysctl;
mod system;
pub mod tcp_info;
pub mod tools;
mod virtual_time;

pub use connect::Connect;
pub use description::{Description, Refused};
pub use destination::Destination;
pub use epoll::{Control, EDGE, Interest, ONE_SHOT};
pub use errno::{Errno, Stop};
pub use error_queue::{Ancillary, QueuedError};
pub use open::Accept;
pub use options::{Asked, Given, Untold};
pub use pipe::Splice;
pub use process::{Look, Process, Sides, Waits, Watch};
pub use readiness::PollFd;
pub use ready::Ready;
pub use real_time::{Ended, RealProcess, Running, Waiting};
pub use receive::Receive;
pub use send::{Send, Source};
pub use socket::Domain;
pub use sockets::{Close, Sockets};
pub use virtual_time::VirtualProcess;
