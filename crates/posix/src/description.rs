//! The description of a stack: a text in which each line (or part between semicolons) sets one
//! thing.
//!
//! ```text
//! device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24; profile linux; set net.ipv4.tcp_fastopen 3
//! ```

use crate::errno::Errno;
use crate::real_time::Running;
use crate::sockets::Sockets;
use crate::sysctl::{COOKIE_KEY, SysctlTree};
use device::memory;
use device::tun::{Tun, TunError};
use host::paths::{self, LoadError};
use proto::fast_open::Network;
use proto::{Capabilities, Config, Paths, RouteMetrics, SettingError, Stack};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The description of a stack. `firstbyte.h` documents its syntax at `fb_start`.
#[derive(Debug)]
pub struct Description {
    device: DeviceName,
    device_addresses: Vec<(IpAddr, u8)>,
    addresses: Vec<(IpAddr, u8)>,
    mtu: Option<usize>,
    offload: bool,
    config: Config,
    /// What was said of settings that were taken only in part, or without effect.
    warnings: Vec<String>,
    /// Settings that only a stack has.
    keys: Option<String>,
    /// The device's own, which has its name when the stack starts.
    of_device: Vec<(String, String)>,
    routes: Vec<(Network, RouteMetrics)>,
    sysctl: Option<PathBuf>,
    /// File for remembered paths.
    pub cache: Option<PathBuf>,
    first_descriptor: i32,
    /// Time that the end of the process may wait for peers.
    pub linger: Duration,
}

#[derive(Debug)]
enum DeviceName {
    Tun(String),
    /// A loopback: the stack receives its own packets. Needs no rights and has no peers.
    Loopback,
}

/// Why there is no stack: an errno and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The error for C.
    pub errno: Errno,
    /// The message for a person.
    pub why: String,
}

impl Refused {
    /// Converts the error of a setting, with the errno of `sysctl`.
    pub fn setting(name: &str, error: SettingError) -> Refused {
        match error {
            SettingError::Unknown => {
                Refused { errno: Errno::ENOENT, why: format!("there is no setting called {name}") }
            }
            why => Refused::invalid(format!("{name}: {why}")),
        }
    }

    fn invalid(why: impl Display) -> Refused {
        Refused { errno: Errno::EINVAL, why: why.to_string() }
    }

    pub(crate) fn of(what: &str, error: &io::Error) -> Refused {
        let source = error.get_ref().and_then(|inner| inner.downcast_ref::<TunError>());
        let errno = source.map(TunError::raw_os_error).or(error.raw_os_error());
        Refused { errno: errno.map_or(Errno::EIO, Errno), why: format!("{what}{error}") }
    }

    pub(crate) fn of_cache(file: &Path, error: &io::Error) -> Refused {
        Refused::of(&format!("cache: {}: ", file.display()), error)
    }
}

/// The first descriptor if nobody says otherwise: under `FD_SETSIZE`, so that `fb_select` has room for 512 of them.
const FIRST_DESCRIPTOR: i32 = 512;
/// How long the end of the process waits for peers if nobody says otherwise.
const LINGER: Duration = Duration::from_secs(5);
/// MTU of the loopback device if nobody says otherwise: that of Linux's `lo` does not fit into an IP packet.
const LOOPBACK_MTU: usize = 65_535;

impl FromStr for Description {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Description, Refused> {
        let statements: Vec<(&str, &str)> = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(|line| line.split(';'))
            .map(str::trim)
            .filter(|statement| !statement.is_empty())
            .map(|statement| {
                let (word, rest) = statement.split_once(char::is_whitespace).unwrap_or((statement, ""));
                (word, rest.trim())
            })
            .collect();
        let mut description = Description::new();
        // The profile is where settings start from, wherever it stands.
        for (_, value) in statements.iter().filter(|(word, _)| *word == "profile") {
            description.config = match *value {
                "default" => Config::default(),
                "linux" => Config::linux(),
                _ => {
                    return Err(Refused::invalid(format!("profile: `{value}` is neither default nor linux")));
                }
            };
        }
        for (word, value) in statements {
            description
                .take(word, value)
                .map_err(|error| Refused { why: format!("{word}: {}", error.why), ..error })?;
        }
        if description.addresses.is_empty() {
            return Err(Refused::invalid("a stack needs an address of its own, as in `address 10.0.0.2/24`"));
        }
        Ok(description)
    }
}

