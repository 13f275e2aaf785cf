//! TCP Fast Open (RFC 7413): data on the SYN. This module has the parts that are plain values; the
//! handshake of the engine combines them.
//!
//! The first visit to a server requests a cookie and costs as much as plain TCP. On later visits
//! the cookie proves that the client owns its address, so the server may act on the request before
//! the handshake is complete:
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
//! If the server cannot accept the data, it acknowledges only the SYN, and the client retransmits
//! the request with the ACK of the handshake: as fast as plain TCP. If no SYN-ACK arrives, the SYN
//! is retransmitted without option and data.
//!
//! | term | meaning | here |
//! |---|---|---|
//! | key ring | makes and checks cookies; the same keys give Linux's cookies | [`KeyRing`] |
//! | rotation | periodic new keys, if enabled | `rotation` |
//! | path cache | a client's values of a path: cookie, MSS, SRTT | [`PathCache`] |
//! | verdict | negative evidence for a network, peer and port | [`VerdictKey`] |
//! | pause | Linux's coarse counterpart: off for every peer | `blackhole` |
//! | plan | the first SYN and its amount of data | `client` |
//! | fallback | the time of the plain SYN | `client` |
//! | pending queue | accepted SYNs without a final ACK | `pending` |
//! | amplification | limit of the answer before the address is validated | `amplification` |
//! | replay guard | rejects a duplicated SYN | `guard` |
//!
//! # Limits of Fast Open
//!
//! A request may be delivered twice (RFC 7413 §6.1). The network may duplicate a SYN, and a client
//! without an answer sends its data again on a new connection. The guard catches duplicates and
//! exact replays on this host. It does not catch those that come after a restart, that reach
//! another host, or that a holder of a cookie forges. A cookie authenticates an address, not a
//! client. Cookies also make a client recognizable; [`PathCache::clear`] forgets them.
//!
//! Not here: the encoding of the option (in `wire`), the SYN-ACK hold and the handshake (in the
//! engine), cookies with a timestamp (R7; keys are rotated instead), and verdicts about whole
//! networks.

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
