//! How a connection begins: what it is made with, the handshake, and what the SYNs agreed.

pub(in crate::tcp) mod beginning;
pub(in crate::tcp) mod fast_open_client;
pub(crate) mod fresh;
pub(crate) mod handshake;
pub(crate) mod negotiation;
