//! What the fuzzers run: a function from bytes to nothing for each target, which panics when something that must hold does not.
//!
//! | target | what the bytes are |
//! |---|---|
//! | [`packets`] | a packet, for every parser of `wire`; what is read is written and read again |
//! | [`hostile`] | choices: two stacks exchange, and what they send arrives changed, repeated, cut, quoted by ICMP, with right checksums |
//! | [`streams`] | choices: applications use their verbs, settings change, connections are saved and restored, over a wire that loses, repeats, reorders and delays; each stream arrives once and whole |
//! | [`frames`] | frames of a TUN interface, each behind its length: the offload header, then the packet, which a listening stack takes |
//! | [`settings`] | a line for each setting: `name value` |
//! | [`routes`] | a route in the words of iproute2 |
//! | [`paths`] | a path file |
//! | [`scripts`] | a packetdrill script |
//! | [`captures`] | a capture file |
//! | [`requests`] | a request of the control socket |
//!
//! libFuzzer's side is `fuzz/` beside the crates: `cargo xtask fuzz`. The tests here do without: they replay `corpus/TARGET` and simple
//! mutations of it.
#![forbid(unsafe_code)]

mod captured;
mod engine;
mod frame;
mod packet;
mod text;

pub use captured::captures;
pub use engine::{hostile, streams};
pub use frame::frames;
pub use packet::packets;
pub use text::{paths, requests, routes, scripts, settings};

/// A target: its name, which is also its folder's in the corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 10] = [
    ("packets", packets),
    ("hostile", hostile),
    ("streams", streams),
    ("settings", settings),
    ("routes", routes),
    ("paths", paths),
    ("scripts", scripts),
    ("requests", requests),
    ("frames", frames),
    ("captures", captures),
];
