//! Creates a TUN interface, or attaches to one.
use super::error::{ADDRESS, ATTACH, MTU, OPEN, ROUTE};
use super::ioctl::{self, Flags, NAME_MAX};
use super::virtio::HEADER_LEN;
use super::{Tun, TunError};
use crate::interface;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

/// Options of a TUN interface. Defaults: a name that the kernel chooses (`tun0`, `tun1`, …), the
/// kernel's MTU (1500), no address, offloads on, one queue, not persistent, up.
///
/// An ordinary user can attach to a persistent interface that was created for this user. Properties
/// that already have the requested value (up, the MTU) then need no privileges; addresses and
/// routes need CAP_NET_ADMIN.
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    mtu: Option<usize>,
    addresses: Vec<(IpAddr, u8)>,
    routes: Vec<(IpAddr, u8)>,
    is_up: bool,
    persistent: Option<bool>,
    flags: Flags,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            name: String::new(),
            mtu: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            is_up: true,
            persistent: None,
            flags: Flags::TUN.with(Flags::NO_PI, true).with(Flags::VNET_HDR, true),
        }
    }
}

impl Builder {
    /// Sets the interface's name, 1 to 15 bytes; `%d` becomes the first free number. An existing
    /// TUN interface of that name is attached, otherwise one is created.
    pub fn name(mut self, name: &str) -> Builder {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the MTU in bytes, 68..=65535 (at least 1280 for IPv6).
    pub fn mtu(mut self, mtu: usize) -> Builder {
        self.mtu = Some(mtu);
        self
    }

    /// Adds an address of the kernel's side with its prefix length, IPv4 or IPv6; may be called
    /// several times. The stack behind the interface has another address of that subnet.
    pub fn address(mut self, address: IpAddr, prefix: u8) -> Builder {
        self.addresses.push((address, prefix));
        self
    }

    /// Adds a prefix that the kernel should reach through the interface, besides the subnets of its
    /// addresses; may be called several times.
    pub fn route(mut self, destination: IpAddr, prefix: u8) -> Builder {
        self.routes.push((destination, prefix));
        self
    }

    /// Enables or disables the virtio header with GSO, GRO and checksum offload. Enabled by
    /// default.
    pub fn offload(mut self, on: bool) -> Builder {
        self.flags = self.flags.with(Flags::VNET_HDR, on);
        self
    }

    /// Opens an interface of several queues: see [`Tun::queue`]. An existing interface must have
    /// been created in the same way.
    pub fn multi_queue(mut self, on: bool) -> Builder {
        self.flags = self.flags.with(Flags::MULTI_QUEUE, on);
        self
    }

    /// Sets whether the interface stays when it is closed. By default this is not changed; a new
    /// interface does not stay.
    pub fn persistent(mut self, on: bool) -> Builder {
        self.persistent = Some(on);
        self
    }

    /// Sets whether the interface is set up (default: true). An interface that is up is never set
    /// down.
    pub fn up(mut self, on: bool) -> Builder {
        self.is_up = on;
        self
    }

    /// Creates or attaches the interface in the network namespace of this thread, and sets it up.
    ///
    /// # Errors
    /// An [`io::Error`] of the system's kind whose source is a [`TunError`], which names the failed
    /// step and says what to do.
    pub fn open(&self) -> io::Result<Tun> {
        let (fd, name) = attach(&self.name, self.flags)?;
        let found = interface::find(&name).map_err(|error| TunError::from_io("find", &name, error))?;
        let mtu = self.mtu.unwrap_or(found.mtu);
        if mtu != found.mtu {
            interface::set_mtu(found.index, mtu).map_err(|error| TunError::from_io(MTU, &name, error))?;
        }
        for (address, prefix) in &self.addresses {
            interface::add_address(found.index, *address, *prefix)
                .map_err(|error| TunError::from_io(ADDRESS, &name, error))?;
        }
        if self.is_up && !found.is_up {
            interface::set_up(found.index).map_err(|error| TunError::from_io("set up", &name, error))?;
        }
        if self.is_up || found.is_up {
            for (address, _) in &self.addresses {
                interface::wait_for_address(*address)
                    .map_err(|error| TunError::from_io("use the address of", &name, error))?;
            }
        }
        for (destination, prefix) in &self.routes {
            interface::add_route(found.index, *destination, *prefix)
                .map_err(|error| TunError::from_io(ROUTE, &name, error))?;
        }
        // The last step: an interface that cannot be set up does not stay.
        if let Some(on) = self.persistent {
            ioctl::set_persistent(fd.as_fd(), on)
                .map_err(|error| TunError::from_io("make persistent", &name, error))?;
        }
        Ok(Tun::from_parts(fd, name, found.index, self.flags, mtu))
    }
}

/// Opens a queue of the interface, which is created if it does not exist. Returns its name.
pub(super) fn attach(name: &str, flags: Flags) -> io::Result<(OwnedFd, String)> {
    if name.len() > NAME_MAX || name.contains('\0') {
        return Err(TunError::new(ATTACH, name, Errno::INVAL).into());
    }
    let fd =
        rustix::fs::open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| TunError::new(OPEN, name, errno))?;
    let name = ioctl::set_interface(fd.as_fd(), name, flags)
        .map_err(|error| TunError::from_io(ATTACH, name, error))?;
    let has_header = flags.contains(Flags::VNET_HDR);
    if has_header {
        ioctl::set_header_len(fd.as_fd(), HEADER_LEN)
            .map_err(|error| TunError::from_io("set the virtio header of", &name, error))?;
    }
    let offload = if has_header { ioctl::OFFLOAD_CSUM_TSO } else { 0 };
    ioctl::set_offload(fd.as_fd(), offload)
        .map_err(|error| TunError::from_io("set the offloads of", &name, error))?;
    Ok((fd, name))
}
