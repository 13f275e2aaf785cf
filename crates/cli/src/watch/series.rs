//! A series of samples: of the kernel, saved if requested, or of a saved file.
use crate::failure::Failure;
use crate::input;
use crate::output::OutputFile;
use crate::source::KernelArgs;
use doctor::{Record, Sample, sources};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

/// Source of samples.
pub(super) enum Series<'a> {
    /// The kernel.
    Live { source: &'a KernelArgs, record: Option<(PathBuf, OutputFile)> },
    /// A file with one record per line.
    Replay { path: PathBuf, file: BufReader<File>, at: usize },
}

impl<'a> Series<'a> {
    /// Samples the kernel.
    pub(super) fn live(source: &'a KernelArgs, record: Option<&Path>) -> Result<Series<'a>, Failure> {
        let create = |path: &Path| match OutputFile::create(path) {
            Ok(file) => Ok((path.to_owned(), file)),
            Err(error) => Err(Failure::file("write", path, &error)),
        };
        Ok(Series::Live { source, record: record.map(create).transpose()? })
    }

    /// Reads a saved series.
    pub(super) fn replay(path: &Path) -> Result<Series<'static>, Failure> {
        let file = File::open(path).map_err(|error| Failure::file("read", path, &error))?;
        Ok(Series::Replay { path: path.to_owned(), file: BufReader::new(file), at: 0 })
    }

    /// Returns the next sample; `None` at the end of a file.
    pub(super) fn next(&mut self) -> Result<Option<Sample>, Failure> {
        match self {
            Series::Live { source, record } => {
                let sample = source.read(sources::here)?;
                if let Some((path, file)) = record {
                    let line = Record::new(None, sample.clone()).text() + "\n";
                    let written = file.write_all(line.as_bytes()).and_then(|()| file.place());
                    written.map_err(|error| Failure::file("write", path, &error))?;
                }
                Ok(Some(sample))
            }
            Series::Replay { path, file, at } => {
                let Some(line) = input::line(path, file, input::RECORDED_MAX)? else { return Ok(None) };
                *at += 1;
                let record = Record::parse(&line)
                    .map_err(|why| Failure::failed(format!("{}, line {at}: {why}", path.display())))?;
                Ok(Some(record.now))
            }
        }
    }
}
