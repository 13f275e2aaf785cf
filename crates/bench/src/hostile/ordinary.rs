//! Ordinary data to a stack of its own, in the midst of a hostile case: what its packets take is
//! the measure of the others.

use super::arena::{Arena, BATCH};
use super::client::{Client, client, usual};
use super::victim::{Ours, Taken, Victim};
use crate::report::Failure;
use wire::Flags;

/// A stack of ours that is sent ordinary data.
pub(super) struct Ordinary {
    victim: Ours,
    peer: Client,
    connection: usize,
}

impl Ordinary {
    /// One with an open connection.
    ///
    /// # Errors
    /// The connection cannot be opened.
    pub(super) fn new() -> Result<Ordinary, Failure> {
        let mut arena = Arena::new(Box::new(Ours::new()));
        let mut peer = client(0);
        let connection = peer.open(&mut arena, usual(1460))?;
        let mut ordinary = Ordinary { victim: core::mem::take(arena.ours()?), peer, connection };
        // Its memory is as large as it becomes before that of a case is measured.
        (0..BATCH).try_for_each(|_| ordinary.play().map(drop))?;
        Ok(ordinary)
    }

    /// Sends a batch and reads it; returns the nanoseconds of a packet.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn play(&mut self) -> Result<f64, Failure> {
        const TEXT: [u8; 1000] = [b'x'; 1000];
        let mut packets = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            packets.push(self.peer.segment(&self.peer.header(Flags::ACK), &TEXT));
            self.peer.seq += TEXT.len() as u32;
        }
        let Taken { nanos, answers } = self.victim.take(&packets)?;
        self.victim.read(self.connection)?;
        Ok(nanos as f64 / (packets.len() + answers.len()) as f64)
    }
}
