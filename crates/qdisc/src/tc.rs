//! The language of tc: builds, changes and shows disciplines with iproute2's commands and Linux's
//! answers.
//!
//! - [`Device`]: a device's tree of disciplines. [`Device::tc`] runs a command.
//! - `command`: the words of a command.
//! - `modify`: add, change, replace and delete, with their errors.
//! - `print`: the output of show.
//! - `kinds`, and a file for each kind: options, parsed and printed.
//! - `units`: `5mbit`, `15k`, `50ms`.
//!
//! Left out are filters except `fw` (a packet's mark names the class), policing, and the ingress
//! side.

mod cake;
mod codel;
mod command;
mod error;
mod fifo;
mod flows;
mod htb;
mod kinds;
mod modify;
mod netem;
mod print;
mod prio;
mod red;
mod show;
mod stab;
mod tbf;
mod units;
mod words;

#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;
pub use error::TcError;
pub use kinds::KINDS;

use crate::node::{Kind, Node};
use crate::{Dequeue, Dropped, Handle, Nanos, Packet, PfifoFast, Qdisc, Skb, Stats, Verdict};
use kinds::DeviceFacts;

/// A network device's sending side: a tree of disciplines, a pfifo_fast at first.
///
/// ```
/// use firstbyte_qdisc::{Device, Packet, Qdisc, Skb, Verdict};
///
/// #[derive(Clone)]
/// struct Small;
/// impl Packet for Small {}
///
/// let mut eth0 = Device::new("eth0");
/// let mut dropped = Vec::new();
/// eth0.tc(0, "tc qdisc add dev eth0 root pfifo limit 1", &mut dropped).unwrap();
/// assert_eq!(eth0.enqueue(0, Skb::new(Small, 60), &mut dropped), Verdict::Queued);
/// eth0.enqueue(0, Skb::new(Small, 60), &mut dropped);
/// assert_eq!(dropped.len(), 1);
/// let again = eth0.tc(0, "tc qdisc add dev eth0 root pfifo limit 5", &mut dropped);
/// assert_eq!(again.unwrap_err().to_string(), "Error: Exclusivity flag on, cannot modify.");
/// ```
#[derive(Clone, Debug)]
pub struct Device<P> {
    name: String,
    facts: DeviceFacts,
    root: Node<P>,
    /// The last handle that was given without being asked for.
    last_auto: u16,
    /// How many disciplines were made by command.
    made: u64,
}

impl<P: Packet> Device<P> {
    /// An Ethernet device: frames of 1514 bytes, a `txqueuelen` of 1000.
    pub fn new(name: impl Into<String>) -> Device<P> {
        Device::with_queue_len(name, 1000, 1514)
    }

    /// A device with this `txqueuelen` and longest frame (its mtu and link header).
    pub fn with_queue_len(name: impl Into<String>, tx_queue_len: usize, frame: u32) -> Device<P> {
        let facts = DeviceFacts { tx_queue_len, frame, seed: 0 };
        let mut device = Device {
            name: name.into(),
            facts,
            root: Node::pfifo(Handle::ROOT, 0),
            last_auto: 0x8000,
            made: 0,
        };
        device.root = device.default_root();
        device
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seeds the random decisions of disciplines created later.
    pub fn set_seed(&mut self, seed: u64) {
        self.facts.seed = seed;
    }

    fn default_root(&self) -> Node<P> {
        Node::new(Handle::NONE, Handle::ROOT, Kind::PfifoFast(PfifoFast::new(self.facts.tx_queue_len)))
    }
}

impl<P: Packet> Qdisc<P> for Device<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        self.root.enqueue(now, skb, dropped)
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        self.root.dequeue(now, dropped)
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.root.reset(dropped);
    }

    fn stats(&self) -> Stats {
        self.root.stats()
    }

    fn qlen(&self) -> usize {
        self.root.qlen()
    }

    fn can_bypass(&self) -> bool {
        self.root.can_bypass()
    }
}
