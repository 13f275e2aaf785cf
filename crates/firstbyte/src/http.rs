//! HTTP clients with Fast Open.
//!
//! Data on a SYN may arrive twice (RFC 7413 §6.1). [`FirstRequest`] decides which requests are sent
//! with it.

mod first_request;
pub(crate) mod repeatable;

pub use first_request::FirstRequest;
#[cfg(feature = "tls")]
pub(crate) use repeatable::Judgement;
