//! The application's verbs, and what it may ask.

pub(in crate::stack) mod closing;
pub(in crate::stack) mod peer_time_wait;
pub(in crate::stack) mod ports;
pub(in crate::stack) mod queries;
pub(in crate::stack) mod repair;
pub(in crate::stack) mod routes;
pub(in crate::stack) mod snmp;
pub(in crate::stack) mod socket_list;
pub(in crate::stack) mod stream;
pub(in crate::stack) mod verbs;
