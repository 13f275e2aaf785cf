//! Options of one connection: all at its creation ([`SocketOptions`]), or one by one later
//! ([`SocketOption`], `Stack::set_option`).
//!
//! Ranges are Linux's. Internally, a connection with default options keeps no copy, and the
//! children of a listener share one ([`Options`]).

use crate::errors::sentences;
use crate::tcp::send::nagle::Nagle;
use crate::{CongestionControl, Md5Keys};
use alloc::sync::Arc;
use core::ops::{Deref, RangeInclusive};
use core::time::Duration;
use wire::Addr;

/// The table of options. A row: what a socket has and begins with, the [`SocketOption`] that changes it and to what, and what follows from that.
macro_rules! options {
    ($( $(#[$doc:meta])* $field:ident: $type:ty = $default:expr
        $(, $option:ident($given:ident: $given_type:ty) => $value:expr $(, $follows:literal)?)?; )+) => {
        /// Options of one connection. A number out of range counts as the nearest valid one.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct SocketOptions { $( $(#[$doc])* pub $field: $type, )+ }

        /// An application that asks for nothing.
        static ORDINARY: SocketOptions = SocketOptions { $($field: $default,)+ };

        /// One option of an open connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum SocketOption {
            $($(
                #[doc = concat!("[`", stringify!($field), "`](field@SocketOptions::", stringify!($field), ")" $(, "; ", $follows)?)]
                $option($given_type),
            )?)+
            /// Removes [`send_buffer`](field@SocketOptions::send_buffer): the buffer grows from its
            /// current size.
            SendBufferGrows,
            /// Removes [`recv_buffer`](field@SocketOptions::recv_buffer): the buffer grows from its
            /// current size.
            RecvBufferGrows,
        }

        impl SocketOptions {
            /// All but `nodelay` and `cork` is as by default. (Field by field, without a copy: this is asked of every connection.)
            fn asks_for_nothing(&self) -> bool {
                $((matches!(stringify!($field), "nodelay" | "cork") || self.$field == $default) &&)+ true
            }

            /// Changes an option.
            ///
            /// # Errors
            /// [`OptionError::OutOfRange`]; nothing has changed then.
            pub fn set(&mut self, option: SocketOption) -> Result<(), OptionError> {
                match option {
                    $($( SocketOption::$option($given) => self.$field = $value, )?)+
                    SocketOption::SendBufferGrows => self.send_buffer = None,
                    SocketOption::RecvBufferGrows => self.recv_buffer = None,
                }
                Ok(())
            }
        }
    };
}

