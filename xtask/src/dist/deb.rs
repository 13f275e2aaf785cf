//! The Debian package, by dpkg's own programs.
//!
//! cargo-deb would have to be compiled for minutes on every machine that runs the tests. It packs
//! the files of one cargo build; here the command is linked with musl, the libraries with glibc.

use super::build::{Libraries, Shipped};
use super::files::{Files, PACKAGING, SHELLS, UNITS, listed};
use super::{Release, VERSION, output, place, source_date, write};
use crate::packages;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scripts of packaging/debian that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// The name of the package in a control file, where `DEBFULLNAME` and `DEBEMAIL` name nobody.
const MAINTAINER: &str = "The Firstbyte authors <firstbyte@packages.invalid>";

/// Where Debian's shells look for completions of packages, in the order of [`SHELLS`].
const COMPLETIONS: [&str; 3] = [
    "usr/share/bash-completion/completions/firstbyte",
    "usr/share/zsh/vendor-completions/_firstbyte",
    "usr/share/fish/vendor_completions.d/firstbyte.fish",
];

/// Packs the command, the libraries and the files.
pub(super) fn pack(
    release: &Release,
    command: &Shipped,
    libraries: &Libraries,
    files: &Files,
) -> Result<PathBuf, String> {
    for (program, package) in [("dpkg-deb", "dpkg"), ("dpkg-shlibdeps", "dpkg-dev")] {
        if !packages::installed(program) {
            return Err(format!("cannot make the .deb: {program} is missing; apt-get install {package}"));
        }
    }
    let root = release.empty_folder("deb")?;
    let machine = Machine::of_this()?;
    place(&command.elf, &root.join("usr/bin/firstbyte"), 0o755)?;
    place_libraries(&root, &machine, libraries)?;
    place_files(&root, files)?;
    place_documents(&root)?;
    control(release, &root, &machine, libraries)?;
    let packed = release.folder.join(format!("firstbyte_{VERSION}_{}.deb", machine.architecture));
    let mut dpkg_deb = Command::new("dpkg-deb");
    dpkg_deb.args(["--root-owner-group", if release.is_quick() { "-Zgzip" } else { "-Zxz" }]);
    dpkg_deb.arg(if release.is_quick() { "-z1" } else { "-z9" });
    dpkg_deb.env("SOURCE_DATE_EPOCH", source_date());
    output(dpkg_deb.arg("--build").arg(&root).arg(&packed))?;
    Ok(packed)
}

/// The names that Debian has for this machine.
struct Machine {
    /// Such as `amd64`.
    architecture: String,
    /// The folder of libraries, such as `x86_64-linux-gnu`.
    multiarch: String,
}

impl Machine {
    fn of_this() -> Result<Machine, String> {
        let asked = |variable: &str| -> Result<String, String> {
            let answer = output(Command::new("dpkg-architecture").args(["-q", variable]))?;
            Ok(answer.trim().to_owned())
        };
        Ok(Machine { architecture: asked("DEB_HOST_ARCH")?, multiarch: asked("DEB_HOST_MULTIARCH")? })
    }
}

fn place_libraries(root: &Path, machine: &Machine, libraries: &Libraries) -> Result<(), String> {
    let folder = root.join("usr/lib").join(&machine.multiarch);
    place(&libraries.shared, &folder.join(format!("libfirstbyte.so.{VERSION}")), 0o644)?;
    place(&libraries.archive, &folder.join("libfirstbyte.a"), 0o644)?;
    place(&libraries.preload, &folder.join("libfirstbyte_preload.so"), 0o644)?;
    for (link, leads_to) in [
        ("libfirstbyte.so.0", format!("libfirstbyte.so.{VERSION}")),
        ("libfirstbyte.so", "libfirstbyte.so.0".to_owned()),
    ] {
        std::os::unix::fs::symlink(leads_to, folder.join(link))
            .map_err(|error| format!("cannot link {link}: {error}"))?;
    }
    place(Path::new("crates/capi/include/firstbyte.h"), &root.join("usr/include/firstbyte.h"), 0o644)?;
    let template = text(&Path::new(PACKAGING).join("firstbyte.pc.in"))?;
    let described = template
        .replace("@PREFIX@", "/usr")
        .replace("@LIBDIR@", &format!("${{prefix}}/lib/{}", machine.multiarch))
        .replace("@VERSION@", VERSION);
    write(&folder.join("pkgconfig/firstbyte.pc"), described, 0o644)
}

