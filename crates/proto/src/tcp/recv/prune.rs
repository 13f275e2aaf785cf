//! A receive buffer that takes more memory than it may: loosely packed payloads are copied together, then data out of order goes, and
//! at last nothing more is taken in (Linux's `tcp_prune_queue`).
//!
//! The window is counted in payload, so this is for peers whose segments turn out to be smaller than those the window was made for,
//! and for a stack whose memory is used up.

use super::receiver::{AckOwed, Receiver};
use crate::memory::Memory;
use crate::tcp::connection::{Connection, Context};
use crate::{Config, Counters};

/// Bytes.
const ORPHAN_MAY_HOLD: usize = 4608;
/// Segments to which the window shrinks under pressure (Linux's `tcp_adjust_rcv_ssthresh`).
const SEGMENTS_UNDER_PRESSURE: u32 = 4;

impl Connection {
    /// Bytes of memory that its buffers hold.
    #[inline]
    pub(crate) fn memory(&self) -> u32 {
        let holds_nothing = self.snd.queue.is_vacant() && self.rcv.buffer.is_empty() && !self.rcv.has_holes();
        if holds_nothing { 0 } else { self.snd.queue.memory().saturating_add(self.rcv.memory()) }
    }

    /// More waits to be sent than an orphan may hold when there is no memory (Linux's `SOCK_MIN_SNDBUF`).
    pub(crate) fn holds_much(&self) -> bool {
        self.snd.queue.len() > ORPHAN_MAY_HOLD
    }

    /// May a segment with data be taken in? If not, it is as if it were lost, and a closed window is advertised.
    pub(crate) fn has_memory_for_text(&mut self, cx: &mut Context) -> bool {
        if !cx.memory.is_under_pressure() && !self.rcv.refuses {
            return true;
        }
        if cx.memory.is_exhausted() {
            self.rcv.prune(0, &mut cx.counters);
        }
        self.rcv.refuses = self.lacks_memory(&cx.config, &cx.memory);
        if self.rcv.refuses {
            cx.counters.rcv_q_drop += 1;
            self.rcv.ack_owed = AckOwed::Now;
        }
        !self.rcv.refuses
    }

    /// Whoever holds nothing may have a little, to go on and be done.
    fn lacks_memory(&self, config: &Config, memory: &Memory) -> bool {
        memory.is_exhausted() && self.rcv.memory() >= config.tcp_rmem[0]
    }

    /// A peer was refused: may it send again?
    pub(crate) fn ends_refusal(&mut self, config: &Config, memory: &Memory) -> bool {
        self.rcv.refuses = self.lacks_memory(config, memory);
        !self.rcv.refuses
    }

    /// Text has been taken in: is the buffer still within its memory?
    pub(crate) fn keep_within_memory(&mut self, cx: &mut Context) {
        if cx.memory.is_under_pressure() {
            let window = SEGMENTS_UNDER_PRESSURE * u32::from(self.advmss);
            self.rcv.space.shrink_to(window);
        }
        let most = self.rcv.space.rcvbuf();
        if self.rcv.memory() > most {
            self.rcv.prune(most, &mut cx.counters);
        }
    }
}

impl Receiver {
    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> u32 {
        self.buffer.memory() + self.out_of_order.as_ref().map_or(0, |queue| queue.memory())
    }

    /// Takes less memory, at most `most` if possible without losing what is acknowledged.
    fn prune(&mut self, most: u32, counters: &mut Counters) {
        counters.prune_called += 1;
        counters.rcv_collapsed += u64::from(self.buffer.collapse());
        if let Some(queue) = &mut self.out_of_order {
            counters.rcv_collapsed += u64::from(queue.collapse());
        }
        if self.memory() > most && self.has_holes() {
            self.forget_out_of_order();
            counters.ofo_pruned += 1;
        }
        counters.rcv_pruned += u64::from(self.memory() > most);
    }
}
