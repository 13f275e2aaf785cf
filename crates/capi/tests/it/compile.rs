//! The library built, and C programs compiled against it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    Shared,
    Static,
}

const FLAGS: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

/// This crate's folder.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where libfirstbyte.so and libfirstbyte.a are, up to date.
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| testnet::built("firstbyte-capi"))
}

/// Compiles `source` (a path below this crate's folder), once, links it, and says where the program is.
pub(crate) fn program(source: &'static str, link: Link) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<(&str, Link), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry((source, link)).or_insert_with(|| compile(source, link)).clone()
}

fn compile(source: &str, link: Link) -> PathBuf {
    let name = Path::new(source).file_stem().unwrap().to_string_lossy().into_owned();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{link:?}"));
    // A program that another run of these tests executes cannot be written to, but replaced.
    let beside = target.with_extension(std::process::id().to_string());
    let mut cc = Command::new("cc");
    cc.args(FLAGS).arg(folder().join(source)).arg("-o").arg(&beside);
    cc.arg("-I").arg(folder().join("include")).arg("-I").arg(folder().join("tests/c"));
    match link {
        Link::Shared => {
            cc.arg("-L").arg(library()).arg("-lfirstbyte");
            cc.arg(format!("-Wl,-rpath,{}", library().display()));
        }
        Link::Static => {
            cc.arg(library().join("libfirstbyte.a")).args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
        }
    }
    succeed(&mut cc);
    std::fs::rename(beside, &target).unwrap();
    target
}

/// Runs a command to its end, which must be a good one; what it wrote.
pub(crate) fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}
