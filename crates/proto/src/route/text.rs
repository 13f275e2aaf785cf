//! Routes as text: `10.0.0.0/8 initcwnd 20 ssthresh lock 12`, the words of iproute2.

use super::{Metric, RejectRoute, RouteMetrics};
use crate::CongestionControl;
use crate::config::Value;
use crate::errors::sentences;
use crate::fast_open::Network;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::str::{FromStr, SplitWhitespace};
use core::time::Duration;
use wire::Addr;

/// Why a text is no route; it says which word is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError(String);

sentences! { RouteError { RouteError(sentence) => sentence, } }

/// `ADDRESS/LENGTH`, or an address alone, or `default` for all of IPv4. As for ip-route(8), an address with bits beyond the length is none.
impl FromStr for Network {
    type Err = RouteError;
    fn from_str(text: &str) -> Result<Network, RouteError> {
        let wrong =
            || RouteError(format!("`{text}` is not a prefix such as 10.0.0.0/8, fd00::/64 or 192.0.2.1"));
        let text = if text == "default" { "0.0.0.0/0" } else { text };
        let (addr, len) = text.split_once('/').map_or((text, None), |(addr, len)| (addr, Some(len)));
        let addr: IpAddr = addr.parse().map_err(|_| wrong())?;
        let width = if addr.is_ipv4() { 32 } else { 128 };
        let len = len.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if len > width {
            return Err(wrong());
        }
        let addr = Addr::from(addr);
        let network = Network::new(addr, len);
        if network.prefix() != addr {
            return Err(RouteError(format!("`{text}` has bits beyond its length: write {network}")));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.prefix().to_ip(), self.prefix_len())
    }
}

/// A route in one line: what `ip route` lists, without next hop and device.
///
/// ```
/// use firstbyte_proto::fast_open::Network;
/// let (network, metrics) = firstbyte_proto::parse_route("unreachable 192.0.2.0/24").unwrap();
/// assert_eq!((network.to_string(), metrics.to_string()), ("192.0.2.0/24".into(), "unreachable".into()));
/// assert_eq!(firstbyte_proto::show_route(&network, &metrics), "unreachable 192.0.2.0/24");
/// ```
///
/// # Errors
/// [`RouteError`] says which word is wrong.
pub fn parse_route(text: &str) -> Result<(Network, RouteMetrics), RouteError> {
    let mut words = text.split_whitespace().peekable();
    let kind = words.next_if(|word| REJECT_ROUTES.iter().any(|(name, _)| name == word));
    let network = words.next().ok_or_else(|| RouteError("a route begins with its prefix".into()))?.parse()?;
    let rest: Vec<&str> = kind.into_iter().chain(words).collect();
    Ok((network, rest.join(" ").parse()?))
}

/// The line that [`parse_route`] reads.
pub fn show_route(network: &Network, metrics: &RouteMetrics) -> String {
    let kind = metrics.reject.map_or(String::new(), |reject| format!("{} ", word_of(reject)));
    let rest = RouteMetrics { reject: None, ..*metrics }.to_string();
    format!("{kind}{network} {rest}").trim_end().to_owned()
}

/// Types of routes.
const REJECT_ROUTES: [(&str, RejectRoute); 3] = [
    ("blackhole", RejectRoute::Blackhole),
    ("unreachable", RejectRoute::Unreachable),
    ("prohibit", RejectRoute::Prohibit),
];

fn word_of(reject: RejectRoute) -> &'static str {
    match reject {
        RejectRoute::Blackhole => "blackhole",
        RejectRoute::Unreachable => "unreachable",
        RejectRoute::Prohibit => "prohibit",
    }
}

impl FromStr for RouteMetrics {
    type Err = RouteError;
    fn from_str(text: &str) -> Result<RouteMetrics, RouteError> {
        let mut metrics = RouteMetrics::default();
        let mut words = text.split_whitespace();
        while let Some(name) = words.next() {
            metrics.take(name, &mut words)?;
        }
        Ok(metrics)
    }
}

impl RouteMetrics {
    fn take(&mut self, name: &str, words: &mut SplitWhitespace<'_>) -> Result<(), RouteError> {
        match name {
            "blackhole" => self.reject = Some(RejectRoute::Blackhole),
            "unreachable" => self.reject = Some(RejectRoute::Unreachable),
            "prohibit" => self.reject = Some(RejectRoute::Prohibit),
            "mtu" => self.mtu = Some(metric(name, words, 552..=65_535)?),
            "advmss" => self.advmss = Some(number(name, words, 88..=65_495)? as u16),
            "initcwnd" => self.initcwnd = Some(number(name, words, 1..=65_535)?),
            "initrwnd" => self.initrwnd = Some(number(name, words, 1..=65_535)?),
            "cwnd" => self.cwnd = Some(metric(name, words, 1..=u32::MAX)?),
            "ssthresh" => self.ssthresh = Some(metric(name, words, 1..=u32::MAX)?),
            "rto_min" => self.rto_min = Some(value::<Duration>(name, word(name, words)?)?),
            "quickack" => self.quickack = value(name, word(name, words)?)?,
            "congctl" => self.congctl = Some(value::<CongestionControl>(name, word(name, words)?)?),
            "fastopen_no_cookie" => self.fastopen_no_cookie = value(name, word(name, words)?)?,
            _ => {
                return Err(RouteError(format!(
                    "`{name}` is not one of: mtu, advmss, initcwnd, initrwnd, cwnd, ssthresh, rto_min, quickack, congctl, \
                     fastopen_no_cookie, blackhole, unreachable, prohibit"
                )));
            }
        }
        Ok(())
    }
}

