//! The builder of a stack.
use super::{Net, StackHandle};
use crate::driver::{Control, Driver};

use device::Device;
use host::{Host, RealClock, Signal};
use proto::{Config, RxPacket, Stack, fast_open};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// Options of a stack. Created by [`Net::builder`].
pub struct NetBuilder<D> {
    device: D,
    config: Config,
    addresses: Vec<String>,
    seed: Option<[u8; 32]>,
    key: Option<fast_open::KeyRing>,
    device_name: String,
    unclaimed: Option<Box<dyn FnMut(RxPacket) + Send>>,
}

impl NetBuilder<()> {
    pub(super) fn new() -> NetBuilder<()> {
        NetBuilder {
            device: (),
            config: Config::default(),
            addresses: Vec::new(),
            seed: None,
            key: None,
            device_name: String::new(),
            unclaimed: None,
        }
    }
}

impl<D> NetBuilder<D> {
    /// Sets the device for packets.
    #[must_use]
    pub fn device<E: Device + Send + 'static>(self, device: E) -> NetBuilder<E> {
        let NetBuilder { device: _, config, addresses, seed, key, device_name, unclaimed } = self;
        NetBuilder { device, config, addresses, seed, key, device_name, unclaimed }
    }

    /// Adds an address with the prefix length of its network, such as `10.0.0.2/24` or
    /// `fd00::2/64`. Without a length, the network is only the address.
    #[must_use]
    pub fn address(mut self, address: impl ToString) -> Self {
        self.addresses.push(address.to_string());
        self
    }

    /// Sets the settings (default: [`Config::default`]).
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the seed of all random numbers (initial sequence numbers, ports, hash keys, cookie
    /// key); by default the operating system provides it. A fixed seed makes them predictable: only
    /// for tests.
    #[must_use]
    pub fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the cookie keys of listeners without their own (default: random).
    #[must_use]
    pub fn fast_open_key(mut self, ring: fast_open::KeyRing) -> Self {
        self.key = Some(ring);
        self
    }

    /// Sets the device's name, for settings of the device (`net.ipv4.conf.NAME.rp_filter`)
    /// (default: none).
    #[must_use]
    pub fn device_name(mut self, name: impl Into<String>) -> Self {
        self.device_name = name.into();
        self
    }

    /// Passes packets that are not TCP or ICMP for this stack to `take`, in the driver's task,
    /// instead of dropping them. It must not block.
    #[must_use]
    pub fn on_unclaimed(mut self, take: impl FnMut(RxPacket) + Send + 'static) -> Self {
        self.unclaimed = Some(Box::new(take));
        self
    }
}

impl<D: Device + Send + 'static> NetBuilder<D> {
    /// Starts the stack as a task of the current runtime.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if an address is missing or invalid, or if TCP
    /// cannot work with the settings; an error of the operating system if there are no descriptors
    /// left.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, or in one without I/O enabled.
    pub fn start(self) -> io::Result<Net> {
        let addresses =
            self.addresses.iter().map(|text| parse_address(text)).collect::<io::Result<Vec<_>>>()?;
        if addresses.is_empty() {
            return Err(invalid("a stack needs an address: call address(\"10.0.0.2/24\")".to_owned()));
        }
        let seed = match self.seed {
            Some(seed) => seed,
            None => random_seed()?,
        };
        let capabilities = self.device.capabilities();
        let mut stack = Stack::try_new(self.config, capabilities, seed)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        stack.set_device_name(&self.device_name);
        for (addr, prefix_len) in addresses {
            stack.add_address(addr, prefix_len);
        }
        if let Some(ring) = self.key {
            stack.set_fast_open_key(ring);
        }
        let signal = Arc::new(Signal::default());
        let verb = signal.clone();
        let host = Arc::new(Host::new(stack, RealClock::new(), move || verb.set()));
        let control = Arc::new(Control::new());
        let mut driver = Driver::new(host.clone(), self.device, signal, control.clone())?;
        if let Some(take) = self.unclaimed {
            driver.pump_mut().on_unclaimed(take);
        }
        tokio::spawn(driver.run());
        Ok(Net::of_stack(StackHandle::new(host, control, capabilities.mtu)))
    }
}

fn random_seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    Ok(seed)
}

fn parse_address(text: &str) -> io::Result<(IpAddr, u8)> {
    let (addr, prefix_len) = match text.split_once('/') {
        Some((addr, prefix_len)) => (addr, Some(prefix_len)),
        None => (text, None),
    };
    let refuse = || invalid(format!("`{text}` is not an address with a prefix length, as in 10.0.0.2/24"));
    let addr: IpAddr = addr.parse().map_err(|_| refuse())?;
    let longest = if addr.is_ipv4() { 32 } else { 128 };
    let prefix_len = match prefix_len {
        Some(digits) => digits.parse().ok().filter(|&len| len <= longest).ok_or_else(refuse)?,
        None => longest,
    };
    Ok((addr, prefix_len))
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

impl<D> std::fmt::Debug for NetBuilder<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetBuilder").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_or_refused() {
        assert_eq!(parse_address("10.0.0.2/24").unwrap(), ([10, 0, 0, 2].into(), 24));
        assert_eq!(parse_address("10.0.0.2").unwrap().1, 32);
        assert_eq!(parse_address("fd00::2/64").unwrap().1, 64);
        assert_eq!(parse_address("fd00::2").unwrap().1, 128);
        for wrong in ["", "10.0.0.2/33", "10.0.0/24", "fd00::/129", "10.0.0.2/", "10.0.0.2/-1", "host/24"] {
            assert_eq!(parse_address(wrong).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
    }

    /// The error names the settings, and nothing panics.
    #[test]
    fn settings_with_which_tcp_cannot_work_are_an_error() {
        let config = Config::default().vegas_alpha(4).vegas_beta(3);
        let (device, _other) = device::memory::pair(ETHERNET);
        let error = Net::builder().device(device).address("10.0.0.1/24").config(config).start().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let said = error.to_string();
        assert!(said.contains("firstbyte.vegas_alpha (4) is more than firstbyte.vegas_beta (3)"), "{said}");
    }

    const ETHERNET: wire::Capabilities =
        wire::Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };

    #[test]
    fn two_seeds_differ() {
        assert_ne!(random_seed().unwrap(), random_seed().unwrap());
    }
}
