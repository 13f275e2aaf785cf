//! Settings that configuration files apply at the next boot: sysctl.d(5).
use crate::sample::Configured;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Directories, in order of precedence: of two files with the same name, the first directory wins.
/// sysctl reads files in the order of their names, and the last line for a setting wins.
const FOLDERS: [&str; 5] =
    ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"];

/// Reads every line about net, in the order of sysctl.
pub(super) fn read(root: &Path) -> Vec<Configured> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".conf") {
                files.entry(name).or_insert(Path::new(folder).join(entry.file_name()));
            }
        }
    }
    let mut files: Vec<PathBuf> = files.into_values().collect();
    // /etc/sysctl.conf comes last. On many hosts sysctl.d also has a link to it.
    files.push("etc/sysctl.conf".into());
    let mut lines: Vec<Configured> = Vec::new();
    for file in files {
        let file = target(root, file);
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        let name = format!("/{}", file.display());
        for line in text.lines().zip(1..).filter_map(|(line, number)| setting(line, number, &name)) {
            lines.retain(|other| other.file != line.file || other.line != line.line);
            lines.push(line);
        }
    }
    lines
}

/// Returns whether there is a file or directory of sysctl. A copy of /proc alone says nothing about
/// the next boot.
pub(super) fn is_there(root: &Path) -> bool {
    FOLDERS.iter().chain(&["etc/sysctl.conf"]).any(|name| root.join(name).exists())
}

/// Follows a symbolic link below the same root. Debian's 99-sysctl.conf links to /etc/sysctl.conf,
/// and a fix must edit that file.
fn target(root: &Path, mut file: PathBuf) -> PathBuf {
    for _ in 0..LINKS {
        let Ok(link) = fs::read_link(root.join(&file)) else { break };
        let mut names: Vec<Component<'_>> = match link.is_absolute() {
            true => Vec::new(),
            false => file.parent().into_iter().flat_map(Path::components).collect(),
        };
        for part in link.components() {
            match part {
                Component::Normal(_) => names.push(part),
                Component::ParentDir => drop(names.pop()),
                _ => {}
            }
        }
        file = names.into_iter().collect();
    }
    file
}

/// Most symbolic links to follow, as in the kernel (MAXSYMLINKS in include/linux/namei.h).
const LINKS: usize = 40;

fn setting(line: &str, number: u32, file: &str) -> Option<Configured> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    // A minus tells sysctl to ignore errors.
    let name = dotted(name.trim().trim_start_matches('-'));
    name.starts_with("net.").then(|| Configured {
        file: file.to_owned(),
        line: number,
        name,
        value: value.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Converts a name to dots. The first separator decides between the two forms:
/// net/ipv4/conf/eth0.5/rp_filter and net.ipv4.conf.eth0/5.rp_filter.
fn dotted(name: &str) -> String {
    let slashes = name.find(['/', '.']).is_some_and(|at| name.as_bytes().get(at) == Some(&b'/'));
    match slashes {
        true => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::setting;

    #[test]
    fn lines_of_both_forms_are_read() {
        let name = |line| setting(line, 1, "f").map(|setting| (setting.name, setting.value));
        let expected = Some(("net.ipv4.tcp_rmem".to_owned(), "1 2 3".to_owned()));
        assert_eq!(name(" net.ipv4.tcp_rmem = 1\t2  3 "), expected);
        assert_eq!(name("-net/ipv4/tcp_rmem=1 2 3"), expected);
        assert_eq!(name("net/ipv4/conf/eth0.5/rp_filter=1").unwrap().0, "net.ipv4.conf.eth0/5.rp_filter");
        assert_eq!(
            (name("# net.ipv4.tcp_rmem = 1"), name("kernel.pid_max = 1"), name("net.core")),
            (None, None, None)
        );
    }
}
