//! What one ACK tells of segments.

use crate::Instant;
use core::time::Duration;
use wire::SeqNum;

/// A range of sequence numbers, the second not included.
pub(crate) type Block = (SeqNum, SeqNum);

/// An ACK, and what it reported.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(super) now: Instant,
    pub(super) min_rtt: Duration,
    /// The time the peer echoes, as milliseconds of our clock.
    pub(in crate::tcp) echo: Option<u32>,
    /// `snd_una` before it.
    pub(in crate::tcp) snd_una: SeqNum,
    pub(super) snd_nxt: SeqNum,
    pub(in crate::tcp) smss: u32,
    /// See `loss_rules`.
    pub(super) rtt_of_last: bool,
    /// Bytes that were in flight before it.
    pub(in crate::tcp) prior_pipe: u32,
    /// What it reports to have arrived twice, be it by the network's doing.
    pub(in crate::tcp) duplicate: Option<Block>,
    /// Bytes of that which are known to have been retransmitted, or may have been.
    pub(in crate::tcp) duplicate_bytes: u32,
    /// It brings nothing: no text, no block, no window.
    pub(in crate::tcp) bare: bool,
    /// Later ACKs came before it.
    pub(in crate::tcp) overtaken: bool,
    /// Bytes known only now to be delivered.
    pub(in crate::tcp) delivered: u32,
    /// Something was selectively acknowledged only now.
    pub(in crate::tcp) reported: bool,
    /// Of what was selectively acknowledged and sent once, in the order it was read: when the first and the last were sent.
    pub(in crate::tcp) sacked_sent_at: Option<(Instant, Instant)>,
    /// Something sent only once, before the recovery began, is among it.
    pub(super) original: bool,
    /// So is something sent more than once. Kept where the peer has no SACK.
    pub(super) repeated: bool,
    /// Highest segment delivered before it; first one delivered now although later ones had been, of those
    /// reported and of those acknowledged.
    pub(super) prior_fack: SeqNum,
    pub(super) reordered_from: [Option<SeqNum>; 2],
}

impl Arrived {
    /// All that was acknowledged, of what was sent before the recovery, went only once. (Of the rest nothing shows which of its transmissions
    /// arrived.)
    pub(super) fn is_original(&self) -> bool {
        self.original && !self.repeated
    }

    /// What was sent once, from `seq` on, was delivered after what was sent later.
    pub(crate) fn came_late(&mut self, seq: SeqNum, acknowledged: bool) {
        let from = &mut self.reordered_from[usize::from(acknowledged)];
        *from = Some(from.map_or(seq, |first| seq.earliest(first)));
    }

    /// Is what the peer echoes older than this transmission?
    pub(super) fn echoes_before(&self, sent_at: Instant) -> bool {
        self.echo.is_some_and(|echo| (echo.wrapping_sub(sent_at.as_millis() as u32) as i32) < 0)
    }
}
