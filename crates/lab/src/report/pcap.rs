//! Recordings as a pcapng file that Wireshark and tshark read, with comments on the packets that matter.

use super::remarks::remarks;
use crate::capture::{Capture, HostId, Place};
use device::tap::{Captured, Direction, PcapngWriter};
use std::io::{self, Write};

/// What one host saw during one run.
#[derive(Clone, Debug)]
pub struct Recording<'a> {
    /// Name of the run; becomes the name of an interface in the file.
    pub name: String,
    /// Everything that was seen.
    pub capture: &'a Capture,
    /// At whose interface the packets are shown.
    pub host: HostId,
    /// Who opened the connections, in ascending order; the comments are about those of the first.
    pub clients: &'a [HostId],
}

impl Recording<'_> {
    /// The first of the clients: pictures and comments are about its connections.
    ///
    /// # Panics
    /// Where there is no client.
    pub fn client(&self) -> HostId {
        *self.clients.first().expect("somebody opened the connections")
    }

    /// Is it one of the clients?
    pub fn is_client(&self, host: HostId) -> bool {
        self.clients.binary_search(&host).is_ok()
    }
}

/// Between two recordings in one file, so that they do not overlap.
const PAUSE_NANOS: u64 = 1_000_000_000;

/// Writes recordings one after the other, each as an interface of its own. Time zero is 1970-01-01.
///
/// # Errors
/// The writer's.
pub fn write_pcapng(writer: impl Write, recordings: &[Recording<'_>]) -> io::Result<()> {
    let mut file = PcapngWriter::new(writer)?;
    let mut start = 0;
    for recording in recordings {
        let interface = file.add_interface(&recording.name, "virtual time")?;
        let remarks = remarks(recording.capture, recording.client());
        let mut end = 0;
        for seen in recording.capture.observations() {
            let direction = match seen.place {
                Place::Left(host) if host == recording.host => Direction::Outbound,
                Place::Arrived(host) if host == recording.host => Direction::Inbound,
                _ => continue,
            };
            end = seen.at.as_nanos();
            file.write_packet(&Captured {
                interface,
                at: start + end,
                direction: Some(direction),
                comments: remarks.get(&seen.packet).map(Vec::as_slice).unwrap_or_default(),
                data: &seen.bytes,
            })?;
        }
        start += end + PAUSE_NANOS;
    }
    file.flush()
}

#[cfg(test)]
mod tests;
