//! Compares this crate with tshark, frame by frame.
//!
//! `cargo xtask captures DIR` runs it. DIR has a folder for each project. Prints Markdown tables.
//!
//! | module | subject |
//! |---|---|
//! | `tshark` | tshark's reading of each frame |
//! | `ours` | this crate's reading |
//! | `compare` | differences and their causes |
//! | `tables` | sums by project and by cause |

mod compare;
mod ours;
mod tables;
mod tshark;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

const USAGE: &str = "\
usage: beside_tshark DIR [--kept FOLDER]

  DIR            has a folder with captures for each project
  --kept FOLDER  keep what tshark wrote about each capture in FOLDER, and use it the next time";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (dir, kept) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [dir] => (dir, None),
        [dir, "--kept", folder] => (dir, Some(PathBuf::from(folder))),
        _ => return Err(io::Error::other(USAGE)),
    };
    let mut tables = tables::Tables::default();
    for project in sorted(Path::new(dir))?.iter().filter(|path| path.is_dir()) {
        let name = file_name(project);
        for capture in sorted(project)?.iter().filter(|path| path.is_file()) {
            let capture_name = file_name(capture);
            let kept = kept.as_ref().map(|folder| folder.join(&name).join(format!("{capture_name}.tsv")));
            let theirs = tshark::read(capture, kept)?;
            let comparison = compare::compare(&theirs, &ours::read(capture));
            for what in comparison.unexplained.iter().take(5) {
                eprintln!("{name}/{capture_name}: {what}");
            }
            tables.add(&name, &comparison);
        }
        eprintln!("{name}: done");
    }
    print!("{tables}");
    Ok(())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot read `{}`: {error}; name a folder", folder.display()))
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
