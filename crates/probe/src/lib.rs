//! Does TCP Fast Open work between here and there, and if not, who broke it?
//!
//! - [`plan`]: which SYNs are sent, in words;
//! - [`Prober`]: one of them over a device, and what came back: a [`Visit`];
//! - [`verdict`]: visits → cause, evidence and fix.
//!
//! The prober sends its own SYNs, so that every form can be tried: plain, with a request for a cookie, with a cookie and data, with data alone.
//! It is no TCP: it opens, sends one request, counts what comes, and ends by a reset.
#![forbid(unsafe_code)]
pub mod plan;
mod prober;
pub mod verdict;
mod visit;

pub use plan::Probe;
pub use prober::{Ends, Prober};
pub use verdict::{Cause, Verdict};
pub use visit::{Agreed, Answer, Visit};
