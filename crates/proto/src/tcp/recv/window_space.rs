//! How large the window we offer may be: what the receive buffer's memory holds in payload, what the application allows, and what
//! has been shown to be wise.
//!
//! A buffer is given in memory (`tcp_rmem`), a window in payload. The share of payload in memory is taken to be a half until a
//! full-sized segment has shown its true size, as Linux does since 6.6 (`scaling_ratio`; `tcp_adv_win_scale` is gone).

use super::packets::{Packet, PacketSpace, Sacks};
use crate::{Config, Instant, ReceiveAccounting, SocketOptions};
use alloc::boxed::Box;
use core::time::Duration;
use wire::SeqNum;

/// Largest receive buffer, bytes: the largest window is 2³⁰ (RFC 7323 §2.2).
pub(crate) const RECV_BUFFER_MAX: u32 = 1 << 30;
/// Most memory a receive buffer may take, bytes: the initial cost of [`RECV_BUFFER_MAX`] bytes of
/// payload. (Sums of an accounting by packets stay below 2³².)
pub(in crate::tcp) const RCVBUF_MAX: u32 = 2 * RECV_BUFFER_MAX;
/// A half, in 256ths.
pub(super) const RATIO_AT_FIRST: u8 = 128;
/// Least receive buffer, memory (Linux's `SOCK_MIN_RCVBUF`).
const RCVBUF_MIN: u32 = 2304;

/// Largest window that is the same as a signed number (Linux's `MAX_TCP_WINDOW`).
pub(crate) const SIGNED_MOST: u32 = 32_767;

/// How the window is found.
#[derive(Debug)]
pub(crate) enum Space {
    Payload(WindowSpace),
    Packets(Box<PacketSpace>),
}

impl Space {
    pub(crate) fn new(config: &Config, options: &SocketOptions) -> Space {
        match config.receive_accounting {
            ReceiveAccounting::Payload => Space::Payload(WindowSpace::new(config, options)),
            ReceiveAccounting::Packets => Space::Packets(Box::new(PacketSpace::new(config, options))),
        }
    }

    /// Only payload counts, and memory apart from the window.
    pub(crate) fn counts_payload(&self) -> bool {
        matches!(self, Space::Payload(_))
    }

    /// For what is about packets only.
    pub(in crate::tcp) fn packets(&self) -> Option<&PacketSpace> {
        match self {
            Space::Payload(_) => None,
            Space::Packets(packets) => Some(packets),
        }
    }

    pub(in crate::tcp) fn packets_mut(&mut self) -> Option<&mut PacketSpace> {
        match self {
            Space::Payload(_) => None,
            Space::Packets(packets) => Some(packets),
        }
    }

    fn payload_mut(&mut self) -> Option<&mut WindowSpace> {
        match self {
            Space::Payload(payload) => Some(payload),
            Space::Packets(_) => None,
        }
    }

    /// The connection begins to receive, with a `first` window of so many bytes and the scale `shift`, behind a SYN that announced `advmss`.
    pub(in crate::tcp) fn begin(
        &mut self,
        now: Instant,
        (first, shift): (u32, Option<u8>),
        (advmss, app_win, start): (u32, u32, SeqNum),
        predicts: bool,
    ) {
        if let Some(packets) = self.packets_mut() {
            packets.begin(now, first, shift, (advmss, app_win, start));
            packets.predicts = predicts;
        }
    }

    /// The window begins with so many bytes, and grows with what comes.
    pub(in crate::tcp) fn begin_slowly(&mut self, first: u32) {
        if let Some(payload) = self.payload_mut() {
            payload.begin_at(first);
        }
    }

    /// A packet came, and lies in the buffer.
    pub(in crate::tcp) fn came(&mut self, packet: Packet) {
        if let Some(packets) = self.packets_mut() {
            packets.schedule(packet.truesize);
            packets.push(packet);
        }
    }

    /// What comes next is not what was expected.
    pub(in crate::tcp) fn predict_no_more(&mut self) {
        if let Some(packets) = self.packets_mut() {
            packets.predicts = false;
        }
    }

    /// Several acknowledgements of packets out of order wait to go as one, and their time has come.
    pub(in crate::tcp) fn takes_compressed(&mut self, now: Instant) -> bool {
        let Some(packets) = self.packets_mut() else { return false };
        let due = packets.compression.waiting > 0 && packets.compression.at <= now;
        packets.compression.waiting -= u32::from(due);
        due
    }

    /// The application waits for so many bytes at once.
    pub(in crate::tcp) fn make_room_for(&mut self, bytes: u32) {
        if let Some(packets) = self.packets_mut() {
            packets.make_room_for(bytes);
        }
    }

    /// The window is this at most, for as long as memory is short.
    pub(in crate::tcp) fn shrink_to(&mut self, window: u32) {
        if let Some(payload) = self.payload_mut() {
            payload.shrink_to(window);
        }
    }

