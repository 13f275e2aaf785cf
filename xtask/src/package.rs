//! `cargo xtask package`: packs every published crate as a registry would get it.

use crate::unexpected;
use std::path::Path;
use std::process::Command;

/// The target folder of packages that are built.
const VERIFIED: &str = "target/verify";

/// Packs all of them. With `--verify`, cargo builds each against the packages of the others.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let verify = match arguments {
        [] => false,
        ["--verify"] => true,
        [first, ..] => return Err(unexpected("package", first, "cargo xtask package [--verify]")),
    };
    println!("\n=== package");
    let published = published()?;
    let mut cargo = Command::new(env!("CARGO"));
    // Packs uncommitted changes too: a mistake should show before the commit.
    cargo.args(["package", "--quiet", "--locked", "--offline", "--allow-dirty"]);
    if verify {
        // Cargo does not rebuild a crate from a registry while its version stays the same. Remove
        // what an earlier run built from other sources.
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
        return Err(format!("cannot pack a crate ({status})"));
    }
    println!("{} crates can be published: {}", published.len(), published.join(", "));
    Ok(())
}

/// Returns the crates whose manifest does not say `publish = false`. Checks that each has the
/// fields that a registry shows.
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
            return Err(format!("{}: no `{field}`, which a published crate needs", manifest.display()));
        }
        if !Path::new(&folder.path()).join("LICENSE").exists() {
            return Err(format!("{}: no LICENSE, which a published crate needs", folder.path().display()));
        }
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
