//! Network namespaces: each test makes its own, and they vanish with it.
//!
//! A `Host` is one namespace with one TUN device whose other side the test holds. Everything that
//! must happen inside (sockets, commands, files under /proc/sys/net) goes through `Host::run`,
//! which does it on a thread that entered the namespace. It is not a container: files, users and
//! processes are shared with the test.
use device::tun::Tun;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Output};
use std::thread;
use testnet::Counters;

/// The name of the TUN device in every namespace.
pub const DEVICE: &str = "tun0";

/// Addresses of a host on the path's /24 and /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The IPv4 address, in 10.77.0.0/24.
    pub v4: Ipv4Addr,
    /// The IPv6 address, in fd77::/64.
    pub v6: Ipv6Addr,
}

impl Addresses {
    /// The `n`-th host: 10.77.0.n and fd77::n.
    pub const fn nth(n: u8) -> Addresses {
        Addresses { v4: Ipv4Addr::new(10, 77, 0, n), v6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n as u16) }
    }

    /// The address of one IP version.
    pub fn of(self, version: IpVersion) -> IpAddr {
        match version {
            IpVersion::V4 => self.v4.into(),
            IpVersion::V6 => self.v6.into(),
        }
    }
}

/// Which Internet Protocol a case runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// One namespace with its kernel TCP.
#[derive(Debug)]
pub struct Host {
    namespace: OwnedFd,
    /// Its addresses.
    pub addresses: Addresses,
}

impl Host {
    /// A namespace with a TUN device of these addresses, MTU 1500. The second value is the device's
    /// other side: plain IP packets, whole and with their checksums.
    ///
    /// # Panics
    /// Where namespaces cannot be made; see [`testnet::can`].
    pub fn new(addresses: Addresses) -> (Host, OwnedFd) {
        let (host, tun) = Host::with_tun(addresses, false);
        let end =
            device::Device::as_fd(&tun).expect("a TUN has one").try_clone_to_owned().expect("a descriptor");
        (host, end)
    }

    /// A host, and its TUN device as our stack opens it; `offload` as in
    /// [`device::tun::Builder::offload`].
    pub fn with_tun(addresses: Addresses, offload: bool) -> (Host, Tun) {
        let host = Host::bare(addresses);
        let tun = host.run(|| tun_builder(addresses).offload(offload).open().expect("a TUN device"));
        (host, tun)
    }

    /// A host with a persistent TUN device, to which another program can attach.
    pub fn with_free_tun(addresses: Addresses) -> Host {
        let host = Host::bare(addresses);
        host.run(|| drop(tun_builder(addresses).persistent(true).open().expect("a TUN device")));
        host
    }

    /// A namespace without any device but `lo`; `addresses` are those its TUN device will have.
    pub fn bare(addresses: Addresses) -> Host {
        let namespace = testnet::in_namespace(|| {
            // A fresh interface would ask for routers (packets nobody expects).
            testnet::sysctl("net.ipv6.conf.default.router_solicitations", "0");
            testnet::sysctl("net.ipv6.conf.default.accept_ra", "0");
            OwnedFd::from(File::open("/proc/thread-self/ns/net").expect("own namespace"))
        });
        Host { namespace: namespace.expect("namespaces, which the test asked for before"), addresses }
    }

    /// Another handle of this host's namespace.
    pub fn share(&self) -> Host {
        let namespace = self.namespace.try_clone().expect("a descriptor");
        Host { namespace, addresses: self.addresses }
    }

    /// Runs `f` on a thread inside the namespace.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("setns");
                f()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a command inside.
    pub fn spawn(&self, command: &mut Command) -> Child {
        self.run(|| command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Runs a command inside to its end.
    pub fn output(&self, command: &mut Command) -> Output {
        self.run(|| command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Writes a setting, e.g. `net.ipv4.tcp_fastopen`.
    pub fn sysctl(&self, name: &str, value: &str) {
        self.run(|| testnet::sysctl(name, value));
    }

    /// The kernel's counters now.
    pub fn counters(&self) -> Counters {
        self.run(testnet::counters)
    }
}

fn tun_builder(addresses: Addresses) -> device::tun::Builder {
    let Addresses { v4, v6 } = addresses;
    Tun::builder().name(DEVICE).mtu(1500).address(v4.into(), 24).address(v6.into(), 64)
}

/// The Fast Open counters that grew, without the common beginning of their names: `Active`,
/// `PassiveFail`, …
pub fn fast_open_since(now: &Counters, before: &Counters) -> BTreeMap<String, i64> {
    let grown = now.since(before).into_iter();
    grown
        .filter_map(|(name, added)| Some((name.strip_prefix("TcpExtTCPFastOpen")?.to_owned(), added)))
        .collect()
}
