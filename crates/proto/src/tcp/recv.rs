//! The receiver: what came, in order or not, the window that follows, and when it is acknowledged.

pub(crate) mod ack_delay;
pub(in crate::tcp) mod autotune;
pub(in crate::tcp) mod ordered;
pub(in crate::tcp) mod packets;
pub(crate) mod payload;
pub(in crate::tcp) mod prune;
pub(in crate::tcp) mod reassembly;
pub(crate) mod receive_buffer;
pub(crate) mod receiver;
pub(in crate::tcp) mod receiver_rtt;
pub(crate) mod window_space;
