//! Proof with the real kernel: what the tests of this crate stand on.
//!
//! ```text
//!   Host (namespace, kernel TCP) ── TUN ── Wire ── TUN ── Host               kernel ↔ kernel, the control
//!   Host (namespace, kernel TCP) ── TUN ── Wire ── socket pair ── our stack
//! ```
//!
//! - [`bed`]: a client, a server and the path between them. Tests call [`ends`]; [`kernel_end`] is
//!   the kernel behind it, [`our_end`] our stack, on a TUN or a [`socket_device`].
//! - [`netns`]: namespaces with a TUN device each; [`peer`]: a program on their kernel's sockets;
//!   [`programs`]: curl, nginx, tcpdump and tshark in them; [`command`]: the `firstbyte` command.
//! - [`path`]: the path between two ends: delay, middleboxes ([`hook`]), a [`record`] of packets.
//! - [`attempts`]: tests that a busy machine disturbs are tried again.
//! - [`responder`]: the smallest HTTP server on our library.
//! - [`segment`]: how a packet is read here; [`craft`]: packets made from recorded ones.
//!
//! It ships nothing and is not a network simulator: time is real, the peers are real, and figures
//! vary accordingly.
pub mod attempts;
pub mod bed;
pub mod command;
pub mod craft;
pub mod direction;
pub mod ends;
pub mod goodput;
pub mod hook;
pub mod kernel_end;
pub mod netns;
pub mod our_end;
pub mod path;
pub mod peer;
pub mod programs;
pub mod record;
pub mod responder;
pub mod segment;
pub mod socket_device;

pub use attempts::undisturbed;
pub use bed::{Bed, Maker};
pub use direction::Direction;
pub use ends::{Ask, ClientEnd, Closes, End, Exchange, Serve, ServerEnd, Way, counters};
pub use hook::{Hook, Verdict};
pub use netns::{Addresses, Host, IpVersion};
pub use our_end::OurEnd;
pub use path::Wire;
pub use peer::KernelPeer;
pub use record::{Conversation, Record};
pub use segment::Segment;
pub use socket_device::SocketDevice;
