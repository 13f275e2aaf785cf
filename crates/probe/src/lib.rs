//! Tests whether TCP Fast Open works between this host and a server, and finds what breaks it.
//!
//! - [`plan`]: the SYNs to send;
//! - [`Prober`]: sends one of them over a device, and returns a [`Visit`];
//! - [`verdict`]: turns visits into cause, evidence and fix.
//!
//! The prober sends its own SYNs, so that every form can be tested: plain, with a cookie request,
//! with a cookie and data, with only data. It is not a TCP: it opens, sends one request, counts the
//! reply, and ends with a reset.
#![forbid(unsafe_code)]
pub mod plan;
mod prober;
pub mod verdict;
mod visit;

pub use plan::Probe;
pub use prober::{Ends, Prober};
pub use verdict::{Cause, Verdict};
pub use visit::{Agreed, Answer, Visit};
