//! One running stack: the lock, the wakers, and the pump between stack, timers and device.
//!
//! The engine ([`proto::Stack`]) has no clock, no lock and no threads; an application has all three. This crate
//! is what stands between them, and it knows no async runtime:
//!
//! - [`Host`]: a stack that many tasks may call. One mutex, never held across a system call or an await. A verb
//!   that cannot go on registers the caller's [`Waker`](std::task::Waker) under the same lock.
//! - [`Pump`]: moves packets and time. One [`step`](Pump::step) takes a batch from the device, gives it to the
//!   stack, collects what the stack wants sent and whom it wants woken, unlocks, wakes, and sends.
//! - [`Signal`]: how a notify hook reaches a task that runs the pump.
//! - [`Clock`]: the only place where time is read: [`RealClock`] outside, [`VirtualClock`] in tests.
//!
//! - [`paths`]: what is remembered of paths, in a file.
//!
//! ```text
//!  application tasks ──verbs──► Host ◄──packets, time── Pump ◄──► Device
//!          ▲                     │ │                      ▲
//!          └───── wakers ────────┘ └──── notify hook ─────┘
//! ```
//!
//! Whoever runs the pump (a tokio task in `firstbyte`, a thread in `posix`) calls `step` when the device has
//! packets, when the deadline of the last step has come, and when the notify hook fired.
//!
//! **Verbs never transmit.** What an application does before it yields reaches the stack before the pump drains
//! it: a reply and the FIN behind it leave in one packet.
//!
//! What this crate is not: a scheduler, a socket API, or a place for protocol rules.
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
