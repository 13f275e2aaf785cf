//! The pump: packets between a device and a host, and the time.
use crate::{Host, Phase, Pumped};
use device::Device;
use proto::{Instant, RxBatch, RxPacket, TxPacket};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Waker;

/// The most packets one step takes from the device. A batch shares one lock, and one decision about ACKs.
pub const RX_BATCH: usize = 64;

/// The most packets that wait for a device. While it takes none, the stack is not asked for more, and keeps
/// what it has in its send buffers.
pub const TX_QUEUE_MAX: usize = 256;

/// Moves packets between one stack behind its lock, a [`Host`] most often, and one [`Device`].
pub struct Pump<D, H = Host> {
    host: Arc<H>,
    device: D,
    rx: RxBatch,
    tx: VecDeque<TxPacket>,
    woken: Vec<Waker>,
    unclaimed: Option<Box<dyn FnMut(RxPacket) + Send>>,
    /// Why the device cannot be read, to be told once what came before is handled.
    fault: Option<io::Error>,
    send_errors: u64,
}

/// What a step did, and when the next one is due.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// When to step again if nothing happens before; `None` = only when something happens. A time that has
    /// passed means at once.
    pub deadline: Option<Instant>,
    /// Packets taken from the device.
    pub received: usize,
    /// The device had no more: wait until it is readable. Otherwise step again at once.
    pub is_drained: bool,
    /// Tasks woken. Let them run before the next step: what they do may leave in fewer packets.
    pub woken: usize,
    /// The device would not take everything: step again when it can be written.
    pub is_blocked: bool,
    /// The stack may have more to send: step again at once.
    pub has_more: bool,
    /// How far the host's life has come.
    pub phase: Phase,
}

impl<D: Device, H: Pumped> Pump<D, H> {
    /// A pump between `host` and `device`.
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

    /// Gives packets that are not for this host (UDP, other destinations) to `take` instead of dropping them.
    pub fn on_unclaimed(&mut self, take: impl FnMut(RxPacket) + Send + 'static) {
        self.unclaimed = Some(Box::new(take));
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, to change it.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The host.
    pub fn host(&self) -> &Arc<H> {
        &self.host
    }

    /// Packets that went back because the device failed to send, since the beginning.
    pub fn send_errors(&self) -> u64 {
        self.send_errors
    }

    /// One round: a batch in (unless `is_readable` says that there is none), time, wakers, everything out.
    ///
    /// # Errors
    /// Only when the device can no longer be read. What a device fails to send goes back to the stack, which tries again later; if it
    /// is broken for good, the next read says so.
    pub fn step(&mut self, is_readable: bool) -> io::Result<Step> {
        let is_drained = !is_readable || self.receive()?;
        let received = self.rx.len();
        let exchange = self.host.exchange(&mut self.rx, &mut self.tx, TX_QUEUE_MAX, &mut self.woken);
        let woken = self.woken.len();
        self.woken.drain(..).for_each(Waker::wake);
        self.hand_back();
        // What went back has other deadlines than it had.
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

    /// Fills the batch; true when the device had no more. Packets received before a fault are handled first.
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

    /// False: the device refused some.
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
