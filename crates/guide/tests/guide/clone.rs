//! Commands that a reader types in a clone of the project: `cargo` builds nothing there in a test.

use crate::session::Place;
use std::fs;
use std::path::{Path, PathBuf};

/// The command to run in place of one of `cargo`. Prepares what it needs.
///
/// - `cargo run --release -- …`: the command that the tests have built.
/// - `cargo run -p PACKAGE --example NAME [--features FEATURES]`: that example.
/// - `cargo build --release -p PACKAGE…`: libraries in `target/release`, C headers and examples.
pub(crate) fn as_run(command: &str, place: Place) -> String {
    if let Some(rest) = command.strip_prefix("cargo run --release -- ") {
        return format!("firstbyte {rest}");
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    match &words[..] {
        // The tests have built it with every feature.
        ["cargo", "run", "-p", package, "--example", name]
        | ["cargo", "run", "-p", package, "--example", name, "--features", _] => {
            let program = testnet::built_example(package, name);
            let copied = format!("example-{name}");
            copy(&program, &place.programs.join(&copied));
            copied
        }
        ["cargo", "build", "--release", packages @ ..] => {
            packages
                .iter()
                .filter(|word| **word != "-p")
                .for_each(|package| libraries(package, place.folder));
            "true".to_owned()
        }
        _ => command.to_owned(),
    }
}

/// Copies what a package builds, and the headers and examples of the C library.
fn libraries(package: &str, folder: &Path) {
    let built = testnet::built(package);
    let release = folder.join("target/release");
    fs::create_dir_all(&release).expect("a folder");
    // The ordinary user makes links here.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&release, permissions).expect("the folder is ours");
    for name in ["libfirstbyte.so", "libfirstbyte_preload.so"] {
        if built.join(name).is_file() {
            copy(&built.join(name), &release.join(name));
        }
    }
    let capi = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../capi"));
    for part in ["include", "examples"] {
        let to = folder.join("crates/capi").join(part);
        fs::create_dir_all(&to).expect("a folder");
        for file in fs::read_dir(capi.join(part)).expect("a folder").flatten() {
            copy(&file.path(), &to.join(file.file_name()));
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}
