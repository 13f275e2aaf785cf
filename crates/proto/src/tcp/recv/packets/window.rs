//! How large a window follows from the memory that is left, and how it grows (Linux's `__tcp_select_window`, `tcp_grow_window`,
//! `tcp_measure_rcv_mss`).

use super::{Compression, PacketSpace, Rounds, Sacks};
use crate::tcp::recv::window_space::{RATIO_AT_FIRST, rcvbuf_of};
use crate::{Config, Instant, SocketOptions};
use alloc::collections::{BTreeMap, VecDeque};
use wire::SeqNum;

/// Least clamp, bytes (half of `SOCK_MIN_RCVBUF`).
const CLAMP_MIN: u32 = 1152;
/// The largest window that can be advertised (RFC 7323 §2.3).
pub(super) const LARGEST: u32 = 65_535 << 14;
/// Smaller segments without a mark that they end something are full-sized, too, or from this size on whatever their marks are. Also the bounds of
/// what is taken for a full-sized segment at first (`tcp_initialize_rcv_mss`).
pub(super) const MSS_MIN: u32 = 88;
pub(super) const MSS_DEFAULT: u32 = 536;

/// Of the peer's segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Greatest payload we take, and the greatest it was seen to send.
    pub(super) advmss: u32,
    pub(super) rcv_mss: u32,
    /// `tcp_rmem`'s most.
    pub(super) rmem_max: u32,
}

/// A segment whose size is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(super) len: u32,
    /// Payload per original segment if it is merged.
    pub(super) each: u32,
    pub(super) truesize: u32,
    pub(super) pushed: bool,
    /// FIN, URG, SYN or PSH.
    pub(super) marked: bool,
    /// Bytes of the TCP header, and of an ordinary one.
    pub(super) header: u32,
    pub(super) plain_header: u32,
}

impl PacketSpace {
    pub(crate) fn new(config: &Config, options: &SocketOptions) -> PacketSpace {
        let (rcvbuf, locked) = rcvbuf_of(config, options);
        PacketSpace {
            rcvbuf,
            locked,
            ratio: RATIO_AT_FIRST,
            clamp: options.window_clamp.unwrap_or(LARGEST),
            ssthresh: u32::MAX,
            allocated: 0,
            forward: 0,
            last_len: 0,
            predicts: false,
            predicted: false,
            no_room: false,
            queue: VecDeque::new(),
            out_of_order: BTreeMap::new(),
            collapsible: 0,
            sacks: Sacks::default(),
            rounds: Rounds::default(),
            stamp: Instant::ZERO,
            tap_read: None,
            compression: Compression::default(),
        }
    }

