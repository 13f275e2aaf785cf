//! What an application may ask of one connection: all of it when the connection is made ([`SocketOptions`]), or one by one later
//! ([`SocketOption`], `Stack::set_option`).
//!
//! Ranges are Linux's. Inside, a connection that asks for nothing special keeps no copy, and the children of a listener share one
//! ([`Options`]).

use crate::tcp::send::nagle::Nagle;
use crate::{CongestionControl, Md5Keys};
use alloc::sync::Arc;
use core::fmt;
use core::ops::{Deref, RangeInclusive};
use core::time::Duration;
use wire::Addr;

/// Options of one connection. A number out of range counts as the nearest in range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Send small segments at once (Nagle off).
    pub nodelay: bool,
    /// Send whole segments only, until it is taken off again (`TCP_CORK`). What is smaller goes when a retransmission time-out passes
    /// with nothing in flight, with a FIN, or by `push`.
    pub cork: bool,
    /// `Some(true)`: acknowledge at once for a while; `Some(false)`: let acknowledgements wait for answers from the start, even that
    /// of the handshake (`TCP_QUICKACK`). Neither lasts: the connection adapts to what happens.
    pub quickack: Option<bool>,
    /// Acknowledgements wait no longer, 2 to 200 ms (`TCP_DELACK_MAX_US`).
    pub delack_max: Option<Duration>,
    /// `Some(0)`: close resets. `Some(t)`: close lingers up to `t`, then resets. `None`: close returns at once, data is still delivered.
    pub linger: Option<Duration>,
    /// How long a connection that was closed waits for the peer's FIN (`TCP_LINGER2`), at most 120 s; zero: not at all, it is reset
    /// once our FIN is acknowledged. `None` = `tcp_fin_timeout`.
    pub linger2: Option<Duration>,
    /// Clamp of the MSS, 88 to 32767 bytes (`TCP_MAXSEG`).
    pub max_segment: Option<u16>,
    /// Retransmissions of our SYN or SYN-ACK, 1 to 127 (`TCP_SYNCNT`).
    pub syn_retries: Option<u8>,
    /// Least retransmission time-out: 2 to 200 ms (`TCP_RTO_MIN_US`); when the socket begins, 1 µs to 120 s, as it had been set (`tcp_rto_min_us`).
    pub rto_min: Option<Duration>,
    /// Greatest retransmission time-out, 1 to 120 s (`TCP_RTO_MAX_MS`).
    pub rto_max: Option<Duration>,
    /// The first six time-outs do not double while less than four segments are in flight (`TCP_THIN_LINEAR_TIMEOUTS`).
    pub thin_linear_timeouts: bool,
    /// Probe the peer after silence, and give it up when it does not answer (`SO_KEEPALIVE`).
    pub keepalive: bool,
    /// Silence before the first probe, 1 to 32767 s (`TCP_KEEPIDLE`). `None` = `tcp_keepalive_time`.
    pub keepalive_time: Option<Duration>,
    /// Between two probes, 1 to 32767 s (`TCP_KEEPINTVL`). `None` = `tcp_keepalive_intvl`.
    pub keepalive_intvl: Option<Duration>,
    /// Probes without an answer, 1 to 127 (`TCP_KEEPCNT`). `None` = `tcp_keepalive_probes`.
    pub keepalive_probes: Option<u8>,
    /// Give the connection up when the peer has not acknowledged data, a window probe or a keepalive probe for so long, instead of after
    /// `tcp_retries2`, `tcp_keepalive_probes` … (`TCP_USER_TIMEOUT`, RFC 5482). Zero is `None`.
    pub user_timeout: Option<Duration>,
    /// Take no more than so many bytes before they are sent, and report `WRITABLE` when less than half of them wait
    /// (`TCP_NOTSENT_LOWAT`). `None` = `tcp_notsent_lowat`.
    pub notsent_lowat: Option<u32>,
    /// Send buffer, bytes of payload that are not acknowledged or not yet sent (`SO_SNDBUF`, at most `net.core.wmem_max`): no write
    /// goes beyond it, and it does not grow. `None`: `tcp_wmem`'s initial size, and it follows the congestion window.
    pub send_buffer: Option<u32>,
    /// Receive buffer, bytes of payload (`SO_RCVBUF`, at most `net.core.rmem_max`): the window is never larger, and does not grow. Linux
    /// doubles the number for its bookkeeping, which is not in it, and offers the same window. `None`: `tcp_rmem`'s initial size, and it
    /// follows what the application takes in a round trip.
    pub recv_buffer: Option<u32>,
    /// The application reads no less than so many bytes at once (`SO_RCVLOWAT`): the buffer is made to hold twice as many, where it is
    /// counted by packets.
    pub recv_lowat: Option<u32>,
    /// Bound of the window that is offered, 1152 bytes at least (`TCP_WINDOW_CLAMP`). The buffer behind it may be larger.
    pub window_clamp: Option<u32>,
    /// The last urgent byte is not in the stream but read apart, by `read_urgent` (`SO_OOBINLINE` off, with which BSD's and Linux's sockets
    /// begin). RFC 6093 advises against it.
    pub urgent_apart: bool,
    /// DiffServ code point, 0 to 63 (the upper six bits of `IP_TOS` and `IPV6_TCLASS`).
    pub dscp: u8,
    /// Hop limit (`IP_TTL`, `IPV6_UNICAST_HOPS`); `None` = the stack's.
    pub hop_limit: Option<u8>,
    /// May packets of IPv4 be cut on their way, and who is believed that one was too large (`IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`)? `None` =
    /// the stack's (`ip_no_pmtu_disc`).
    pub path_mtu_discovery: Option<PathMtuDiscovery>,
    /// Congestion control (`TCP_CONGESTION`); `None` = the stack's.
    pub congestion: Option<CongestionControl>,
    /// Send at most so many bytes per second, spread evenly (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<u32>,
    /// Remember when data came that is not read yet (`SO_TIMESTAMP`, `SOF_TIMESTAMPING_RX_SOFTWARE`), for `arrived_at`.
    pub receive_times: bool,
    /// A listener keeps the headers of each SYN, for `saved_syn` of the connection that comes of it (`TCP_SAVE_SYN`).
    pub save_syn: bool,
    /// Every packet leaves so much later than it would (`TCP_TX_DELAY`), less than 2²⁸ µs.
    pub tx_delay: Duration,
    /// Peers whose segments are signed, and the keys (`TCP_MD5SIG`, RFC 2385). There is no Fast Open with them.
    pub md5_keys: Md5Keys,
    /// Segments that come with a smaller hop limit are dropped (`IP_MINTTL`, `IPV6_MINHOPCOUNT`, RFC 5082).
    pub min_hops: u8,
}

