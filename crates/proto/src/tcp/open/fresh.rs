//! What every connection begins with by the settings alone: worked out when a setting is changed, not when a connection begins. Sockets
//! that ask for something themselves look for it themselves.

use super::negotiation::window_shift;
use crate::rtt::{RttEstimator, least_rtt_age};
use crate::socket_options::RareOptions;
use crate::tcp::recv::window_space::{Space, WindowSpace};
use crate::tcp::send::mtu_search;
use crate::{Config, CongestionControl, ReceiveAccounting, SocketOptions};
use core::time::Duration;

/// Largest send buffer, bytes: sequence numbers compare within 2³¹.
pub(in crate::tcp) const SEND_BUFFER_MAX: u32 = 1 << 30;

/// See the module.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// Without a sample.
    pub(in crate::tcp) rtt: RttEstimator,
    /// Ticks for which a least round trip holds.
    pub(in crate::tcp) min_rtt_age: u32,
    /// The first time-out of a SYN-ACK.
    handshake_rto: Duration,
    window_shift: u8,
    send_limit: u32,
    /// Where windows are counted by payload.
    space: Option<WindowSpace>,
    /// All congestion windows begin as CUBIC's, with the same number of segments.
    pub(in crate::tcp) windows_begin_alike: bool,
    /// SYNs agree on what nearly all do.
    pub(in crate::tcp) agrees_as_usual: bool,
}

impl Fresh {
    pub(crate) fn new(config: &Config) -> Fresh {
        let options = SocketOptions::default();
        let mut rtt = RttEstimator::new(config.rto_initial, config.rto_min(), config.rtt_variation);
        rtt.set_bounds(config.rto_min(), config.rto_max());
        let by_payload = config.receive_accounting == ReceiveAccounting::Payload;
        Fresh {
            rtt,
            min_rtt_age: least_rtt_age(config.tcp_min_rtt_wlen),
            handshake_rto: config.rto_initial.min(rtt.max_rto()),
            window_shift: window_shift(config, &options),
            send_limit: send_limit(config, &options),
            space: by_payload.then(|| WindowSpace::new(config, &options)),
            windows_begin_alike: windows_begin_alike(config),
            agrees_as_usual: by_payload && agrees_as_usual(config),
        }
    }

    /// The time-out of the SYN-ACK of a request, which doubles with each that has passed.
    #[inline]
    pub(crate) fn handshake_rto(&self, config: &Config, timeouts: u8) -> Duration {
        if timeouts == 0 {
            return self.handshake_rto;
        }
        config.rto_initial.saturating_mul(1 << timeouts.min(16)).min(self.rtt.max_rto())
    }

    /// The shift of a socket's windows; see [`window_shift`].
    #[inline]
    pub(crate) fn window_shift(&self, config: &Config, options: &RareOptions) -> u8 {
        if options.is_ordinary() { self.window_shift } else { window_shift(config, options) }
    }

    /// Bytes the send buffer takes; see [`send_limit`].
    #[inline]
    pub(crate) fn send_limit(&self, config: &Config, options: &RareOptions) -> u32 {
        if options.is_ordinary() { self.send_limit } else { send_limit(config, options) }
    }

    /// The bounds of a socket's window.
    #[inline]
    pub(crate) fn space(&self, config: &Config, options: &RareOptions) -> Space {
        match self.space {
            Some(space) if options.is_ordinary() => Space::Payload(space),
            _ => Space::new(config, options),
        }
    }

    /// The bounds of the window of an ordinary socket, where windows are counted by payload.
    #[inline(always)]
    pub(crate) fn payload_space(&self) -> Option<WindowSpace> {
        self.space
    }

    /// The largest window of a socket with an empty buffer, by payload.
    #[inline]
    pub(crate) fn window(&self, config: &Config, options: &RareOptions) -> u32 {
        match self.space {
            Some(space) if options.is_ordinary() => space.full(),
            _ => WindowSpace::new(config, options).full(),
        }
    }
}

/// By these settings SYNs agree on all that ordinary connections do, and on nothing else.
fn agrees_as_usual(config: &Config) -> bool {
    let Config { tcp_sack, tcp_window_scaling, tcp_ecn, tcp_mtu_probing, .. } = *config;
    let all = tcp_sack && tcp_window_scaling && config.timestamps();
    all && matches!(tcp_ecn, 0 | 2) && tcp_mtu_probing < mtu_search::ALWAYS && !config.window_slow_start
}

/// Neither path nor stack know a threshold of slow start, and windows are those of RFC 9438, in bytes.
fn windows_begin_alike(config: &Config) -> bool {
    config.tcp_congestion_control == CongestionControl::Cubic
        && !config.window_unit.is_segments()
        && config.tcp_no_ssthresh_metrics_save
        && config.initial_ssthresh == 0
        && config.initcwnd > 0
}

/// Bytes the send buffer takes, at first or for good.
pub(crate) fn send_limit(config: &Config, options: &SocketOptions) -> u32 {
    let chosen = options.send_buffer.map(|limit| limit.min(config.wmem_max).min(SEND_BUFFER_MAX));
    // Where segments count more than their payload, the choice is of payload (Linux's `sk_setsockopt` doubles it).
    let chosen = chosen.map(|payload| if config.sndbuf_overhead > 0 { payload * 2 } else { payload });
    // Of a buffer of nothing no write would ever succeed.
    chosen.unwrap_or(config.tcp_wmem[1]).max(config.tcp_wmem[0]).clamp(1, SEND_BUFFER_MAX)
}
