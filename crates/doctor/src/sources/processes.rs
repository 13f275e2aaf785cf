//! Finds the processes that hold sockets, from the links in /proc/PID/fd.
use crate::sample::Owner;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Returns the owners of these inodes, as far as this user may see them.
pub(super) fn read(root: &Path, inodes: &BTreeSet<u32>) -> BTreeMap<u32, Owner> {
    let mut owners = BTreeMap::new();
    if inodes.is_empty() {
        return owners;
    }
    for process in fs::read_dir(root.join("proc")).into_iter().flatten().flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let mut name = None;
        for link in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(link.path()) else { continue };
            let Some(inode) = inode(&target.to_string_lossy()) else { continue };
            if inodes.contains(&inode) {
                let name = name.get_or_insert_with(|| comm(&process.path()));
                owners.insert(inode, Owner { pid, name: name.clone() });
            }
        }
        if owners.len() == inodes.len() {
            break;
        }
    }
    owners
}

/// A descriptor of a process that refers to a socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// File descriptor.
    pub descriptor: u32,
}

/// Returns every descriptor of a socket, by the socket's inode, as far as this user may see them.
pub fn holders() -> BTreeMap<u32, Vec<Holder>> {
    let mut holders: BTreeMap<u32, Vec<Holder>> = BTreeMap::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let name = comm(&process.path());
        for link in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let Ok(descriptor) = link.file_name().to_string_lossy().parse() else { continue };
            let Ok(target) = fs::read_link(link.path()) else { continue };
            if let Some(inode) = inode(&target.to_string_lossy()) {
                holders.entry(inode).or_default().push(Holder { pid, name: name.clone(), descriptor });
            }
        }
    }
    holders.values_mut().for_each(|holders| holders.sort());
    holders
}

fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn comm(process: &Path) -> String {
    fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned()
}