/// What becomes of packets that a router cannot forward whole (Linux's `IP_PMTUDISC_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtuDiscovery {
    /// Packets of IPv4 may be cut. What ICMP tells of the path's MTU holds for what is sent later, but nothing is retransmitted for it.
    Dont,
    /// They may not (RFC 1191), unless the path's MTU is not to be doubted: its route locks it, or less than `min_pmtu` was reported.
    Want,
    /// They never may.
    Do,
    /// As `Want`, but they may be cut. (With datagrams it is about those larger than what is known.)
    Probe,
    /// As `Dont`; a stream over IPv6 does not hear of the path's MTU.
    Interface,
    /// As `Interface`.
    Omit,
}

/// One option of an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// [`SocketOptions::nodelay`]; setting it sends what waits, even under [`Cork`](Self::Cork).
    NoDelay(bool),
    /// [`SocketOptions::cork`]; taking it off sends what waits, as far as Nagle lets it.
    Cork(bool),
    /// [`SocketOptions::quickack`].
    QuickAck(bool),
    /// [`SocketOptions::delack_max`].
    DelackMax(Option<Duration>),
    /// [`SocketOptions::linger`].
    Linger(Option<Duration>),
    /// [`SocketOptions::linger2`].
    Linger2(Option<Duration>),
    /// [`SocketOptions::max_segment`].
    MaxSegment(Option<u16>),
    /// [`SocketOptions::syn_retries`].
    SynRetries(Option<u8>),
    /// [`SocketOptions::rto_min`].
    RtoMin(Option<Duration>),
    /// [`SocketOptions::rto_max`].
    RtoMax(Option<Duration>),
    /// [`SocketOptions::thin_linear_timeouts`].
    ThinLinearTimeouts(bool),
    /// [`SocketOptions::dscp`].
    Dscp(u8),
    /// [`SocketOptions::hop_limit`].
    HopLimit(Option<u8>),
    /// [`SocketOptions::path_mtu_discovery`].
    PathMtuDiscovery(PathMtuDiscovery),
    /// [`SocketOptions::send_buffer`]; what lies in it beyond a smaller one stays.
    SendBuffer(u32),
    /// No [`send_buffer`](field@SocketOptions::send_buffer) any more: it grows from what it is.
    SendBufferGrows,
    /// No [`recv_buffer`](field@SocketOptions::recv_buffer) any more.
    RecvBufferGrows,
    /// [`SocketOptions::recv_buffer`]; what the peer was offered beyond a smaller one it may still send.
    RecvBuffer(u32),
    /// [`SocketOptions::recv_lowat`].
    RecvLowat(u32),
    /// [`SocketOptions::window_clamp`].
    WindowClamp(u32),
    /// [`SocketOptions::keepalive`].
    KeepAlive(bool),
    /// [`SocketOptions::keepalive_time`].
    KeepAliveTime(Option<Duration>),
    /// [`SocketOptions::keepalive_intvl`].
    KeepAliveInterval(Option<Duration>),
    /// [`SocketOptions::keepalive_probes`].
    KeepAliveProbes(Option<u8>),
    /// [`SocketOptions::user_timeout`](field@SocketOptions::user_timeout).
    UserTimeout(Option<Duration>),
    /// [`SocketOptions::notsent_lowat`].
    NotsentLowat(Option<u32>),
    /// [`SocketOptions::urgent_apart`].
    UrgentApart(bool),
    /// [`SocketOptions::congestion`]; an open connection goes on with the window it has.
    Congestion(CongestionControl),
    /// [`SocketOptions::max_pacing_rate`].
    MaxPacingRate(Option<u32>),
    /// [`SocketOptions::receive_times`].
    ReceiveTimes(bool),
    /// [`SocketOptions::save_syn`].
    SaveSyn(bool),
    /// [`SocketOptions::tx_delay`]; what was measured of the path changes by as much.
    TxDelay(Duration),
    /// [`SocketOptions::min_hops`].
    MinHops(u8),
}

