//! Cookie keys that many servers share: one plan in a store, an agent on each host, an operator who
//! advances the plan.
//!
//! ```text
//!  operator ── Rotation::next ──► plan in the store ──► Agent on each host ──► the kernel's keys, or a stack's
//!      ▲                                                      │
//!      └──────────── what each host has applied, and whether cookies of the former key still come ◄─┘
//! ```
//!
//! - [`plan`]: the keys of all hosts, and the step of a rotation;
//! - [`rotation`]: decides whether the plan may advance, or which host blocks it;
//! - [`agent`]: the next action of a host, in an order that allows stopping at any time;
//! - [`quiet`]: the time since the last cookie of the old key, from a counter;
//! - [`layout`]: the layout of the store, and the conditions for writing;
//! - [`etcd`]: the calls of etcd's JSON gateway.
//!
//! This crate uses no clock, socket or file.
//!
//! **Invariant**, whatever stops: every host accepts the cookies of every other host. All hosts
//! have applied a step before the next one begins. So two hosts are at most one step apart, and
//! neighbouring steps accept each other's cookies:
//!
//! | step | makes | takes |
//! |---|---|---|
//! | settled | A | A |
//! | announced | A | A, B |
//! | switched | B | B, A |
//! | settled | B | B |
//!
//! The last step follows when no host has seen a cookie of A for a time that the operator chooses.
//! A client with an older cookie makes an ordinary handshake, and gets a cookie of B.
//!
//! ```
//! use firstbyte_fleet::{Fleet, Key, KeyRing, Member, Move, Plan, Rotation};
//! use std::time::Duration;
//!
//! let plan = Plan::first(KeyRing::new(Key::from_bytes([1; 16])));
//! let members = [("web1".to_owned(), Member { applied: 1, ..Member::default() })].into();
//! let mut fleet = Fleet { plan, members };
//! let mut rotation = Rotation::new(Duration::from_secs(3600));
//! let Move::Advance(announced) = rotation.next(&fleet, || Key::from_bytes([2; 16])) else { panic!() };
//! // Until web1 has applied it, nothing more happens.
//! fleet.plan = announced;
//! assert!(matches!(rotation.next(&fleet, || unreachable!()), Move::Wait(hosts) if hosts[0].host == "web1"));
//! ```
#![forbid(unsafe_code)]
pub mod agent;
pub mod etcd;
pub mod layout;
pub mod plan;
pub mod quiet;
pub mod rotation;

pub use agent::{Action, Agent};
pub use layout::Layout;
pub use plan::{Plan, Step};
pub use proto::fast_open::{Key, KeyRing};
pub use quiet::Quiet;
pub use rotation::{Fleet, Member, Move, Report, Rotation, Waiting, Why};