options! {
    /// Send small segments at once (Nagle off).
    nodelay: bool = false, NoDelay(on: bool) => on, "setting it sends what waits, even under [`Cork`](Self::Cork).";
    /// Send whole segments only, until it is taken off again (`TCP_CORK`). What is smaller goes when a retransmission time-out passes
    /// with nothing in flight, with a FIN, or by `push`.
    cork: bool = false, Cork(on: bool) => on, "taking it off sends what waits, as far as Nagle lets it.";
    /// `Some(true)`: acknowledge at once for a while; `Some(false)`: let acknowledgements wait for answers from the start, even that
    /// of the handshake (`TCP_QUICKACK`). Neither lasts: the connection adapts to what happens.
    quickack: Option<bool> = None, QuickAck(on: bool) => Some(on);
    /// Acknowledgements wait no longer, 2 to 200 ms (`TCP_DELACK_MAX_US`).
    delack_max: Option<Duration> = None, DelackMax(most: Option<Duration>) => checked(most, RTO_MIN)?;
    /// `Some(0)`: close resets. `Some(t)`: close lingers up to `t`, then resets. `None`: close returns at once, data is still delivered.
    linger: Option<Duration> = None, Linger(linger: Option<Duration>) => linger;
    /// Time for which a closed connection waits for the peer's FIN (`TCP_LINGER2`), at most 120 s.
    /// Zero resets it once this end's FIN is acknowledged. `None` is `tcp_fin_timeout`.
    linger2: Option<Duration> = None, Linger2(wait: Option<Duration>) => wait.map(|wait| wait.min(LINGER2_MAX));
    /// Clamp of the MSS, 88 to 32767 bytes (`TCP_MAXSEG`).
    max_segment: Option<u16> = None, MaxSegment(bytes: Option<u16>) => checked(bytes, MAX_SEGMENT)?;
    /// Retransmissions of our SYN or SYN-ACK, 1 to 127 (`TCP_SYNCNT`).
    syn_retries: Option<u8> = None, SynRetries(retries: Option<u8>) => checked(retries, SYN_RETRIES)?;
    /// Least retransmission time-out: 2 to 200 ms (`TCP_RTO_MIN_US`); when the socket begins, 1 µs to 120 s, as it had been set (`tcp_rto_min_us`).
    rto_min: Option<Duration> = None, RtoMin(least: Option<Duration>) => checked(least, RTO_MIN)?;
    /// Greatest retransmission time-out, 1 to 120 s (`TCP_RTO_MAX_MS`).
    rto_max: Option<Duration> = None, RtoMax(most: Option<Duration>) => checked(most, RTO_MAX)?;
    /// The first six time-outs do not double while less than four segments are in flight (`TCP_THIN_LINEAR_TIMEOUTS`).
    thin_linear_timeouts: bool = false, ThinLinearTimeouts(on: bool) => on;
    /// Probe the peer after silence, and give it up when it does not answer (`SO_KEEPALIVE`).
    keepalive: bool = false, KeepAlive(on: bool) => on;
    /// Silence before the first probe, 1 to 32767 s (`TCP_KEEPIDLE`). `None` = `tcp_keepalive_time`.
    keepalive_time: Option<Duration> = None, KeepAliveTime(time: Option<Duration>) => checked(time, KEEPALIVE)?;
    /// Between two probes, 1 to 32767 s (`TCP_KEEPINTVL`). `None` = `tcp_keepalive_intvl`.
    keepalive_intvl: Option<Duration> = None, KeepAliveInterval(time: Option<Duration>) => checked(time, KEEPALIVE)?;
    /// Probes without an answer, 1 to 127 (`TCP_KEEPCNT`). `None` = `tcp_keepalive_probes`.
    keepalive_probes: Option<u8> = None, KeepAliveProbes(probes: Option<u8>) => checked(probes, KEEPALIVE_PROBES)?;
    /// Give the connection up when the peer has not acknowledged data, a window probe or a keepalive probe for so long, instead of after
    /// `tcp_retries2`, `tcp_keepalive_probes` … (`TCP_USER_TIMEOUT`, RFC 5482). Zero is `None`.
    user_timeout: Option<Duration> = None, UserTimeout(time: Option<Duration>) => time;
    /// Take no more than so many bytes before they are sent, and report `WRITABLE` when less than half of them wait
    /// (`TCP_NOTSENT_LOWAT`). `None` = `tcp_notsent_lowat`.
    notsent_lowat: Option<u32> = None, NotsentLowat(bytes: Option<u32>) => bytes;
    /// Send buffer, bytes of payload that are not acknowledged or not yet sent (`SO_SNDBUF`, at most `net.core.wmem_max`): no write
    /// goes beyond it, and it does not grow. `None`: `tcp_wmem`'s initial size, and it follows the congestion window.
    send_buffer: Option<u32> = None, SendBuffer(bytes: u32) => Some(bytes), "what lies in it beyond a smaller one stays.";
    /// Receive buffer, bytes of payload (`SO_RCVBUF`, at most `net.core.rmem_max`): the window is never larger, and does not grow. Linux
    /// doubles the number for its bookkeeping, which is not in it, and offers the same window. `None`: `tcp_rmem`'s initial size, and it
    /// follows what the application takes in a round trip.
    recv_buffer: Option<u32> = None, RecvBuffer(bytes: u32) => Some(bytes), "what the peer was offered beyond a smaller one it may still send.";
    /// The application reads no less than so many bytes at once (`SO_RCVLOWAT`): the buffer is made to hold twice as many, where it is
    /// counted by packets.
    recv_lowat: Option<u32> = None, RecvLowat(bytes: u32) => Some(bytes).filter(|bytes| *bytes > 1);
    /// Bound of the window that is offered, 1152 bytes at least (`TCP_WINDOW_CLAMP`). The buffer behind it may be larger.
    window_clamp: Option<u32> = None, WindowClamp(bytes: u32) => Some(bytes.max(WINDOW_CLAMP_MIN));
    /// The last urgent byte is not in the stream but read apart, by `read_urgent` (`SO_OOBINLINE` off, with which BSD's and Linux's sockets
    /// begin). RFC 6093 advises against it.
    urgent_apart: bool = false, UrgentApart(on: bool) => on;
    /// DiffServ code point, 0 to 63 (the upper six bits of `IP_TOS` and `IPV6_TCLASS`).
    dscp: u8 = 0, Dscp(code: u8) => within(code, 0..=DSCP_MAX)?;
    /// Hop limit (`IP_TTL`, `IPV6_UNICAST_HOPS`); `None` = the stack's.
    hop_limit: Option<u8> = None, HopLimit(hops: Option<u8>) => hops;
    /// May packets of IPv4 be cut on their way, and who is believed that one was too large (`IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`)? `None` =
    /// the stack's (`ip_no_pmtu_disc`).
    path_mtu_discovery: Option<PathMtuDiscovery> = None, PathMtuDiscovery(mode: PathMtuDiscovery) => Some(mode);
    /// Congestion control (`TCP_CONGESTION`); `None` = the stack's.
    congestion: Option<CongestionControl> = None, Congestion(algorithm: CongestionControl) => Some(algorithm), "an open connection goes on with the window it has.";
    /// Send at most so many bytes per second, spread evenly (`SO_MAX_PACING_RATE`).
    max_pacing_rate: Option<u32> = None, MaxPacingRate(most: Option<u32>) => most;
    /// Remember when data came that is not read yet (`SO_TIMESTAMP`, `SOF_TIMESTAMPING_RX_SOFTWARE`), for `arrived_at`.
    receive_times: bool = false, ReceiveTimes(on: bool) => on;
    /// A listener keeps the headers of each SYN, for `saved_syn` of the connection that comes of it (`TCP_SAVE_SYN`).
    save_syn: bool = false, SaveSyn(on: bool) => on;
    /// Every packet leaves so much later than it would (`TCP_TX_DELAY`), less than 2²⁸ µs.
    tx_delay: Duration = Duration::ZERO, TxDelay(delay: Duration) => within(delay, TX_DELAY)?, "what was measured of the path changes by as much.";
    /// Keys of peers with signed segments (`TCP_MD5SIG`, RFC 2385). They disable Fast Open.
    md5_keys: Md5Keys = Md5Keys::NONE;
    /// Segments that come with a smaller hop limit are dropped (`IP_MINTTL`, `IPV6_MINHOPCOUNT`, RFC 5082).
    min_hops: u8 = 0, MinHops(least: u8) => least;
}

