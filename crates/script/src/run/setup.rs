//! Where a script runs: addresses, ports, numbers, tolerance. A script's own options come before what the caller says.

use crate::ast::{Script, ScriptOption};
use crate::run::failure::Failure;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU16;
use core::ops::RangeInclusive;
use core::str::FromStr;
use std::path::PathBuf;

/// Where a script runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The stack's address.
    pub local: IpAddr,
    /// The other end's.
    pub remote: IpAddr,
    /// True if calls use mapped IPv4 addresses (RFC 4291 §2.5.5.2): sockets are IPv6, packets are
    /// IPv4.
    pub mapped: bool,
    /// Port that `bind(fd, ...)` means.
    pub bind_port: u16,
    /// Port that `connect(fd, ...)` means.
    pub connect_port: u16,
    /// Port of the first peer that connects.
    pub first_peer_port: u16,
    /// The peer's initial sequence number, which is 0 in the script.
    pub remote_isn: u32,
    /// The stack's initial sequence number of every connection; `None`: RFC 6528's.
    pub local_isn: Option<u32>,
    /// Seed of the stack's random numbers.
    pub seed: u64,
    /// Largest IP packet, bytes.
    pub mtu: usize,
    /// Tolerance of event times in microseconds.
    pub tolerance_usecs: i64,
    /// And as a part of the time since the event before, percent.
    pub tolerance_percent: f64,
    /// Microseconds per tick of TSval; 0: its values are not compared.
    pub ts_tick_usecs: u32,
    /// A TSecr that no packet's TSval was may come in: it counts from the first.
    pub ts_ecr_scaled: bool,
    /// Expected packets are single segments.
    pub strict_segments: bool,
    /// Folder against which files in commands are looked up.
    pub folder: PathBuf,
    /// Files of commands that come before the script's own.
    pub init_scripts: Vec<String>,
    /// The script is only checked.
    pub dry_run: bool,
}

impl Default for Setup {
    /// packetdrill's own values for IPv4.
    fn default() -> Setup {
        Setup {
            local: LOCAL_V4.into(),
            remote: REMOTE_V4.into(),
            mapped: false,
            bind_port: 8080,
            connect_port: 8080,
            first_peer_port: 49_152,
            remote_isn: 0,
            local_isn: None,
            seed: 1,
            mtu: 1500,
            tolerance_usecs: 4000,
            tolerance_percent: 12.5,
            ts_tick_usecs: 0,
            ts_ecr_scaled: false,
            strict_segments: false,
            folder: PathBuf::new(),
            init_scripts: Vec::new(),
            dry_run: false,
        }
    }
}

impl Setup {
    /// What the script's options make of it.
    pub(crate) fn with_options_of(mut self, script: &Script) -> Result<Setup, Failure> {
        for ScriptOption { name, value } in &script.options {
            let set = self.set(&name.value, value.as_deref());
            set.map_err(|message| Failure::new(name.line, message))?;
        }
        if self.local.is_ipv4() != self.remote.is_ipv4() || (self.mapped && !self.local.is_ipv4()) {
            let message =
                format!("{} and {} are not of the IP version that is said", self.local, self.remote);
            return Err(Failure::new(1, message));
        }
        Ok(self)
    }

    /// Applies one of packetdrill's options.
    ///
    /// # Errors
    /// Returns a message if the option is unknown or its value is invalid.
    pub fn set(&mut self, name: &str, given: Option<&str>) -> Result<(), String> {
        let flag = || match given {
            None => Ok(true),
            Some(_) => Err(format!("--{name} takes no value")),
        };
        match name {
            "local_ip" => self.local = value(name, given)?,
            "remote_ip" => self.remote = address_with_prefix(name, given)?,
            "bind_port" => self.bind_port = value::<NonZeroU16>(name, given)?.get(),
            "connect_port" => self.connect_port = value::<NonZeroU16>(name, given)?.get(),
            "tolerance_usecs" => self.tolerance_usecs = within(1..=i64::from(i32::MAX), name, given)?,
            "tolerance_percent" => self.tolerance_percent = within(0.0..=100.0, name, given)?,
            "tcp_ts_tick_usecs" => self.ts_tick_usecs = within(0..=1_000_000, name, given)?,
            "mtu" => self.mtu = within(68..=65_535, name, given)?,
            "tcp_ts_ecr_scaled" => self.ts_ecr_scaled = flag()?,
            "strict_segments" => self.strict_segments = flag()?,
            "dry_run" => self.dry_run = flag()?,
            "init_scripts" => {
                let files: String = value(name, given)?;
                self.init_scripts = files.split(',').map(str::to_owned).collect();
            }
            "define" => {}
            // Of the device between the ends, which is not here: TCP asks for none of it.
            "gateway_ip" | "netmask_ip" => value::<IpAddr>(name, given).map(drop)?,
            "speed" => value::<u32>(name, given).map(drop)?,
            // Every address but the stack's own is reached, and buffers are freed when a call is done with them.
            "is_anyip" | "send_omit_free" => flag().map(drop)?,
            "ip_version" => {
                (self.mapped, self.local, self.remote) = match (given, self.local.is_ipv4()) {
                    (Some("ipv4"), true) => (false, self.local, self.remote),
                    (Some("ipv4-mapped-ipv6"), true) => (true, self.local, self.remote),
                    (Some("ipv4"), false) => (false, LOCAL_V4.into(), REMOTE_V4.into()),
                    (Some("ipv4-mapped-ipv6"), false) => (true, LOCAL_V4.into(), REMOTE_V4.into()),
                    (Some("ipv6"), _) => (false, LOCAL_V6.into(), REMOTE_V6.into()),
                    _ => return Err("--ip_version is ipv4, ipv4-mapped-ipv6 or ipv6".into()),
                }
            }
            _ => return Err(format!("--{name} is no option of a script that is known here")),
        }
        Ok(())
    }

    /// An address as system calls name it.
    pub(crate) fn of_calls(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) if self.mapped => address.to_ipv6_mapped().into(),
            other => other,
        }
    }
}

const LOCAL_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const LOCAL_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1);
const REMOTE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

fn value<T: FromStr>(name: &str, given: Option<&str>) -> Result<T, String> {
    let text = given.ok_or_else(|| format!("--{name} needs a value"))?;
    text.parse().map_err(|_| format!("`{text}` is no value of --{name}"))
}

fn within<T: FromStr + PartialOrd + fmt::Debug>(
    range: RangeInclusive<T>,
    name: &str,
    given: Option<&str>,
) -> Result<T, String> {
    let value = value(name, given)?;
    if range.contains(&value) { Ok(value) } else { Err(format!("--{name}={value:?} is not in {range:?}")) }
}

/// `192.0.2.1` or `192.0.2.1/24`: how long the prefix of its network is, nothing asks here.
fn address_with_prefix(name: &str, given: Option<&str>) -> Result<IpAddr, String> {
    let Some((address, prefix)) = given.and_then(|text| text.split_once('/')) else {
        return value(name, given);
    };
    let address: IpAddr = value(name, Some(address))?;
    within(0..=if address.is_ipv4() { 32_u8 } else { 128 }, name, Some(prefix))?;
    Ok(address)
}
