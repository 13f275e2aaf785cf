//! Cookie keys that many servers share: one plan in a store, an agent on each host, an operator who moves the plan on.
//!
//! ```text
//!  operator ── Rotation::next ──► plan in the store ──► Agent on each host ──► the kernel's keys, or a stack's
//!      ▲                                                      │
//!      └──────────── what each host has applied, and whether cookies of the former key still come ◄─┘
//! ```
//!
//! - [`plan`]: the keys that every host shall have, and the step of a rotation they belong to;
//! - [`rotation`]: may the plan move on, and if not, which host holds it up;
//! - [`agent`]: what a host does next, and in which order, so that it may stop anywhere;
//! - [`quiet`]: since when no cookie of the former key has come, from a counter;
//! - [`layout`]: what lies in the store, and what is written only if nothing has changed;
//! - [`etcd`]: that as calls of etcd's JSON gateway.
//!
//! Nothing here has a clock, a socket or a file.
//!
//! **What holds at every moment**, whatever stops: a cookie that one host makes is taken by every other. All hosts have applied a step before
//! the next begins, so that two of them are at most one step apart, and neighbouring steps accept each other's cookies:
//!
//! | step | makes | takes |
//! |---|---|---|
//! | settled | A | A |
//! | announced | A | A, B |
//! | switched | B | B, A |
//! | settled | B | B |
//!
//! The last step comes when no cookie of A has come to any host for a time that the operator chooses. Who comes later with one makes an
//! ordinary handshake, and gets a cookie of B.
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
