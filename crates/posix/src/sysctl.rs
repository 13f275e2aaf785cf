//! Reads settings from a tree of files like /proc/sys/net, and writes counters into files like
//! /proc/net/netstat.
//!
//! The tree is read before each use of the stack, and changes go to [`Sockets::set`]. A change
//! therefore takes effect immediately, even in the middle of a connection. Files without a setting
//! in the engine are ignored.

use crate::files::File;
use crate::socket::Role;
use crate::sockets::Sockets;
use proto::{Instant, SettingError, Stack};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A tree of settings.
#[derive(Debug)]
pub struct SysctlTree {
    /// File of each setting, and what was last read from it.
    files: BTreeMap<PathBuf, Known>,
}

#[derive(Debug)]
struct Known {
    name: String,
    seen: Option<(SystemTime, u64)>,
    text: String,
}

impl SysctlTree {
    /// The tree at `root`, which stands for /proc/sys/net. Nothing is read yet.
    pub fn new(root: &Path, stack: &Stack) -> SysctlTree {
        let rows = stack.config().all().into_iter().map(|(name, _)| name.to_owned());
        let of_device = stack.device_settings().into_iter().map(|(name, _)| name);
        let names = rows.chain(EXTRA.map(str::to_owned)).chain(of_device);
        let files = names.filter_map(|name| {
            let path = root.join(name.strip_prefix("net.")?.replace('.', "/"));
            Some((path, Known { name, seen: None, text: String::new() }))
        });
        SysctlTree { files: files.collect() }
    }

    /// Reads changed files, and applies their settings.
    pub fn refresh(&mut self, now: Instant, sockets: &mut Sockets) {
        self.changes().apply(now, sockets);
    }

    /// Reads changed files.
    pub fn changes(&mut self) -> Changes {
        let mut changes = Vec::new();
        for (path, known) in &mut self.files {
            let Ok(meta) = fs::metadata(path) else { continue };
            // A file written a moment ago may be written once more without a later time.
            let settled = |at: &SystemTime| at.elapsed().is_ok_and(|age| age > SETTLED);
            let seen = meta.modified().ok().filter(settled).map(|at| (at, meta.len()));
            if seen.is_some() && seen == known.seen {
                continue;
            }
            let Ok(text) = fs::read_to_string(path) else { continue };
            known.seen = seen;
            let text = text.trim();
            if text != known.text {
                known.text = text.to_string();
                changes.push((known.name.clone(), known.text.clone()));
            }
        }
        Changes(changes)
    }
}

/// Changed settings: names and contents of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(Vec<(String, String)>);

impl Changes {
    /// Nothing has.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Applies the settings. A value that the engine rejects changes nothing, as in /proc.
    pub fn apply(&self, now: Instant, sockets: &mut Sockets) {
        for (name, text) in &self.0 {
            // Refused values leave the setting as it is.
            let _ = sockets.set(now, name, text);
        }
    }
}

/// The coarsest time stamps of files are jiffies.
const SETTLED: Duration = Duration::from_millis(50);

/// Settings that are no row of the engine's table, or several.
const EXTRA: [&str; 2] = [COOKIE_KEY, PORT_RANGE];
pub(crate) const COOKIE_KEY: &str = "net.ipv4.tcp_fastopen_key";
const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";

/// Linux's value of a setting that may be set, without effect (`WITHOUT_EFFECT` of the engine's table).
fn without_effect(name: &str) -> Option<String> {
    let value = match name {
        "net.ipv4.tcp_adv_win_scale" => "1",
        // SK_RMEM_MAX and SK_WMEM_MAX (include/net/sock.h), on 64 bits.
        "net.core.rmem_default" | "net.core.wmem_default" => "212992",
        _ => return None,
    };
    Some(value.to_owned())
}

impl Sockets {
    /// Changes a setting like [`Stack::set`]. Values that sockets copy at their creation stay for
    /// existing sockets.
    ///
    /// # Errors
    /// See [`Stack::set`].
    pub fn set(&mut self, now: Instant, name: &str, value: &str) -> Result<Option<String>, SettingError> {
        let before = self.rto_bounds();
        let warning = self.stack_mut().set(now, name, value)?;
        if self.rto_bounds() != before && self.stack().config().rto_bounds_of_socket {
            self.keep_rto_bounds(now, before);
        }
        Ok(warning)
    }

    /// Returns the value of a setting, or `None` if there is no such setting. Settings that Linux
    /// has but the engine does not use have Linux's default.
    pub fn setting(&self, name: &str) -> Option<String> {
        let stack = self.stack();
        let config = stack.config();
        match name {
            COOKIE_KEY => Some(stack.fast_open_key().to_string()),
            PORT_RANGE => Some(format!("{} {}", config.port_low, config.port_high)),
            _ => config.get(name).or_else(|| self.setting_of_device(name)).or_else(|| without_effect(name)),
        }
    }

    fn setting_of_device(&self, name: &str) -> Option<String> {
        let of_device = self.stack().device_settings();
        of_device.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn rto_bounds(&self) -> (Duration, Duration) {
        let config = self.stack().config();
        (config.rto_min(), config.rto_max())
    }

    fn keep_rto_bounds(&mut self, now: Instant, (least, most): (Duration, Duration)) {
        let mut listeners = Vec::new();
        for file in self.files.iter_mut() {
            let File::Socket(socket) = file else { continue };
            socket.options.engine.rto_min.get_or_insert(least);
            socket.options.engine.rto_max.get_or_insert(most);
            if let Role::Listener(id) = socket.role {
                listeners.push((id, socket.listen_options()));
            }
        }
        for (id, options) in listeners {
            self.stack_mut().set_listen_options(now, id, options);
        }
    }
}

/// Counters in the form of /proc/net/netstat (`TcpExt`) and of /proc/net/snmp (`Tcp`).
pub fn counter_files(stack: &Stack) -> (String, String) {
    let mut groups: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for (full, value) in stack.counters().nstat() {
        for group in ["TcpExt", "Tcp"] {
            if let Some(name) = full.strip_prefix(group) {
                let (names, values) = groups.entry(group).or_default();
                // Writing to a string cannot fail.
                let _ = write!(names, " {name}");
                let _ = write!(values, " {value}");
                break;
            }
        }
    }
    let table = |group: &str| {
        let (names, values) = groups.get(group).cloned().unwrap_or_default();
        format!("{group}:{names}\n{group}:{values}\n")
    };
    (table("TcpExt"), table("Tcp"))
}
