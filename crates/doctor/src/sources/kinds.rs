//! Finds the queueing disciplines that this kernel has, from its configuration and its modules,
//! without loading any.
use flate2::read::GzDecoder;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Returns the kinds, like "fq_codel", or none if unknown.
pub(super) fn read(root: &Path, release: &str) -> Vec<String> {
    let mut kinds = configured(root, release).unwrap_or_default();
    for list in ["modules.builtin", "modules.dep"] {
        let list = fs::read_to_string(root.join("lib/modules").join(release).join(list)).unwrap_or_default();
        kinds.extend(list.lines().filter_map(module));
    }
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Reads the configuration that the kernel was built with: `CONFIG_NET_SCH_FQ_CODEL=y`.
fn configured(root: &Path, release: &str) -> Option<Vec<String>> {
    let mut text = String::new();
    match fs::File::open(root.join("proc/config.gz")) {
        Ok(file) => GzDecoder::new(file).take(CONFIG_MAX).read_to_string(&mut text).ok().map(drop)?,
        Err(_) => text = fs::read_to_string(root.join(format!("boot/config-{release}"))).ok()?,
    }
    let kind = |line: &str| {
        let (name, value) = line.strip_prefix("CONFIG_NET_SCH_")?.split_once('=')?;
        ["y", "m"].contains(&value).then(|| name.to_ascii_lowercase())
    };
    Some(text.lines().filter_map(kind).collect())
}

/// Parses a line like `kernel/net/sched/sch_fq_codel.ko.zst: …`.
fn module(line: &str) -> Option<String> {
    let (_, name) = line.split(':').next()?.rsplit_once("/sch_")?;
    Some(name.split('.').next()?.to_owned())
}

/// Limit of the size of a configuration, which is a few hundred kilobytes.
const CONFIG_MAX: u64 = 16 << 20;
