//! `TCP_INFO` in Linux's binary layout: 280 bytes, as in Linux 6.18.
//!
//! The engine counts bytes where Linux counts segments. A count here is the number of segments of
//! the MSS that hold these bytes. `fackets`, `last_ack_sent` (in Linux too) and `rehash` are always
//! zero.

use crate::errno::Errno;
use crate::options::unanswered;
use crate::socket::{Opening, Role, Socket};
use crate::sockets::Sockets;
use core::time::Duration;
use proto::{CaState, Config, ConnectionInfo, Instant, ListenerInfo, State};

/// Size of the layout.
pub const SIZE: usize = 280;

/// Linux's state of a socket that never was more.
const TCP_CLOSE: u8 = 7;
const TCP_LISTEN: u8 = 10;
const TCP_SYN_SENT: u8 = 2;
/// MSS of a socket that is not connected (Linux's `TCP_MSS_DEFAULT`).
const MSS_DEFAULT: u32 = 536;
/// Where the window is told.
const CWND_AT: usize = 80;
/// Bytes that timestamps take of every segment.
const TIMESTAMPS_LEN: u32 = 12;
/// `TCP_INFINITE_SSTHRESH`.
const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

mod option {
    pub(super) const TIMESTAMPS: u8 = 1;
    pub(super) const SACK: u8 = 2;
    pub(super) const WSCALE: u8 = 4;
    pub(super) const ECN: u8 = 8;
    pub(super) const ECN_SEEN: u8 = 16;
    pub(super) const SYN_DATA: u8 = 32;
    pub(super) const FAST_OPEN_CHILD: u8 = 128;
}

/// What `getsockopt(TCP_INFO)` gives.
pub(crate) fn bytes(sockets: &Sockets, now: Instant, fd: i32) -> Result<Vec<u8>, Errno> {
    let socket = sockets.files.socket(fd)?;
    let mut out = Layout::default();
    match socket.role {
        Role::Fresh => {
            out.fresh(TCP_CLOSE, socket, sockets.stack.config(), now);
        }
        Role::Listener(id) => {
            out.listener(&sockets.stack.listener_info(id).ok_or(Errno::EINVAL)?, sockets.stack.config())
        }
        // What a connection begins with comes with its SYN (Linux's `tcp_connect_init`).
        Role::Connection(_) if socket.opening == Opening::Deferred => {
            out.fresh(TCP_SYN_SENT, socket, sockets.stack.config(), now);
        }
        Role::Connection(id) => {
            let config = sockets.stack.config();
            out.connection(&sockets.stack.info(id).ok_or(Errno::EINVAL)?, config, socket, now);
        }
    }
    out.bytes.resize(SIZE, 0);
    Ok(out.bytes)
}

/// Fields in the order of the structure; all lie where their own size aligns them.
#[derive(Default)]
struct Layout {
    bytes: Vec<u8>,
}

impl Layout {
    fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    fn short(&mut self, value: u32) {
        self.bytes.extend(u16::try_from(value).unwrap_or(u16::MAX).to_ne_bytes());
    }

    fn words<const N: usize>(&mut self, values: [u32; N]) {
        self.bytes.extend(values.iter().flat_map(|value| value.to_ne_bytes()));
    }

    fn longs<const N: usize>(&mut self, values: [u64; N]) {
        self.bytes.extend(values.iter().flat_map(|value| value.to_ne_bytes()));
    }

    /// What a connection would begin with (`tcp_init_sock`), and what is left of the one before (`tcp_disconnect`).
    fn fresh(&mut self, state: u8, socket: &Socket, config: &Config, now: Instant) {
        let former = socket.former.as_deref().map(|former| &former.info);
        let of = |what: fn(&ConnectionInfo) -> u32| former.map_or(0, what);
        let ecn = former.map_or(0, |info| ecn_options(info, config));
        let retransmits = former.map_or(0, |info| info.tcp_info.retransmits);
        let fail = u8::from(socket.lacks_cookie) << 1;
        self.bytes.extend([state, 0, retransmits, 0, 0, ecn, 0, 1 | fail]);
        let uptime = now.as_millis() as u32;
        let rto = micros(config.rto_initial);
        let mss = former.map_or(MSS_DEFAULT, |info| snd_mss(info, config));
        let pmtu = of(|info| info.tcp_info.pmtu.into());
        self.words([rto, 0, mss, 0, 0, 0, 0, 0, 0, uptime, 0, uptime, uptime, pmtu, 0, 0, rto / 4]);
        let advmss = of(advmss);
        self.words([SSTHRESH_INFINITE, config.initcwnd, advmss, config.tcp_reordering, 0, 0, 0]);
        self.longs([u64::MAX, u64::MAX, 0, 0]);
        self.words([0, 0, socket.numbers_skipped, u32::MAX, 0, 0]);
        self.longs([0; 4]);
        self.words([0, 0]);
        self.longs([0; 2]);
        self.words([0, 0, 0, of(|info| info.snd_wnd)]);
    }

