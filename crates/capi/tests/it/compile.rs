//! The library built, and C programs compiled against it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The form of the library that a program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    Shared,
    Static,
}

const FLAGS: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"];

/// Returns this crate's folder.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder of libfirstbyte.so and libfirstbyte.a, after building them if needed.
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| testnet::built("firstbyte-capi"))
}

/// Returns a folder with the shared library under its SONAME.
fn under_its_soname() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let profile = library().file_name().unwrap().to_string_lossy();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soname-{profile}"));
        std::fs::create_dir_all(&folder).unwrap();
        let link = folder.join("libfirstbyte.so.0");
        // Another run of these tests may have made the link.
        if std::fs::read_link(&link).is_err() {
            let made = std::os::unix::fs::symlink(library().join("libfirstbyte.so"), &link);
            assert!(made.is_ok() || link.exists(), "{made:?}");
        }
        folder
    })
}

/// Compiles and links `source`, a path below this crate's folder, once. Returns the program.
pub(crate) fn program(source: &'static str, link: Link) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<(&str, Link), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry((source, link)).or_insert_with(|| compile(source, link)).clone()
}

fn compile(source: &str, link: Link) -> PathBuf {
    let name = Path::new(source).file_stem().unwrap().to_string_lossy().into_owned();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{link:?}"));
    // A program that another run of these tests executes can be replaced, not written.
    let beside = target.with_extension(std::process::id().to_string());
    let mut cc = Command::new("cc");
    cc.args(FLAGS).arg(folder().join(source)).arg("-o").arg(&beside);
    cc.arg("-I").arg(folder().join("include")).arg("-I").arg(folder().join("tests/c"));
    match link {
        Link::Shared => {
            cc.arg("-L").arg(library()).arg("-lfirstbyte");
            cc.arg(format!("-Wl,-rpath,{}", under_its_soname().display()));
        }
        Link::Static => {
            cc.arg(library().join("libfirstbyte.a")).args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
        }
    }
    succeed(&mut cc);
    std::fs::rename(beside, &target).unwrap();
    target
}

/// Runs a command, which must succeed. Returns its output.
pub(crate) fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}
