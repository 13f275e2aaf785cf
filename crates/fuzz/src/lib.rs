//! Bodies of the fuzz targets: functions that take bytes and panic when an invariant does not hold.
//!
//! | target | meaning of the bytes |
//! |---|---|
//! | [`packets`] | a packet for every parser of `wire`; the result is written and read again |
//! | [`hostile`] | choices: two stacks exchange packets that arrive changed, repeated, cut, quoted by ICMP, with correct checksums |
//! | [`streams`] | choices: applications act, settings change, connections move, the wire loses, repeats, reorders and delays; each stream arrives once and whole |
//! | [`frames`] | frames of a TUN interface for a listening stack, each after its length: offload header, packet |
//! | [`settings`] | a line for each setting: `name value` |
//! | [`routes`] | a route in the words of iproute2 |
//! | [`paths`] | a path file |
//! | [`scripts`] | a packetdrill script |
//! | [`captures`] | a capture file |
//! | [`requests`] | a request of the control socket |
//!
//! The program for libFuzzer is in `fuzz/` beside the crates: `cargo xtask fuzz`. The tests here
//! need no fuzzer: they replay `corpus/TARGET` and simple mutations of it.
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
