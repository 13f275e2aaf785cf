//! The server of the exchange: answers a whole request, closes on the end of the stream.

use super::{Application, Inbox, Mode, REQUEST_BYTE, RESPONSE_BYTE};
use crate::ids::ConnMap;
use crate::report::Failure;
use core::net::SocketAddr;
use proto::{ConnId, Events, Instant, ListenOptions, ListenerId, SocketId, SocketOptions, Stack};

/// Connections a listener may hold before the application takes them.
const BACKLOG: u32 = 4096;

/// The server's connections.
pub struct Server {
    inbox: Inbox,
    request_len: usize,
    response: Vec<u8>,
    running: ConnMap<usize>,
    answered: u64,
    early: u64,
}

impl Server {
    /// Listens on all of `addresses`.
    ///
    /// # Errors
    /// The stack refuses.
    pub fn new(
        stack: &mut Stack,
        now: Instant,
        mode: Mode,
        addresses: &[SocketAddr],
        lengths: (usize, usize),
    ) -> Result<Server, Failure> {
        for address in addresses {
            let options = ListenOptions {
                backlog: BACKLOG,
                fast_open: (mode == Mode::Tfo).then_some(BACKLOG),
                socket: SocketOptions { nodelay: true, ..SocketOptions::default() },
                ..ListenOptions::default()
            };
            stack
                .listen(now, *address, options)
                .map_err(|error| format!("listen on {address}: {error:?}"))?;
        }
        Ok(Server {
            inbox: Inbox::new(REQUEST_BYTE),
            request_len: lengths.0,
            response: vec![RESPONSE_BYTE; lengths.1],
            running: ConnMap::default(),
            answered: 0,
            early: 0,
        })
    }

    /// Requests answered.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Requests that came in the SYN.
    pub fn early(&self) -> u64 {
        self.early
    }

    /// An event follows of those that can be read already.
    fn accept(&mut self, stack: &mut Stack, now: Instant, listener: ListenerId) {
        while let Ok((id, _)) = stack.accept(now, listener) {
            self.running.insert(id, 0);
        }
    }

    fn advance(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<(), Failure> {
        let Some(received) = self.running.get_mut(id) else { return Ok(()) };
        loop {
            match self.inbox.read(stack, now, id) {
                Ok(None) => return Ok(()),
                Ok(Some(0)) => break,
                Ok(Some(read)) => *received += read,
                Err(_) if *received == 0 && stack.close_reason(id).is_some() => break,
                Err(failure) => return Err(failure),
            }
            if *received == self.request_len {
                let written = stack.write(now, id, &self.response);
                if written != Ok(self.response.len()) {
                    return Err(format!("server's write: {written:?}").into());
                }
                self.answered += 1;
                self.early +=
                    u64::from(stack.early_data(id).is_some_and(|early| early.len == self.request_len));
            } else if *received > self.request_len {
                return Err(format!("{received} bytes of request").into());
            }
        }
        // A connection without a request is somebody looking whether we are there.
        if *received != 0 && *received != self.request_len {
            return Err(format!("end of stream after {received} bytes of request").into());
        }
        self.running.remove(id);
        stack.close(now, id);
        Ok(())
    }
}

impl Application for Server {
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        events: Events,
    ) -> Result<(), Failure> {
        match id {
            SocketId::Listener(listener) => self.accept(stack, now, listener),
            SocketId::Connection(id) if events.contains(Events::READABLE) => self.advance(stack, now, id)?,
            SocketId::Connection(_) => {}
        }
        Ok(())
    }
}
