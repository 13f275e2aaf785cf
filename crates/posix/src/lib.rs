//! Berkeley sockets with Linux's semantics over the engine.
//!
//! [`Sockets`] is the sockets of one process over one [`proto::Stack`]: descriptors, states, options, errors. It is sans-IO like the
//! engine: each system call is one attempt at a given time, which is done, fails, or says that it waits. Who waits, and what time is,
//! is the business of a driver:
//!
//! - [`VirtualProcess`]: calls of several threads that really sleep, over a clock that jumps from event to event. The packetdrill
//!   plug-in is built on it.
//! - [`RealProcess`]: the same in real time, over a device; [`Running`] is one with its thread. The C library is built on it.
//!
//! | module | what |
//! |---|---|
//! | `files`, `socket` | descriptors, and what a socket is |
//! | `parting` | the names of those that are closed and not gone |
//! | `open`, `connect`, `send`, `receive`, `sockets` | the calls; those that wait are values that are tried again ([`Connect`], [`Accept`],
//! [`Send`], [`Receive`], [`Close`]) |
//! | `error_queue` | time stamps, ends of sends without a copy, ICMP errors |
//! | `readiness`, `epoll` | which calls would not wait |
//! | `options`, `tcp_info`, `ioctl` | what can be asked and set |
//! | `pipe` | `pipe` and `splice` |
//! | `description` | the text a stack in real time is started with |
//! | `sysctl` | settings from files, counters into files |
//! | [`scripted`] | the host that packetdrill's scripts meet |
//! | [`tools`] | what `ip` and `tc` ask of the network below, where scripts run them |
//! | `errno` | error numbers |
//! | [`c`] | the same calls with C's types, for the libraries that export them: the only place with `unsafe` beside `system` |
//! | `system` | what is asked of the kernel while a call waits: its descriptors, signals, a semaphore |

pub mod c;
mod connect;
mod description;
mod destination;
mod epoll;
mod errno;
pub mod error_queue;
mod files;
pub mod ioctl;
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
