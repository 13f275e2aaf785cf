//! `--pcap FILE`: everything that passes the stack's device, in a file.
use crate::failure::Failure;
use crate::output::OutputFile;
use firstbyte::device::Device;
use firstbyte::device::tap::{Capture, InterfaceId, PcapngWriter, SharedWriter};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// A capture file under way.
pub(crate) struct PcapFile {
    path: PathBuf,
    writer: SharedWriter<BufWriter<File>>,
    interface: InterfaceId,
    /// It was said that the file takes no more.
    failed: AtomicBool,
}

impl PcapFile {
    /// Begins a capture with one interface. An older file is replaced once the new one has its
    /// header; packets follow as they are seen.
    pub(crate) fn create(path: &Path, interface: &str) -> Result<PcapFile, Failure> {
        let failure = |error| Failure::file("write", path, &error);
        let mut file = OutputFile::create(path).map_err(failure)?;
        let mut writer =
            file.handle().and_then(|file| PcapngWriter::new(BufWriter::new(file))).map_err(failure)?;
        let interface = writer.add_interface(interface, "").map_err(failure)?;
        writer.flush().and_then(|()| file.place()).map_err(failure)?;
        let writer = Arc::new(Mutex::new(writer));
        Ok(PcapFile { path: path.to_owned(), writer, interface, failed: AtomicBool::new(false) })
    }

    /// Captures what passes through `device`, with the wall clock's times.
    pub(crate) fn watch<D: Device>(&self, device: D) -> Capture<D, BufWriter<File>> {
        Capture::shared(device, self.interface, self.writer.clone(), Box::new(wall_clock))
    }

    /// Brings what was captured so far to the file. The first time that this fails, returns the warning.
    pub(crate) fn flush(&self) -> Option<String> {
        let error = self.try_flush().err()?;
        (!self.failed.swap(true, Ordering::Relaxed)).then(|| self.not_complete(&error))
    }

    /// The last of it; an error also where something before it could not be written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.try_flush().map_err(|error| Failure::failed(self.not_complete(&error)))
    }

    fn try_flush(&self) -> io::Result<()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }

    fn not_complete(&self, error: &io::Error) -> String {
        format!("the capture is not complete: {}: {error}", self.path.display())
    }
}

/// Nanoseconds since 1970.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
