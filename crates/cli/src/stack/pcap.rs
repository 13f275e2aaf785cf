//! `--pcap FILE`: everything that passes the stack's device, in a file.
use super::spool::{Queue, Spool};
use crate::failure::Failure;
use crate::output::OutputFile;
use firstbyte::device::Device;
use firstbyte::device::tap::{Capture, InterfaceId, PcapngWriter, SharedWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A capture file under way.
pub(crate) struct PcapFile {
    path: PathBuf,
    writer: SharedWriter<Spool>,
    queue: Arc<Queue>,
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
        let spool = file.handle().and_then(Spool::start).map_err(failure)?;
        let queue = spool.queue();
        let mut writer = PcapngWriter::new(spool).map_err(failure)?;
        let interface = writer.add_interface(interface, "").map_err(failure)?;
        let pcap = PcapFile {
            path: path.to_owned(),
            writer: Arc::new(Mutex::new(writer)),
            queue,
            interface,
            failed: AtomicBool::new(false),
        };
        // A pipe may take nothing yet.
        if !file.is_placed() {
            pcap.finish()?;
        }
        file.place().map_err(failure)?;
        Ok(pcap)
    }

    /// Captures what passes through `device`, with the wall clock's times.
    pub(crate) fn watch<D: Device>(&self, device: D) -> Capture<D, Spool> {
        Capture::shared(device, self.interface, self.writer.clone(), Box::new(wall_clock))
    }

    /// Says, once, that the file lacks something.
    pub(crate) fn warning(&self) -> Option<String> {
        let fault = self.queue.fault()?;
        (!self.failed.swap(true, Ordering::Relaxed)).then(|| self.not_complete(&fault))
    }

    /// Waits for the last of it; an error also where something before it could not be written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.queue.finish().map_or(Ok(()), |fault| Err(Failure::failed(self.not_complete(&fault))))
    }

    fn not_complete(&self, fault: &str) -> String {
        format!("the capture is not complete: {}: {fault}", self.path.display())
    }
}

/// Nanoseconds since 1970.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