    /// Linux tells of the accept queue where a connection tells of segments.
    fn listener(&mut self, info: &ListenerInfo, config: &Config) {
        self.bytes.extend([TCP_LISTEN, 0, 0, 0, 0, 0, 0, 0]);
        let waiting = u32::try_from(info.accept_queue).unwrap_or(u32::MAX);
        self.words([0, 0, 0, 0, waiting, info.backlog]);
        self.bytes.resize(CWND_AT, 0);
        self.words([config.initcwnd, 0, config.tcp_reordering, 0, 0, 0]);
        self.longs([u64::MAX, u64::MAX]);
    }

    fn connection(&mut self, info: &ConnectionInfo, config: &Config, socket: &Socket, now: Instant) {
        self.head(info, config, socket);
        self.segments(info);
        self.times(info, now);
        self.totals(info, now);
        self.tail(info, now);
    }

    fn head(&mut self, info: &ConnectionInfo, config: &Config, socket: &Socket) {
        let tcp = &info.tcp_info;
        self.byte(if socket.ended { TCP_CLOSE } else { state_number(info.state) });
        self.byte(match tcp.ca_state {
            CaState::Open => 0,
            CaState::Disorder => 1,
            CaState::Reducing => 2,
            CaState::Recovery => 3,
            CaState::Loss => 4,
        });
        self.bytes.extend([tcp.retransmits, tcp.probes, tcp.backoff, options(info, config)]);
        self.byte(if info.window_scaling { info.snd_wscale & 0xf | info.rcv_wscale << 4 } else { 0 });
        let fail = match tcp.fastopen_client_fail {
            None => u8::from(socket.lacks_cookie),
            Some(_) if tcp.syn_repeated => 3,
            Some(_) => 2,
        };
        // Until the first sample the rate is the application's.
        let app_limited = info.delivery_rate_app_limited || info.delivery_rate.is_none();
        self.byte(u8::from(app_limited) | fail << 1);
        self.words([micros(info.rto), micros(tcp.ato), snd_mss(info, config), tcp.rcv_mss.into()]);
    }

    fn segments(&mut self, info: &ConnectionInfo) {
        let tcp = &info.tcp_info;
        let never_answered = info.state == State::Closed && unanswered(info);
        if tcp.syn_in_flight || never_answered {
            let sent = 1 + u32::from(info.syn_data_len > 0 || tcp.empty_syn_data);
            let lost = tcp.retransmits > 0;
            let unacked = if never_answered { 0 } else { sent };
            return self.words([unacked, 0, if lost { sent } else { 0 }, lost.into(), 0]);
        }
        let count = |bytes: u32| segments(bytes, info.snd_mss);
        self.words([count(tcp.unacked), count(tcp.sacked), count(tcp.lost), count(tcp.retrans), 0]);
    }

    fn times(&mut self, info: &ConnectionInfo, now: Instant) {
        let tcp = &info.tcp_info;
        let since = |at: Option<Instant>| {
            let at = at.or(info.established_at).unwrap_or(info.opened_at);
            u32::try_from(now.since(at).as_millis()).unwrap_or(u32::MAX)
        };
        self.words([since(tcp.last_data_sent), 0, since(tcp.last_data_recv), since(tcp.last_ack_recv)]);
        let ssthresh = if info.ssthresh >= SSTHRESH_INFINITE {
            info.ssthresh.min(SSTHRESH_INFINITE)
        } else {
            whole_segments(info.ssthresh, info.snd_mss)
        };
        self.words([
            tcp.pmtu.into(),
            tcp.rcv_ssthresh,
            micros(info.srtt.unwrap_or_default()),
            micros(info.rttvar),
            ssthresh,
            tcp.cwnd_segs,
            advmss(info),
            tcp.reordering,
            micros(tcp.rcv_rtt.unwrap_or_default()),
            tcp.rcv_space.unwrap_or(0),
            tcp.total_retrans,
        ]);
    }

