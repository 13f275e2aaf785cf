//! The server's application: reads four bytes, and answers with as many bytes as they say. Reads
//! again after the answer is written.

use core::mem::take;
use proto::{ConnId, Events, Instant, ListenerId, ReadError, SocketId, Stack, WriteError};
use std::collections::BTreeMap;

/// Written in pieces of this size, bytes.
const PIECE: usize = 65_536;

pub(super) struct Server {
    listener: ListenerId,
    connections: BTreeMap<ConnId, Serving>,
    piece: Vec<u8>,
}

#[derive(Default)]
struct Serving {
    header: Vec<u8>,
    left: u64,
    ended: bool,
}

impl Server {
    pub(super) fn new(listener: ListenerId) -> Server {
        Server { listener, connections: BTreeMap::new(), piece: vec![7; PIECE] }
    }

    /// Handles the stack's events: accepts, reads and writes.
    pub(super) fn act(&mut self, now: Instant, stack: &mut Stack) {
        while let Some((socket, events)) = stack.poll_event() {
            match socket {
                SocketId::Listener(_) => self.accept(now, stack),
                SocketId::Connection(id) if events.contains(Events::CLOSED) => self.leave(now, stack, id),
                SocketId::Connection(id) => self.serve(now, stack, id),
            }
        }
    }

    fn accept(&mut self, now: Instant, stack: &mut Stack) {
        while let Ok((id, _)) = stack.accept(now, self.listener) {
            self.connections.insert(id, Serving::default());
            self.serve(now, stack, id);
        }
    }

    fn serve(&mut self, now: Instant, stack: &mut Stack, id: ConnId) {
        while let Some(serving) = self.connections.get_mut(&id) {
            while serving.left > 0 {
                let most = self.piece.len().min(serving.left as usize);
                match stack.write(now, id, &self.piece[..most]) {
                    Ok(written) => serving.left -= written as u64,
                    Err(WriteError::Blocked) => return,
                    Err(_) => return self.leave(now, stack, id),
                }
            }
            if serving.ended {
                return self.leave(now, stack, id);
            }
            let mut byte = [0];
            match stack.read(now, id, &mut byte) {
                Ok(0) => serving.ended = true,
                Ok(_) => serving.header.push(byte[0]),
                Err(ReadError::Blocked) => return,
                Err(_) => return self.leave(now, stack, id),
            }
            if let Ok(header) = <[u8; 4]>::try_from(&serving.header[..]) {
                take(&mut serving.header);
                serving.left = u32::from_be_bytes(header).into();
            }
        }
    }

    fn leave(&mut self, now: Instant, stack: &mut Stack, id: ConnId) {
        self.connections.remove(&id);
        stack.close(now, id);
    }
}
