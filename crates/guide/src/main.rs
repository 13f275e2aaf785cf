//! Writes the guide's pictures: `firstbyte-pictures FOLDER`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: firstbyte-pictures FOLDER");
        return ExitCode::from(2);
    };
    match guide::pictures::write(&folder) {
        Ok(count) => {
            println!("{count} pictures in {}", folder.display());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("firstbyte-pictures: {problem}");
            ExitCode::FAILURE
        }
    }
}
