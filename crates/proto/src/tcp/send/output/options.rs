//! Options of what we send.

use crate::Instant;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::accurate::add_to_syn_ack;
use wire::{FastOpenOption, SackBlocks, TcpOptions, Timestamps};

/// SACK blocks that fit beside timestamps, and without them (RFC 2018 §3).
const SACK_BLOCKS: [usize; 2] = [3, 4];
/// SACK blocks that fit beside a signature, with timestamps and without them.
const SACK_BLOCKS_SIGNED: [usize; 2] = [0, 2];

/// The first SYN-ACK counts marks, and what follows the first time-out (Linux's `tcp_synack_options`).
const SYN_ACKS_WITH_MARKS: u8 = 2;
/// So does that of crossed SYNs up to the second time-out, counting those of the SYN (Linux's `tcp_syn_options`).
const CROSSED_WITH_MARKS: u8 = 2;

impl Connection {
    /// Of a segment after the handshake.
    pub(super) fn options_now(&mut self, cx: &Context) -> TcpOptions {
        let mut options =
            TcpOptions { timestamps: self.timestamps(cx.now), sack: self.holes(), ..TcpOptions::default() };
        if self.agreed.ecn.is_accurate() {
            self.add_marks(cx, &mut options);
        }
        options
    }

    /// Bytes of the options of a segment that leaves now, but for those of every segment.
    pub(crate) fn varying_options_len(&self) -> usize {
        if self.rcv.has_blocks() | self.agreed.ecn.is_accurate() { self.blocks_and_marks_len() } else { 0 }
    }

    #[cold]
    fn blocks_and_marks_len(&self) -> usize {
        self.marks_and_sack_len(self.holes().len())
    }

    fn holes(&self) -> SackBlocks {
        self.rcv.sack_blocks(self.sack_max())
    }

    /// Most blocks of the SACK option of a segment that leaves now.
    pub(super) fn sack_max(&self) -> usize {
        let blocks = if self.signature_len() > 0 { SACK_BLOCKS_SIGNED } else { SACK_BLOCKS };
        if self.agreed.sack { blocks[usize::from(!self.agreed.timestamps)] } else { 0 }
    }

    pub(super) fn timestamps(&self, now: Instant) -> Option<Timestamps> {
        self.agreed.timestamps.then(|| Timestamps { tsval: self.tsval(now), tsecr: self.ts_recent })
    }

    /// Of a SYN: everything we can do.
    pub(super) fn options_of_syn(&self, cx: &Context, fast_open: Option<FastOpenOption>) -> TcpOptions {
        TcpOptions {
            mss: Some(self.advmss),
            window_scale: cx.config.tcp_window_scaling.then_some(self.rcv.wscale),
            sack_permitted: cx.config.tcp_sack,
            timestamps: cx.config.timestamps().then(|| Timestamps { tsval: self.tsval(cx.now), tsecr: 0 }),
            fast_open,
            ..TcpOptions::default()
        }
    }

    /// Of the SYN-ACK where SYNs have crossed: as the SYN's, but for what came with the peer's.
    pub(super) fn options_of_crossed_syn(&self, cx: &Context, wscale: u8, first: bool) -> TcpOptions {
        let options = self.options_of_syn(cx, None);
        let window_scale = options.window_scale.map(|_| wscale);
        let echo = if self.agreed.timestamps { self.ts_recent } else { 0 };
        let timestamps = options.timestamps.map(|timestamps| Timestamps { tsecr: echo, ..timestamps });
        let mut options = TcpOptions { window_scale, timestamps, ..options };
        // What goes after a time-out is decided by those before.
        if self.timeouts.saturating_sub((!first).into()) < CROSSED_WITH_MARKS {
            add_to_syn_ack(&cx.config, self.agreed.ecn, self.signature_len(), &mut options);
        }
        options
    }

    /// Of a SYN-ACK: what the SYN offered and we take. Counts of marks only until the first time-out.
    pub(super) fn options_of_syn_ack(&self, cx: &Context, fast_open: Option<FastOpenOption>) -> TcpOptions {
        let mut options = TcpOptions {
            mss: Some(self.advmss),
            window_scale: self.agreed.snd_wscale.map(|_| self.rcv.wscale),
            sack_permitted: self.agreed.sack,
            timestamps: self.timestamps(cx.now),
            fast_open,
            ..TcpOptions::default()
        };
        if self.timeouts < SYN_ACKS_WITH_MARKS {
            add_to_syn_ack(&cx.config, self.agreed.ecn, self.signature_len(), &mut options);
        }
        options
    }
}
