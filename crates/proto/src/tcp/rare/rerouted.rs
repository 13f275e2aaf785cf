//! The route to the peer changes while a connection is open.
//!
//! As Linux's sockets do, it looks at the route when a packet leaves (`__sk_dst_check` in `ip_queue_xmit`), and measures segments by what it
//! then knows when something is next asked for (`tcp_current_mss`): so the first packet after a change, and what follows it at once, is as
//! large as before, but for what is retransmitted (`rebuild_header` in `__tcp_retransmit_skb`). A smaller MTU counts at once: Linux has that first
//! packet cut, or lost, below. What the route says of a beginning does not count any more: advmss, initrwnd, congctl, cwnd and ssthresh;
//! nor does a larger `rto_min`, which bounds the variation where that is measured anew (`tcp_rtt_estimator`).

mod connection;

use crate::Instant;
use crate::route::Route;
use alloc::sync::Arc;

/// Another route that has not been looked at yet, or whose MTU is not used yet.
#[derive(Debug)]
pub(crate) struct Rerouted {
    route: Option<Arc<Route>>,
    /// The largest packet it carries.
    mtu: u16,
    /// When a packet first went there.
    seen_at: Option<Instant>,
}
