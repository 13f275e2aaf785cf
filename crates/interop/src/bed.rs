//! A test bed: a client, a server, and the path between them.
use crate::ends::{ClientEnd, ServerEnd};
use crate::kernel_end::KernelEnd;
use crate::netns::{Addresses, Host};
use crate::our_end::OurEnd;
use crate::path::Wire;
use crate::record::{Conversation, Record};
use crate::socket_device::SocketDevice;
use proto::Config;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The implementation at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The kernel, in a namespace of its own.
    Kernel,
    /// Our stack with Linux's habits.
    OursAsLinux,
    /// Our stack as it comes, client and server side of Fast Open on.
    Ours,
}

impl Maker {
    /// The settings of a stack of ours; `None` for the kernel.
    fn config(self) -> Option<Config> {
        match self {
            Maker::Kernel => None,
            Maker::OursAsLinux => Some(Config::linux().tcp_fastopen(0x3)),
            Maker::Ours => Some(Config::default()),
        }
    }

    fn ours(self, device: SocketDevice, config: Config, here: Addresses, partner: Addresses) -> OurEnd {
        let mut end = OurEnd::new(device, config, here, partner);
        end.writes_leave_at_once = self == Maker::OursAsLinux;
        end
    }

    fn client(self, here: Addresses, partner: Addresses) -> (Box<dyn ClientEnd>, OwnedFd) {
        match self.config() {
            None => {
                let (host, tun) = Host::new(here);
                (Box::new(KernelEnd::new(host, partner)), tun)
            }
            Some(config) => {
                let (device, other) = SocketDevice::new(1500);
                (Box::new(self.ours(device, config, here, partner)), other)
            }
        }
    }

    fn server(self, here: Addresses, partner: Addresses) -> (Box<dyn ServerEnd>, OwnedFd) {
        match self.config() {
            None => {
                let (host, tun) = Host::new(here);
                (Box::new(KernelEnd::new(host, partner)), tun)
            }
            Some(config) => {
                let (device, other) = SocketDevice::new(1500);
                (Box::new(self.ours(device, config, here, partner)), other)
            }
        }
    }
}

/// A client and a server with a path between them.
pub struct Bed {
    /// The client, 10.77.0.1 and fd77::1.
    pub client: Box<dyn ClientEnd>,
    /// The server, 10.77.0.2 and fd77::2.
    pub server: Box<dyn ServerEnd>,
    /// The path.
    pub wire: Wire,
}

impl Bed {
    /// Longest silence between two packets of one exchange: a delayed ACK (40 ms) and the way of a
    /// packet, doubled.
    const QUIET: Duration = Duration::from_millis(100);

    /// Builds both ends and joins them.
    pub fn new(client: Maker, server: Maker, one_way: Duration) -> Bed {
        let (here, there) = (Addresses::nth(1), Addresses::nth(2));
        let (client, client_side) = client.client(here, there);
        let (server, server_side) = server.server(there, here);
        Bed { client, server, wire: Wire::new(client_side, server_side, one_way) }
    }

    /// Packets that crossed since the last call, once the path has been idle.
    pub fn record(&self) -> Record {
        self.wire.settle(Bed::QUIET)
    }

    /// The one conversation since the last call.
    pub fn conversation(&self) -> Conversation {
        self.record().only()
    }
}
