//! The pump: moves packets between a device and a host, and advances the time.
use crate::{Host, Phase, Pumped};
use device::Device;
use proto::{Instant, RxBatch, RxPacket, TxPacket};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Waker;

/// Most packets read from the device in one step. A batch shares one lock, and one decision about
/// ACKs.
pub const RX_BATCH: usize = 64;

/// Most packets that wait for a device. While it accepts none, the stack keeps data in its send
/// buffers.
pub const TX_QUEUE_MAX: usize = 256;

/// Moves packets between one stack behind its lock, usually a [`Host`], and one [`Device`].
pub struct Pump<D, H = Host> {
    host: Arc<H>,
    device: D,
    rx: RxBatch,
    tx: VecDeque<TxPacket>,
    woken: Vec<Waker>,
    unclaimed: Option<Box<dyn FnMut(RxPacket) + Send>>,
    /// Read error of the device, returned once the packets before it are handled.
    fault: Option<io::Error>,
    send_errors: u64,
}

/// Result of a step, and the time of the next one.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Time of the next step if nothing happens before; `None`: only when something happens. A time
    /// in the past means now.
    pub deadline: Option<Instant>,
    /// Packets received from the device.
    pub received: usize,
    /// True if the device had no more: wait until it is readable. Otherwise step again now.
    pub is_drained: bool,
    /// Tasks woken. Let them run before the next step: their output may then need fewer packets.
    pub woken: usize,
    /// True if the device did not accept everything: step again when it is writable.
    pub is_blocked: bool,
    /// True if the stack may have more to send: step again now.
    pub has_more: bool,
    /// Phase of the host's life.
    pub phase: Phase,
}

impl<D: Device, H: Pumped> Pump<D, H> {
    /// Creates a pump between `host` and `device`.
    pub fn new(host: Arc<H>, device: D) -> Pump<D, H> {
        Pump {
            host,
            device,
            rx: RxBatch::with_capacity(RX_BATCH),
            tx: VecDeque::with_capacity(TX_QUEUE_MAX),
            woken: Vec::new(),
            unclaimed: None,
            fault: None,
            send_errors: 0,
        }
    }

    /// Passes packets that are not for this host (UDP, other destinations) to `take` instead of
    /// dropping them.
    pub fn on_unclaimed(&mut self, take: impl FnMut(RxPacket) + Send + 'static) {
        self.unclaimed = Some(Box::new(take));
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the device, to change it.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the host.
    pub fn host(&self) -> &Arc<H> {
        &self.host
    }

    /// Returns the number of packets that went back to the stack because the device failed to send
    /// them.
    pub fn send_errors(&self) -> u64 {
        self.send_errors
    }

    /// Runs one round: receives a batch (unless `is_readable` is false), advances the time, wakes
    /// tasks, sends everything.
    ///
    /// # Errors
    /// The device cannot be read any more. Packets that a device fails to send go back to the
    /// stack, which retries later; if the device is broken, the next read fails.
    pub fn step(&mut self, is_readable: bool) -> io::Result<Step> {
        let is_drained = !is_readable || self.receive()?;
        let received = self.rx.len();
        let exchange = self.host.exchange(&mut self.rx, &mut self.tx, TX_QUEUE_MAX, &mut self.woken);
        let woken = self.woken.len();
        self.woken.drain(..).for_each(Waker::wake);
        self.hand_back();
        // Returned packets have new deadlines.
        let deadline = if self.send() { exchange.deadline } else { Some(Instant::ZERO) };
        Ok(Step {
            deadline,
            received,
            is_drained,
            woken,
            is_blocked: !self.tx.is_empty(),
            has_more: exchange.is_capped && self.tx.is_empty(),
            phase: exchange.phase,
        })
    }

    /// Fills the batch. Returns true if the device had no more. Packets received before an error
    /// are handled first.
    fn receive(&mut self) -> io::Result<bool> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        while self.rx.len() < RX_BATCH {
            let room = RX_BATCH - self.rx.len();
            match self.device.recv(&mut self.rx, room) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(fault) if self.rx.is_empty() => return Err(fault),
                Err(fault) => {
                    self.fault = Some(fault);
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    fn hand_back(&mut self) {
        match &mut self.unclaimed {
            Some(take) => self.rx.drain().for_each(take),
            None => self.rx.clear(),
        }
    }

    /// Sends packets. Returns false if the device rejected some.
    fn send(&mut self) -> bool {
        if self.tx.is_empty() || self.device.send(&mut self.tx).is_ok() {
            return true;
        }
        self.send_errors += self.tx.len() as u64;
        self.host.take_back(&mut self.tx);
        false
    }
}

impl<D, H> core::fmt::Debug for Pump<D, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pump").field("waiting", &self.tx.len()).finish_non_exhaustive()
    }
}
