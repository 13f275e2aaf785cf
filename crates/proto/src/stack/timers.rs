//! What is due: after a change, when a connection may send, when its time comes.

pub(in crate::stack) mod egress;
pub(in crate::stack) mod pending_work;
pub(in crate::stack) mod reclaim;
pub(in crate::stack) mod refusal;
pub(in crate::stack) mod request_timers;
pub(in crate::stack) mod settle;
pub(in crate::stack) mod small_queues;
