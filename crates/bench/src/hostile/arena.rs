//! Sends packets to a victim, and records their cost. Ordinary data goes to another stack in
//! between, so that other programs disturb both alike.

use super::measured::Measured;
use super::victim::{Ours, Taken, Victim};
use crate::report::Failure;
use bytes::Bytes;

/// Packets that come together.
pub const BATCH: usize = 64;
/// Batches for which there is room from the beginning: what the arena holds is not the victim's.
const BATCHES_MAX: usize = 1 << 16;

/// A victim, and what has been measured so far.
pub struct Arena {
    /// The stack under attack.
    pub victim: Box<dyn Victim>,
    /// Nanoseconds of a packet, by batches.
    samples: Vec<f64>,
    came: u64,
    went: u64,
    ordinary: Option<Ordinary>,
    /// Samples of the ordinary data in between.
    ordinary_samples: Vec<f64>,
}

/// Sends a batch of ordinary data to another stack, and returns the nanoseconds of a packet.
pub type Ordinary = Box<dyn FnMut() -> Result<f64, Failure>>;

impl Arena {
    /// Creates an arena without samples.
    pub fn new(victim: Box<dyn Victim>) -> Arena {
        Arena { victim, samples: Vec::new(), came: 0, went: 0, ordinary: None, ordinary_samples: Vec::new() }
    }

    /// Creates an arena that sends ordinary data to another stack after each batch.
    pub fn beside(ordinary: Ordinary, victim: Box<dyn Victim>) -> Arena {
        let ordinary_samples = Vec::with_capacity(BATCHES_MAX);
        Arena { ordinary: Some(ordinary), ordinary_samples, ..Arena::new(victim) }
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
        self.note(nanos, batch.len() + answers.len())?;
        let bytes = |packets: &[Bytes]| packets.iter().map(|packet| packet.len() as u64).sum::<u64>();
        self.came += bytes(batch);
        self.went += bytes(&answers);
        Ok(answers)
    }

    /// So many packets, or timers, took so long.
    ///
    /// # Errors
    /// Ordinary data could not be sent.
    pub fn note(&mut self, nanos: u64, count: usize) -> Result<(), Failure> {
        self.samples.push(nanos as f64 / count.max(1) as f64);
        if let Some(ordinary) = &mut self.ordinary {
            self.ordinary_samples.push(ordinary()?);
        }
        Ok(())
    }

    /// Our stack.
    ///
    /// # Errors
    /// It is not ours.
    pub fn ours(&mut self) -> Result<&mut Ours, Failure> {
        self.victim.ours().ok_or_else(|| "only our own stack can do that".into())
    }

    /// Returns the measurement; the caller adds the memory.
    ///
    /// # Errors
    /// Nothing was.
    pub fn measured(&mut self) -> Result<Measured, Failure> {
        let nanos = nine_tenths(&mut self.samples).ok_or("nothing was measured")?;
        let ordinary = nine_tenths(&mut self.ordinary_samples);
        // What the arena itself holds is not the victim's.
        self.samples = Vec::new();
        let sent_back = self.went as f64 / self.came.max(1) as f64;
        Ok(Measured { nanos, ordinary, pinned: 0, sent_back })
    }
}

/// The time that nine of ten took at most.
fn nine_tenths(samples: &mut [f64]) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() * 9 / 10).copied()
}
