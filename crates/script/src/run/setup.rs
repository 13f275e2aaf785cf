//! Where a script runs: addresses, ports, numbers, tolerance. A script's own options come before what the caller says.

use crate::ast::{Script, ScriptOption};
use crate::run::failure::Failure;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Where a script runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The stack's address.
    pub local: IpAddr,
    /// The other end's.
    pub remote: IpAddr,
    /// Port that `bind(fd, ...)` means.
    pub bind_port: u16,
    /// Port that `connect(fd, ...)` means.
    pub connect_port: u16,
    /// Port of the first peer that connects.
    pub first_peer_port: u16,
    /// What the other end's initial sequence number is where the script has 0.
    pub remote_isn: u32,
    /// Seed of the stack's random numbers.
    pub seed: u64,
    /// Largest IP packet, bytes.
    pub mtu: usize,
    /// How far events may be off, microseconds.
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
}

impl Default for Setup {
    /// packetdrill's own values for IPv4.
    fn default() -> Setup {
        Setup {
            local: Ipv4Addr::new(192, 168, 0, 1).into(),
            remote: Ipv4Addr::new(192, 0, 2, 1).into(),
            bind_port: 8080,
            connect_port: 8080,
            first_peer_port: 49_152,
            remote_isn: 0,
            seed: 1,
            mtu: 1500,
            tolerance_usecs: 4000,
            tolerance_percent: 12.5,
            ts_tick_usecs: 0,
            ts_ecr_scaled: false,
            strict_segments: false,
            folder: PathBuf::new(),
        }
    }
}

impl Setup {
    /// What the script's options make of it.
    pub(crate) fn with_options_of(mut self, script: &Script) -> Result<Setup, Failure> {
        for option in &script.options {
            self.apply(option).map_err(|message| Failure::new(option.name.line, message))?;
        }
        if self.local.is_ipv4() != self.remote.is_ipv4() {
            let message = format!("{} and {} are not of one IP version", self.local, self.remote);
            return Err(Failure::new(1, message));
        }
        Ok(self)
    }

    fn apply(&mut self, option: &ScriptOption) -> Result<(), String> {
        let name = option.name.value.as_str();
        match name {
            "local_ip" => self.local = value(option)?,
            "remote_ip" => self.remote = value(option)?,
            "bind_port" => self.bind_port = value(option)?,
            "connect_port" => self.connect_port = value(option)?,
            "tolerance_usecs" => self.tolerance_usecs = value(option)?,
            "tolerance_percent" => self.tolerance_percent = value(option)?,
            "tcp_ts_tick_usecs" => self.ts_tick_usecs = value(option)?,
            "mtu" => {
                self.mtu = value(option)?;
                if !(68..=65_535).contains(&self.mtu) {
                    return Err(format!("{} is no MTU: 68 to 65535", self.mtu));
                }
            }
            "tcp_ts_ecr_scaled" => self.ts_ecr_scaled = true,
            "strict_segments" => self.strict_segments = true,
            "define" => {}
            // Of the device between the ends, which is not here.
            "gateway_ip" | "netmask_ip" => value::<IpAddr>(option).map(drop)?,
            "ip_version" => match option.value.as_deref() {
                Some("ipv4") if self.local.is_ipv4() => {}
                Some("ipv6") => {
                    self.local = Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into();
                    self.remote = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into();
                }
                _ => return Err("--ip_version is ipv4 or ipv6 here".into()),
            },
            _ => return Err(format!("--{name} is no option of a script that is known here")),
        }
        Ok(())
    }
}

fn value<T: std::str::FromStr>(option: &ScriptOption) -> Result<T, String> {
    let name = &option.name.value;
    let text = option.value.as_deref().ok_or_else(|| format!("--{name} needs a value"))?;
    text.parse().map_err(|_| format!("`{text}` is no value of --{name}"))
}
