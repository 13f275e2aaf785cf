//! HTTP clients with Fast Open.
//!
//! Data on a SYN may arrive twice (RFC 7413 §6.1). [`FirstRequest`] decides which requests are sent
//! with it: by default only those that change nothing at the server.
//!
//! With the feature `hyper-util`, `Connector` makes the connections of hyper-util's client, of
//! tonic, and of every other library that takes a `tower_service::Service<Uri>`.
#[cfg(feature = "hyper-util")]
mod connector;
#[cfg(feature = "hyper-util")]
mod early_data;
mod first_request;
#[cfg(feature = "hyper-util")]
mod first_write;
#[cfg(feature = "hyper-util")]
mod info;
pub(crate) mod repeatable;
#[cfg(all(feature = "hyper-util", feature = "tls"))]
mod secured;
#[cfg(feature = "hyper-util")]
mod stream;

#[cfg(feature = "hyper-util")]
pub use connector::Connector;
#[cfg(feature = "hyper-util")]
pub use early_data::{EarlyData, EarlyDataLayer, RetryTooEarly, RetryTooEarlyLayer};
pub use first_request::FirstRequest;
#[cfg(feature = "hyper-util")]
pub use info::HttpInfo;
#[cfg(feature = "tls")]
pub(crate) use repeatable::Judgement;
#[cfg(feature = "hyper-util")]
pub use stream::HttpStream;
