//! TCP: one connection at a time.
//!
//! | folder | subject |
//! |---|---|
//! | `connection`, `state`, `timers`, `plain` | the parts joined, states, wake-ups, eligibility for fast paths |
//! | `segment` | a received segment |
//! | `open` | `handshake`, `negotiation`, initial values (`fresh`, `beginning`), outcome of Fast Open (`fast_open_client`) |
//! | `input` | an arriving segment: the checks in the order of RFC 9293 §3.10.7 |
//! | `recv` | `receiver` over `receive_buffer` and `reassembly`; the window (`window_space`, `packets`), `autotune`, `receiver_rtt`, `ack_delay`, `prune` |
//! | `send` | `write`, `send_queue`, the next segment (`output`), its size (`segment_size`, `mtu_search`, `burst`), its time (`nagle`, `pacer`), limits (`keepalive`, `retry_limits`) |
//! | `recovery` | loss detection |
//! | `congestion` | bytes in flight; `send/rate` and `send/window_use` report to it |
//! | `ecn` | marks of routers, RFC 3168's and accurate ones |
//! | `rare` | state of few connections, behind one pointer (`special`) |
//! | `observe` | snapshots: `tcp_info`, `limits`, `moments` |
//!
//! The state of each folder is a type in a file that does not name
//! [`Connection`](connection::Connection); the connection's use of it is in a file of that folder.
//! `stack` decides which connection a segment belongs to.

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
pub(crate) mod segment;
pub(crate) mod send;
pub(crate) mod state;
pub(crate) mod timers;
