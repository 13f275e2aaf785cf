//! `--pcap FILE`: captures all packets of the stack's device to a file.
use super::spool::{Queue, Spool};
use crate::failure::Failure;
use crate::output::OutputFile;
use firstbyte::device::Device;
use firstbyte::device::tap::{Capture, InterfaceId, PcapngWriter, SharedWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A capture file in progress.
pub(crate) struct PcapFile {
    path: PathBuf,
    writer: SharedWriter<Spool>,
    queue: Arc<Queue>,
    interface: InterfaceId,
    /// True once a warning about write errors was printed.
    failed: AtomicBool,
}

impl PcapFile {
    /// Creates a capture with one interface. Replaces an old file once the new one has its header;
    /// packets follow as they are captured.
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
        // A pipe may not accept data yet.
        if !file.is_placed() {
            pcap.finish()?;
        }
        file.place().map_err(failure)?;
        Ok(pcap)
    }

    /// Captures the packets that pass through `device`, with wall-clock times.
    pub(crate) fn watch<D: Device>(&self, device: D) -> Capture<D, Spool> {
        Capture::shared(device, self.interface, self.writer.clone(), Box::new(wall_clock))
    }

    /// Returns a warning, once, if packets are missing in the file.
    pub(crate) fn warning(&self) -> Option<String> {
        let fault = self.queue.fault()?;
        (!self.failed.swap(true, Ordering::Relaxed)).then(|| self.not_complete(&fault))
    }

    /// Waits for the last packets. Fails if any packet could not be written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.queue.finish().map_or(Ok(()), |fault| Err(Failure::failed(self.not_complete(&fault))))
    }

    fn not_complete(&self, fault: &str) -> String {
        format!("the capture is incomplete: {}: {fault}", self.path.display())
    }
}

/// Returns nanoseconds since 1970.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
