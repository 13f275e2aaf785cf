//! Differences between two readings of a capture, and their causes.

use crate::{ours, tshark};
use firstbyte_capture::NotTcp;
use firstbyte_capture::event::Event;
use std::collections::{BTreeMap, BTreeSet};

/// A known reason why two readings differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    OtherFormat,
    Compressed,
    HeaderLengths,
    SampledHeaders,
    BigTcp,
    LengthOfTheFrame,
    CapturedTwice,
    DeliveredTwice,
    OutOfOrder,
    TsharkOutOfOrder,
    TsharkKeepAlive,
    ResetText,
    ResetNumbers,
    OtherNumbers,
    SamePorts,
    Unexplained,
}

impl Cause {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Cause::OtherFormat => "the file is neither pcap nor pcapng (snoop, ERF, LZ4), so it is not read",
            Cause::Compressed => "the packet is compressed (IPComp), so it is not read",
            Cause::HeaderLengths => {
                "TCP header cut, or its length below 20: one of the two counts the packet"
            }
            Cause::SampledHeaders => "tshark reads sampled packets in sFlow",
            Cause::BigTcp => "IP length 0 of a packet above 64 KiB (BIG TCP): tshark finds no TCP in it",
            Cause::LengthOfTheFrame => {
                "IP claims more bytes than the frame or fragment has: tshark counts those of the frame, or none"
            }
            Cause::CapturedTwice => "recorded twice within 2 ms: a retransmission for tshark",
            Cause::DeliveredTwice => {
                "the same packet again later, by identification or timestamp: a retransmission for tshark"
            }
            Cause::OutOfOrder => {
                "late but not retransmitted, by identification, timestamp, time or acknowledgement"
            }
            Cause::TsharkOutOfOrder => "tshark calls every gap filled within 3 ms out of order",
            Cause::TsharkKeepAlive => "tshark calls a repeated last byte a keep-alive",
            Cause::ResetText => "the data of a reset, which belongs to no stream",
            Cause::ResetNumbers => "tshark continues with the numbers of a reset",
            Cause::OtherNumbers => {
                "tshark continues with the numbers of another server or an older connection"
            }
            Cause::SamePorts => "several connections between the same ports, separated differently",
            Cause::Unexplained => "unexplained",
        }
    }
}

/// Counts of both readings, and of each cause of a difference.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Frames with TCP: tshark's, ours.
    pub(crate) packets: [u64; 2],
    pub(crate) connections: [u64; 2],
    pub(crate) retransmissions: [u64; 2],
    pub(crate) causes: BTreeMap<Cause, u64>,
    /// Frames that differ without a known cause.
    pub(crate) unexplained: Vec<String>,
}

impl Comparison {
    fn note(&mut self, cause: Cause, what: impl FnOnce() -> String) {
        *self.causes.entry(cause).or_default() += 1;
        if cause == Cause::Unexplained {
            self.unexplained.push(what());
        }
    }

    pub(crate) fn has_tcp(&self) -> bool {
        self.packets != [0, 0]
    }
}

pub(crate) fn compare(theirs: &tshark::Reading, ours: &ours::Reading) -> Comparison {
    let mut comparison = Comparison::default();
    let lines: BTreeMap<u64, &tshark::Line> = theirs
        .lines
        .iter()
        .filter(|line| !line.is_quoted_by_icmp())
        .map(|line| (line.number, line))
        .collect();
    comparison.packets = [lines.len() as u64, ours.segments.len() as u64];
    let streams: BTreeSet<u64> = lines.values().filter_map(|line| line.stream).collect();
    comparison.connections = [streams.len() as u64, ours.connections];
    let theirs_again = lines.values().filter(|line| line.is_retransmission && !line.is_syn).count();
    let ours_again = ours.segments.values().filter(|segment| segment.is_retransmission()).count();
    comparison.retransmissions = [theirs_again as u64, ours_again as u64];
    let numbers: BTreeSet<u64> = lines.keys().chain(ours.segments.keys()).copied().collect();
    let same_ports = compare_connections(&mut comparison, &lines, ours);
    let mut marks = Marks { same_ports, ..Marks::default() };
    for number in numbers {
        match (lines.get(&number), ours.segments.get(&number)) {
            (Some(line), Some(segment)) => {
                marks.note(line, segment);
                compare_frame(&mut comparison, line, segment, &marks);
            }
            (Some(line), None) => {
                let cause = missing(line, ours.others.get(&number).copied(), ours);
                comparison.note(cause, || format!("frame {number} is not read: {}", line.protocols));
            }
            (None, Some(segment)) => {
                let cause = match () {
                    () if segment.is_big => Cause::BigTcp,
                    () => Cause::Unexplained,
                };
                comparison.note(cause, || format!("frame {number}: only firstbyte reads it"));
            }
            (None, None) => {}
        }
    }
    if comparison.connections[0] != comparison.connections[1] && comparison.causes.is_empty() {
        comparison.note(Cause::Unexplained, || "the number of connections".to_owned());
    }
    comparison
}

