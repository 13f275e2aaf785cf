//! TCP Fast Open (RFC 7413): data on the SYN. These are the parts that are pure values; the engine's handshake joins them.
//!
//! The first visit to a server asks for a cookie and costs what plain TCP costs. On later visits the cookie proves that
//! the client holds its address, so the server may act on the request before the handshake is complete:
//!
//! ```text
//!  first visit                                  repeat visit
//!  client                          server       client                             server
//!    | SYN, empty option             |            | SYN, cookie, request             |  check the cookie,
//!    |------------------------------>|            |--------------------------------->|  deliver the request
//!    |    SYN-ACK of the SYN, cookie |            |   SYN-ACK of SYN and request,    |
//!    |<------------------------------|            |   reply and FIN where they are   |
//!    | ACK, request                  |            |   ready in time                  |
//!    |------------------------------>|            |<---------------------------------|
//!    |                         reply |            | ACK and FIN                      |
//!    |<------------------------------|            |--------------------------------->|
//!      reply after two round trips                |                              ACK |
//!                                                 |<---------------------------------|
//!                                                   reply after one round trip, four packets
//! ```
//!
//! Whenever the server cannot take the data it acknowledges the SYN alone, and the request is retransmitted with the
//! handshake's ACK: as quick as plain TCP. When no SYN-ACK comes, the SYN is retransmitted without option and data.
//!
//! | term | what it is | here |
//! |---|---|---|
//! | key ring | makes and checks cookies; the same keys give Linux's cookies | [`KeyRing`] |
//! | rotation | new keys by the clock, if they shall | `rotation` |
//! | path cache | what a client knows of a path: cookie, MSS, SRTT | [`PathCache`] |
//! | verdict | negative evidence: Fast Open is left off for one network, peer and port, for a growing time | [`VerdictKey`] |
//! | pause | Linux's coarse counterpart: off for everyone | `blackhole` |
//! | plan | what the first SYN shall be, and how much data it takes | `client` |
//! | fallback | when the plain SYN follows | `client` |
//! | pending queue | how many accepted SYNs may await their final ACK | `pending` |
//! | amplification | what of an answer goes before the client has shown its address | `amplification` |
//! | replay guard | keeps a copied SYN from being accepted twice | `guard` |
//!
//! # What Fast Open does not do
//!
//! The request may be delivered twice (RFC 7413 §6.1): the network may copy a SYN, and a client that got no answer
//! sends its data again on a new connection. The guard catches copies and verbatim replays on this host, not those that
//! come after a restart, reach another host, or are written afresh by a holder of a cookie. A cookie authenticates an
//! address, not a client. Cookies also make a client recognisable; [`PathCache::clear`] forgets them.
//!
//! Not here: the option's bytes (in `wire`), the SYN-ACK hold and the handshake (in the engine), cookies with a time
//! stamp inside (R7; keys are rotated instead), and a verdict about a whole network at once.

mod amplification;
mod blackhole;
mod cache;
mod client;
mod guard;
mod key;
mod lru;
mod pending;
mod rotation;
mod verdict;

pub(crate) use amplification::{Exchange, unvalidated_window};
pub(crate) use blackhole::Blackhole;
pub use cache::{PathCache, PathEntry, TryExperimental};
pub(crate) use client::{
    ClientInputs, ClientPlan, SynDataLimits, SynDataPolicy, decide, fallback_after, syn_data_max,
    syn_data_mss,
};
pub(crate) use guard::{Guard, ReplayGuard};
pub use key::{CookieCheck, Key, KeyError, KeyRing};
pub(crate) use pending::PendingQueue;
pub(crate) use rotation::Rotation;
pub use verdict::{Network, VerdictEntry, VerdictKey};
