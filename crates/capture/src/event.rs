//! Events of single packets, named like in Wireshark.

use core::fmt;

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A SYN between ports that had another connection in the capture.
    PortReused,
    /// Data, a SYN or a FIN that was sent before.
    Retransmission,
    /// A retransmission that duplicate acknowledgements caused.
    FastRetransmission,
    /// A retransmission of data that the receiver had already acknowledged.
    SpuriousRetransmission,
    /// A segment that the network delivered or the capture recorded after a later one.
    OutOfOrder,
    /// A segment that the network delivered twice: its copy is as old as the original.
    Duplicate,
    /// A segment after a gap in the sequence numbers.
    PreviousNotCaptured,
    /// An acknowledgement of data that the capture does not have.
    AckedUnseen,
    /// A probe of an idle connection: no byte or one byte, below the next sequence number (RFC 9293
    /// section 3.8.4).
    KeepAlive,
    /// The answer to a keep-alive.
    KeepAliveAck,
    /// A closed receive window.
    ZeroWindow,
    /// A probe of a closed receive window (RFC 9293 section 3.8.6.1).
    ZeroWindowProbe,
    /// The answer to a zero window probe: the window is still closed.
    ZeroWindowProbeAck,
    /// Data that fills the window of the receiver.
    WindowFull,
    /// An acknowledgement that only changes the window.
    WindowUpdate,
    /// An acknowledgement that repeats the previous one.
    DuplicateAck,
    /// Sequence numbers of an older connection between the same ports.
    OlderConnection,
    /// An answer of another server, or of the same server with other sequence numbers.
    OtherServer,
}

impl Event {
    /// All events, in the order in which they are described.
    pub const ALL: [Event; 18] = [
        Event::PortReused,
        Event::OlderConnection,
        Event::OtherServer,
        Event::Retransmission,
        Event::FastRetransmission,
        Event::SpuriousRetransmission,
        Event::OutOfOrder,
        Event::Duplicate,
        Event::PreviousNotCaptured,
        Event::AckedUnseen,
        Event::KeepAlive,
        Event::KeepAliveAck,
        Event::ZeroWindow,
        Event::ZeroWindowProbe,
        Event::ZeroWindowProbeAck,
        Event::WindowFull,
        Event::WindowUpdate,
        Event::DuplicateAck,
    ];
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Event::PortReused => "port reused",
            Event::Retransmission => "retransmission",
            Event::FastRetransmission => "fast retransmission",
            Event::SpuriousRetransmission => "spurious retransmission",
            Event::OutOfOrder => "out-of-order",
            Event::Duplicate => "duplicate",
            Event::PreviousNotCaptured => "previous segment not captured",
            Event::AckedUnseen => "acknowledges data not captured",
            Event::KeepAlive => "keep-alive",
            Event::KeepAliveAck => "keep-alive ACK",
            Event::ZeroWindow => "zero window",
            Event::ZeroWindowProbe => "zero window probe",
            Event::ZeroWindowProbeAck => "zero window probe ACK",
            Event::WindowFull => "window full",
            Event::WindowUpdate => "window update",
            Event::DuplicateAck => "duplicate ACK",
            Event::OlderConnection => "older connection",
            Event::OtherServer => "other server",
        })
    }
}

/// The events of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    bits: u32,
    duplicate_acks: u32,
}

impl Events {
    /// Returns whether `event` is one of them.
    pub fn contains(self, event: Event) -> bool {
        self.bits & Events::bit(event) != 0
    }

    /// Returns whether the packet was a retransmission of any kind.
    pub fn is_retransmission(self) -> bool {
        [Event::Retransmission, Event::FastRetransmission, Event::SpuriousRetransmission]
            .into_iter()
            .any(|event| self.contains(event))
    }

    /// Iterates over the events.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        Event::ALL.into_iter().filter(move |event| self.contains(*event))
    }

    /// Returns the position of a duplicate acknowledgement in its series, starting at 1. 0 if it is
    /// not one.
    pub fn duplicate_acks(self) -> u32 {
        self.duplicate_acks
    }

    pub(crate) fn add(&mut self, event: Event) {
        self.bits |= Events::bit(event);
    }

    pub(crate) fn add_duplicate_ack(&mut self, nth: u32) {
        self.add(Event::DuplicateAck);
        self.duplicate_acks = nth;
    }

    pub(crate) fn of(event: Event) -> Events {
        Events { bits: Events::bit(event), duplicate_acks: 0 }
    }

    fn bit(event: Event) -> u32 {
        1 << event as u32
    }
}

impl core::ops::BitOr for Events {
    type Output = Events;

    fn bitor(self, other: Events) -> Events {
        Events { bits: self.bits | other.bits, duplicate_acks: self.duplicate_acks.max(other.duplicate_acks) }
    }
}