    /// The buffer grows to hold a window of so many bytes, if `most` lets it.
    pub(in crate::tcp) fn raise(&mut self, window: u64, most: u32) {
        if let Some(payload) = self.payload_mut() {
            payload.raise(window, most);
        }
    }

    /// A payload of so many bytes takes so much memory.
    pub(in crate::tcp) fn measure(&mut self, payload: usize, memory: usize) {
        if let Some(space) = self.payload_mut() {
            space.measure(payload, memory);
        }
    }

    /// So many bytes came in order, in segments of `mss` at most, and `waiting` ones are not read.
    pub(in crate::tcp) fn grow(&mut self, came: u32, mss: u32, waiting: u32) {
        if let Some(payload) = self.payload_mut() {
            payload.grow(came, mss, waiting);
        }
    }

    /// Memory that packets take, and what is set aside for more, bytes; `None` where payload counts.
    pub(in crate::tcp) fn charged(&self) -> Option<(u32, u32)> {
        let packets = self.packets()?;
        Some((packets.allocated(), packets.forward().max(0).cast_unsigned()))
    }

    /// Round trip, and most bytes that were read in one, where packets count.
    pub(in crate::tcp) fn measured(&self) -> Option<(Option<Duration>, Option<u32>)> {
        let packets = self.packets()?;
        Some((packets.rounds.rtt.get(), Some(packets.rounds.space())))
    }

    /// What SACK reports, where packets count.
    pub(in crate::tcp) fn blocks(&self) -> Option<&Sacks> {
        Some(&self.packets()?.sacks)
    }

    pub(in crate::tcp) fn blocks_mut(&mut self) -> Option<&mut Sacks> {
        Some(&mut self.packets_mut()?.sacks)
    }

    /// The largest window, bytes.
    pub(crate) fn full(&self) -> u32 {
        match self {
            Space::Payload(payload) => payload.full(),
            Space::Packets(packets) => packets.full().min(packets.clamp().into()) as u32,
        }
    }

    /// Memory the buffer may take, bytes.
    pub(crate) fn rcvbuf(&self) -> u32 {
        match self {
            Space::Payload(payload) => payload.rcvbuf,
            Space::Packets(packets) => packets.rcvbuf(),
        }
    }

    /// The window does not grow beyond this for now.
    pub(crate) fn ssthresh(&self) -> u32 {
        match self {
            Space::Payload(payload) => payload.ssthresh.min(payload.full()),
            Space::Packets(packets) => packets.ssthresh(),
        }
    }

    pub(crate) fn is_locked(&self) -> bool {
        match self {
            Space::Payload(payload) => payload.locked,
            Space::Packets(packets) => packets.is_locked(),
        }
    }

    /// The application chooses the buffer anew.
    pub(crate) fn choose_buffer(&mut self, config: &Config, options: &SocketOptions) {
        match self {
            Space::Payload(payload) => payload.choose(config, options),
            Space::Packets(packets) => packets.set_rcvbuf(config, options),
        }
    }

    /// The application has chosen no buffer after all: it grows from what it is.
    pub(crate) fn unlock(&mut self) {
        match self {
            Space::Payload(payload) => payload.locked = false,
            Space::Packets(packets) => packets.unlock(),
        }
    }

    /// The application clamps the window, of which `advertised` bytes were advertised last.
    pub(crate) fn choose_clamp(&mut self, config: &Config, options: &SocketOptions, advertised: u32) {
        match self {
            Space::Payload(payload) => payload.choose(config, options),
            Space::Packets(packets) => {
                packets.set_clamp(options.window_clamp.unwrap_or(u32::MAX), advertised)
            }
        }
    }
}

/// Memory the buffer may take at first, bytes, and whether the application chose it.
pub(in crate::tcp) fn rcvbuf_of(config: &Config, options: &SocketOptions) -> (u32, bool) {
    let chosen = options.recv_buffer.map(|size| 2 * size.min(config.rmem_max).min(RECV_BUFFER_MAX));
    let lowat = options.recv_lowat.filter(|_| config.receive_accounting == ReceiveAccounting::Packets);
    let initial = config.tcp_rmem[1].max(lowat.unwrap_or(0).saturating_mul(2));
    (chosen.map_or(initial.min(RCVBUF_MAX), |size| size.max(RCVBUF_MIN)), chosen.is_some())
}

/// Bounds of a window that is counted by payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSpace {
    /// Memory the buffer may take, bytes.
    rcvbuf: u32,
    /// The application's bound of the window (`TCP_WINDOW_CLAMP`).
    clamp: u32,
    /// The window does not grow beyond this for now (Linux's `rcv_ssthresh`).
    ssthresh: u32,
    /// Payload per memory, in 256ths.
    ratio: u8,
    /// The application chose the buffer: it stays as it is (`SO_RCVBUF`).
    locked: bool,
}

