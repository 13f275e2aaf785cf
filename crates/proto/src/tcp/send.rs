//! The sender: written data, the next segment, its size and its time. `recovery` decides which data
//! is lost, `congestion` how much may be sent.

pub(in crate::tcp) mod burst;
pub(in crate::tcp) mod delivery;
pub(in crate::tcp) mod keepalive;
pub(in crate::tcp) mod mtu_search;
pub(crate) mod nagle;
pub(crate) mod output;
pub(in crate::tcp) mod pacer;
pub(in crate::tcp) mod rate;
pub(in crate::tcp) mod retry_limits;
pub(crate) mod rules;
pub(in crate::tcp) mod segment_size;
pub(crate) mod send_queue;
pub(in crate::tcp) mod window_use;
pub(crate) mod write;
