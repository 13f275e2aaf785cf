//! The ioctls of `/dev/net/tun` (Linux `include/uapi/linux/if_tun.h`), each behind a safe function.
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};
use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;

const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETPERSIST: Opcode = opcode::write::<c_int>(b'T', 203);
const TUNSETOFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);
const TUNSETVNETHDRSZ: Opcode = opcode::write::<c_int>(b'T', 216);

/// Longest interface name, bytes (IFNAMSIZ − 1).
pub(super) const NAME_MAX: usize = 15;

/// `ifr_flags` of TUNSETIFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u16);

impl Flags {
    /// An IP interface.
    pub(super) const TUN: Flags = Flags(0x0001);
    /// Several queues, one per descriptor.
    pub(super) const MULTI_QUEUE: Flags = Flags(0x0100);
    /// No packet information in front of a frame.
    pub(super) const NO_PI: Flags = Flags(0x1000);
    /// A virtio network header in front of each frame.
    pub(super) const VNET_HDR: Flags = Flags(0x4000);

    pub(super) const fn with(self, other: Flags, on: bool) -> Flags {
        Flags(if on { self.0 | other.0 } else { self.0 & !other.0 })
    }

    pub(super) const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Offload flags: TUN_F_CSUM (the process accepts partial checksums), TSO4, TSO6 and TSO_ECN (and
/// merged segments).
pub(super) const OFFLOAD_CSUM_TSO: u32 = 0x01 | 0x02 | 0x04 | 0x08;

/// `struct ifreq` of TUNSETIFF: name, then a union of 24 bytes that begins with the flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

/// Creates the interface, or attaches to an existing one. Returns its name, with `%d` replaced by a
/// number.
///
/// `name` is not longer than [`NAME_MAX`]; an empty one is `tun%d`.
pub(super) fn set_interface(tun: BorrowedFd<'_>, name: &str, flags: Flags) -> io::Result<String> {
    let mut request = InterfaceRequest { name: [0; 16], flags: flags.0, rest: [0; 22] };
    let bytes = name.as_bytes().get(..NAME_MAX.min(name.len())).unwrap_or_default();
    request.name[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: TUNSETIFF takes a pointer to a `struct ifreq` of 40 bytes, reads it and writes the
    // name back. The request has that layout, is borrowed mutably for the call, and every bit
    // pattern of it is valid.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request))? };
    let len = request.name.iter().position(|byte| *byte == 0).unwrap_or(request.name.len());
    Ok(String::from_utf8_lossy(&request.name[..len]).into_owned())
}

/// Sets the offloads that the process accepts ([`OFFLOAD_CSUM_TSO`], or 0).
pub(super) fn set_offload(tun: BorrowedFd<'_>, offload: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value and touches no memory of the process.
    unsafe { ioctl(tun, IntegerSetter::<TUNSETOFFLOAD>::new_usize(offload as usize))? };
    Ok(())
}

/// Sets the length of the virtio header, bytes.
pub(super) fn set_header_len(tun: BorrowedFd<'_>, len: usize) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ takes a pointer to an int, which `Setter` passes, and only reads it.
    unsafe { ioctl(tun, Setter::<TUNSETVNETHDRSZ, c_int>::new(len as c_int))? };
    Ok(())
}

/// Sets whether the interface outlives its last descriptor.
pub(super) fn set_persistent(tun: BorrowedFd<'_>, is_persistent: bool) -> io::Result<()> {
    // SAFETY: TUNSETPERSIST takes its argument by value and touches no memory of the process.
    unsafe { ioctl(tun, IntegerSetter::<TUNSETPERSIST>::new_usize(usize::from(is_persistent)))? };
    Ok(())
}
