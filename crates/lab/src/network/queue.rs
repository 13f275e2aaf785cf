//! The queue of a wire's transmitter: drop-tail, or any Linux discipline in `tc`'s words.

use crate::capture::PacketId;
use bytes::Bytes;
use qdisc::{Dequeue, Device, Dropped, Fifo, Nanos, Packet, Qdisc, Skb, Stats, TcError, Verdict};
use wire::{RxChecksum, RxPacket};

/// A packet in flight.
#[derive(Clone)]
pub(super) struct Traveller {
    pub(super) packet: PacketId,
    pub(super) bytes: Bytes,
    /// Trusted until something alters the packet.
    pub(super) checksum: RxChecksum,
}

impl Traveller {
    /// Creates a packet as a host sends it.
    pub(super) fn new(packet: PacketId, bytes: Bytes) -> Traveller {
        Traveller { packet, bytes, checksum: RxChecksum::Trusted }
    }

    /// Creates a packet that may have been altered.
    pub(super) fn altered(packet: PacketId, bytes: Bytes) -> Traveller {
        Traveller { packet, bytes, checksum: RxChecksum::Verify }
    }

    /// Converts the packet for the receiving stack.
    pub(super) fn into_received(self) -> RxPacket {
        RxPacket { checksum: self.checksum, ..RxPacket::new(self.bytes) }
    }
}

/// The queue of a wire or a card.
pub(super) enum Queue<P> {
    Fifo(Fifo<P>),
    Device(Box<Device<P>>),
}

impl<P: Packet + 'static> Queue<P> {
    /// Builds the result of `tc qdisc add dev link root …`. Commands after a `;` run as they are:
    /// classes, filters, leaves.
    pub(super) fn of_tc(words: &str, seed: u64) -> Result<Queue<P>, TcError> {
        let mut device = Device::new("link");
        device.set_seed(seed);
        command(&mut device, words)?;
        Ok(Queue::Device(Box::new(device)))
    }

    /// Builds the root of a card named `eth0`: pfifo_fast, or the given discipline.
    pub(super) fn of_card(words: Option<&str>, txqueuelen: usize, seed: u64) -> Result<Queue<P>, TcError> {
        let mut device = Device::with_queue_len("eth0", txqueuelen, ETHERNET_FRAME);
        device.set_seed(seed);
        if let Some(words) = words {
            command(&mut device, words)?;
        }
        Ok(Queue::Device(Box::new(device)))
    }
}

/// Calls a method on either variant.
macro_rules! each {
    ($queue:expr, $q:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($q) => $call,
            Queue::Device($q) => $call,
        }
    };
}

/// Bytes of a frame with an MTU of 1500 and the link header.
const ETHERNET_FRAME: u32 = 1514;

fn command<P: Packet>(device: &mut Device<P>, words: &str) -> Result<(), TcError> {
    let mut dropped = Vec::new();
    let mut commands = words.split(';').map(str::trim).filter(|command| !command.is_empty());
    let root = commands.next().unwrap_or_default();
    let name = device.name().to_owned();
    device.tc(0, &format!("qdisc add dev {name} root {root}"), &mut dropped)?;
    for command in commands {
        device.tc(0, command, &mut dropped)?;
    }
    Ok(())
}

impl<P: Packet + 'static> Qdisc<P> for Queue<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        each!(self, q => q.enqueue(now, skb, dropped))
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        each!(self, q => q.dequeue(now, dropped))
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        each!(self, q => q.reset(dropped));
    }

    fn stats(&self) -> Stats {
        each!(self, q => q.stats())
    }

    fn qlen(&self) -> usize {
        each!(self, q => q.qlen())
    }

    fn can_bypass(&self) -> bool {
        each!(self, q => q.can_bypass())
    }
}
