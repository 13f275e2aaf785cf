//! Builds the command and the C libraries, and separates their debug information.

use super::{Release, output};
use crate::{cargo, packages};
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine that the command is built for.
pub(super) struct Target {
    /// The name that rustc has for it; none for the default of this toolchain.
    triple: Option<String>,
    pub(super) arch: String,
    /// Prefix of the GNU tools for it.
    tools: String,
    /// Cargo's environment.
    environment: Vec<(String, String)>,
}

impl Target {
    /// Returns this machine: linked statically with musl, except in a quick build.
    pub(super) fn of_this_machine(release: &Release) -> Result<Target, String> {
        if release.is_quick() {
            return Ok(Target {
                triple: None,
                arch: ARCH.to_owned(),
                tools: String::new(),
                environment: Vec::new(),
            });
        }
        let triple = musl(ARCH)?;
        if !packages::installed("musl-gcc") {
            return Err("cannot compile C for musl: apt-get install musl-tools".to_owned());
        }
        let compiler = format!("CC_{}", triple.replace('-', "_"));
        let environment = vec![(compiler, "musl-gcc".to_owned())];
        Ok(Target { triple: Some(triple), arch: ARCH.to_owned(), tools: String::new(), environment })
    }

    /// Returns the other machine that is shipped, whose C is compiled by Debian's cross compiler.
    ///
    /// # Errors
    /// The sentence says what is missing.
    pub(super) fn other_machine(release: &Release) -> Result<Target, String> {
        if release.is_quick() {
            return Err("a quick build is for this machine only".to_owned());
        }
        let arch = if ARCH == "aarch64" { "x86_64" } else { "aarch64" };
        let triple = musl(arch)?;
        let tools = format!("{arch}-linux-gnu-");
        if !packages::installed(&format!("{tools}gcc")) {
            let package = format!("gcc-{}-linux-gnu", arch.replace('_', "-"));
            return Err(format!("no cross compiler for {arch}: apt-get install {package}"));
        }
        let name = triple.replace('-', "_");
        // The linker of the toolchain needs no C library of that machine: the target brings musl.
        let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
        let environment = vec![
            (linker, "rust-lld".to_owned()),
            (format!("CC_{name}"), format!("{tools}gcc")),
            (format!("AR_{name}"), format!("{tools}ar")),
        ];
        Ok(Target { triple: Some(triple), arch: arch.to_owned(), tools, environment })
    }

    /// The name of its tarball and folder.
    pub(super) fn name(&self) -> String {
        let library = if self.triple.is_some() { "musl" } else { "gnu" };
        format!("{}-linux-{library}", self.arch)
    }

    /// The name that rustc has for it, unless it is the default.
    pub(super) fn triple(&self) -> Option<&str> {
        self.triple.as_deref()
    }
}

/// Returns the target with musl, if rustup has installed it.
fn musl(arch: &str) -> Result<String, String> {
    let triple = format!("{arch}-unknown-linux-musl");
    let library = Command::new("rustc").args(["--print", "target-libdir", "--target", &triple]).output();
    let folder = library.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if folder.is_ok_and(|folder| Path::new(&folder).exists()) {
        Ok(triple)
    } else {
        Err(format!("the target {triple} is not installed: rustup target add {triple}"))
    }
}

/// The command as it is shipped.
pub(super) struct Shipped {
    /// Without debug information.
    pub(super) elf: PathBuf,
    /// A backtrace finds its lines again if this file is beside the command.
    pub(super) debug: PathBuf,
}

/// Builds the command once, and separates its debug information.
pub(super) fn command(release: &Release, target: &Target) -> Result<Shipped, String> {
    let objcopy = format!("{}objcopy", target.tools);
    if !packages::installed(&objcopy) {
        return Err(format!(
            "cannot separate debug information: {objcopy} is missing; apt-get install binutils"
        ));
    }
    let built = if release.is_quick() { quick()? } else { optimised(release, target)? };
    let folder = release.empty_folder(&target.name())?;
    let shipped = Shipped { elf: folder.join("firstbyte"), debug: folder.join("firstbyte.debug") };
    // The built file stays as it is: otherwise later builds would link again.
    output(Command::new(&objcopy).arg("--only-keep-debug").arg(&built).arg(&shipped.debug))?;
    let link = format!("--add-gnu-debuglink={}", shipped.debug.display());
    output(Command::new(&objcopy).arg("--strip-all").arg(link).arg(&built).arg(&shipped.elf))?;
    Ok(shipped)
}

/// Builds the whole workspace as the test command does, which finds everything built already.
fn quick() -> Result<PathBuf, String> {
    cargo(&["build", "--workspace", "--locked"], &[])?;
    Ok(PathBuf::from("target/debug/firstbyte"))
}

fn optimised(release: &Release, target: &Target) -> Result<PathBuf, String> {
    let profile = release.profile.as_str();
    let whole = format!("profile.{profile}.package.firstbyte-cli.strip=\"none\"");
    let mut arguments = vec!["build", "--locked", "--package", "firstbyte-cli", "--all-features"];
    arguments.extend(["--profile", profile]);
    arguments.extend(["--config", &whole]);
    let mut built = PathBuf::from("target");
    if let Some(triple) = target.triple() {
        arguments.extend(["--target", triple]);
        built.push(triple);
    }
    let environment: Vec<(&str, &str)> =
        target.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    cargo(&arguments, &environment)?;
    Ok(built.join(profile).join("firstbyte"))
}

/// The C libraries as they are shipped, by glibc's rules: a program and its library share one libc.
pub(super) struct Libraries {
    pub(super) shared: PathBuf,
    pub(super) archive: PathBuf,
    pub(super) preload: PathBuf,
}

/// Builds the C libraries, and removes their debug information.
pub(super) fn libraries(release: &Release) -> Result<Libraries, String> {
    let built = if release.is_quick() {
        quick()?;
        PathBuf::from("target/debug")
    } else {
        let profile = release.profile.as_str();
        let both = ["--package", "firstbyte-capi", "--package", "firstbyte-preload"];
        cargo(&[&["build", "--locked", "--profile", profile], &both[..]].concat(), &[])?;
        Path::new("target").join(profile)
    };
    let folder = release.empty_folder("libraries")?;
    let stripped = |name: &str| -> Result<PathBuf, String> {
        let to = folder.join(name);
        fs::copy(built.join(name), &to)
            .map_err(|error| format!("cannot copy {}: {error}", built.join(name).display()))?;
        // An archive is linked by its symbols.
        let what = if name.ends_with(".a") { "--strip-debug" } else { "--strip-unneeded" };
        output(Command::new("strip").arg(what).arg(&to))?;
        Ok(to)
    };
    Ok(Libraries {
        shared: stripped("libfirstbyte.so")?,
        archive: stripped("libfirstbyte.a")?,
        preload: stripped("libfirstbyte_preload.so")?,
    })
}
