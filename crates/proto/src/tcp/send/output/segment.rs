//! Writes a packet: IP and TCP header inline, payload shared, checksum left to the device if it
//! can.

use crate::Config;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::rare::urgent;
use crate::tcp::recv::receiver::Receiver;
use crate::tcp::recv::window_space::SIGNED_MOST;
use wire::{Ecn, Flags, IpHeader, PlainSegment, SeqNum, TcpHeader, TcpOptions, TxPacket};

/// A segment to be sent.
#[derive(Clone, Copy)]
pub(super) struct Outgoing {
    pub(super) seq: SeqNum,
    pub(super) flags: Flags,
    /// Length of the payload, which is in the packet already.
    pub(super) payload_len: usize,
    pub(super) ecn: Ecn,
    /// Urgent pointer, with [`Flags::URG`].
    pub(super) urgent: u16,
    /// All of it was sent before.
    pub(super) again: bool,
}

impl Outgoing {
    pub(super) fn bare(seq: SeqNum, flags: Flags) -> Outgoing {
        Outgoing { seq, flags, payload_len: 0, ecn: Ecn::NotEct, urgent: 0, again: false }
    }
}

impl Connection {
    /// Writes a segment of an open connection, with its present window, acknowledgment and options.
    pub(super) fn build(&mut self, cx: &mut Context, mut out: Outgoing, packet: &mut TxPacket) {
        if self.agreed.ecn.is_accurate() {
            let (flags, ecn) = self.report_marks(out.payload_len == 0 && out.flags == Flags::ACK);
            (out.flags, out.ecn) = (out.flags | flags, ecn);
        }
        out.flags |= self.ecn_echo();
        let whole = !self.fragments();
        if self.special.is_some() && !out.flags.contains(Flags::RST) {
            self.look_at_route(cx.now);
            let pointer = self.urgent_pointer(out.seq);
            out.flags |= urgent::flag(pointer);
            out.urgent = pointer.unwrap_or(0);
        }
        let window = self.window_to_tell(cx);
        self.timers.stop(crate::tcp::timers::Timer::DelayedAck);
        packet.repeats_cwr = self.agreed.ecn.is_accurate();
        let tells_more = self.rcv.has_blocks() || self.agreed.ecn.is_accurate() && self.tells_option();
        if !tells_more && out.urgent == 0 && whole {
            match self.tuple.v4_addresses() {
                Some(addresses) => {
                    packet.write_v4(&self.plain(cx, &out, window), addresses, 0, cx.capabilities.tx_checksum)
                }
                None => self.write_v6(cx, out, window, packet),
            }
            packet.gso_size = self.gso_size(&out);
            self.count_sent(cx, &out, packet.gso_size);
            return;
        }
        self.finish_with_options(cx, &out, window, packet);
    }

    /// Writes a segment with options.
    #[inline(never)]
    fn finish_with_options(&mut self, cx: &mut Context, out: &Outgoing, window: u16, packet: &mut TxPacket) {
        let options = self.options_now(cx);
        let blocks = if options.accurate_ecn.is_some() { options.sack.len() } else { self.sack_max() };
        self.finish_packet(cx, out, window, options, packet);
        self.rcv.reported(blocks);
    }

    /// Writes an ordinary segment (see `ordinary`), like [`build`](Self::build). The timer of the
    /// owed acknowledgment is already stopped.
    #[inline(never)]
    pub(super) fn build_ordinary(
        &mut self,
        cx: &mut Context,
        seq: SeqNum,
        len: u32,
        flags: Flags,
        packet: &mut TxPacket,
    ) {
        let out = Outgoing { payload_len: len as usize, ..Outgoing::bare(seq, flags) };
        let window = self.window_to_tell(cx);
        debug_assert!(self.options.is_ordinary());
        let hop_limit = cx.config.hop_limit();
        let segment = PlainSegment { dscp: 0, hop_limit, ..self.plain(cx, &out, window) };
        packet.repeats_cwr = false;
        match self.tuple.v4_addresses() {
            Some(addresses) => packet.write_v4(&segment, addresses, 0, cx.capabilities.tx_checksum),
            None => self.write_v6(cx, out, window, packet),
        }
        self.count_sent(cx, &out, 0);
    }

    /// Returns the window field, and counts the window as advertised.
    #[inline(always)]
    fn window_to_tell(&mut self, cx: &mut Context) -> u16 {
        let window = match self.rcv.space.counts_payload() {
            true => self.advertise(cx),
            false => self.rcv.advertise_window(cx),
        };
        if cx.config.tcp_workaround_signed_windows { self.rcv.signed(window) } else { window }
    }

    /// Advertises the window of a buffer that is counted by payload.
    #[inline(always)]
    fn advertise(&mut self, cx: &mut Context) -> u16 {
        if self.rcv.refuses() || self.rcv.wnd() >> self.rcv.wscale == 0 {
            return self.advertise_closed(cx);
        }
        // The advertised window is open and stays open.
        let (window, wants_zero) = self.rcv.advertise(self.advmss.into(), self.rcv.wscale);
        debug_assert!(window > 0);
        cx.counters.want_zero_window_adv += u64::from(wants_zero);
        window
    }

