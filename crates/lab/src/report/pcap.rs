//! Recordings as a pcapng file that Wireshark and tshark read, with comments on the packets that matter.

mod apart;

use super::remarks::remarks;
use crate::capture::{Capture, HostId, Place};
use apart::Apart;
use device::tap::{Captured, Direction, PcapngWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// What one host saw during one run.
#[derive(Clone, Debug)]
pub struct Recording<'a> {
    /// Name of the run; with the end that saw its packets it becomes the name of an interface in the file.
    pub name: String,
    /// Everything that was seen.
    pub capture: &'a Capture,
    /// At whose interface the packets are shown.
    pub host: HostId,
    /// The hosts that opened the connections, in ascending order.
    pub clients: &'a [HostId],
}

impl Recording<'_> {
    /// Is it one of the clients?
    pub fn is_client(&self, host: HostId) -> bool {
        self.clients.binary_search(&host).is_ok()
    }

    /// Everybody else whose packets were seen, in ascending order.
    fn servers(&self) -> Vec<HostId> {
        let hosts = self.capture.observations().iter().filter_map(|seen| match seen.place {
            Place::Left(host) | Place::Arrived(host) => Some(host),
            _ => None,
        });
        let servers: BTreeSet<HostId> = hosts.filter(|host| !self.is_client(*host)).collect();
        servers.into_iter().collect()
    }

    /// Hosts whose packets are shown: where that is a client, all of them.
    fn shown(&self) -> Vec<HostId> {
        if self.is_client(self.host) { self.clients.to_vec() } else { vec![self.host] }
    }

    /// Name and description of the interface at a host.
    fn names(&self, host: HostId) -> (String, String) {
        let (all, end) = match self.is_client(host) {
            true => (self.clients.to_vec(), "client"),
            false => (self.servers(), "server"),
        };
        let end = match &all[..] {
            [_] => end.to_owned(),
            all => format!("{end} {}", all.iter().take_while(|one| **one != host).count() + 1),
        };
        (format!("{} ({end})", self.name), format!("at the {end}, virtual time"))
    }
}

/// Gap before each recording in a file, so that recordings do not overlap. The first recording also
/// begins after 1970-01-01. Wireshark takes a SYN at time zero for one without a time, and then
/// cannot tell reordering from retransmission by the round trip.
const PAUSE_NANOS: u64 = 1_000_000_000;

/// Writes recordings one after the other, each client as an interface of its own. The first begins one second after 1970-01-01. The
/// servers of each recording have addresses of their own in the file.
///
/// # Errors
/// The writer's.
pub fn write_pcapng(writer: impl Write, recordings: &[Recording<'_>]) -> io::Result<()> {
    write(writer, recordings, |recording| recording.shown())
}

/// Writes recordings as their servers saw them, each server as an interface of its own; a packet has the same time zero as in the file that
/// [`write_pcapng`] writes. The two stand in two files, as analyzers take a packet that is in one file twice for a retransmission.
///
/// # Errors
/// The writer's.
pub fn write_pcapng_of_servers(writer: impl Write, recordings: &[Recording<'_>]) -> io::Result<()> {
    write(writer, recordings, |recording| recording.servers())
}

fn write(
    writer: impl Write,
    recordings: &[Recording<'_>],
    hosts: impl Fn(&Recording<'_>) -> Vec<HostId>,
) -> io::Result<()> {
    let mut file = PcapngWriter::new(writer)?;
    let (mut start, mut apart) = (PAUSE_NANOS, Apart::default());
    for recording in recordings {
        let moved = apart.of_run(recording.capture.observations().iter().map(|seen| &seen.bytes));
        let hosts = hosts(recording);
        let mut interfaces = BTreeMap::new();
        for host in &hosts {
            let (name, place) = recording.names(*host);
            interfaces.insert(*host, file.add_interface(&name, &place)?);
        }
        let remarks = remarks(recording.capture, recording.clients);
        // Also of what is not shown: both files have the same beginnings.
        let mut end = 0;
        for seen in recording.capture.observations() {
            end = end.max(seen.at.as_nanos());
            let (host, direction) = match seen.place {
                Place::Left(host) => (host, Direction::Outbound),
                Place::Arrived(host) => (host, Direction::Inbound),
                _ => continue,
            };
            let Some(interface) = interfaces.get(&host) else { continue };
            file.write_packet(&Captured {
                interface: *interface,
                at: start + seen.at.as_nanos(),
                direction: Some(direction),
                comments: remarks.get(&seen.packet).map(Vec::as_slice).unwrap_or_default(),
                data: &moved.packet(&seen.bytes),
            })?;
        }
        start += end + PAUSE_NANOS;
    }
    file.flush()
}

#[cfg(test)]
mod tests;
