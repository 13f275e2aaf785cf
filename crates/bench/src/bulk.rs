//! The two ends of a stream: one writes blocks as fast as they are taken, the other reads and
//! counts.

use crate::exchange::Application;
use crate::report::Failure;
use proto::{ConnId, Events, Instant, ReadError, SocketId, Stack, WriteError};

/// Bytes of one write, and the most of one read.
pub const BLOCK: usize = 256 * 1024;
/// What is sent.
const BYTE: u8 = 0x42;

/// Writes blocks for as long as it is told events.
pub struct Sender {
    block: Vec<u8>,
    sent: u64,
    most: u64,
}

impl Default for Sender {
    fn default() -> Sender {
        Sender { block: vec![BYTE; BLOCK], sent: 0, most: u64::MAX }
    }
}

impl Sender {
    /// Bytes the stack has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Writes no more than so many bytes in all.
    pub fn end_at(&mut self, bytes: u64) {
        self.most = bytes;
    }

    /// Writes until the stack takes no more.
    ///
    /// # Errors
    /// The connection ended.
    pub fn fill(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<(), Failure> {
        loop {
            let left = self.most.saturating_sub(self.sent).min(BLOCK as u64) as usize;
            if left == 0 {
                return Ok(());
            }
            match stack.write(now, id, &self.block[..left]) {
                Ok(written) => self.sent += written as u64,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(format!("write: {error:?}").into()),
            }
        }
    }
}

impl Application for Sender {
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        events: Events,
    ) -> Result<(), Failure> {
        match id {
            SocketId::Connection(id) if events.intersects(Events::CONNECTED | Events::WRITABLE) => {
                self.fill(stack, now, id)
            }
            _ => Ok(()),
        }
    }
}

/// Reads everything.
pub struct Receiver {
    buffer: Vec<u8>,
    received: u64,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver { buffer: vec![0; BLOCK], received: 0 }
    }
}

impl Receiver {
    /// Bytes read.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn drain(&mut self, stack: &mut Stack, now: Instant, id: ConnId) -> Result<(), Failure> {
        loop {
            match stack.read(now, id, &mut self.buffer) {
                Ok(0) => return Err(format!("end of stream after {} bytes", self.received).into()),
                Ok(read) => self.received += read as u64,
                Err(ReadError::Blocked) => return Ok(()),
                Err(error) => return Err(format!("read: {error:?}").into()),
            }
        }
    }
}

impl Application for Receiver {
    fn on_event(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        id: SocketId,
        _events: Events,
    ) -> Result<(), Failure> {
        match id {
            SocketId::Connection(id) => self.drain(stack, now, id),
            SocketId::Listener(listener) => {
                while let Ok((id, _)) = stack.accept(now, listener) {
                    self.drain(stack, now, id)?;
                }
                Ok(())
            }
        }
    }
}
