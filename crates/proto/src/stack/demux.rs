//! Received packets: their owners, and the answers to packets without an owner.

pub(in crate::stack) mod gro_run;
pub(in crate::stack) mod holders;
pub(in crate::stack) mod icmp;
pub(in crate::stack) mod ingress;
pub(in crate::stack) mod replies;
pub(in crate::stack) mod sources;