/// Handling of packets that a router cannot forward whole (Linux's `IP_PMTUDISC_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtuDiscovery {
    /// IPv4 packets may be fragmented. ICMP reports of the path MTU apply to later packets, without
    /// a retransmission.
    Dont,
    /// Packets must not be fragmented (RFC 1191), unless the path MTU is fixed: its route locks it,
    /// or ICMP reported less than `min_pmtu`.
    Want,
    /// Packets must never be fragmented.
    Do,
    /// Like `Want`, but packets may be fragmented. (For datagrams it concerns those larger than the
    /// known MTU.)
    Probe,
    /// Like `Dont`; an IPv6 stream ignores the path MTU.
    Interface,
    /// Like `Interface`.
    Omit,
}

/// The reason why an option was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// Not a valid value of this option (Linux's `EINVAL`).
    OutOfRange,
    /// No such connection.
    NotFound,
}

sentences! {
    OptionError {
        OptionError::OutOfRange => "not a value of this socket option: see its range in `SocketOptions`",
        OptionError::NotFound => "there is no such connection: it was let go",
    }
}

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
const TX_DELAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_nanos((1000 << 28) - 1);
/// Linux's `TCP_FIN_TIMEOUT_MAX`; more is no error, but no longer.
const LINGER2_MAX: Duration = Duration::from_secs(120);

fn nearest<T: Ord + Copy>(value: &mut Option<T>, range: RangeInclusive<T>) {
    *value = value.map(|value| value.clamp(*range.start(), *range.end()));
}

fn within<T: PartialOrd>(value: T, range: RangeInclusive<T>) -> Result<T, OptionError> {
    if range.contains(&value) { Ok(value) } else { Err(OptionError::OutOfRange) }
}

fn checked<T: PartialOrd>(value: Option<T>, range: RangeInclusive<T>) -> Result<Option<T>, OptionError> {
    value.map(|value| within(value, range)).transpose()
}

impl SocketOptions {
    fn into_range(mut self) -> SocketOptions {
        nearest(&mut self.max_segment, MAX_SEGMENT);
        nearest(&mut self.syn_retries, SYN_RETRIES);
        nearest(&mut self.rto_min, RTO_MIN_KEPT);
        nearest(&mut self.rto_max, RTO_MAX);
        nearest(&mut self.delack_max, RTO_MIN);
        self.linger2 = self.linger2.map(|wait| wait.min(LINGER2_MAX));
        self.tx_delay = self.tx_delay.min(*TX_DELAY.end());
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
}

/// Options as a connection keeps them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// `nodelay` and `cork`.
    pub(crate) nagle: Nagle,
    pub(crate) rare: RareOptions,
}

impl From<SocketOptions> for Options {
    #[inline]
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

    /// Of a listener's keys a connection has that for its peer, for this peer alone, as it is when the handshake ends (Linux's
    /// `tcp_v4_syn_recv_sock`).
    #[inline]
    pub(crate) fn narrow_md5_keys(&mut self, peer: &Addr) {
        if !self.is_ordinary() && !self.md5_keys.is_empty() {
            self.set_md5_keys(self.md5_keys.narrowed(peer.to_ip()));
        }
    }

    /// Changes one.
    pub(crate) fn set(&mut self, option: SocketOption) -> Result<(), OptionError> {
        let mut changed = SocketOptions::clone(self);
        changed.set(option)?;
        self.0 = Some(Arc::new(changed));
        Ok(())
    }
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        ORDINARY.clone()
    }
}

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
