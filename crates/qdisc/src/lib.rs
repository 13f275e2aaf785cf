//! Queueing disciplines and link emulation, sans-IO.
//!
//! The path of a packet between two hosts, in virtual time. The caller passes the time. Nothing
//! here reads a clock, starts a thread or uses the operating system. The same calls with the same
//! times and the same seed give identical deliveries.
//!
//! ```text
//!             loss, duplication,      any discipline       bit/s, exact      propagation, jitter,
//!             corruption              of Linux             to the nanosecond  reordering
//! enqueue ──► impairments ──────────► queue (Qdisc) ─────► transmitter ─────► flight ──────────────► poll
//! ```
//!
//! - [`Link`]: one direction of a link, with [`LinkConfig`] and [`LinkStats`].
//! - [`Qdisc`]: the trait of queueing disciplines. [`Fifo`] (pfifo, bfifo, pfifo_head_drop),
//!   [`PfifoFast`], [`Prio`], [`Tbf`], [`Htb`], [`Sfq`], [`Red`], [`Codel`], [`FqCodel`], [`Pie`],
//!   [`Fq`], [`Cake`] and [`Netem`] behave like those of Linux 6.18, with the same parameters,
//!   defaults
//!   and counters. Each file lists its differences.
//! - [`Device`]: a tree of disciplines, built, changed and shown with `tc` commands, including the
//!   kernel's error messages.
//! - [`SizeTable`]: the size of a packet on a link with cells or a minimum size (`stab` of `tc`).
//! - [`Nic`]: the sending side of a NIC: disciplines, rings, byte queue limits ([`Dql`]),
//!   interrupts.
//! - [`Input`]: the receiving side, with the input backlog. [`Bond`]: the choice between several
//!   links.
//! - [`Packet`]: the properties of a packet that disciplines use. [`Skb`]: a queued packet.
//! - [`Rng`], [`Probability`]: the seeded generator of all random decisions.
//!
//! Both a link and [`Netem`] impair packets. A link is the wire itself: it serializes exactly, can
//! lose packets by number and go down. Netem is a discipline before it, with Linux's behaviour and
//! names. They share the loss models. Left out are the ingress side, policing, filters except by
//! mark, and shared media.
//!
//! ```
//! use firstbyte_qdisc::{Link, LinkConfig, Verdict};
//!
//! let config = LinkConfig::new().rate(5_000_000).delay(10_000_000); // 5 Mbit/s, 10 ms
//! let mut link = Link::new(config, 1);
//! assert_eq!(link.enqueue(0, "hello", 1500), Verdict::Queued);
//! assert_eq!(link.next_event(), Some(2_400_000)); // 12 000 bit at 5 Mbit/s
//! assert!(link.poll(2_400_000).is_none());
//! assert_eq!(link.next_event(), Some(12_400_000));
//! assert_eq!(link.poll(12_400_000).unwrap().packet, "hello");
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod bond;
mod cake;
mod codel;
mod config;
mod discipline;
mod dql;
mod fifo;
mod fq;
mod fq_codel;
mod handle;
mod htb;
mod input;
mod link;
mod loss;
mod netem;
mod nic;
mod node;
mod packet;
mod pfifo_fast;
mod pie;
mod prio;
mod queue;
mod rate;
mod red;
mod rng;
mod sfq;
mod stab;
mod stats;
mod tbf;
mod tc;
mod transmitter;

pub use bond::{Bond, BondMode, BondStats};
pub use cake::{
    Cake, CakeAckFilter, CakeCoding, CakeConfig, CakeFraming, CakeIsolation, CakeTinXstats, CakeTins,
    CakeXstats,
};
pub use codel::{Codel, CodelConfig, CodelParams, CodelXstats};
pub use config::{LinkConfig, Reorder};
pub use discipline::{Dequeue, DropReason, Dropped, Qdisc, Stats, Verdict};
pub use dql::{Dql, DqlConfig};
pub use fifo::{Fifo, Limit, Peaks};
pub use fq::{Fq, FqConfig, FqXstats};
pub use fq_codel::{FqCodel, FqCodelConfig, FqCodelXstats};
pub use handle::Handle;
pub use htb::{Htb, HtbClassConfig, HtbConfig, HtbError};
pub use input::{Input, InputConfig, InputEvent, InputLoss, InputStats, NAPI_WEIGHT, NETDEV_BUDGET};
pub use link::{Delivery, Entry, Link};
pub use loss::{GilbertElliott, Loss};
pub use netem::{
    Correlated, Distribution, FourStates, Netem, NetemConfig, NetemLoss, NetemRate, NetemSlot, SlotDelay,
};
pub use nic::{Nic, NicConfig, NicEvent, Parcel, RingStats};
pub use packet::{Ecn, Packet, Segments, Skb, TcpFields};
pub use pfifo_fast::PfifoFast;
pub use pie::{Pie, PieConfig, PieXstats};
pub use prio::{Prio, PrioConfig};
pub use rate::{LinkLayer, RateSpec};
pub use red::{Red, RedConfig, RedXstats};
pub use rng::{Probability, Rng};
pub use sfq::{Sfq, SfqConfig};
pub use stab::{SizeSpec, SizeTable};
pub use stats::LinkStats;
pub use tbf::{Tbf, TbfConfig};
pub use tc::{Device, KINDS, TcError};

/// A point in time or a span: nanoseconds since an origin of the caller's choice.
pub type Nanos = u64;

/// The earlier of two moments that may come.
fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    }
}