impl Description {
    fn new() -> Description {
        Description {
            device: DeviceName::Tun("firstbyte0".to_owned()),
            device_addresses: Vec::new(),
            addresses: Vec::new(),
            mtu: None,
            offload: true,
            config: Config::default(),
            warnings: Vec::new(),
            keys: None,
            of_device: Vec::new(),
            routes: Vec::new(),
            sysctl: None,
            cache: None,
            first_descriptor: FIRST_DESCRIPTOR,
            linger: LINGER,
        }
    }

    fn take(&mut self, word: &str, value: &str) -> Result<(), Refused> {
        if value.is_empty() {
            return Err(Refused::invalid("it wants a value"));
        }
        match word {
            "device" if value == "loopback" => self.device = DeviceName::Loopback,
            "device" => self.device = DeviceName::Tun(value.to_owned()),
            "device-address" => self.device_addresses.push(prefix(value)?),
            "address" => self.addresses.push(prefix(value)?),
            "mtu" => self.mtu = Some(number(value, 68..=65_535)? as usize),
            "offload" => self.offload = switch(value)?,
            "profile" => {}
            "set" => self.set(value)?,
            "route" => {
                self.routes.push(proto::parse_route(value).map_err(Refused::invalid)?);
            }
            "sysctl" => self.sysctl = Some(PathBuf::from(value)),
            "cache" => self.cache = Some(PathBuf::from(value)),
            "first-descriptor" => self.first_descriptor = number(value, 0..=1 << 30)? as i32,
            "linger" => self.linger = Duration::from_secs(number(value, 0..=3600)?),
            _ => {
                return Err(Refused::invalid(
                    "no such word; there are device, device-address, address, mtu, offload, profile, set, route, sysctl, cache, \
                     first-descriptor, linger",
                ));
            }
        }
        Ok(())
    }

    fn set(&mut self, value: &str) -> Result<(), Refused> {
        let (name, value) = value
            .split_once(|c: char| c == '=' || c.is_whitespace())
            .map(|(name, value)| (name, value.trim()))
            .ok_or(Refused::invalid("it wants a name and a value, as in `set net.ipv4.tcp_fastopen 3`"))?;
        if name == COOKIE_KEY {
            self.keys = Some(value.to_owned());
            return Ok(());
        }
        if name.starts_with("net.ipv4.conf.") && !name.starts_with("net.ipv4.conf.all.") {
            self.of_device.push((name.to_owned(), value.to_owned()));
            return Ok(());
        }
        let warning = self.config.set(name, value).map_err(|error| Refused::setting(name, error))?;
        self.warnings.extend(warning);
        Ok(())
    }

    /// Returns warnings: settings that were applied only in part, or without effect.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Opens the device and starts the stack.
    ///
    /// # Errors
    /// What the device, the files or the system do not allow.
    pub fn start(&self) -> Result<Running, Refused> {
        // Before anything is touched: a bad file ends it here.
        let known = self.known_paths()?;
        match &self.device {
            DeviceName::Loopback => {
                let mtu = self.mtu.unwrap_or(LOOPBACK_MTU);
                let capabilities = Capabilities { mtu, gso_max_size: 0, tx_checksum: true };
                let device = memory::loopback(capabilities).with_backlog(self.config.netdev_max_backlog);
                self.start_on(device, "lo", known)
            }
            DeviceName::Tun(name) => {
                let mut builder = Tun::builder().name(name).offload(self.offload);
                if let Some(mtu) = self.mtu {
                    builder = builder.mtu(mtu);
                }
                for (address, len) in &self.device_addresses {
                    builder = builder.address(*address, *len);
                }
                let device = builder.open().map_err(|error| Refused::of("", &error))?;
                // What was asked for may be a pattern (`tun%d`).
                let name = device.name().to_owned();
                self.start_on(device, &name, known)
            }
        }
    }

