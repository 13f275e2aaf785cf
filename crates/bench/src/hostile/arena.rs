//! Who attacks: packets go to a victim, what they take is written down.

use super::measured::Measured;
use super::victim::{Ours, Taken, Victim};
use crate::report::Failure;
use bytes::Bytes;

/// Packets that come together.
const BATCH: usize = 64;

/// A victim, and what has been measured so far.
pub struct Arena {
    /// Who is attacked.
    pub victim: Box<dyn Victim>,
    /// Nanoseconds of a packet, by batches.
    samples: Vec<f64>,
    came: u64,
    went: u64,
}

impl Arena {
    /// Nothing has happened yet.
    pub fn new(victim: Box<dyn Victim>) -> Arena {
        Arena { victim, samples: Vec::new(), came: 0, went: 0 }
    }

    /// Sends packets that are not measured; returns what is sent.
    ///
    /// # Errors
    /// The victim's.
    pub fn prepare(&mut self, packets: &[Bytes]) -> Result<Vec<Bytes>, Failure> {
        let mut answers = Vec::new();
        for batch in packets.chunks(BATCH) {
            answers.extend(self.victim.take(batch)?.answers);
        }
        if packets.is_empty() {
            answers = self.victim.take(&[])?.answers;
        }
        Ok(answers)
    }

    /// Sends packets and measures what they take; returns what is sent.
    ///
    /// # Errors
    /// The victim's.
    pub fn attack(&mut self, packets: &[Bytes]) -> Result<Vec<Bytes>, Failure> {
        let mut answers = Vec::new();
        for batch in packets.chunks(BATCH) {
            answers.extend(self.attack_at_once(batch)?);
        }
        Ok(answers)
    }

    /// Sends packets that arrive together and measures what they take; returns what is sent.
    ///
    /// # Errors
    /// The victim's.
    pub fn attack_at_once(&mut self, batch: &[Bytes]) -> Result<Vec<Bytes>, Failure> {
        let Taken { nanos, answers } = self.victim.take(batch)?;
        self.note(nanos, batch.len() + answers.len());
        let bytes = |packets: &[Bytes]| packets.iter().map(|packet| packet.len() as u64).sum::<u64>();
        self.came += bytes(batch);
        self.went += bytes(&answers);
        Ok(answers)
    }

    /// So many packets, or timers, took so long.
    pub fn note(&mut self, nanos: u64, count: usize) {
        self.samples.push(nanos as f64 / count.max(1) as f64);
    }

    /// Our stack.
    ///
    /// # Errors
    /// It is not ours.
    pub fn ours(&mut self) -> Result<&mut Ours, Failure> {
        self.victim.ours().ok_or_else(|| "only our own stack can do that".into())
    }

    /// What was measured; the memory is the caller's to tell.
    ///
    /// # Errors
    /// Nothing was.
    pub fn measured(&mut self) -> Result<Measured, Failure> {
        self.samples.sort_by(f64::total_cmp);
        let nanos = *self.samples.get(self.samples.len() * 9 / 10).ok_or("nothing was measured")?;
        // What the arena itself holds is not the victim's.
        self.samples = Vec::new();
        Ok(Measured { nanos, pinned: 0, sent_back: self.went as f64 / self.came.max(1) as f64 })
    }
}
