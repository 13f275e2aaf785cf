//! One running stack: the lock, the wakers, and the pump between stack, timers and device.
//!
//! The engine ([`proto::Stack`]) has no clock, no lock and no threads; an application has all
//! three. This crate connects them, without an async runtime:
//!
//! - [`Host`]: a stack that many tasks may call. One mutex, never held across a system call or an
//!   await. A method that cannot continue registers the caller's [`Waker`](std::task::Waker) under
//!   the same lock.
//! - [`Pump`]: moves packets and time. One [`step`](Pump::step) reads a batch from the device,
//!   passes it to the stack, collects packets to send and tasks to wake, unlocks, wakes, and sends.
//! - [`Signal`]: connects a notify hook to the task that runs the pump.
//! - [`Clock`]: the only source of time: [`RealClock`] in production, [`VirtualClock`] in tests.
//!
//! - [`paths`]: the path cache in a file.
//!
//! ```text
//!  application tasks ──verbs──► Host ◄──packets, time── Pump ◄──► Device
//!          ▲                     │ │                      ▲
//!          └───── wakers ────────┘ └──── notify hook ─────┘
//! ```
//!
//! The task that runs the pump (a tokio task in `firstbyte`, a thread in `posix`) calls `step` when
//! the device has packets, when the deadline of the last step has passed, and when the notify hook
//! has fired.
//!
//! **Methods never transmit.** Everything that an application does before it yields reaches the
//! stack before the pump drains it: a reply and the FIN behind it leave in one packet.
//!
//! This crate is not a scheduler or a socket API, and contains no protocol rules.
#![forbid(unsafe_code)]
mod clock;
mod host;
pub mod paths;
mod pump;
mod signal;
mod verbs;
mod waiters;
pub use clock::{Clock, RealClock, VirtualClock};
pub use host::{Error, Exchange, Host, Phase, Pumped, turn};
pub use pump::{Pump, RX_BATCH, Step, TX_QUEUE_MAX};
pub use signal::Signal;
