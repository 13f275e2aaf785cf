//! What others see of a connection.

pub(crate) mod limits;
pub(in crate::tcp) mod moments;
pub(crate) mod tcp_info;
#[cfg(debug_assertions)]
pub(in crate::tcp) mod watch;
