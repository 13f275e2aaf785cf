//! SEGMENT ARRIVES (RFC 9293 §3.10.7): the RFC's order, one call per check.
//!
//! The stack handles CLOSED and LISTEN (`stack::ingress`). TIME-WAIT has its own table. The third
//! check (security) has no meaning here. The sixth (urgent) only sets a mark in the stream
//! (`tcp/rare/urgent`).

mod ack;
mod arrives;
mod completing;
mod embryo;
mod ending;
pub(crate) mod gro_run;
mod loss;
pub(crate) mod predicted;
mod reported;
mod reset;
mod sequence;
mod syn_sent;
mod text;

pub(crate) use crate::tcp::segment::Segment;

/// Answer to the sender of a segment, in addition to what the connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nothing,
    /// The reset of RFC 9293 §3.10.7.1, whose numbers come from the segment.
    Reset,
}

/// Ends the processing of a segment, with this reply.
pub(crate) type Stop = Reply;
