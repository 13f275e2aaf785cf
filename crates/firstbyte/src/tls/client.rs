//! A client's connection before anything is sent.
use super::configs::Configs;
use super::outcome::NotSent;
use super::session::Session;
use super::sessions::Server;

use crate::http::{FirstRequest, Judgement};
use crate::{TcpSocket, TcpStream};
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A TCP connection that sends its first flight.
pub(super) type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// Most bytes that wait for the first flush.
const FIRST_MAX: usize = 16_384;

/// The plan of a connection, and what was written so far.
pub(super) struct Unsent {
    pub(super) configs: Arc<Configs>,
    pub(super) socket: TcpSocket,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) server: Server,
    pub(super) first_request: FirstRequest,
    pub(super) first: Vec<u8>,
    /// The protocol of the last visit.
    pub(super) alpn: Option<Vec<u8>>,
    /// Time limit of the connect.
    pub(super) limit: Option<Duration>,
}

impl Unsent {
    pub(super) fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Keeps what is written. `None` if there is no room: the connection must open first.
    pub(super) fn buffer(&mut self, slices: &[IoSlice<'_>]) -> Option<usize> {
        let before = self.first.len();
        for slice in slices {
            let len = slice.len().min(FIRST_MAX - self.first.len());
            self.first.extend_from_slice(&slice[..len]);
        }
        let len = self.first.len() - before;
        (len > 0 || slices.iter().all(|slice| slice.is_empty())).then_some(len)
    }

    /// Returns whether a flush should wait for a request: nothing was written, or the start of
    /// HTTP/2 without a request, which clients flush by itself.
    pub(super) fn waits_for_more(&self) -> bool {
        self.first.is_empty()
            || (self.first.len() < FIRST_MAX && self.first_request.awaits_request(&self.first))
    }

    /// Sends the ClientHello and, if it may be, everything written so far.
    pub(super) fn start(self) -> io::Result<(Connecting, Session)> {
        let why_not = self.why_not_early();
        let mut session = self.configs.begin(&self.server, why_not.is_none())?;
        match why_not {
            None => session.send_early(self.first)?,
            Some(why_not) => session.send_late(&self.first, why_not)?,
        }
        let flight = session.flight()?;
        let (socket, addresses) = (self.socket, self.addresses);
        let connect = async move { socket.connect_with(&addresses[..], flight).await };
        let Some(limit) = self.limit else { return Ok((Box::pin(connect), session)) };
        let limited = async move {
            tokio::time::timeout(limit, connect).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
        };
        Ok((Box::pin(limited), session))
    }

    fn why_not_early(&self) -> Option<NotSent> {
        if self.first.is_empty() || self.first_request == FirstRequest::Never {
            return Some(NotSent::NotAsked);
        }
        let Some(prospect) = self.configs.sessions().prospect(&self.server) else {
            return Some(NotSent::NoTicket);
        };
        if prospect.early_data_max == 0 {
            return Some(NotSent::NotTaken);
        }
        if self.first.len() > prospect.early_data_max {
            return Some(NotSent::TooLong);
        }
        (self.first_request.judge(&self.first) != Judgement::Repeatable).then_some(NotSent::NotRepeatable)
    }
}
