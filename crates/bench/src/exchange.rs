//! The short exchange of the contract, as two applications on `proto::Stack`.
//!
//! The client opens a connection and sends a request; the server answers when it has the whole of
//! it; the client closes when it has the whole answer, the server on the end of the stream. Done
//! when the client has seen the server's FIN. Everything else (a reset, a byte too many or too few
//! or wrong, another mode than asked for) is a failure.
//!
//! [`Client`] in `exchange/client.rs`, [`Server`] in `exchange/server.rs`. Both do what an event
//! loop does: they are told events, and read until a read would block.
mod client;
mod server;

pub use client::{Client, Plan};
pub use server::Server;

use crate::report::Failure;
use clap::ValueEnum;
use core::fmt;
use proto::{ConnId, Events, Instant, ReadError, SocketId, Stack};

/// Which handshake is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Three-way handshake, then the request.
    Plain,
    /// The request in the SYN, with a cookie.
    Tfo,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Plain => "plain",
            Mode::Tfo => "tfo",
        })
    }
}

/// An application on a stack.
pub trait Application {
    /// Something has happened to one of its sockets.
    ///
    /// # Errors
    /// What must not happen in a measurement.
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        events: Events,
    ) -> Result<(), Failure>;
}

/// One that does nothing.
impl Application for () {
    fn on_event(&mut self, _: &mut Stack, _: Instant, _: SocketId, _: Events) -> Result<(), Failure> {
        Ok(())
    }
}

/// Tells `application` everything that has happened.
///
/// # Errors
/// The application's.
pub fn serve_events(
    stack: &mut Stack,
    now: Instant,
    application: &mut impl Application,
) -> Result<(), Failure> {
    while let Some((id, events)) = stack.poll_event() {
        application.on_event(stack, now, id, events)?;
    }
    Ok(())
}

/// Where an application reads into, and what it must find there.
pub struct Inbox {
    buffer: Vec<u8>,
    expected: Vec<u8>,
}

impl Inbox {
    /// For a peer that writes nothing but `byte`.
    pub fn new(byte: u8) -> Inbox {
        Inbox { buffer: vec![0; READ_MAX], expected: vec![byte; READ_MAX] }
    }

    /// Reads what there is, up to a few thousand bytes; 0 at the end of the stream, `None` when
    /// there is nothing yet.
    ///
    /// # Errors
    /// The connection ended, or a byte is not what the peer wrote.
    #[inline]
    pub fn read(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<Option<usize>, Failure> {
        match stack.read(now, id, &mut self.buffer) {
            Ok(read) if self.buffer[..read] == self.expected[..read] => Ok(Some(read)),
            Ok(_) => Err("a byte is not what was written".into()),
            Err(ReadError::Blocked) => Ok(None),
            Err(error) => Err(format!("read: {error:?}").into()),
        }
    }
}

/// The byte a client's requests consist of.
pub const REQUEST_BYTE: u8 = 0x51;
/// The byte a server's answers consist of.
pub const RESPONSE_BYTE: u8 = 0x52;
/// Bytes a read asks for.
const READ_MAX: usize = 4096;