/// Why an option was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// Not a value of this option (Linux's `EINVAL`).
    OutOfRange,
    /// No such connection.
    NotFound,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OptionError::OutOfRange => "not a value of this socket option: see its range in `SocketOptions`",
            OptionError::NotFound => "there is no such connection: it was let go",
        })
    }
}

impl core::error::Error for OptionError {}

/// Half of Linux's `SOCK_MIN_RCVBUF`.
const WINDOW_CLAMP_MIN: u32 = 1152;
const MAX_SEGMENT: RangeInclusive<u16> = 88..=32_767;
const DSCP_MAX: u8 = 63;
const SYN_RETRIES: RangeInclusive<u8> = 1..=127;
/// Of `delack_max`, too.
const RTO_MIN: RangeInclusive<Duration> = Duration::from_millis(2)..=Duration::from_millis(200);
/// As the setting may be (`tcp_rto_min_us`), which a socket may keep.
const RTO_MIN_KEPT: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(120);
const RTO_MAX: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(120);
const KEEPALIVE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(32_767);
const KEEPALIVE_PROBES: RangeInclusive<u8> = 1..=127;
/// Linux keeps eighths of microseconds in 31 bits.
const TX_DELAY_END: Duration = Duration::from_micros(1 << 28);
/// Linux's `TCP_FIN_TIMEOUT_MAX`; more is no error, but no longer.
const LINGER2: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(120);

