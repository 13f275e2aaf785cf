//! Options of what we send.

use crate::Instant;
use crate::tcp::connection::{Connection, Context};
use wire::{FastOpenOption, SackBlocks, TcpOptions, Timestamps};

/// Blocks that fit beside timestamps, and without them (RFC 2018 §3).
const SACK_BLOCKS: [usize; 2] = [3, 4];
/// The same beside a signature.
const SACK_BLOCKS_SIGNED: [usize; 2] = [0, 2];

impl Connection {
    /// Of a segment after the handshake.
    pub(super) fn options_now(&self, now: Instant) -> TcpOptions {
        TcpOptions { timestamps: self.timestamps(now), sack: self.holes(), ..TcpOptions::default() }
    }

    /// Bytes of the SACK option of a segment that leaves now.
    pub(crate) fn sack_len(&self) -> usize {
        if !self.rcv.has_blocks() {
            return 0;
        }
        match self.holes().len() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        }
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
    pub(super) fn options_of_crossed_syn(&self, cx: &Context, wscale: u8) -> TcpOptions {
        let options = self.options_of_syn(cx, None);
        let window_scale = options.window_scale.map(|_| wscale);
        let echo = if self.agreed.timestamps { self.ts_recent } else { 0 };
        let timestamps = options.timestamps.map(|timestamps| Timestamps { tsecr: echo, ..timestamps });
        TcpOptions { window_scale, timestamps, ..options }
    }

    /// Of a SYN-ACK: what the SYN offered and we take.
    pub(super) fn options_of_syn_ack(&self, cx: &Context, fast_open: Option<FastOpenOption>) -> TcpOptions {
        TcpOptions {
            mss: Some(self.advmss),
            window_scale: self.agreed.snd_wscale.map(|_| self.rcv.wscale),
            sack_permitted: self.agreed.sack,
            timestamps: self.timestamps(cx.now),
            fast_open,
            ..TcpOptions::default()
        }
    }
}
