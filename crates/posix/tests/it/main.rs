//! Sockets in virtual time: two hosts and the wire between them, every call with its time and its errno.

#![allow(clippy::unwrap_used, reason = "a test may")]

extern crate firstbyte_posix as posix;

mod c;
mod calls;
mod connect;
mod error_queue;
mod icmp;
mod options;
mod readiness;
mod real_time;
mod sysctl;
mod table;
mod threads;
mod wire;