fn nearest<T: Ord + Copy>(value: &mut Option<T>, range: RangeInclusive<T>) {
    *value = value.map(|value| value.clamp(*range.start(), *range.end()));
}

fn checked<T: PartialOrd>(value: Option<T>, range: RangeInclusive<T>) -> Result<Option<T>, OptionError> {
    match value {
        Some(value) if !range.contains(&value) => Err(OptionError::OutOfRange),
        value => Ok(value),
    }
}

impl SocketOptions {
    /// All but `nodelay` and `cork` is as by default. (Field by field: this is asked of every connection, and costs half of a comparison.)
    fn asks_for_nothing(&self) -> bool {
        let SocketOptions {
            nodelay: _,
            cork: _,
            quickack: None,
            delack_max: None,
            linger: None,
            linger2: None,
            max_segment: None,
            syn_retries: None,
            rto_min: None,
            rto_max: None,
            thin_linear_timeouts: false,
            keepalive: false,
            keepalive_time: None,
            keepalive_intvl: None,
            keepalive_probes: None,
            user_timeout: None,
            notsent_lowat: None,
            send_buffer: None,
            recv_buffer: None,
            recv_lowat: None,
            window_clamp: None,
            urgent_apart: false,
            dscp: 0,
            hop_limit: None,
            congestion: None,
            max_pacing_rate: None,
            receive_times: false,
            save_syn: false,
            tx_delay: Duration::ZERO,
            md5_keys,
            min_hops: 0,
            path_mtu_discovery: None,
        } = self
        else {
            return false;
        };
        md5_keys.is_empty()
    }

    fn into_range(mut self) -> SocketOptions {
        nearest(&mut self.max_segment, MAX_SEGMENT);
        nearest(&mut self.syn_retries, SYN_RETRIES);
        nearest(&mut self.rto_min, RTO_MIN_KEPT);
        nearest(&mut self.rto_max, RTO_MAX);
        nearest(&mut self.delack_max, RTO_MIN);
        nearest(&mut self.linger2, LINGER2);
        self.tx_delay = self.tx_delay.min(TX_DELAY_END - Duration::from_micros(1));
        self.dscp = self.dscp.min(DSCP_MAX);
        self.window_clamp = self.window_clamp.map(|clamp| clamp.max(WINDOW_CLAMP_MIN));
        nearest(&mut self.keepalive_time, KEEPALIVE);
        nearest(&mut self.keepalive_intvl, KEEPALIVE);
        nearest(&mut self.keepalive_probes, KEEPALIVE_PROBES);
        self
    }

    /// Segments to this peer are signed, and must be by it.
    #[inline]
    pub(crate) fn signs(&self, peer: &Addr) -> bool {
        !self.md5_keys.is_empty() && self.md5_keys.for_peer(peer.to_ip()).is_some()
    }

    pub(crate) fn user_timeout(&self) -> Option<Duration> {
        self.user_timeout.filter(|time| !time.is_zero())
    }

