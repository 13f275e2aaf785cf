//! TCP: one connection at a time.
//!
//! | room | what it holds |
//! |---|---|
//! | `connection`, `state`, `timers`, `plain` | the parts put together, what each state allows, when it is woken, whether the fast paths are open |
//! | `open` | `handshake`, `negotiation`, what all begin with (`fresh`, `beginning`), what became of Fast Open (`fast_open_client`) |
//! | `input` | a segment arrives: the checks in the order of RFC 9293 §3.10.7 |
//! | `recv` | `receiver` over `receive_buffer` and `reassembly`; the window (`window_space`, `packets`), `autotune`, `receiver_rtt`, `ack_delay`, `prune` |
//! | `send` | `write`, `send_queue`, which segment goes now (`output`), how large (`segment_size`, `mtu_search`, `burst`), when (`nagle`, `pacer`), for how long (`keepalive`, `retry_limits`) |
//! | `recovery` | what is lost |
//! | `congestion` | how much may be in flight; `send/rate` and `send/window_use` tell it what happens |
//! | `ecn` | marks of routers, RFC 3168's and accurate ones |
//! | `rare` | what few connections use, behind one pointer (`special`) |
//! | `observe` | what others see: `tcp_info`, `limits`, `moments` |
//!
//! A room's own state is a type in a file that does not name [`Connection`](connection::Connection); what a connection does with it lies in a
//! file of that folder. Whom a segment belongs to is not decided here (see `stack`).

pub(crate) mod congestion;
pub(crate) mod connection;
pub(crate) mod ecn;
pub(crate) mod input;
pub(crate) mod observe;
pub(crate) mod open;
mod plain;
pub(crate) mod rare;
mod recovery;
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod state;
pub(crate) mod timers;
