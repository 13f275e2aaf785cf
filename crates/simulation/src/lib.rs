//! Two stacks in virtual time, with everything drawn at random: settings, socket options, routes,
//! devices, what the wire does, what the applications do, and what an attacker does who knows every
//! number.
//!
//! ```text
//!  seed ──► scenario (a value: what was drawn) ──► world (plays it) ──► a failure, or a summary
//!                 ▲                                    │
//!                 └────────── shrink ◄─────────────────┘   takes parts away while the scenario still fails
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`scenario`] | [`Scenario`]: everything that was drawn, as a value that can be saved, changed and played again |
//! | [`world`] | plays a scenario; says what went wrong, by a [`Failure`] |
//! | [`excuse`] | which ends of a connection a scenario rightly brings about, one by one, with the standard's words |
//! | [`shrink`] | the smallest scenario that fails in the same way |
//! | [`open`] | worlds of the test command that are known to fail |
//! | [`campaign`] | many seeds on several threads, with a watchdog |
//! | [`greedy`] | other worlds: one server, an honest peer, and greedy ones that must not keep it from being served |
//! | [`journal`] | what a long campaign has played, to go on from there |
//!
//! Not here: paths with queues and many hosts (the lab), and the kernel as a peer (interop).

pub mod campaign;
pub mod excuse;
pub mod greedy;
pub mod journal;
pub mod open;
pub mod scenario;
pub mod shrink;
pub mod world;

mod random;

pub use random::Random;
pub use scenario::{Intensity, Scenario};
pub use world::{Failure, Summary, play};