    /// Changes one.
    ///
    /// # Errors
    /// [`OptionError::OutOfRange`]; nothing has changed then.
    pub fn set(&mut self, option: SocketOption) -> Result<(), OptionError> {
        match option {
            SocketOption::NoDelay(on) => self.nodelay = on,
            SocketOption::Cork(on) => self.cork = on,
            SocketOption::QuickAck(on) => self.quickack = Some(on),
            SocketOption::DelackMax(most) => self.delack_max = checked(most, RTO_MIN)?,
            SocketOption::Linger(linger) => self.linger = linger,
            SocketOption::Linger2(wait) => {
                self.linger2 = wait;
                nearest(&mut self.linger2, LINGER2);
            }
            SocketOption::MaxSegment(bytes) => self.max_segment = checked(bytes, MAX_SEGMENT)?,
            SocketOption::SynRetries(retries) => self.syn_retries = checked(retries, SYN_RETRIES)?,
            SocketOption::RtoMin(least) => self.rto_min = checked(least, RTO_MIN)?,
            SocketOption::RtoMax(most) => self.rto_max = checked(most, RTO_MAX)?,
            SocketOption::ThinLinearTimeouts(on) => self.thin_linear_timeouts = on,
            SocketOption::Dscp(code) if code <= DSCP_MAX => self.dscp = code,
            SocketOption::Dscp(_) => return Err(OptionError::OutOfRange),
            SocketOption::HopLimit(hops) => self.hop_limit = hops,
            SocketOption::PathMtuDiscovery(mode) => self.path_mtu_discovery = Some(mode),
            SocketOption::SendBuffer(bytes) => self.send_buffer = Some(bytes),
            SocketOption::SendBufferGrows => self.send_buffer = None,
            SocketOption::RecvBufferGrows => self.recv_buffer = None,
            SocketOption::RecvBuffer(bytes) => self.recv_buffer = Some(bytes),
            SocketOption::RecvLowat(bytes) => self.recv_lowat = Some(bytes).filter(|bytes| *bytes > 1),
            SocketOption::WindowClamp(bytes) => self.window_clamp = Some(bytes.max(WINDOW_CLAMP_MIN)),
            SocketOption::KeepAlive(on) => self.keepalive = on,
            SocketOption::KeepAliveTime(time) => self.keepalive_time = checked(time, KEEPALIVE)?,
            SocketOption::KeepAliveInterval(time) => self.keepalive_intvl = checked(time, KEEPALIVE)?,
            SocketOption::KeepAliveProbes(probes) => {
                self.keepalive_probes = checked(probes, KEEPALIVE_PROBES)?
            }
            SocketOption::UserTimeout(time) => self.user_timeout = time,
            SocketOption::NotsentLowat(bytes) => self.notsent_lowat = bytes,
            SocketOption::UrgentApart(on) => self.urgent_apart = on,
            SocketOption::Congestion(algorithm) => self.congestion = Some(algorithm),
            SocketOption::MaxPacingRate(most) => self.max_pacing_rate = most,
            SocketOption::ReceiveTimes(on) => self.receive_times = on,
            SocketOption::SaveSyn(on) => self.save_syn = on,
            SocketOption::TxDelay(delay) if delay < TX_DELAY_END => self.tx_delay = delay,
            SocketOption::TxDelay(_) => return Err(OptionError::OutOfRange),
            SocketOption::MinHops(least) => self.min_hops = least,
        }
        Ok(())
    }
}

/// Options as a connection keeps them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// `nodelay` and `cork`.
    pub(crate) nagle: Nagle,
    pub(crate) rare: RareOptions,
}

impl From<SocketOptions> for Options {
    #[inline(always)]
    fn from(options: SocketOptions) -> Options {
        let off = if options.nodelay { Nagle::OFF } else { Nagle::empty() };
        let cork = if options.cork { Nagle::CORK } else { Nagle::empty() };
        let rare = if options.asks_for_nothing() { RareOptions(None) } else { RareOptions::keep(options) };
        Options { nagle: off.union(cork), rare }
    }
}

/// All but `nodelay` and `cork`, which ordinary connections set: nothing where they are the default, else shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct RareOptions(Option<Arc<SocketOptions>>);

