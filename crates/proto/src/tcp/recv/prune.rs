//! Pruning of a receive buffer that takes too much memory: loosely packed payloads are copied
//! together, then out-of-order data is dropped, and at last nothing more is accepted (Linux's
//! `tcp_prune_queue`).
//!
//! The window counts payload. So this concerns peers whose segments are smaller than expected, and
//! stacks without memory.

use super::receiver::{AckOwed, Receiver};
use crate::memory::Memory;
use crate::tcp::connection::Sender;
use crate::tcp::connection::{Connection, Context};
use crate::{Config, Counters};

/// Bytes.
const ORPHAN_MAY_HOLD: usize = 4608;
/// Segments to which the window shrinks under memory pressure (Linux's `tcp_adjust_rcv_ssthresh`).
const SEGMENTS_UNDER_PRESSURE: u32 = 4;

impl Connection {
    /// Returns the bytes of memory in its buffers.
    #[inline]
    pub(crate) fn memory(&self) -> u32 {
        let holds_nothing = self.snd.queue.is_vacant() && self.rcv.buffer.is_empty() && !self.rcv.has_holes();
        if holds_nothing { 0 } else { self.snd.queue.memory().saturating_add(self.rcv.memory()) }
    }

    /// Keeps the buffer within its memory after text was accepted.
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

impl Sender {
    /// Returns whether more data waits than an orphan may hold when there is no memory (Linux's
    /// `SOCK_MIN_SNDBUF`).
    pub(crate) fn holds_much(&self) -> bool {
        self.queue.len() > ORPHAN_MAY_HOLD
    }
}

impl Receiver {
    /// Returns whether there is memory for a segment with data. Otherwise the segment counts as
    /// lost, and a closed window is advertised.
    pub(crate) fn has_memory_for_text(&mut self, cx: &mut Context) -> bool {
        if !cx.memory.is_under_pressure() && !self.refuses {
            return true;
        }
        if cx.memory.is_exhausted() {
            self.prune(0, &mut cx.counters);
        }
        self.refuses = self.lacks_memory(&cx.config, &cx.memory);
        if self.refuses {
            cx.counters.rcv_q_drop += 1;
            self.ack_owed = AckOwed::Now;
        }
        !self.refuses
    }

    /// Returns whether memory is exhausted for this receiver. A connection that holds nothing may
    /// have a little, so that it can finish.
    fn lacks_memory(&self, config: &Config, memory: &Memory) -> bool {
        memory.is_exhausted() && self.memory() >= config.tcp_rmem[0]
    }

    /// Ends the refusal of data if there is memory again. Returns whether it does.
    pub(crate) fn ends_refusal(&mut self, config: &Config, memory: &Memory) -> bool {
        self.refuses = self.lacks_memory(config, memory);
        !self.refuses
    }
}

impl Receiver {
    /// Returns the bytes of memory held.
    pub(crate) fn memory(&self) -> u32 {
        self.buffer.memory() + self.out_of_order.as_ref().map_or(0, |queue| queue.memory())
    }

    /// Reduces the memory to `most`, if possible without losing acknowledged data.
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
