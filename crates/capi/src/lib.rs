//! `libfirstbyte`: the stack for C programs.
//!
//! Each socket call of libc has its twin here, `fb_` in front and the same signature, over a stack of this process's own. What each does,
//! its errors and where it differs is in `include/firstbyte.h`, which is what people read; a test keeps the header and the exported
//! symbols equal.
//!
//! `calls` is those twins, `control` the calls libc has none of (`fb_start`, `fb_stop`, settings, counters). What they do is `posix`'s; this
//! crate names them.
#![expect(unsafe_code, reason = "C passes pointers, and symbols have names")]

pub mod calls;
pub mod control;
