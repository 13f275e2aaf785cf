//! What looks at packets and changes on their way: socket options of single packets, signatures, the trace, the watch over invariants.

pub(in crate::stack) mod packet_hooks;
pub(in crate::stack) mod signing;
pub(in crate::stack) mod tracing;
#[cfg(debug_assertions)]
pub(in crate::stack) mod watch;
