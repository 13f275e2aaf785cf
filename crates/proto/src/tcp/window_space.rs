//! How large the window we offer may be: what the receive buffer's memory holds in payload, what the application allows, and what
//! has been shown to be wise.
//!
//! A buffer is given in memory (`tcp_rmem`), a window in payload. The share of payload in memory is taken to be a half until a
//! full-sized segment has shown its true size, as Linux does since 6.6 (`scaling_ratio`; `tcp_adv_win_scale` is gone).

use super::negotiation::RECV_BUFFER_MAX;
use crate::{Config, SocketOptions};

/// A half, in 256ths.
const RATIO_AT_FIRST: u8 = 128;
/// Least receive buffer, memory (Linux's `SOCK_MIN_RCVBUF`).
const RCVBUF_MIN: u32 = 2304;

/// Bounds of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSpace {
    /// Memory the buffer may take, bytes.
    rcvbuf: u32,
    /// The application's bound of the window (`TCP_WINDOW_CLAMP`).
    clamp: u32,
    /// The largest window, bytes: what `rcvbuf` holds, within the clamp.
    full: u32,
    /// The window does not grow beyond this for now (Linux's `rcv_ssthresh`).
    ssthresh: u32,
    /// Payload per memory, in 256ths.
    ratio: u8,
    /// The application chose the buffer: it stays as it is (`SO_RCVBUF`).
    locked: bool,
    /// The right edge moves by what is worth a segment.
    by_segment: bool,
}

impl WindowSpace {
    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh.min(self.full)
    }

    pub(crate) fn new(config: &Config, options: &SocketOptions) -> WindowSpace {
        let chosen = options.recv_buffer.map(|size| 2 * size.min(config.rmem_max).min(RECV_BUFFER_MAX));
        let mut space = WindowSpace {
            rcvbuf: chosen.unwrap_or(config.tcp_rmem[1]).max(RCVBUF_MIN),
            clamp: options.window_clamp.unwrap_or(u32::MAX),
            ssthresh: u32::MAX,
            ratio: RATIO_AT_FIRST,
            locked: chosen.is_some(),
            by_segment: config.window_by_segment,
            full: 0,
        };
        space.measure_full();
        space
    }

    fn measure_full(&mut self) {
        let payload = (u64::from(self.rcvbuf) * u64::from(self.ratio)) >> 8;
        self.full = (payload as u32).min(self.clamp).min(RECV_BUFFER_MAX);
    }

    /// The largest window, bytes.
    pub(crate) fn full(&self) -> u32 {
        self.full
    }

    /// Memory the buffer may take, bytes.
    pub(crate) fn rcvbuf(&self) -> u32 {
        self.rcvbuf
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }

    /// Memory that so much payload takes.
    fn memory_for(&self, payload: u64) -> u64 {
        (payload << 8) / u64::from(self.ratio.max(1))
    }

    /// The first window is `window`; it grows with what arrives (Linux's receive-side slow start).
    pub(crate) fn begin_at(&mut self, window: u32) {
        self.ssthresh = window;
    }

    /// The application chooses buffer or clamp anew; what is known of the peer stays.
    pub(crate) fn choose(&mut self, config: &Config, options: &SocketOptions) {
        let chosen = WindowSpace::new(config, options);
        self.clamp = chosen.clamp;
        if chosen.locked {
            (self.rcvbuf, self.ratio, self.locked) = (chosen.rcvbuf, chosen.ratio, true);
        }
        self.measure_full();
    }

    /// The application has chosen no buffer after all: it grows from what it is.
    pub(crate) fn unlock(&mut self) {
        self.locked = false;
    }

    /// A segment larger than any before: `payload` bytes in `memory`.
    pub(crate) fn measure(&mut self, payload: usize, memory: usize) {
        if !self.locked {
            self.ratio = ((payload << 8) / memory.max(1)).clamp(1, 255) as u8;
            self.measure_full();
        }
    }

    /// A segment of `len` bytes has arrived, `buffered` wait to be read: the window may grow by twice that.
    pub(crate) fn grow(&mut self, len: u32, rcv_mss: u32, buffered: u32) {
        if self.ssthresh < self.full.saturating_sub(buffered) {
            let most = self.full - buffered;
            self.ssthresh = most.min(self.ssthresh.saturating_add(2 * len.max(rcv_mss)));
        }
    }

    /// The window shall not be larger for now.
    pub(crate) fn shrink_to(&mut self, window: u32) {
        self.ssthresh = self.ssthresh.min(window);
    }

    /// A window of `window` bytes shall fit, within `most` memory.
    pub(crate) fn raise(&mut self, window: u64, most: u32) {
        let wanted = self.memory_for(window).min(u64::from(most)) as u32;
        if !self.locked {
            self.rcvbuf = self.rcvbuf.max(wanted);
            self.measure_full();
        }
    }

    /// What to offer where `offered` still is, and `buffered` bytes wait to be read. Never less than `offered`.
    pub(crate) fn offer(&self, offered: u32, buffered: u32, mss: u32) -> u32 {
        let full = self.full;
        let free = full.saturating_sub(buffered);
        let wanted = free.min(self.ssthresh);
        let step = if self.by_segment {
            // RFC 9293 §3.8.6.2.2: a segment, or half the buffer.
            (full / 2).min(mss)
        } else if free < full / 2 && (free < full / 16 || free < mss) {
            // Linux's `__tcp_select_window`: too little is nothing, anything else is told.
            return offered;
        } else {
            0
        };
        if wanted < offered.saturating_add(step) { offered } else { wanted }
    }

    /// The window of Linux's `__tcp_select_window`, where `told` was the last, `buffered` bytes wait to be read, and the peer's segments have
    /// `rcv_mss`. Unlike [`offer`](Self::offer) it may be less than is still open.
    pub(crate) fn select(&self, told: u32, buffered: u32, rcv_mss: u32, shift: u8) -> u32 {
        let scale = 1 << shift;
        let mut free = self.full.saturating_sub(buffered);
        if free < self.full / 2 {
            free = free / scale * scale;
            if free < self.full / 16 || free < rcv_mss {
                return 0;
            }
        }
        let free = free.min(self.ssthresh);
        if shift > 0 {
            return free.next_multiple_of(scale);
        }
        let free = free.min(u16::MAX.into());
        let near = told <= free && told.saturating_add(rcv_mss) > free;
        if near { told } else { free / rcv_mss.max(1) * rcv_mss }
    }

    /// Has the window to be told at once that grows from `offered` to `offer`?
    pub(crate) fn is_worth_telling(&self, offered: u32, offer: u32, mss: u32) -> bool {
        let full = self.full;
        // While more than this is open, the ACKs of what arrives tell the window soon enough.
        let scarce = if self.by_segment { (full / 16).max((full / 2).min(2 * mss)) } else { full / 2 };
        offer > offered && offer / 2 >= offered && offered <= scarce
    }
}

/// Whole segments of a first window.
pub(crate) fn whole_segments(window: u32, mss: u32) -> u32 {
    if window > mss { window / mss.max(1) * mss } else { window }
}