    fn start_on<D: device::Device + Send + 'static>(
        &self,
        device: D,
        name: &str,
        known: Option<(Paths, Duration)>,
    ) -> Result<Running, Refused> {
        let seed = random_seed().map_err(|error| Refused::of("random numbers: ", &error))?;
        let mut stack =
            Stack::try_new(self.config.clone(), device.capabilities(), seed).map_err(Refused::invalid)?;
        let now = proto::Instant::ZERO;
        stack.set_device_name(name);
        for (name, value) in &self.of_device {
            stack.set(now, name, value).map_err(|error| Refused::setting(name, error))?;
        }
        for (address, len) in &self.addresses {
            stack.add_address(*address, *len);
        }
        for (network, metrics) in &self.routes {
            stack.set_route(now, *network, *metrics);
        }
        if let Some(keys) = &self.keys {
            stack.set(now, COOKIE_KEY, keys).map_err(|error| Refused::setting(COOKIE_KEY, error))?;
        }
        let tree = self.sysctl.as_ref().map(|root| SysctlTree::new(root, &stack));
        let running = Running::start(Sockets::new(stack, self.first_descriptor), device, tree)
            .map_err(|error| Refused::of("a thread for the stack: ", &error))?;
        if let Some((paths, elapsed)) = known {
            running.process().call(|sockets, now| sockets.stack_mut().import_paths(now, &paths, elapsed));
        }
        Ok(running)
    }

    /// What the cache file remembers; nothing on the first run. It must be possible to replace it at the end.
    fn known_paths(&self) -> Result<Option<(Paths, Duration)>, Refused> {
        let Some(file) = &self.cache else { return Ok(None) };
        let known = match paths::load(file) {
            Ok(known) => Some(known),
            Err(LoadError::Io(error)) if error.kind() == ErrorKind::NotFound => None,
            Err(LoadError::Io(error)) => return Err(Refused::of_cache(file, &error)),
            Err(LoadError::Content(error)) => {
                return Err(Refused::invalid(format!("cache: {}: {error}", file.display())));
            }
        };
        paths::check_writable(file).map_err(|error| Refused::of_cache(file, &error))?;
        Ok(known)
    }
}

fn prefix(text: &str) -> Result<(IpAddr, u8), Refused> {
    let wrong =
        || Refused::invalid(format!("`{text}` is not an address and prefix length such as 10.0.0.2/24"));
    let (address, len) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let len = len.parse().ok().filter(|len| *len <= longest).ok_or_else(wrong)?;
    Ok((address, len))
}

fn number(text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, Refused> {
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| {
        Refused::invalid(format!("`{text}` is not a number from {} to {}", range.start(), range.end()))
    })
}

fn switch(text: &str) -> Result<bool, Refused> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Refused::invalid(format!("`{text}` is neither on nor off"))),
    }
}

fn random_seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_description() {
        let text = "device tun7  # a comment; with a semicolon\n\
                    device-address 10.0.0.1/24; address 10.0.0.2/24; address fd00::2/64\n\
                    set net.ipv4.tcp_fastopen 0x403; profile linux; set net.ipv4.tcp_syncookies=2\n\
                    route default initcwnd 20; mtu 1400; offload off; linger 0; first-descriptor 3";
        let description: Description = text.parse().unwrap();
        assert!(matches!(&description.device, DeviceName::Tun(name) if name == "tun7"));
        assert_eq!(description.addresses.len(), 2);
        assert_eq!((description.config.tcp_fastopen, description.mtu), (0x403, Some(1400)));
        assert_eq!(Config::linux().tcp_fastopen(0x403).tcp_syncookies(2), description.config);
        assert_eq!((description.first_descriptor, description.linger), (3, Duration::ZERO));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("", Errno::EINVAL, "a stack needs an address of its own"),
            ("address 10.0.0.2", Errno::EINVAL, "address: `10.0.0.2` is not an address and prefix length"),
            ("address 10.0.0.2/33", Errno::EINVAL, "address: `10.0.0.2/33`"),
            ("mtu 20", Errno::EINVAL, "mtu: `20` is not a number from 68 to 65535"),
            ("mtu", Errno::EINVAL, "mtu: it wants a value"),
            ("colour blue", Errno::EINVAL, "colour: no such word"),
            ("profile windows", Errno::EINVAL, "profile: `windows` is neither default nor linux"),
            ("offload maybe", Errno::EINVAL, "offload: `maybe` is neither on nor off"),
            ("set net.ipv4.no_such 1", Errno::ENOENT, "set: there is no setting called net.ipv4.no_such"),
            ("set net.ipv4.tcp_syncookies lots", Errno::EINVAL, "set: net.ipv4.tcp_syncookies: "),
            ("set alone", Errno::EINVAL, "set: it wants a name and a value"),
            ("route 10.0.0.0/40 initcwnd 2", Errno::EINVAL, "route: `10.0.0.0/40` is not a prefix"),
        ];
        for (text, errno, part) in cases {
            let refused = text.parse::<Description>().unwrap_err();
            assert_eq!(refused.errno, errno, "{text}");
            assert!(refused.why.starts_with(part), "{text}: {}", refused.why);
        }
    }
}
