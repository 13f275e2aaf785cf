//! Which process holds a socket, by the links in /proc/PID/fd.
use crate::sample::Owner;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The owners of these inodes, as far as this user may see them.
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

fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn comm(process: &Path) -> String {
    fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned()
}