impl WindowSpace {
    pub(crate) fn new(config: &Config, options: &SocketOptions) -> WindowSpace {
        let (rcvbuf, locked) = rcvbuf_of(config, options);
        let clamp = options.window_clamp.unwrap_or(u32::MAX);
        WindowSpace { rcvbuf, clamp, ssthresh: u32::MAX, ratio: RATIO_AT_FIRST, locked }
    }

    /// The largest window, bytes: what the buffer's memory holds, within the clamp.
    #[inline]
    pub(crate) fn full(&self) -> u32 {
        let payload = (u64::from(self.rcvbuf) * u64::from(self.ratio)) >> 8;
        (payload as u32).min(self.clamp).min(RECV_BUFFER_MAX)
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
    fn choose(&mut self, config: &Config, options: &SocketOptions) {
        let chosen = WindowSpace::new(config, options);
        self.clamp = chosen.clamp;
        if chosen.locked {
            (self.rcvbuf, self.ratio, self.locked) = (chosen.rcvbuf, chosen.ratio, true);
        }
    }

    /// A segment larger than any before: `payload` bytes in `memory`.
    pub(crate) fn measure(&mut self, payload: usize, memory: usize) {
        if !self.locked {
            self.ratio = ((payload << 8) / memory.max(1)).clamp(1, 255) as u8;
        }
    }

    /// A segment of `len` bytes has arrived, `buffered` wait to be read: the window may grow by twice that.
    pub(crate) fn grow(&mut self, len: u32, rcv_mss: u32, buffered: u32) {
        if self.ssthresh == u32::MAX {
            return;
        }
        let most = self.full().saturating_sub(buffered);
        if self.ssthresh < most {
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
        }
    }

    /// What to offer where `offered` still is, and `buffered` bytes wait to be read. Never less than `offered`. RFC 9293 §3.8.6.2.2: "keep
    /// RCV.NXT+RCV.WND fixed until the reduction satisfies: RCV.BUFF - RCV.USER - RCV.WND >= min( Fr * RCV.BUFF, Eff.snd.MSS )", with Fr = 1/2;
    /// here also until it is all that may be offered for now.
    pub(crate) fn offer(&self, offered: u32, buffered: u32, mss: u32) -> u32 {
        let full = self.full();
        let wanted = full.saturating_sub(buffered).min(self.ssthresh);
        let step = (full / 2).min(mss).min(self.ssthresh);
        if wanted < offered.saturating_add(step) { offered } else { wanted }
    }

    /// Whether a window that grows from `offered` to `offer` is to be advertised at once.
    pub(crate) fn is_worth_advertising(&self, offered: u32, offer: u32, mss: u32) -> bool {
        let full = self.full();
        // While more than this is open, the ACKs of what arrives tell the window soon enough. A buffer that the application chose may be
        // smaller than what the path holds, and then every round trip waits for it (half of it: Linux's `tcp_cleanup_rbuf`).
        let scarce = if self.locked { full / 2 } else { (full / 16).max((full / 2).min(2 * mss)) };
        offer > offered && offer / 2 >= offered && offered <= scarce
    }
}

/// The window field of a SYN or SYN-ACK, which is not scaled: as many whole segments of `space` as it holds. Where packets are counted it
/// is the buffer that is whole segments, not the field (Linux's `tcp_select_initial_window`).
pub(crate) fn first_field(config: &Config, space: u32, mss: u32) -> u32 {
    let most = if config.tcp_workaround_signed_windows { SIGNED_MOST } else { u32::from(u16::MAX) };
    match config.receive_accounting {
        ReceiveAccounting::Payload => whole_segments(space.min(most), mss),
        ReceiveAccounting::Packets => whole_segments(space, mss).min(most),
    }
}

/// Whole segments of a first window.
pub(crate) fn whole_segments(window: u32, mss: u32) -> u32 {
    if window > mss { window / mss.max(1) * mss } else { window }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::recv::packets::PacketSpace;

    /// The window is not to grow beyond less than a segment: so much is offered, not nothing.
    #[test]
    fn a_window_of_less_than_a_segment_opens_again() {
        let mut space = WindowSpace::new(&Config::default(), &SocketOptions::default());
        space.begin_at(1000);
        assert_eq!([0, 500, 1000].map(|offered| space.offer(offered, 0, 1460)), [1000, 500, 1000]);
        let options = SocketOptions { recv_buffer: Some(32_768), ..SocketOptions::default() };
        let mut space = PacketSpace::new(&Config::linux(), &options);
        space.shrink_under_pressure(250);
        assert_eq!(
            [0, 500, 1000].map(|advertised| space.select(advertised, 8960, 0, false).0),
            [1000, 500, 1000]
        );
    }
}
