//! What few connections use, and what none of the others shall pay for.

pub(crate) mod fragments;
pub(in crate::tcp) mod options;
pub(in crate::tcp) mod repair;
pub(crate) mod reports;
pub(in crate::tcp) mod rerouted;
pub(in crate::tcp) mod room;
pub(in crate::tcp) mod special;
pub(in crate::tcp) mod urgent;
