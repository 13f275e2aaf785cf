//! Recordings as pcapng files for Wireshark and tshark, with comments on notable packets.

mod apart;

use super::remarks::remarks;
use crate::capture::{Capture, HostId, Place};
use apart::Apart;
use device::tap::{Captured, Direction, PcapngWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The packets that one host saw during one run.
#[derive(Clone, Debug)]
pub struct Recording<'a> {
    /// Name of the run. With the end that saw its packets, it names an interface in the file.
    pub name: String,
    /// All packets of the run.
    pub capture: &'a Capture,
    /// The host at whose interface the packets are shown.
    pub host: HostId,
    /// The hosts that opened the connections, in ascending order.
    pub clients: &'a [HostId],
}

impl Recording<'_> {
    /// Returns whether the host is one of the clients.
    pub fn is_client(&self, host: HostId) -> bool {
        self.clients.binary_search(&host).is_ok()
    }

    /// Returns all other hosts whose packets were seen, in ascending order.
    fn servers(&self) -> Vec<HostId> {
        let hosts = self.capture.observations().iter().filter_map(|seen| match seen.place {
            Place::Left(host) | Place::Arrived(host) => Some(host),
            _ => None,
        });
        let servers: BTreeSet<HostId> = hosts.filter(|host| !self.is_client(*host)).collect();
        servers.into_iter().collect()
    }

    /// Returns the hosts whose packets are shown; for a client, all clients.
    fn shown(&self) -> Vec<HostId> {
        if self.is_client(self.host) { self.clients.to_vec() } else { vec![self.host] }
    }

    /// Returns the name and description of the interface at a host.
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
/// begins after 1970-01-01: Wireshark treats a SYN at time zero as one without a time, and then
/// cannot use the round trip to distinguish reordering from retransmission.
const PAUSE_NANOS: u64 = 1_000_000_000;

/// Writes recordings one after the other, each client as an interface of its own. The first begins
/// one second after 1970-01-01. The servers of each recording have their own addresses in the file.
///
/// # Errors
/// Errors of the writer.
pub fn write_pcapng(writer: impl Write, recordings: &[Recording<'_>]) -> io::Result<()> {
    write(writer, recordings, |recording| recording.shown())
}

/// Writes recordings as their servers saw them, each server as an interface of its own. Time zero
/// is the same as in the file of [`write_pcapng`]. Two files are needed, because analyzers treat a
/// packet that occurs twice in one file as a retransmission.
///
/// # Errors
/// Errors of the writer.
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
        // Includes hosts that are not shown: both files need the same start times.
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
