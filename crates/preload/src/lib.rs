//! `libfirstbyte_preload.so`: runs unmodified programs on the stack.
//!
//! ```text
//! FIRSTBYTE='device tun0; address 10.0.0.2/24' LD_PRELOAD=libfirstbyte_preload.so curl
//! http://10.0.0.1/
//! ```
//!
//! It exports libc's socket calls. TCP sockets are the stack's; UDP, Unix sockets, files and pipes
//! stay the kernel's. The stack starts with the first TCP socket. The variable `FIRSTBYTE`
//! describes it, in the syntax of `fb_start` in `firstbyte.h`, and is read when the library is
//! loaded. Without the variable every call is libc's. A TCP socket becomes the kernel's if it is
//! bound to an address that is not the stack's, or connected to a loopback address that is not the
//! stack's.
//!
//! | module | subject |
//! |---|---|
//! | `numbers` | descriptors of the stack, each with a number that a placeholder of the kernel holds |
//! | `table` | tables by number, read without a lock |
//! | `instances` | epoll instances and their numbers |
//! | `real` | libc's own functions |
//! | `stack` | starting the stack |
//! | `heap` | memory apart from the program's `malloc`, for calls in signal handlers |
//! | `calls` | calls with one descriptor |
//! | `handover` | sockets that become the kernel's |
//! | `descriptors` | `close`, `dup`, `fcntl` |
//! | `poll`, `epoll` | waiting for descriptors of the stack and of the kernel |
//! | `unattended` | listeners whose connections only forked children would accept |
//!
//! Limits: a child of `fork` cannot use the stack's sockets (its calls fail, and a line on stderr
//! explains it), and `exec` closes them. Programs that bypass libc's names are not supported: stdio
//! streams on a socket (`fdopen`), io_uring, static linking, programs without libc.
#![expect(unsafe_code, reason = "libc's functions have pointers")]

pub mod calls;
pub mod descriptors;
pub mod epoll;
mod handover;
mod heap;
mod instances;
mod numbers;
pub mod poll;
mod real;
mod stack;
mod table;
mod unattended;
