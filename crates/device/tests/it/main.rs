//! Devices through their public interface: in memory, TUN interfaces of the real kernel, captures
//! read by other programs.
#![expect(clippy::unwrap_used, reason = "a test may panic, helpers included")]
extern crate firstbyte_device as device;

mod memory;
mod packets;
mod pcapng;
mod tun;