fn word<'a>(name: &str, words: &mut SplitWhitespace<'a>) -> Result<&'a str, RouteError> {
    words.next().ok_or_else(|| RouteError(format!("{name} needs a value")))
}

fn value<T: crate::config::Value>(name: &str, text: &str) -> Result<T, RouteError> {
    Value::parse(text).map_err(|why| RouteError(format!("{name}: {why}")))
}

fn in_range(name: &str, text: &str, range: core::ops::RangeInclusive<u32>) -> Result<u32, RouteError> {
    let number = value(name, text)?;
    if range.contains(&number) {
        return Ok(number);
    }
    Err(RouteError(format!("{name}: {text} is not between {} and {}", range.start(), range.end())))
}

fn number(
    name: &str,
    words: &mut SplitWhitespace<'_>,
    range: core::ops::RangeInclusive<u32>,
) -> Result<u32, RouteError> {
    in_range(name, word(name, words)?, range)
}

fn metric(
    name: &str,
    words: &mut SplitWhitespace<'_>,
    range: core::ops::RangeInclusive<u32>,
) -> Result<Metric, RouteError> {
    let first = word(name, words)?;
    let locked = first == "lock";
    let text = if locked { word(name, words)? } else { first };
    Ok(Metric { value: in_range(name, text, range)?, locked })
}

/// The words that [`FromStr`] reads, in the table's order; nothing for a route that says nothing.
impl fmt::Display for RouteMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lockable = |name: &str, metric: Option<Metric>| {
            metric
                .map(|metric| format!("{name} {}{}", if metric.locked { "lock " } else { "" }, metric.value))
        };
        let flag = |name: &str, set: bool| set.then(|| format!("{name} 1"));
        let words = [
            self.reject.map(|reject| word_of(reject).to_owned()),
            lockable("mtu", self.mtu),
            self.advmss.map(|bytes| format!("advmss {bytes}")),
            self.initcwnd.map(|segments| format!("initcwnd {segments}")),
            self.initrwnd.map(|segments| format!("initrwnd {segments}")),
            lockable("cwnd", self.cwnd),
            lockable("ssthresh", self.ssthresh),
            self.rto_min.map(|time| format!("rto_min {}", time.show())),
            flag("quickack", self.quickack),
            self.congctl.map(|algorithm| format!("congctl {}", algorithm.show())),
            flag("fastopen_no_cookie", self.fastopen_no_cookie),
        ];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "mtu lock 1400 advmss 1000 initcwnd 20 initrwnd 60 cwnd lock 40 ssthresh 12 rto_min 50ms quickack 1 \
                       congctl reno fastopen_no_cookie 1";

    #[test]
    fn what_is_shown_is_what_is_read() {
        let metrics: RouteMetrics = ALL.parse().unwrap();
        assert_eq!(metrics.to_string(), ALL);
        for kind in ["blackhole", "unreachable", "prohibit"] {
            assert_eq!(kind.parse::<RouteMetrics>().unwrap().to_string(), kind);
        }
        assert_eq!("".parse(), Ok(RouteMetrics::default()));
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("default".parse::<Network>().unwrap().to_string(), "0.0.0.0/0");
        assert_eq!("fd00::1".parse::<Network>().unwrap().to_string(), "fd00::1/128");
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (text, complaint) in [
            ("initcwnd", "initcwnd needs a value"),
            ("ssthresh lock", "ssthresh needs a value"),
            ("initcwnd ten", "initcwnd: `ten` is not a number"),
            ("mtu 500", "mtu: 500 is not between 552 and 65535"),
            ("congctl magic", "congctl: `magic` is not one of: reno"),
            ("via 10.0.0.1", "`via` is not one of: mtu, advmss"),
        ] {
            let error = text.parse::<RouteMetrics>().unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{text}: {error}");
        }
        for text in ["10.0.0.0/33", "ten/8", "10.0.0.0/", "fd00::/129"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        let error = "10.1.2.3/8".parse::<Network>().unwrap_err().to_string();
        assert_eq!(error, "`10.1.2.3/8` has bits beyond its length: write 10.0.0.0/8");
    }
}
