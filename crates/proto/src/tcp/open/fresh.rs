//! Per-connection defaults derived from `Config`; recomputed when a setting changes. Sockets with
//! options of their own compute their own values.

use super::negotiation::window_shift;
use crate::rtt::{RttEstimator, least_rtt_age};
use crate::socket_options::RareOptions;
use crate::tcp::recv::window_space::{Space, WindowSpace};
use crate::{Config, CongestionControl, ReceiveAccounting, SocketOptions};
use core::time::Duration;

/// Largest send buffer, bytes: sequence numbers compare within 2³¹.
pub(in crate::tcp) const SEND_BUFFER_MAX: u32 = 1 << 30;

/// Defaults of new connections; see the module.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// An estimator without a sample.
    pub(in crate::tcp) rtt: RttEstimator,
    /// Ticks for which a minimum round trip is valid.
    pub(in crate::tcp) min_rtt_age: u32,
    /// First timeout of a SYN-ACK.
    handshake_rto: Duration,
    window_shift: u8,
    send_limit: u32,
    /// Window limits, if windows are counted by payload.
    space: Option<WindowSpace>,
    /// All congestion windows start as CUBIC's, with the same number of segments.
    pub(in crate::tcp) windows_begin_alike: bool,
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
        }
    }

    /// Returns the timeout of a request's SYN-ACK. It doubles with each timeout that has passed.
    #[inline]
    pub(crate) fn handshake_rto(&self, config: &Config, timeouts: u8) -> Duration {
        if timeouts == 0 {
            return self.handshake_rto;
        }
        config.rto_initial.saturating_mul(1 << timeouts.min(16)).min(self.rtt.max_rto())
    }

    /// Returns the shift of a socket's windows; see [`window_shift`].
    #[inline]
    pub(crate) fn window_shift(&self, config: &Config, options: &RareOptions) -> u8 {
        if options.is_ordinary() { self.window_shift } else { window_shift(config, options) }
    }

    /// Returns the size of a socket's send buffer in bytes; see [`send_limit`].
    #[inline]
    pub(crate) fn send_limit(&self, config: &Config, options: &RareOptions) -> u32 {
        if options.is_ordinary() { self.send_limit } else { send_limit(config, options) }
    }

    /// Returns the limits of a socket's window.
    #[inline]
    pub(crate) fn space(&self, config: &Config, options: &RareOptions) -> Space {
        match self.space {
            Some(space) if options.is_ordinary() => Space::Payload(space),
            _ => Space::new(config, options),
        }
    }

    /// Returns the window limits of a socket without options, if windows are counted by payload.
    pub(crate) fn payload_space(&self) -> Option<WindowSpace> {
        self.space
    }

    /// Returns the largest window of a socket with an empty buffer, by payload.
    #[inline]
    pub(crate) fn window(&self, config: &Config, options: &RareOptions) -> u32 {
        match self.space {
            Some(space) if options.is_ordinary() => space.full(),
            _ => WindowSpace::new(config, options).full(),
        }
    }
}

/// Returns whether every congestion window starts alike: neither path nor stack have a slow start
/// threshold, and windows follow RFC 9438, in bytes.
fn windows_begin_alike(config: &Config) -> bool {
    config.tcp_congestion_control == CongestionControl::Cubic
        && !config.window_unit.is_segments()
        && config.tcp_no_ssthresh_metrics_save
        && config.initial_ssthresh == 0
        && config.initcwnd > 0
}

/// Returns the size of a send buffer in bytes. It is the first size, or the final one if the
/// application chose it.
pub(crate) fn send_limit(config: &Config, options: &SocketOptions) -> u32 {
    let chosen = options.send_buffer.map(|limit| limit.min(config.wmem_max).min(SEND_BUFFER_MAX));
    // If segments count more than their payload, the chosen size is payload (Linux's
    // `sk_setsockopt` doubles it).
    let chosen = chosen.map(|payload| if config.sndbuf_overhead > 0 { payload * 2 } else { payload });
    // No write to a buffer of zero bytes would ever succeed.
    chosen.unwrap_or(config.tcp_wmem[1]).max(config.tcp_wmem[0]).clamp(1, SEND_BUFFER_MAX)
}