    /// Advertises a window that is, was, or may become closed.
    #[inline(never)]
    fn advertise_closed(&mut self, cx: &mut Context) -> u16 {
        let mss = u32::from(self.advmss);
        if self.rcv.refuses() {
            self.rcv.ends_refusal(&cx.config, &cx.memory);
        }
        let was_closed = self.rcv.advertised_zero();
        let (window, wants_zero) = self.rcv.advertise(mss, self.rcv.wscale);
        cx.counters.want_zero_window_adv += u64::from(wants_zero);
        if was_closed != (window == 0) {
            cx.counters.from_zero_window_adv += u64::from(was_closed);
            cx.counters.to_zero_window_adv += u64::from(!was_closed);
        }
        window
    }

    /// Writes an IPv6 packet. By value, so that an IPv4 segment can stay in registers.
    #[inline(never)]
    fn write_v6(&self, cx: &Context, out: Outgoing, window: u16, packet: &mut TxPacket) {
        packet.write_v6(&self.plain(cx, &out, window), 0, cx.capabilities.tx_checksum);
    }

    /// Returns the segment without options other than timestamps.
    pub(super) fn plain(&self, cx: &Context, out: &Outgoing, window: u16) -> PlainSegment {
        PlainSegment {
            addresses: (self.tuple.local, self.tuple.peer),
            ports: (self.tuple.local_port, self.tuple.peer_port),
            seq: out.seq,
            ack: if out.flags.contains(Flags::ACK) { self.rcv.nxt } else { SeqNum(0) },
            flags: out.flags,
            window,
            timestamps: self.timestamps(cx.now),
            ecn: out.ecn,
            dscp: self.options.dscp,
            hop_limit: self.hop_limit(&cx.config),
            payload_len: out.payload_len,
        }
    }

    fn hop_limit(&self, config: &Config) -> u8 {
        self.options.hop_limit.unwrap_or(config.hop_limit())
    }

    /// Writes the headers, the checksum, and the size by which the device cuts.
    pub(super) fn finish_packet(
        &mut self,
        cx: &mut Context,
        out: &Outgoing,
        window: u16,
        options: TcpOptions,
        packet: &mut TxPacket,
    ) {
        let partial = cx.capabilities.tx_checksum;
        let usual = out.flags.contains(Flags::SYN) && !self.fragments();
        if usual && packet.write_syn(&self.plain(cx, out, window), &options, partial) {
            self.count_sent(cx, out, 0);
            return;
        }
        let header = TcpHeader {
            src_port: self.tuple.local_port,
            dst_port: self.tuple.peer_port,
            seq: out.seq,
            ack: if out.flags.contains(Flags::ACK) { self.rcv.nxt } else { SeqNum(0) },
            flags: out.flags,
            window,
            urgent: out.urgent,
            options,
        };
        let mut ip = IpHeader {
            ecn: out.ecn,
            dscp: self.options.dscp,
            hop_limit: self.hop_limit(&cx.config),
            ..IpHeader::new(self.tuple.local, self.tuple.peer, wire::protocol::TCP)
        };
        let gso_size = self.gso_size(out);
        self.count_sent(cx, out, gso_size);
        if self.fragments() {
            let segments = if gso_size > 0 { out.payload_len.div_ceil(gso_size.into()) } else { 1 };
            self.let_be_cut(&mut ip, out.flags, header.emit_len() + out.payload_len, segments);
        }
        packet.write_tcp(&ip, &header, gso_size, partial);
    }

    /// Returns the payload size of the packets into which the device cuts the segment, or 0 for one
    /// packet. SYNs and probes of the path's MTU are never cut.
    fn gso_size(&self, out: &Outgoing) -> u16 {
        let most = self.segment_max();
        let is_cut = usize::from(most) < out.payload_len
            && !out.flags.contains(Flags::SYN)
            && !self.is_mtu_probe(out.seq, out.payload_len as u32);
        if is_cut { most } else { 0 }
    }

    /// Counts a segment that is sent, and the packets into which the device cuts it.
    #[inline(always)]
    fn count_sent(&mut self, cx: &mut Context, out: &Outgoing, gso_size: u16) {
        // A payload is far below 2³², so the division is of 32 bits.
        let packets = if gso_size > 0 { (out.payload_len as u32).div_ceil(gso_size.into()) } else { 1 };
        if out.again {
            cx.counters.retrans_segs += u64::from(packets);
            let counts = self.counts(cx.now);
            counts.total_retrans = counts.total_retrans.wrapping_add(packets);
        } else {
            cx.counters.out_segs += u64::from(packets);
            // As in Linux, a FIN without text counts as data.
            let is_data = out.payload_len > 0 || out.flags.contains(Flags::FIN);
            cx.counters.orig_data_sent += if is_data { u64::from(packets) } else { 0 };
        }
        self.tally.went(out.payload_len, packets);
    }
}

impl Receiver {
    /// Limits the window for peers that read it as a signed number
    /// (`tcp_workaround_signed_windows`).
    #[cold]
    fn signed(&self, window: u16) -> u16 {
        if self.wscale == 0 { window.min(SIGNED_MOST as u16) } else { window }
    }
}
