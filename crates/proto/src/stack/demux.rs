//! Packets come in: whom each belongs to, and what answers those that belong to nobody.

pub(in crate::stack) mod completing;
pub(in crate::stack) mod gro_run;
pub(in crate::stack) mod holders;
pub(in crate::stack) mod icmp;
pub(in crate::stack) mod ingress;
pub(in crate::stack) mod replies;
pub(in crate::stack) mod sources;
