//! The host for packetdrill scripts: Linux's profile behind `tun0`, with a start time at which all
//! other events are long ago, and descriptors that do not belong to a script.

use core::net::IpAddr;
use core::time::Duration;
use proto::{Capabilities, Config, Instant, Stack};

/// Descriptors begin where neither scripts nor packetdrill itself reach.
pub const FD_BASE: i32 = 1 << 16;
/// Time at which a script starts, since the stack's epoch: far enough from zero for events "long
/// ago".
pub const START: Duration = Duration::from_secs(1_000_000);
/// The largest burst Linux hands to a device: 64 KiB without room for headers.
const GSO_MAX_SIZE: usize = 65_215;

/// It has one address, with packetdrill's prefix, and random numbers by their seed.
pub fn stack(local: IpAddr, mtu: usize, seed: u64) -> Stack {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let capabilities = Capabilities { mtu, gso_max_size: GSO_MAX_SIZE, tx_checksum: true };
    let mut stack = Stack::new(Config::linux(), capabilities, bytes);
    stack.set_device_name("tun0");
    stack.add_address(local, if local.is_ipv4() { 16 } else { 64 });
    stack
}

/// [`START`] as the stack's time.
pub fn start() -> Instant {
    Instant::ZERO + START
}
