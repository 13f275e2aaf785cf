//! Acknowledgements and windows that one side advertised.

use crate::event::{Event, Events};
use crate::packet::Packet;
use core::time::Duration;
use wire::{Flags, SeqNum};

/// The acknowledgements and windows of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Advertised {
    last: Option<Last>,
    /// The highest right edge of its windows, if the scale is known.
    edge: Option<SeqNum>,
    /// Number of duplicates of the last acknowledgement.
    repeated: u32,
    duplicate_acks: u64,
    zero_windows: u64,
}

/// The last acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) at: Duration,
    pub(super) ack: SeqNum,
    /// The unscaled window.
    window: u16,
    /// The right edge of the window. `None` if the scale is unknown.
    pub(super) edge: Option<SeqNum>,
}

/// A packet that only probes an idle peer or a closed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// A keep-alive (RFC 9293 section 3.8.4).
    KeepAlive,
    /// A window probe (RFC 9293 section 3.8.6.1). BSD and Windows send a byte of new data, Linux
    /// none.
    Window,
}

impl Probe {
    pub(super) fn event(self) -> Event {
        match self {
            Probe::KeepAlive => Event::KeepAlive,
            Probe::Window => Event::ZeroWindowProbe,
        }
    }
}

impl Advertised {
    /// Judges an acknowledgement. `is_next`: its sequence number is the next one of this side.
    /// `probe`: the other side's last packet.
    pub(super) fn judge(
        &mut self,
        packet: &Packet<'_>,
        is_next: bool,
        edge: Option<SeqNum>,
        probe: Option<Probe>,
    ) -> Events {
        let mut events = Events::default();
        let is_control = packet.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
        if packet.window == 0 && !is_control {
            self.zero_windows += 1;
            events.add(Event::ZeroWindow);
        }
        let before = self.last.replace(Last { at: packet.at, ack: packet.ack, window: packet.window, edge });
        if let Some(edge) = edge {
            self.edge = Some(self.edge.map_or(edge, |known| known.latest(edge)));
        }
        let Some(before) = before else { return events };
        if packet.ack != before.ack {
            self.repeated = 0;
        }
        if is_control || packet.text_len > 0 || !is_next {
            return events;
        }
        let is_same_window = packet.window == before.window;
        match probe {
            Some(Probe::Window)
                if packet.window == 0
                    && is_same_window
                    && (packet.ack == before.ack || packet.ack == before.ack + 1) =>
            {
                events.add(Event::ZeroWindowProbeAck);
            }
            _ if packet.ack != before.ack || packet.window == 0 => {}
            _ if !is_same_window => events.add(Event::WindowUpdate),
            Some(Probe::KeepAlive) => events.add(Event::KeepAliveAck),
            _ => {
                self.repeated += 1;
                self.duplicate_acks += 1;
                events.add_duplicate_ack(self.repeated);
            }
        }
        events
    }

    /// Returns the last acknowledgement.
    pub(super) fn last(&self) -> Option<Last> {
        self.last
    }

    /// Returns the highest right edge of its windows.
    pub(super) fn edge(&self) -> Option<SeqNum> {
        self.edge
    }

    /// Returns whether its receive window is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.last.is_some_and(|last| last.window == 0)
    }

    /// Returns the number of duplicates of the last acknowledgement.
    pub(super) fn repeated(&self) -> u32 {
        self.repeated
    }

    /// Returns the number of acknowledgements that repeated the previous one.
    pub(super) fn duplicate_acks(&self) -> u64 {
        self.duplicate_acks
    }

    /// Returns the number of segments with a closed window.
    pub(super) fn zero_windows(&self) -> u64 {
        self.zero_windows
    }
}
