//! The sender: what is written, which segment goes, how large it is and when. What is lost is `recovery`, how much may go `congestion`.

pub(in crate::tcp) mod burst;
pub(in crate::tcp) mod delivery;
pub(in crate::tcp) mod keepalive;
pub(in crate::tcp) mod mtu_search;
pub(crate) mod nagle;
pub(crate) mod output;
pub(in crate::tcp) mod pacer;
pub(in crate::tcp) mod rate;
pub(in crate::tcp) mod retry_limits;
pub(in crate::tcp) mod segment_size;
pub(crate) mod send_queue;
pub(in crate::tcp) mod window_use;
pub(crate) mod write;
