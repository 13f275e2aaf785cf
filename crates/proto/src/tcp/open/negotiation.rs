//! Options on which the two SYNs agreed.

use crate::tcp::ecn::EcnMode;
use crate::tcp::recv::window_space::{RECV_BUFFER_MAX, WindowSpace};
use crate::tuple::FourTuple;
use crate::{Config, RouteMetrics, SocketOptions};
use wire::{Capabilities, TcpOptions};

/// Length of the padded timestamps option.
pub(crate) const TIMESTAMPS_LEN: u16 = 12;
/// Largest shift. RFC 7323 §2.3 says of larger ones: "the TCP SHOULD log the error but MUST use 14
/// instead of the specified value."
pub(in crate::tcp) const WSCALE_MAX: u8 = 14;

/// Options that stay the same for the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Negotiated {
    /// The peer's MSS option, or the default of RFC 9293 §3.7.1.
    pub(crate) peer_mss: u16,
    /// Shift of the windows that the peer sends. `None`: no scaling.
    pub(crate) snd_wscale: Option<u8>,
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// Explicit congestion notification.
    pub(crate) ecn: EcnMode,
}

impl Negotiated {
    /// Returns the options of the peer's SYN that we support. `with_ecn` reads the flags.
    pub(crate) fn from_syn(config: &Config, peer_is_v4: bool, options: &TcpOptions) -> Negotiated {
        Negotiated {
            peer_mss: options
                .mss
                .filter(|mss| *mss > 0)
                .unwrap_or(default_mss(peer_is_v4))
                .max(mss_min(config)),
            snd_wscale: options
                .window_scale
                .filter(|_| config.tcp_window_scaling)
                .map(|shift| shift.min(WSCALE_MAX)),
            timestamps: config.timestamps() && options.timestamps.is_some(),
            sack: config.tcp_sack && options.sack_permitted,
            ecn: EcnMode::Off,
        }
    }
}

/// Returns the smallest MSS that is accepted from a peer (Linux's `tcp_mtu_to_mss`).
pub(crate) fn mss_min(config: &Config) -> u16 {
    u16::try_from(config.tcp_min_snd_mss).unwrap_or(u16::MAX)
}

/// Smallest MSS that we announce or an application may choose (Linux's `TCP_MIN_MSS`).
const MSS_MIN: u16 = 88;

/// Returns the application's limit of the MSS in both directions (`TCP_MAXSEG`), at least
/// `MSS_MIN`.
#[inline]
pub(crate) fn mss_clamp(options: &SocketOptions) -> u16 {
    options.max_segment.map_or(u16::MAX, |clamp| clamp.max(MSS_MIN))
}

/// Returns the MSS of a peer without an MSS option (RFC 9293 §3.7.1).
pub(crate) fn default_mss(v4: bool) -> u16 {
    if v4 { 536 } else { 1220 }
}

/// Returns the MSS that we advertise: the device's, without options, or less if the route demands
/// it. A route's `advmss` may be larger if `firstbyte.mss_rules` is `kernel` (Linux's
/// `dst_metric_advmss`).
pub(crate) fn advertised_mss(
    config: &Config,
    capabilities: &Capabilities,
    tuple: &FourTuple,
    route: Option<&RouteMetrics>,
) -> u16 {
    let headers = tuple.ip_header_len() + 20;
    let of = |mtu: usize| u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX);
    let own = of(capabilities.mtu);
    let Some(route) = route else { return own.max(MSS_MIN) };
    let by_mtu = route.mtu.map_or(own, |mtu| own.min(of(mtu.value as usize)));
    let mss = match route.advmss {
        Some(advmss) if config.mss_rules.mss_follows_path() => advmss,
        Some(advmss) => advmss.min(own),
        None => by_mtu,
    };
    mss.max(MSS_MIN)
}

/// Returns the shift that can express the largest window: by `tcp_rmem` and `rmem_max`, or by the
/// buffer that the application chose (Linux's `tcp_select_initial_window`, `tcp_connect_init`). The
/// SYN announces it, so it never changes.
pub(crate) fn window_shift(config: &Config, options: &SocketOptions) -> u8 {
    if !config.tcp_window_scaling {
        return 0;
    }
    let largest = config.tcp_rmem[2].max(config.rmem_max);
    let chosen = options.recv_buffer.map_or(u32::MAX, |_| WindowSpace::new(config, options).full());
    let space = largest.min(chosen).min(options.window_clamp.unwrap_or(u32::MAX)).min(RECV_BUFFER_MAX);
    (space.max(1).ilog2().saturating_sub(15) as u8).min(WSCALE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux's 6 MiB and 32 MiB of `tcp_rmem`, and sizes above the largest shift.
    #[test]
    fn the_shift_follows_from_the_largest_buffer() {
        for (largest, shift) in
            [(65_535, 0), (65_536, 1), (6 << 20, 7), (32 << 20, 10), (1 << 30, 14), (u32::MAX, 14)]
        {
            let config = Config { tcp_rmem: [4096, 4096, largest], rmem_max: 4096, ..Config::default() };
            assert_eq!(window_shift(&config, &SocketOptions::default()), shift, "{largest}");
        }
        let config = Config::linux();
        let chosen = |size| SocketOptions { recv_buffer: Some(size), ..SocketOptions::default() };
        let shifts = [10_000, 65_535, 65_536, 1 << 20].map(|size| window_shift(&config, &chosen(size)));
        assert_eq!(shifts, [0, 0, 1, 5], "a buffer of a chosen size does not grow");
        let off = Config { tcp_window_scaling: false, ..Config::default() };
        assert_eq!(window_shift(&off, &SocketOptions::default()), 0);
    }

    /// RFC 7323 §2.3: a shift above 14 is 14. RFC 1122 §4.2.2.6: the default without MSS option.
    #[test]
    fn a_syn_is_believed_within_reason() {
        let of = |options| Negotiated::from_syn(&Config::default(), true, &options);
        let wild = of(TcpOptions { window_scale: Some(255), mss: Some(1), ..TcpOptions::default() });
        assert_eq!((wild.snd_wscale, wild.peer_mss), (Some(14), 48));
        let bare = of(TcpOptions::default());
        assert_eq!((bare.snd_wscale, bare.peer_mss), (None, 536));
    }
}
