//! `libfirstbyte_preload.so`: unmodified programs over the stack.
//!
//! ```text
//! FIRSTBYTE='device tun0; address 10.0.0.2/24' LD_PRELOAD=libfirstbyte_preload.so curl http://10.0.0.1/
//! ```
//!
//! It exports the names of libc's socket calls. TCP sockets are the stack's, which is started when the first one is opened, by the text that
//! `FIRSTBYTE` had when the library was loaded (the words are in `firstbyte.h`, at `fb_start`); without it everything is libc's. A socket
//! that is bound to an address that is not the stack's, or connected to a loopback address that is not, becomes libc's, too. Everything else is libc's
//! anyway: UDP, Unix sockets, files, pipes.
//!
//! | module | what |
//! |---|---|
//! | `numbers` | which descriptors are ours: each has a number of the kernel's, held by a placeholder |
//! | `table` | tables by number, read without a lock |
//! | `instances` | which numbers stand for the same epoll instance |
//! | `real` | libc's own functions |
//! | `stack` | the stack, started when it is first needed |
//! | `heap` | memory apart from the program's `malloc`, which a signal handler may have interrupted |
//! | `calls` | calls about one descriptor |
//! | `handover` | sockets that turn out to be the kernel's |
//! | `descriptors` | `close`, `dup`, `fcntl` |
//! | `poll`, `epoll` | waiting for ours and the kernel's at once |
//! | `unattended` | listeners from which only forked children would accept |
//!
//! What it cannot do: descriptors of ours do not survive `fork` in the child (there calls fail, and stderr says why; a listener that only children would accept from is closed), `exec`, or a way around libc's names (`fdopen` and the
//! streams of stdio, io_uring, programs without libc or linked statically).
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
