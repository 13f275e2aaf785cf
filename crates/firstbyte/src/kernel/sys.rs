//! The differences between the systems. Each file has the same functions:
//!
//! | function | purpose |
//! |---|---|
//! | `socket` | makes a socket that does not block |
//! | `connect_with_data` | sends the SYN of Fast Open |
//! | `answered` | waits for the SYN-ACK |
//! | `outcome` | derives the outcome after the handshake |
//! | `listen` | listens, with Fast Open |
//! | `early_len` | bounds the data of an accepted connection's SYN |
//! | `state`, `is_delivered`, `stream_info` | read the connection's information |
//! | `send_flags`, `set_urgent_apart`, `set_option` | map flags and options |
//!
//! macOS and FreeBSD are compiled, and never tested. They follow the manual pages and the sources
//! of their kernels.
#[cfg(any(target_os = "macos", target_os = "freebsd"))]
mod bsd;
#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "freebsd")]
pub(super) use freebsd::*;
#[cfg(target_os = "linux")]
pub(super) use linux::*;
#[cfg(target_os = "macos")]
pub(super) use macos::*;
