//! Middleboxes that change or duplicate packets.

use super::{Direction, Middlebox, Passed, pass};
use crate::segment::Segment;
use bytes::Bytes;
use proto::Instant;
use wire::Flags;

/// Removes the Fast Open option from every SYN and SYN-ACK and leaves the rest unchanged, data
/// included.
#[derive(Clone, Debug, Default)]
pub struct StripFastOpen;

impl Middlebox for StripFastOpen {
    fn name(&self) -> &str {
        "normaliser"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        match Segment::parse(&packet) {
            Some(mut segment)
                if segment.tcp.flags.contains(Flags::SYN) && segment.tcp.options.fast_open.is_some() =>
            {
                segment.tcp.options.fast_open = None;
                pass(segment.emit())
            }
            _ => pass(packet),
        }
    }
}

/// Removes window scale, SACK and timestamps from every SYN and SYN-ACK, as a SYN proxy does: it
/// answers SYNs itself and does not know the abilities of the server behind it.
#[derive(Clone, Debug, Default)]
pub struct SynProxy;

impl Middlebox for SynProxy {
    fn name(&self) -> &str {
        "SYN proxy"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        match Segment::parse(&packet) {
            Some(mut segment) if segment.tcp.flags.contains(Flags::SYN) => {
                let options = &mut segment.tcp.options;
                (options.window_scale, options.sack_permitted, options.timestamps) = (None, false, None);
                pass(segment.emit())
            }
            _ => pass(packet),
        }
    }
}

/// Duplicates every SYN, as a network does that repeats a frame.
#[derive(Clone, Debug, Default)]
pub struct Duplicate;

impl Middlebox for Duplicate {
    fn name(&self) -> &str {
        "repeater"
    }

    fn handle_packet(&mut self, _now: Instant, _direction: Direction, packet: Bytes) -> Passed {
        match Segment::parse(&packet).is_some_and(|segment| segment.is_syn()) {
            true => Passed::from_iter([packet.clone(), packet]),
            false => pass(packet),
        }
    }
}