impl RareOptions {
    /// The application asks for nothing but what ordinary connections set.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        self.0.is_none()
    }

    #[inline(never)]
    fn keep(options: SocketOptions) -> RareOptions {
        RareOptions(Some(Arc::new(SocketOptions { nodelay: false, cork: false, ..options.into_range() })))
    }

    pub(crate) fn set_md5_keys(&mut self, md5_keys: Md5Keys) {
        self.0 = Some(Arc::new(SocketOptions { md5_keys, ..SocketOptions::clone(self) }));
    }

    /// Changes one.
    pub(crate) fn set(&mut self, option: SocketOption) -> Result<(), OptionError> {
        let mut changed = SocketOptions::clone(self);
        changed.set(option)?;
        self.0 = Some(Arc::new(changed));
        Ok(())
    }
}

/// An application that asks for nothing.
static ORDINARY: SocketOptions = SocketOptions {
    nodelay: false,
    cork: false,
    quickack: None,
    delack_max: None,
    linger: None,
    linger2: None,
    max_segment: None,
    syn_retries: None,
    rto_min: None,
    rto_max: None,
    thin_linear_timeouts: false,
    keepalive: false,
    keepalive_time: None,
    keepalive_intvl: None,
    keepalive_probes: None,
    user_timeout: None,
    notsent_lowat: None,
    send_buffer: None,
    recv_buffer: None,
    recv_lowat: None,
    window_clamp: None,
    urgent_apart: false,
    dscp: 0,
    hop_limit: None,
    path_mtu_discovery: None,
    congestion: None,
    max_pacing_rate: None,
    receive_times: false,
    save_syn: false,
    tx_delay: Duration::ZERO,
    md5_keys: Md5Keys::NONE,
    min_hops: 0,
};

impl Deref for RareOptions {
    type Target = SocketOptions;

    fn deref(&self) -> &SocketOptions {
        self.0.as_deref().unwrap_or(&ORDINARY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_default_takes_no_memory() {
        let ordinary = SocketOptions { nodelay: true, cork: true, ..SocketOptions::default() };
        let options = Options::from(ordinary);
        assert_eq!(options.nagle, Nagle::OFF | Nagle::CORK);
        assert!(options.rare.0.is_none());
        assert_eq!(*options.rare, SocketOptions::default());
        assert_eq!(size_of::<RareOptions>(), 8);
    }

    #[test]
    fn numbers_out_of_range_are_refused_or_brought_into_it() {
        let mut options = SocketOptions::default();
        let too_much = [
            SocketOption::MaxSegment(Some(87)),
            SocketOption::MaxSegment(Some(32_768)),
            SocketOption::SynRetries(Some(0)),
            SocketOption::SynRetries(Some(128)),
            SocketOption::RtoMin(Some(Duration::from_millis(1))),
            SocketOption::RtoMin(Some(Duration::from_millis(201))),
            SocketOption::RtoMax(Some(Duration::from_millis(999))),
            SocketOption::RtoMax(Some(Duration::from_secs(121))),
            SocketOption::DelackMax(Some(Duration::from_millis(201))),
            SocketOption::KeepAliveTime(Some(Duration::from_millis(999))),
            SocketOption::KeepAliveTime(Some(Duration::from_secs(32_768))),
            SocketOption::KeepAliveInterval(Some(Duration::ZERO)),
            SocketOption::KeepAliveProbes(Some(128)),
            SocketOption::Dscp(64),
            SocketOption::TxDelay(Duration::from_micros(1 << 28)),
        ];
        for option in too_much {
            assert_eq!(options.set(option), Err(OptionError::OutOfRange), "{option:?}");
        }
        assert_eq!(options, SocketOptions::default());
        options.set(SocketOption::Linger2(Some(Duration::from_secs(500)))).unwrap();
        assert_eq!(options.linger2, Some(Duration::from_secs(120)), "as Linux: not refused");
        let wild = SocketOptions { max_segment: Some(0), syn_retries: Some(200), ..options };
        let options = Options::from(wild).rare;
        assert_eq!((options.max_segment, options.syn_retries), (Some(88), Some(127)));
    }
}
