//! What `tc qdisc show` and `tc class show` print.
use super::units::show_size;
use crate::Stats;
use alloc::string::String;

/// How much is shown: tc's `-s` and `-d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Detail {
    pub(super) stats: bool,
    pub(super) details: bool,
}

/// The two lines under every discipline and class.
pub(super) fn stats(stats: &Stats) -> String {
    let Stats { bytes, packets, drops, overlimits, requeues, qlen, backlog } = *stats;
    let backlog = show_size(backlog.min(u32::MAX.into()) as u32);
    format!(
        " Sent {bytes} bytes {packets} pkt (dropped {drops}, overlimits {overlimits} requeues {requeues}) \n \
         backlog {backlog} {qlen}p requeues {requeues}\n"
    )
}
