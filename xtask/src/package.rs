//! `cargo xtask package`: every crate that is published is packed as a registry would get it.

use std::path::Path;
use std::process::Command;

/// Where packages are built, apart from everything else.
const VERIFIED: &str = "target/verify";

/// Packs all of them; with `verify` each is unpacked and built against the packages of the others.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let verify = match arguments {
        [] => false,
        ["--verify"] => true,
        _ => return Err("usage: cargo xtask package [--verify]".to_owned()),
    };
    println!("\n=== package");
    let published = published()?;
    let mut cargo = Command::new(env!("CARGO"));
    // Uncommitted changes are packed too: a developer wants to know before the commit.
    cargo.args(["package", "--quiet", "--locked", "--offline", "--allow-dirty"]);
    if verify {
        // A crate from a registry is not built again while its version stays: what an earlier run built of other sources must not be found.
        let folder = Path::new(VERIFIED);
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(|error| format!("{VERIFIED}: {error}"))?;
        }
        cargo.args(["--target-dir", VERIFIED]);
    } else {
        cargo.arg("--no-verify");
    }
    cargo.args(published.iter().flat_map(|name| ["--package", name]));
    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("a crate cannot be packed ({status})"));
    }
    println!("{} crates can be published: {}", published.len(), published.join(", "));
    Ok(())
}

/// The crates whose manifest does not say `publish = false`; each must say what a registry's page shows.
fn published() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for folder in std::fs::read_dir("crates").map_err(|error| format!("crates: {error}"))?.flatten() {
        let manifest = folder.path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        if text.lines().any(|line| line == "publish = false") {
            continue;
        }
        let missing = ["description", "keywords", "categories", "readme", "license", "rust-version"];
        let missing = missing.into_iter().find(|field| !text.lines().any(|line| line.starts_with(field)));
        if let Some(field) = missing {
            return Err(format!("{}: it is published, and has no `{field}`", manifest.display()));
        }
        if !Path::new(&folder.path()).join("LICENSE").exists() {
            return Err(format!("{}: it is published, and has no LICENSE", folder.path().display()));
        }
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