/// Streams with a packet that changes tshark's view of later frames.
#[derive(Default)]
struct Marks {
    /// Some data had another length.
    other_lengths: BTreeSet<Option<u64>>,
    /// A packet of an older connection, or of another server.
    other_numbers: BTreeSet<Option<u64>>,
    /// A reset, whose acknowledgement number may be anything.
    reset: BTreeSet<Option<u64>>,
    /// Several of our connections, or one of them in several streams.
    same_ports: BTreeSet<Option<u64>>,
}

impl Marks {
    fn note(&mut self, line: &tshark::Line, segment: &ours::Segment) {
        let has = |event| segment.events.contains(event);
        let marks = [
            (line.text_len != segment.text_len, &mut self.other_lengths),
            (has(Event::OlderConnection) || has(Event::OtherServer), &mut self.other_numbers),
            (segment.is_reset, &mut self.reset),
        ];
        for (is_so, streams) in marks {
            if is_so {
                streams.insert(line.stream);
            }
        }
    }
}

/// Compares a frame that both read.
fn compare_frame(comparison: &mut Comparison, line: &tshark::Line, segment: &ours::Segment, marks: &Marks) {
    let number = line.number;
    if line.stream.is_none() {
        let cause = if segment.is_big { Cause::BigTcp } else { Cause::HeaderLengths };
        return comparison.note(cause, String::new);
    }
    if line.text_len != segment.text_len {
        let is_longer = segment.text_len > line.text_len;
        let cause = if is_longer { Cause::LengthOfTheFrame } else { Cause::Unexplained };
        comparison.note(cause, || {
            format!("frame {number} has {} bytes of text; tshark: {}", segment.text_len, line.text_len)
        });
    }
    if line.fields != segment.fields {
        comparison.note(Cause::Unexplained, || format!("frame {number}: numbers or ports"));
    }
    // Neither sees an option of a header that was cut.
    if line.is_syn && line.has_cookie_option != segment.has_cookie_option {
        comparison.note(Cause::Unexplained, || format!("frame {number}: the Fast Open option"));
    }
    if line.is_syn || line.is_retransmission == segment.is_retransmission() {
        return;
    }
    let cause = match line.is_retransmission {
        _ if marks.other_lengths.contains(&line.stream) => Cause::LengthOfTheFrame,
        true if segment.is_copy => Cause::CapturedTwice,
        true if segment.events.contains(Event::Duplicate) => Cause::DeliveredTwice,
        true if segment.events.contains(Event::OutOfOrder) => Cause::OutOfOrder,
        true if segment.is_reset => Cause::ResetText,
        _ if marks.same_ports.contains(&line.stream) => Cause::SamePorts,
        _ if marks.other_numbers.contains(&line.stream) => Cause::OtherNumbers,
        true if marks.reset.contains(&line.stream) => Cause::ResetNumbers,
        false if line.is_out_of_order => Cause::TsharkOutOfOrder,
        false if line.is_keep_alive => Cause::TsharkKeepAlive,
        _ => Cause::Unexplained,
    };
    let who = if line.is_retransmission { "only tshark" } else { "only firstbyte" };
    comparison.note(cause, || {
        format!(
            "frame {number} is a retransmission for {who} (stream {:?}; {:?})",
            line.stream,
            segment.events.iter().collect::<Vec<_>>()
        )
    });
}

/// Notes a frame that only tshark reads.
fn missing(line: &tshark::Line, why: Option<NotTcp>, ours: &ours::Reading) -> Cause {
    match why {
        None if ours.segments.is_empty() && ours.others.is_empty() => Cause::OtherFormat,
        Some(NotTcp::Malformed | NotTcp::Short) => Cause::HeaderLengths,
        _ if line.has_below("sflow") => Cause::SampledHeaders,
        _ if line.has_below("ipcomp") => Cause::Compressed,
        _ => Cause::Unexplained,
    }
}

/// Compares connections by the frames that both read. Returns the streams that are not a single
/// connection of ours.
fn compare_connections(
    comparison: &mut Comparison,
    lines: &BTreeMap<u64, &tshark::Line>,
    ours: &ours::Reading,
) -> BTreeSet<Option<u64>> {
    let mut parts: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut joined: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (number, line) in lines {
        if let (Some(stream), Some(segment)) = (line.stream, ours.segments.get(number)) {
            parts.entry(stream).or_default().insert(segment.connection);
            joined.entry(segment.connection).or_default().insert(stream);
        }
    }
    let split = parts.iter().filter(|(_, connections)| connections.len() > 1).map(|(stream, _)| *stream);
    let joined = joined.into_values().filter(|streams| streams.len() > 1).flatten();
    let streams: BTreeSet<Option<u64>> = split.chain(joined).map(Some).collect();
    for _ in &streams {
        comparison.note(Cause::SamePorts, String::new);
    }
    streams
}