    fn totals(&mut self, info: &ConnectionInfo, now: Instant) {
        let tcp = &info.tcp_info;
        self.longs([
            info.pacing_rate.or(tcp.window_rate).unwrap_or(0),
            tcp.max_pacing_rate.map_or(u64::MAX, u64::from),
            info.bytes_acked + u64::from(tcp.controls_acked),
            info.bytes_received + u64::from(tcp.fin_received),
        ]);
        let min_rtt = info.min_rtt.map_or(u32::MAX, micros);
        self.words([
            tcp.segs_out,
            tcp.segs_in,
            tcp.notsent_bytes,
            min_rtt,
            tcp.data_segs_in,
            tcp.data_segs_out,
        ]);
        let limits = &info.limits;
        let time = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.longs([
            info.delivery_rate.unwrap_or(0),
            time(limits.busy_time(now)),
            time(limits.rwnd_limited(now)),
            time(limits.sndbuf_limited(now)),
        ]);
    }

    fn tail(&mut self, info: &ConnectionInfo, now: Instant) {
        let tcp = &info.tcp_info;
        let established = u32::from(info.established_at.is_some());
        // A SYN and its data are one segment.
        let with_syn = segments(info.syn_data_acked as u32, info.snd_mss);
        let fin = u32::from(tcp.fin_delivered);
        let delivered = established * (1 + u32::from(tcp.crossed) + u32::from(tcp.empty_syn_data))
            + fin
            + segments(tcp.delivered, info.snd_mss).saturating_sub(with_syn);
        self.words([delivered, tcp.delivered_ce]);
        self.longs([tcp.bytes_sent, tcp.bytes_retrans]);
        self.words([tcp.dsack_dups, tcp.reord_seen, tcp.rcv_ooopack, info.snd_wnd, tcp.rcv_wnd, 0]);
        self.short(tcp.total_rto);
        self.short(tcp.total_rto_recoveries);
        let since = tcp.rto_since.map_or(Duration::ZERO, |since| now.since(since));
        self.words([u32::try_from((tcp.total_rto_time + since).as_millis()).unwrap_or(u32::MAX)]);
        let marks = &tcp.accurate_ecn;
        self.words([
            marks.received_ce,
            marks.delivered_e1_bytes,
            marks.delivered_e0_bytes,
            marks.delivered_ce_bytes,
            marks.received_e1_bytes,
            marks.received_e0_bytes,
            marks.received_ce_bytes,
        ]);
        self.short(marks.fail_mode.into());
        self.short(marks.opt_seen.into());
    }
}

/// While nobody knows whether the peer takes timestamps they are taken off.
fn snd_mss(info: &ConnectionInfo, config: &Config) -> u32 {
    let offered = unanswered(info) && config.timestamps();
    u32::from(info.snd_mss).saturating_sub(if offered { TIMESTAMPS_LEN } else { 0 })
}

fn advmss(info: &ConnectionInfo) -> u32 {
    let timestamps = if info.timestamps && info.established_at.is_some() { TIMESTAMPS_LEN } else { 0 };
    u32::from(info.tcp_info.advmss) - timestamps
}

fn options(info: &ConnectionInfo, config: &Config) -> u8 {
    let all_acked = info.syn_data_acked > 0 && info.syn_data_acked == info.syn_data_len;
    let syn_data = all_acked || info.early_data.len > 0;
    ecn_options(info, config)
        | bit(info.timestamps, option::TIMESTAMPS)
        | bit(info.sack, option::SACK)
        | bit(info.window_scaling, option::WSCALE)
        | bit(syn_data, option::SYN_DATA)
        | bit(info.tcp_info.fast_open_child, option::FAST_OPEN_CHILD)
}

fn bit(on: bool, bit: u8) -> u8 {
    if on { bit } else { 0 }
}

/// Agreed, or its SYN asked and nothing has come; and what came since.
fn ecn_options(info: &ConnectionInfo, config: &Config) -> u8 {
    let asks = unanswered(info) && config.asks_for_ecn();
    bit(info.ecn || asks, option::ECN) | bit(info.tcp_info.ecn_seen, option::ECN_SEEN)
}

fn state_number(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => TCP_SYN_SENT,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        // The socket is closed then: what waits is no socket any more.
        State::TimeWait | State::Closed => TCP_CLOSE,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

fn segments(bytes: u32, mss: u16) -> u32 {
    bytes.div_ceil(u32::from(mss).max(1))
}

fn whole_segments(bytes: u32, mss: u16) -> u32 {
    bytes / u32::from(mss).max(1)
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
