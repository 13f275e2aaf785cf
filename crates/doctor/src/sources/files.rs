//! Reads procfs: counters, gauges, settings, the backlog queues of the CPUs, bonds.
use super::note;
use crate::sample::{Bond, Conntrack, Sample, Softnet, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Reads the files below `root`.
pub(super) fn read(root: &Path, sample: &mut Sample) {
    let text = |name: &str| fs::read_to_string(root.join(name));
    sample.kernel = text("proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    sample.uptime = text("proc/uptime").ok().and_then(|uptime| first_number(&uptime)).unwrap_or(0.0);
    let of_network = network(root);
    let network = |name: &str| fs::read_to_string(of_network.join(name));
    for name in ["snmp", "netstat"] {
        match network(name) {
            Ok(lines) => count(&lines, &mut sample.counters),
            Err(error) => note(sample, Source::Counters, name, &error),
        }
    }
    match network("softnet_stat") {
        Ok(lines) => sample.softnet = lines.lines().map(softnet).collect(),
        Err(error) => note(sample, Source::Softnet, "softnet_stat", &error),
    }
    match network("sockstat") {
        Ok(lines) => sample.sockstat = gauges(&lines),
        Err(error) => note(sample, Source::Sockstat, "sockstat", &error),
    }
    for entry in fs::read_dir(of_network.join("bonding")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        sample.bonds.extend(fs::read_to_string(entry.path()).ok().map(|text| bond(name, &text)));
    }
    match conntrack(root, &of_network) {
        Ok(table) => sample.conntrack = Some(table),
        // The module is not loaded.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => note(sample, Source::Conntrack, "nf_conntrack", &error),
    }
    let settings = root.join("proc/sys/net");
    setting("netfilter", &settings.join("netfilter/nf_conntrack_max"), sample);
    for folder in ["core", "ipv4"] {
        let names = match fs::read_dir(settings.join(folder)) {
            Ok(entries) => entries,
            Err(error) => {
                note(sample, Source::Settings, folder, &error);
                continue;
            }
        };
        for entry in names.flatten() {
            setting(folder, &entry.path(), sample);
        }
    }
    for entry in fs::read_dir(settings.join("ipv4/conf")).into_iter().flatten().flatten() {
        let device = entry.file_name().to_string_lossy().into_owned();
        setting(&format!("ipv4.conf.{device}"), &entry.path().join("rp_filter"), sample);
    }
}

/// Returns the directory of the network files. /proc/net belongs to the namespace of the first
/// thread, and the reading thread may be in another one. A saved tree has only one.
fn network(root: &Path) -> PathBuf {
    let own = root.join("proc/thread-self/net");
    if own.is_dir() { own } else { root.join("proc/net") }
}

/// The setting that is a secret. Only its state is recorded, never the key.
const KEY: &str = "tcp_fastopen_key";

fn setting(prefix: &str, path: &Path, sample: &mut Sample) {
    let Some(last) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { return };
    let name = format!("net.{prefix}.{last}");
    match fs::read_to_string(path) {
        Ok(value) if last == KEY => {
            let state = if value.chars().all(|c| "0-,\n".contains(c)) { "unset" } else { "set" };
            let keys = if value.contains(',') { "with a backup" } else { "alone" };
            sample.settings.insert(name, format!("{state} {keys}"));
        }
        Ok(value) => {
            sample.settings.insert(name, value.trim().to_owned());
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            if last == KEY {
                note(sample, Source::Key, &name, &error);
            }
            sample.unreadable.insert(name);
        }
        // Directories.
        Err(_) => {}
    }
}

/// Reads pairs of lines, "Group: name name …" and "Group: value value …".
fn count(text: &str, counters: &mut BTreeMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) = (pair[0].split_once(": "), pair[1].split_once(": "))
        else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            if let Ok(value) = value.parse() {
                counters.insert(format!("{group}{name}"), value);
            }
        }
    }
}

/// Reads the size of the connection tracking table and its counters. Each CPU has a row of
/// hexadecimal counters below their names (`ct_cpu_seq_show`).
fn conntrack(root: &Path, network: &Path) -> io::Result<Conntrack> {
    let gauge = |name: &str| {
        let text = fs::read_to_string(root.join("proc/sys/net/netfilter").join(name))?;
        text.trim().parse().map_err(|_| io::Error::other(format!("{name} is not a number")))
    };
    let (count, max) = (gauge("nf_conntrack_count")?, gauge("nf_conntrack_max")?);
    let text = fs::read_to_string(network.join("stat/nf_conntrack"))?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let sum = |name: &str| {
        let column = names.iter().position(|other| *other == name);
        let values = rows.iter().filter_map(|row| u64::from_str_radix(row.get(column?)?, 16).ok());
        values.fold(0, u64::saturating_add)
    };
    let (drop, early_drop) = (sum("drop"), sum("early_drop"));
    Ok(Conntrack {
        count,
        max,
        drop,
        early_drop,
        insert_failed: sum("insert_failed"),
        invalid: sum("invalid"),
    })
}

fn softnet(line: &str) -> Softnet {
    let mut columns = line.split_whitespace().map(|column| u64::from_str_radix(column, 16).unwrap_or(0));
    let mut nth = |n| columns.nth(n).unwrap_or(0);
    // The flow limit is column 11 (net/core/net-procfs.c).
    Softnet { processed: nth(0), dropped: nth(0), squeezed: nth(0), flow_limited: nth(7) }
}

/// Reads "TCP: inuse 5 orphan 0 …" into "TCP inuse" and so on.
fn gauges(text: &str) -> BTreeMap<String, u64> {
    let mut gauges = BTreeMap::new();
    for line in text.lines() {
        let Some((group, rest)) = line.split_once(": ") else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            if let Ok(value) = pair[1].parse() {
                gauges.insert(format!("{group} {}", pair[0]), value);
            }
        }
    }
    gauges
}

fn bond(name: String, text: &str) -> Bond {
    let mut bond = Bond { name, ..Bond::default() };
    let mut member = None;
    for (key, value) in text.lines().filter_map(|line| line.trim().split_once(": ")) {
        match (key, &member) {
            ("Bonding Mode", _) => value.clone_into(&mut bond.mode),
            ("Partner Mac Address", _) => bond.partner = Some(value.to_owned()),
            ("Slave Interface", _) => member = Some(value.to_owned()),
            ("MII Status", Some(member)) if value != "up" => bond.down.push(member.clone()),
            _ => {}
        }
    }
    bond
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}
