//! A capture as `firstbyte pcap` reads it, frame by frame.

use firstbyte_capture::event::Events;
use firstbyte_capture::{CaptureFile, Connection, End, NotTcp, Packet, Table};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use wire::Flags;

/// A frame with TCP.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) connection: u64,
    pub(crate) is_syn: bool,
    pub(crate) is_reset: bool,
    pub(crate) text_len: u32,
    /// Sequence and acknowledgement number, and the ports.
    pub(crate) fields: [u32; 4],
    /// True if IP's length field was too small for it.
    pub(crate) is_big: bool,
    /// True if the capture already had it on another interface.
    pub(crate) is_copy: bool,
    pub(crate) events: Events,
    pub(crate) has_cookie_option: bool,
}

impl Segment {
    /// Returns whether it repeats data or a FIN. SYNs are not compared, because tshark does not
    /// count all of them.
    pub(crate) fn is_retransmission(&self) -> bool {
        self.events.is_retransmission() && !self.is_syn
    }
}

/// A whole capture.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) segments: BTreeMap<u64, Segment>,
    /// The reasons why other frames have no segment.
    pub(crate) others: BTreeMap<u64, NotTcp>,
    pub(crate) connections: u64,
    /// The reason why reading stopped or did not start.
    pub(crate) problem: Option<String>,
}

pub(crate) fn read(capture: &Path) -> Reading {
    let mut reading = Reading::default();
    let file = File::open(capture).map_err(|error| error.to_string());
    let file = file.and_then(|file| CaptureFile::open(file).map_err(|error| error.to_string()));
    let mut file = match file {
        Ok(file) => file,
        Err(problem) => return Reading { problem: Some(problem), ..reading },
    };
    let mut table = Table::default();
    while let Some(frame) = file.next_frame() {
        let number = reading.segments.len() + reading.others.len() + 1;
        match frame.tcp() {
            Ok(packet) => {
                let segment = segment(&packet, table.handle(&packet, &mut |_| {}));
                reading.segments.insert(number as u64, segment);
            }
            Err(why) => drop(reading.others.insert(number as u64, why)),
        }
    }
    reading.connections = table.begun();
    reading.problem = match file.end() {
        End::Damaged(what) => Some(what),
        End::Truncated => Some("ends in the middle of a packet".to_owned()),
        End::Whole => None,
    };
    reading
}

fn segment(packet: &Packet<'_>, connection: &Connection) -> Segment {
    Segment {
        connection: connection.number(),
        is_syn: packet.flags.contains(Flags::SYN),
        is_reset: packet.flags.contains(Flags::RST),
        text_len: packet.text_len,
        fields: [packet.seq.0, packet.ack.0, packet.src.port().into(), packet.dst.port().into()],
        is_big: packet.wire_len > u32::from(u16::MAX),
        is_copy: connection.is_last_copy(),
        events: connection.last_events(),
        has_cookie_option: packet.options.fast_open.is_some(),
    }
}
