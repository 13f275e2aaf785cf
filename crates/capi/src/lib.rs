//! `libfirstbyte`: the stack for C programs.
//!
//! Each socket call of libc has a twin here: the same signature, with `fb_` in front of the name,
//! on a stack inside the process. `include/firstbyte.h` documents each call for its users: its
//! errors, and where it differs from libc's. A test compares the header with the exported symbols.
//!
//! - [`calls`]: the twins of libc's calls;
//! - [`control`]: calls that libc lacks: `fb_start`, `fb_stop`, settings, counters.
//!
//! The crate `posix` implements the calls; this crate exports them to C.
#![expect(unsafe_code, reason = "C passes pointers, and symbols have names")]

pub mod calls;
pub mod control;
