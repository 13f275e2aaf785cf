//! Acknowledgements and windows, as one side tells them.

use crate::event::{Event, Events};
use crate::packet::Packet;
use core::time::Duration;
use wire::{Flags, SeqNum};

/// All that one side told.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    last: Option<Last>,
    /// The farthest right edge of its windows, where the scale was known.
    edge: Option<SeqNum>,
    /// Duplicates of the last acknowledgement.
    repeated: u32,
    duplicate_acks: u64,
    zero_windows: u64,
}

/// The last acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) at: Duration,
    pub(super) ack: SeqNum,
    /// Unscaled.
    window: u16,
    /// The right edge of the window; `None`: the scale is not known.
    pub(super) edge: Option<SeqNum>,
}

/// A packet that only asks whether the other side is there, or whether its window has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// RFC 9293 section 3.8.4.
    KeepAlive,
    /// RFC 9293 section 3.8.6.1. BSD and Windows send a byte of new data, Linux none.
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

impl Told {
    /// Takes an acknowledgement. `is_next`: its sequence number is the next of this side. `probe`: the other side's last packet.
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

    /// The last acknowledgement.
    pub(super) fn last(&self) -> Option<Last> {
        self.last
    }

    /// The farthest right edge of its windows.
    pub(super) fn edge(&self) -> Option<SeqNum> {
        self.edge
    }

    /// Whether its receive window is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.last.is_some_and(|last| last.window == 0)
    }

    /// Duplicates of the last acknowledgement.
    pub(super) fn repeated(&self) -> u32 {
        self.repeated
    }

    /// Acknowledgements that repeated the one before.
    pub(super) fn duplicate_acks(&self) -> u64 {
        self.duplicate_acks
    }

    /// Segments with a closed window.
    pub(super) fn zero_windows(&self) -> u64 {
        self.zero_windows
    }
}
