//! Which values, and which pairs of values, TCP cannot work with. Ranges of single numbers stand in the table; here is what needs words.

use super::{Config, SettingError};
use alloc::string::String;
use core::time::Duration;

/// Least buffers (Linux's `SOCK_MIN_RCVBUF` and `SOCK_MIN_SNDBUF`), bytes.
const RCVBUF_MIN: u32 = 2304;
const SNDBUF_MIN: u32 = 4608;

impl Config {
    /// Can TCP work with these values, each by itself and all together?
    ///
    /// # Errors
    /// [`SettingError::Invalid`] names the first value that it cannot, or two that contradict each other.
    pub fn check(&self) -> Result<(), SettingError> {
        self.check_rows()?;
        let broken = self.impossible().or_else(|| self.contradiction());
        broken.map_or(Ok(()), |sentence| Err(SettingError::Invalid(sentence)))
    }

    fn impossible(&self) -> Option<String> {
        let at_least = |name: &str, value: Duration, least: Duration, why: &str| {
            (value < least).then(|| format!("{name} is {value:?}, but {least:?} is the least: {why}"))
        };
        // What TCP_KEEPIDLE and TCP_KEEPINTVL take (RFC 9293 §3.8.4 wants keepalives rare).
        let second = Duration::from_secs(1);
        at_least(
            "firstbyte.rto_initial",
            self.rto_initial,
            Duration::from_millis(1),
            "else SYNs would never end",
        )
        .or_else(|| {
            at_least(
                "net.ipv4.tcp_keepalive_time",
                self.tcp_keepalive_time,
                second,
                "else the peer would be asked without end",
            )
        })
        .or_else(|| {
            at_least(
                "net.ipv4.tcp_keepalive_intvl",
                self.tcp_keepalive_intvl,
                second,
                "else the peer had no time to answer",
            )
        })
        .or_else(|| {
            at_least(
                "net.ipv4.tcp_probe_interval",
                self.tcp_probe_interval,
                Duration::from_secs(1),
                "else one search would follow another",
            )
        })
        .or_else(|| {
            [
                ("net.ipv4.tcp_mem", self.tcp_mem),
                ("net.ipv4.tcp_rmem", self.tcp_rmem),
                ("net.ipv4.tcp_wmem", self.tcp_wmem),
            ]
            .into_iter()
            .find(|(_, sizes)| !sizes.is_sorted())
            .map(|(name, [least, initial, most])| {
                format!("{name} is {least} {initial} {most}, but the three sizes must not decrease")
            })
        })
        .or_else(|| {
            [
                ("net.ipv4.tcp_rmem", self.tcp_rmem[1], RCVBUF_MIN),
                ("net.ipv4.tcp_wmem", self.tcp_wmem[1], SNDBUF_MIN),
            ]
            .into_iter()
            .find(|(_, initial, least)| initial < least)
            .map(|(name, initial, least)| {
                format!("{name} begins with {initial} bytes, but {least} are the least that hold a segment")
            })
        })
    }

    /// Two values that exclude each other, in one sentence.
    fn contradiction(&self) -> Option<String> {
        let ordered = |low: (&str, u64), high: (&str, u64)| {
            (low.1 > high.1).then(|| format!("{} ({}) is more than {} ({})", low.0, low.1, high.0, high.1))
        };
        let not_longer = |low: (&str, Duration), high: (&str, Duration)| {
            (low.1 > high.1)
                .then(|| format!("{} ({:?}) is longer than {} ({:?})", low.0, low.1, high.0, high.1))
        };
        let base_mss = ("net.ipv4.tcp_base_mss", self.tcp_base_mss.into());
        let mut pairs = [
            ordered(
                ("firstbyte.ip_local_port_low", self.port_low.into()),
                ("firstbyte.ip_local_port_high", self.port_high.into()),
            ),
            ordered(
                ("firstbyte.vegas_alpha", self.vegas_alpha.into()),
                ("firstbyte.vegas_beta", self.vegas_beta.into()),
            ),
            ordered(
                ("net.ipv4.tcp_reordering", self.tcp_reordering.into()),
                ("net.ipv4.tcp_max_reordering", self.tcp_max_reordering.into()),
            ),
            ordered(("net.ipv4.tcp_mtu_probe_floor", self.tcp_mtu_probe_floor.into()), base_mss),
            not_longer(
                ("net.ipv4.tcp_rto_min_us", self.rto_min()),
                ("net.ipv4.tcp_rto_max_ms", self.rto_max()),
            ),
            not_longer(
                ("firstbyte.rto_initial", self.rto_initial),
                ("net.ipv4.route.mtu_expires", self.mtu_expires),
            ),
            not_longer(
                ("firstbyte.reo_timer_slack", self.reo_timer_slack),
                ("net.ipv4.tcp_rto_max_ms", self.rto_max()),
            ),
        ];
        pairs.iter_mut().find_map(Option::take)
    }
}