fn place_files(root: &Path, files: &Files) -> Result<(), String> {
    for page in listed(&files.man)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        compressed(&page, &root.join("usr/share/man/man1").join(format!("{name}.gz")))?;
    }
    for ((_, name), to) in SHELLS.into_iter().zip(COMPLETIONS) {
        place(&files.completions.join(name), &root.join(to), 0o644)?;
    }
    for unit in UNITS {
        let service = format!("{unit}.service");
        let packaging = Path::new(PACKAGING);
        place(
            &packaging.join("systemd").join(&service),
            &root.join("usr/lib/systemd/system").join(&service),
            0o644,
        )?;
        place(&packaging.join("default").join(unit), &root.join("etc/default").join(unit), 0o644)?;
    }
    Ok(())
}

fn place_documents(root: &Path) -> Result<(), String> {
    let documents = root.join("usr/share/doc/firstbyte");
    place(Path::new("LICENSE"), &documents.join("copyright"), 0o644)?;
    place(Path::new("README.md"), &documents.join("README.md"), 0o644)?;
    compressed(Path::new("CHANGELOG.md"), &documents.join("changelog.gz"))?;
    for example in listed(Path::new("crates/capi/examples"))? {
        place(&example, &documents.join("examples").join(example.file_name().unwrap_or_default()), 0o644)?;
    }
    Ok(())
}

fn compressed(from: &Path, to: &Path) -> Result<(), String> {
    let packed = Command::new("gzip").args(["-9nc"]).arg(from).output();
    let packed = packed.map_err(|error| format!("cannot run gzip: {error}"))?;
    write(to, packed.stdout, 0o644)
}

/// Writes the folder DEBIAN: what dpkg knows of the package.
fn control(release: &Release, root: &Path, machine: &Machine, libraries: &Libraries) -> Result<(), String> {
    let folder = root.join("DEBIAN");
    let size = output(Command::new("du").args(["-ks", "--apparent-size"]).arg(root))?;
    let template = text(&Path::new(PACKAGING).join("debian/control.in"))?;
    let control = template
        .replace("@VERSION@", VERSION)
        .replace("@ARCHITECTURE@", &machine.architecture)
        .replace("@MAINTAINER@", &maintainer())
        .replace("@INSTALLED_SIZE@", size.split_whitespace().next().unwrap_or("0"))
        .replace("@DEPENDS@", &depends(release, libraries)?);
    write(&folder.join("control"), control, 0o644)?;
    for script in SCRIPTS {
        place(&Path::new(PACKAGING).join("debian").join(script), &folder.join(script), 0o755)?;
    }
    place(&Path::new(PACKAGING).join("debian/triggers"), &folder.join("triggers"), 0o644)?;
    let conffiles: String = UNITS.iter().map(|unit| format!("/etc/default/{unit}\n")).collect();
    write(&folder.join("conffiles"), conffiles, 0o644)?;
    let sums = "find usr etc -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
    let sums = output(Command::new("sh").args(["-c", sums]).current_dir(root))?;
    write(&folder.join("md5sums"), sums, 0o644)
}

fn maintainer() -> String {
    let named = |variable| std::env::var(variable).ok().filter(|value| !value.is_empty());
    match (named("DEBFULLNAME"), named("DEBEMAIL")) {
        (Some(name), Some(email)) => format!("{name} <{email}>"),
        _ => MAINTAINER.to_owned(),
    }
}

/// Returns the packages of the shared objects that the libraries need. A static command needs none.
fn depends(release: &Release, libraries: &Libraries) -> Result<String, String> {
    let folder = release.empty_folder("shlibdeps")?;
    // It reads the name of the package from here.
    write(
        &folder.join("debian/control"),
        "Source: firstbyte\n\nPackage: firstbyte\nArchitecture: any\n",
        0o644,
    )?;
    let mut shlibdeps = Command::new("dpkg-shlibdeps");
    shlibdeps.arg("-O").current_dir(&folder);
    let found = output(shlibdeps.arg(&libraries.shared).arg(&libraries.preload))?;
    let found = found.trim().strip_prefix("shlibs:Depends=").map(str::to_owned);
    found.ok_or_else(|| "dpkg-shlibdeps names no package that the libraries depend on".to_owned())
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