    /// The peer's SYN has come, and `window` was advertised, or is, in the SYN before any shift (`tcp_select_initial_window`,
    /// `tcp_init_buffer_space`).
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        window: u32,
        shift: Option<u8>,
        (advmss, app_win, rcv_nxt): (u32, u32, SeqNum),
    ) {
        self.ssthresh = window;
        if self.locked {
            self.clamp = self.clamp.min(self.full() as u32);
        }
        self.clamp = self.clamp.min(65_535 << shift.unwrap_or(0));
        self.bound_clamp(advmss, app_win);
        let space = self.ssthresh.min(window).min(10 * advmss);
        self.rounds.begin(now, rcv_nxt, space);
        self.stamp = now;
    }

    /// What `tcp_app_win` sets aside for the application.
    fn bound_clamp(&mut self, advmss: u32, app_win: u32) {
        let most = self.full() as u32;
        if self.clamp >= most {
            self.clamp = most;
            if app_win > 0 && most > 4 * advmss {
                self.clamp = (most - (most >> app_win)).max(4 * advmss);
            }
        }
        if app_win > 0 && self.clamp > 2 * advmss && self.clamp + advmss > most {
            self.clamp = (2 * advmss).max(most.saturating_sub(advmss));
        }
        self.ssthresh = self.ssthresh.min(self.clamp);
    }

    pub(super) fn payload_of(&self, memory: i64) -> i64 {
        (memory * i64::from(self.ratio)) >> 8
    }

    /// Payload that the whole buffer holds.
    pub(crate) fn full(&self) -> i64 {
        self.payload_of(self.rcvbuf.into())
    }

    /// Payload that its free memory holds; may be negative.
    pub(super) fn free(&self) -> i64 {
        self.payload_of(i64::from(self.rcvbuf) - i64::from(self.allocated))
    }

    /// The application chooses the buffer anew: the window follows.
    pub(crate) fn set_rcvbuf(&mut self, config: &Config, options: &SocketOptions) {
        (self.rcvbuf, self.locked) = rcvbuf_of(config, options);
    }

    pub(crate) fn unlock(&mut self) {
        self.locked = false;
    }

    /// The application wants to be woken for no less than `lowat` bytes: the buffer must hold them (`tcp_set_rcvlowat`).
    pub(crate) fn make_room_for(&mut self, lowat: u32) {
        let memory =
            ((u64::from(lowat) << 8) / u64::from(self.ratio.max(1))).min(u64::from(u32::MAX >> 1)) as u32;
        if !self.locked && memory > self.rcvbuf {
            self.rcvbuf = memory;
            self.clamp = self.clamp.max(lowat).min(LARGEST);
        }
    }

    pub(crate) fn clamp(&self) -> u32 {
        self.clamp
    }

    /// `advertised`: the window last advertised (`tcp_set_window_clamp`).
    pub(crate) fn set_clamp(&mut self, clamp: u32, advertised: u32) {
        let clamp = clamp.clamp(CLAMP_MIN, LARGEST);
        if clamp < self.clamp {
            self.ssthresh = self.ssthresh.min(clamp);
        } else if clamp > self.clamp {
            self.ssthresh = self.ssthresh.max(advertised.min(clamp));
        }
        self.clamp = clamp;
    }

    /// The window to be advertised where `advertised` was the last, and whether so little is free that quick acknowledgements end.
    ///
    /// With nothing to read no read would open it again, and data out of order waits for the very text that a closed window keeps away: a
    /// segment, or the scale's unit, is taken then, whatever the memory (Linux's closes). Data out of order gives way to it.
    pub(crate) fn select(&self, advertised: u32, rcv_mss: u32, shift: u8, may_shrink: bool) -> (u32, bool) {
        let (window, scarce) = self.select_by_memory(advertised, rcv_mss, shift, may_shrink);
        if window > 0 || !self.queue.is_empty() {
            return (window, scarce);
        }
        let least =
            i64::from(rcv_mss).min(self.full()).min(self.clamp.into()).min(self.ssthresh.into()).max(0);
        ((least as u32).next_multiple_of(1 << shift), scarce)
    }

    fn select_by_memory(&self, advertised: u32, rcv_mss: u32, shift: u8, may_shrink: bool) -> (u32, bool) {
        let scale = 1_i64 << shift;
        let (mut free, allowed) = (self.free(), self.full());
        let full = i64::from(self.clamp).min(allowed);
        let mut mss = i64::from(rcv_mss);
        if mss > full {
            mss = full;
            if mss <= 0 {
                return (0, false);
            }
        }
        let shrinks = may_shrink && shift > 0;
        if shrinks {
            free &= !(scale - 1);
        }
        let scarce = free < full >> 1;
        if scarce {
            free &= !(scale - 1);
            if free < allowed >> 4 || free < mss || shrinks && free < scale {
                return (0, true);
            }
        }
        let free = free.min(self.ssthresh.into());
        // Where the window is not to grow to a segment, so much is worth telling: rounded down it would stay closed (Linux's does).
        let mss = mss.min(self.ssthresh.into());
        let advertised = i64::from(advertised);
        let window = if shift > 0 {
            (free + scale - 1) & !(scale - 1)
        } else if advertised <= free - mss || advertised > free {
            free / mss.max(1) * mss
        } else if mss == full && free > advertised + (full >> 1) {
            free
        } else {
            advertised
        };
        (window.clamp(0, u32::MAX.into()) as u32, scarce)
    }

    /// A segment has come: may the window grow? True if it does.
    pub(crate) fn grow(&mut self, len: u32, truesize: u32, sizes: &Sizes) -> bool {
        let room = i64::from(self.clamp).min(self.free()) - i64::from(self.ssthresh);
        if room <= 0 {
            return false;
        }
        let step = if self.payload_of(truesize.into()) <= len.into() {
            2 * sizes.advmss
        } else {
            self.small_step(len, truesize, sizes)
        };
        if step == 0 {
            return false;
        }
        self.ssthresh += room.min(step.max(2 * len).into()) as u32;
        true
    }

    /// A packet that takes more than its share may still do while the window is small (`__tcp_grow_window`).
    fn small_step(&self, len: u32, truesize: u32, sizes: &Sizes) -> u32 {
        let mut truesize = self.payload_of(truesize.into()) >> 1;
        let mut window = self.payload_of(sizes.rmem_max.into()) >> 1;
        while i64::from(self.ssthresh) <= window {
            if truesize <= len.into() {
                return 2 * sizes.rcv_mss;
            }
            (truesize, window) = (truesize >> 1, window >> 1);
        }
        0
    }

    /// What a full-sized segment of the peer is: returns that, and small or pushed segments to be acknowledged when read.
    pub(crate) fn measure(&mut self, seen: &Seen, sizes: &Sizes, pushed: u8, advertised: u32) -> (u32, u8) {
        let before = core::mem::take(&mut self.last_len);
        let len = if seen.each > 0 { seen.each } else { seen.len };
        if len >= sizes.rcv_mss {
            if len != sizes.rcv_mss {
                self.measure_ratio(seen, advertised);
            }
            return (len.min(sizes.advmss), pushed.max(seen.pushed.into()));
        }
        let whole = len + seen.header;
        if whole >= MSS_DEFAULT + 20 || whole >= MSS_MIN + 20 && !seen.marked {
            let len = whole - seen.plain_header;
            self.last_len = len as u16;
            if len == u32::from(before) {
                return (len, pushed);
            }
        }
        (sizes.rcv_mss, (pushed + 1).min(2))
    }

    fn measure_ratio(&mut self, seen: &Seen, advertised: u32) {
        let ratio = (u64::from(seen.len) << 8) / u64::from(seen.truesize.max(1));
        let ratio = (ratio as u8).max(1);
        if ratio == core::mem::replace(&mut self.ratio, ratio) {
            return;
        }
        self.set_clamp(self.full() as u32, advertised);
        self.rounds.bound(self.clamp);
    }

    /// There is more than there may be (`tcp_clamp_window`).
    pub(super) fn clamp_window(&mut self, sizes: &Sizes, pressed: bool) {
        if self.rcvbuf < sizes.rmem_max && !self.locked && !pressed {
            self.rcvbuf = self.allocated.min(sizes.rmem_max);
        }
        if self.allocated > self.rcvbuf {
            self.ssthresh = self.clamp.min(2 * sizes.advmss);
        }
    }

    /// The stack's memory is short: four segments do (`tcp_adjust_rcv_ssthresh`).
    pub(crate) fn shrink_under_pressure(&mut self, advmss: u32) {
        self.ssthresh = self.ssthresh.min(4 * advmss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequence numbers compare within 2³¹: the end of a larger window would lie before the
    /// incoming data. With the largest buffers, chosen or grown, the window stays below that. Data
    /// within the advertised window is accepted.
    #[test]
    fn no_buffer_makes_a_window_that_numbers_cannot_tell() {
        let chosen = SocketOptions { recv_buffer: Some(u32::MAX), ..SocketOptions::default() };
        for options in [SocketOptions::default(), chosen] {
            let config = Config::linux().tcp_rmem([u32::MAX; 3]).rmem_max(u32::MAX);
            let mut space = PacketSpace::new(&config, &options);
            space.begin(Instant::ZERO, 65_535, Some(14), (65_495, 31, SeqNum(1)));
            let sizes = Sizes { advmss: 65_495, rcv_mss: 65_495, rmem_max: u32::MAX };
            let seen = Seen {
                len: 65_495,
                each: 0,
                truesize: 65_792,
                pushed: false,
                marked: false,
                header: 20,
                plain_header: 20,
            };
            for rcv_mss in [536, 65_495] {
                space.measure(&seen, &Sizes { rcv_mss, ..sizes }, 0, 65_535);
            }
            for _ in 0..100_000 {
                space.grow(65_495, 65_792, &sizes);
            }
            let (window, _) = space.select(1 << 30, 65_495, 14, false);
            assert!((1 << 29..=LARGEST).contains(&window), "{window}");
            space.make_room_for(u32::MAX);
            assert!(space.clamp() <= LARGEST);
        }
    }
}
