//! The urgent pointer (RFC 9293 §3.8.5) as RFC 6093 wants it: urgent bytes stay in the stream, the pointer is behind the last of them, and a
//! read stops before it. Nothing is kept of it while nobody uses it.
//!
//! A socket may ask for what BSD made of it instead (`SO_OOBINLINE` off): the last urgent byte is read apart, as soon as it has come, and
//! reads of the stream go on behind it. A byte that a later one has overtaken stays in the stream, as with Linux.

use super::special::Urgent;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::input::Segment;
use crate::{CloseReason, Events, UrgentError};
use wire::{Flags, SeqNum};

impl Connection {
    /// The byte written last is urgent.
    pub(in crate::tcp) fn queue_urgent(&mut self) {
        self.special.get_or_insert_default().urgent_end = Some(self.snd.queue.end());
    }

    /// Number behind the last urgent byte that the peer has not acknowledged.
    pub(in crate::tcp) fn urgent_end(&self) -> Option<SeqNum> {
        self.special.as_ref()?.urgent_end.filter(|end| end.after(self.snd.una))
    }

    /// The pointer of a segment that begins at `seq`, if it has one: also before the urgent bytes, and as far as sixteen bits reach.
    pub(in crate::tcp) fn urgent_pointer(&self, seq: SeqNum) -> Option<u16> {
        let end = self.urgent_end().filter(|end| end.after(seq))?;
        Some(end.since(seq).min(u16::MAX.into()) as u16)
    }

    /// A window probe goes while urgent bytes wait: one that tells of them goes before it, by turns.
    pub(in crate::tcp) fn tells_urgent_first(&mut self) -> bool {
        let waits = self.urgent_pointer(self.snd.una).is_some();
        self.special.as_mut().is_some_and(|special| {
            special.urgent_told = waits && !special.urgent_told;
            special.urgent_told
        })
    }

    /// Sixth check (RFC 9293 §3.10.7.4): a pointer that tells of more than the last one. With `tcp_stdurg` it is the last urgent
    /// byte's, as RFC 1122 had it, otherwise the next.
    pub(in crate::tcp) fn check_urgent(&mut self, cx: &Context, segment: &Segment) {
        let pointer = segment.header.urgent;
        let behind = u16::from(!cx.config.tcp_stdurg && pointer > 0);
        let byte = segment.seq() + u32::from(pointer - behind);
        let known = self.special.as_ref().and_then(|special| special.urgent_byte);
        let news = known.is_none_or(|known| byte.after(known));
        if !byte.before(self.rcv.nxt) && !self.rcv.fin_received && news {
            // One that is next, and was not read, shall not turn up in the stream after all.
            self.pass_urgent();
            let special = self.special.get_or_insert_default();
            (special.urgent_byte, special.urgent) = (Some(byte), Urgent::InStream);
            self.rcv.space.predict_no_more();
            self.events |= Events::URGENT;
        }
        self.keep_urgent(segment);
    }

    /// The urgent byte may be in this segment: it can be read apart even if something before it is missing.
    fn keep_urgent(&mut self, segment: &Segment) {
        let Some(special) = &mut self.special else { return };
        let (Some(byte), Urgent::InStream) = (special.urgent_byte, special.urgent) else { return };
        let first = segment.seq() + u32::from(segment.has(Flags::SYN));
        if byte.before(first) {
            return;
        }
        if let Some(value) = segment.payload.get(byte.since(first) as usize) {
            special.urgent = Urgent::Kept(*value);
            self.events |= Events::URGENT;
        }
    }

    /// The urgent byte is the next of the stream and has come, and it is not for those who read that.
    pub(crate) fn is_urgent_next(&self) -> bool {
        self.options.urgent_apart && self.urgent_mark() == Some(0) && !self.rcv.buffer.is_empty()
    }

    /// Then it leaves the stream.
    pub(crate) fn pass_urgent(&mut self) {
        if !self.is_urgent_next() {
            return;
        }
        let byte = self.rcv.buffer.pop(1).and_then(|byte| byte.first().copied());
        if let (Some(special), Some(byte)) = (&mut self.special, byte)
            && special.urgent == Urgent::InStream
        {
            special.urgent = Urgent::Kept(byte);
        }
    }

    /// The urgent byte, if it has come; `take`: it has been read then.
    pub(crate) fn read_urgent(&mut self, take: bool) -> Result<u8, UrgentError> {
        if !self.options.urgent_apart {
            return Err(UrgentError::None);
        }
        let before = self.urgent_mark();
        let special = self.special.as_mut().ok_or(UrgentError::None)?;
        if special.urgent_byte.is_none() && !matches!(special.urgent, Urgent::Kept(_)) {
            return Err(UrgentError::None);
        }
        if special.urgent == Urgent::InStream
            && let Some(before) = before
        {
            let mut byte = [0];
            if self.rcv.buffer.peek(before, &mut byte) == 1 {
                special.urgent = Urgent::Kept(byte[0]);
            }
        }
        match special.urgent {
            Urgent::Kept(byte) => {
                special.urgent = if take { Urgent::Read } else { special.urgent };
                Ok(byte)
            }
            Urgent::Read => Err(UrgentError::None),
            Urgent::InStream => match self.close_reason {
                Some(reason) => Err(UrgentError::Closed(reason)),
                None if self.rcv.fin_received => Err(UrgentError::Closed(CloseReason::Finished)),
                None => Err(UrgentError::Blocked),
            },
        }
    }

    /// It is there, and was neither read apart nor passed over.
    pub(crate) fn urgent_has_come(&self) -> bool {
        let Some(before) = self.urgent_mark() else { return false };
        match self.special.as_ref().map(|special| special.urgent) {
            Some(Urgent::InStream) => before < self.rcv.buffer.len(),
            Some(Urgent::Kept(_)) => true,
            Some(Urgent::Read) | None => false,
        }
    }

    /// Bytes to be read before the last urgent one; `None`: there is none to come.
    pub(crate) fn urgent_mark(&self) -> Option<usize> {
        let byte = self.special.as_ref()?.urgent_byte?;
        let read = self.rcv.nxt - u32::from(self.rcv.fin_received) - self.rcv.buffer.len() as u32;
        byte.after_or_eq(read).then(|| byte.since(read) as usize)
    }

    /// Of `max` bytes to be read behind the next `skip`, those up to the mark; at the mark, and behind it, all.
    pub(crate) fn up_to_mark(&self, skip: usize, max: usize) -> usize {
        self.urgent_mark().filter(|before| *before > skip).map_or(max, |before| max.min(before - skip))
    }

    /// Where in the buffer the byte lies that is read behind the next `skip`: an urgent byte that is read apart is none of them.
    pub(crate) fn place_of(&self, skip: usize) -> usize {
        let apart = self.options.urgent_apart && self.urgent_mark().is_some_and(|before| before <= skip);
        skip.saturating_add(apart.into())
    }

    /// Once a read has gone over the mark there is none: two gigabytes later its number would be one to come. A byte that is kept can
    /// still be read apart (with Linux it cannot).
    pub(crate) fn forget_passed_mark(&mut self) {
        if self.urgent_mark().is_none()
            && let Some(special) = &mut self.special
        {
            special.urgent_byte = None;
        }
    }
}

/// The flag beside the pointer.
pub(in crate::tcp) fn flag(pointer: Option<u16>) -> Flags {
    if pointer.is_some() { Flags::URG } else { Flags::empty() }
}
