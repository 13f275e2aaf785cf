//! Values, and pairs of values, with which TCP cannot work. The table has the ranges of single
//! numbers; this file has the rest.

use super::{Config, SettingError};
use alloc::string::String;
use core::time::Duration;

/// Least buffers (Linux's `SOCK_MIN_RCVBUF` and `SOCK_MIN_SNDBUF`), bytes.
const RCVBUF_MIN: u32 = 2304;
const SNDBUF_MIN: u32 = 4608;

impl Config {
    /// Checks that TCP can work with these values.
    ///
    /// # Errors
    /// [`SettingError::Invalid`] names the first invalid value, or two values that contradict each
    /// other.
    pub fn check(&self) -> Result<(), SettingError> {
        self.check_rows()?;
        let broken = self.impossible().or_else(|| self.contradiction());
        broken.map_or(Ok(()), |sentence| Err(SettingError::Invalid(sentence)))
    }

    fn impossible(&self) -> Option<String> {
        // What TCP_KEEPIDLE and TCP_KEEPINTVL take (RFC 9293 §3.8.4 wants keepalives rare).
        let second = Duration::from_secs(1);
        let times = [
            ("firstbyte.rto_initial", self.rto_initial, Duration::from_millis(1), "SYNs would never end"),
            (
                "net.ipv4.tcp_keepalive_time",
                self.tcp_keepalive_time,
                second,
                "the peer would be asked without end",
            ),
            (
                "net.ipv4.tcp_keepalive_intvl",
                self.tcp_keepalive_intvl,
                second,
                "the peer had no time to answer",
            ),
            (
                "net.ipv4.tcp_probe_interval",
                self.tcp_probe_interval,
                second,
                "one search would follow another",
            ),
        ];
        if let Some((name, value, least, else_)) =
            times.into_iter().find(|(_, value, least, _)| value < least)
        {
            return Some(format!("{name} is {value:?}, but {least:?} is the least: else {else_}"));
        }
        let rows = ["net.ipv4.tcp_mem", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
        let sizes = [(self.tcp_mem, 0), (self.tcp_rmem, RCVBUF_MIN), (self.tcp_wmem, SNDBUF_MIN)];
        let rows = || rows.into_iter().zip(sizes);
        if let Some((name, ([least, initial, most], _))) = rows().find(|(_, (sizes, _))| !sizes.is_sorted()) {
            return Some(format!(
                "{name} is {least} {initial} {most}, but the three sizes must not decrease"
            ));
        }
        let (name, ([_, initial, _], least)) =
            rows().find(|(_, ([_, initial, _], least))| initial < least)?;
        Some(format!("{name} begins with {initial} bytes, but {least} are the least that hold a segment"))
    }

    /// Two values that exclude each other, in one sentence.
    fn contradiction(&self) -> Option<String> {
        let numbers = [
            ("firstbyte.ip_local_port_low", self.port_low, "firstbyte.ip_local_port_high", self.port_high),
            ("firstbyte.vegas_alpha", self.vegas_alpha, "firstbyte.vegas_beta", self.vegas_beta),
            (
                "net.ipv4.tcp_reordering",
                self.tcp_reordering,
                "net.ipv4.tcp_max_reordering",
                self.tcp_max_reordering,
            ),
            (
                "net.ipv4.tcp_mtu_probe_floor",
                self.tcp_mtu_probe_floor,
                "net.ipv4.tcp_base_mss",
                self.tcp_base_mss,
            ),
        ];
        if let Some((low, least, high, most)) = numbers.into_iter().find(|(_, least, _, most)| least > most) {
            return Some(format!("{low} ({least}) is more than {high} ({most})"));
        }
        let rto_max = ("net.ipv4.tcp_rto_max_ms", self.rto_max());
        let times = [
            (("net.ipv4.tcp_rto_min_us", self.rto_min()), rto_max),
            (("firstbyte.rto_initial", self.rto_initial), ("net.ipv4.route.mtu_expires", self.mtu_expires)),
            (("firstbyte.reo_timer_slack", self.reo_timer_slack), rto_max),
        ];
        let (low, high) = times.into_iter().find(|(low, high)| low.1 > high.1)?;
        Some(format!("{} ({:?}) is longer than {} ({:?})", low.0, low.1, high.0, high.1))
    }
}
