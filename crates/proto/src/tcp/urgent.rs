//! The urgent pointer (RFC 9293 §3.8.5) as RFC 6093 wants it: urgent bytes stay in the stream, the pointer is behind the last of them, and a
//! read stops before it. Nothing is kept of it while nobody uses it.

use super::connection::{Connection, Context};
use super::input::Segment;
use crate::Events;
use wire::{Flags, SeqNum};

impl Connection {
    /// The byte written last is urgent.
    pub(super) fn queue_urgent(&mut self) {
        self.special.get_or_insert_default().urgent_end = Some(self.snd.queue.end());
    }

    /// Number behind the last urgent byte that the peer has not acknowledged.
    pub(super) fn urgent_end(&self) -> Option<SeqNum> {
        self.special.as_ref()?.urgent_end.filter(|end| end.after(self.snd.una))
    }

    /// The pointer of a segment that begins at `seq`, if it has one: also before the urgent bytes, and as far as sixteen bits reach.
    pub(super) fn urgent_pointer(&self, seq: SeqNum) -> Option<u16> {
        let end = self.urgent_end().filter(|end| end.after(seq))?;
        Some(end.since(seq).min(u16::MAX.into()) as u16)
    }

    /// Sixth check (RFC 9293 §3.10.7.4): a pointer that tells of more than the last one. With `tcp_stdurg` it is the last urgent
    /// byte's, as RFC 1122 had it, otherwise the next.
    pub(super) fn check_urgent(&mut self, cx: &Context<'_>, segment: &Segment) {
        let pointer = segment.header.urgent;
        let behind = u16::from(!cx.config.tcp_stdurg && pointer > 0);
        let byte = segment.seq() + u32::from(pointer - behind);
        let known = self.special.as_ref().and_then(|special| special.urgent_byte);
        let news = known.is_none_or(|known| byte.after(known));
        if byte.before(self.rcv.nxt) || self.rcv.fin_received || !news {
            return;
        }
        self.special.get_or_insert_default().urgent_byte = Some(byte);
        self.events |= Events::URGENT;
    }

    /// Bytes to be read before the last urgent one; `None`: there is none to come.
    pub(crate) fn urgent_mark(&self) -> Option<usize> {
        let byte = self.special.as_ref()?.urgent_byte?;
        let read = self.rcv.nxt - u32::from(self.rcv.fin_received) - self.rcv.buffer.len() as u32;
        byte.after_or_eq(read).then(|| byte.since(read) as usize)
    }

    /// Of `max` bytes to be read, those up to the mark; at the mark all.
    pub(crate) fn up_to_mark(&self, max: usize) -> usize {
        self.urgent_mark().filter(|before| *before > 0).map_or(max, |before| before.min(max))
    }
}

/// The flag beside the pointer.
pub(super) fn flag(pointer: Option<u16>) -> Flags {
    if pointer.is_some() { Flags::URG } else { Flags::empty() }
}
