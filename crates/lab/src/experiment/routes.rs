//! Routes of an end, in the words of `ip route`: `default via 198.18.0.254 initcwnd 20`.

use super::mistake::{Mistake, Within};
use super::nearest::not_one_of;
use super::quantities::Words;
use crate::network::Ways;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use core::str::FromStr;
use proto::fast_open::Network as Prefix;
use proto::{Instant, RouteMetrics, Stack, parse_route};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use wire::Addr;

/// One or more routes, each replacing the one for its prefix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Routes(Vec<Line>);

/// A route. Its next hop goes to the host's table, its metrics to the stack.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    prefix: Prefix,
    via: Option<Ipv4Addr>,
    device: Option<usize>,
    metrics: RouteMetrics,
}

impl FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Line, String> {
        let (mut via, mut device, mut rest) = (None, None, Vec::new());
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "via" => via = Some(next_hop(words.next().unwrap_or_default())?),
                "dev" => device = Some(device_number(words.next().unwrap_or_default())?),
                _ => rest.push(word),
            }
        }
        let (prefix, metrics) =
            parse_route(&rest.join(" ")).map_err(|error| not_one_of(&error.to_string(), &["via", "dev"]))?;
        let has_hop = via.is_some() || device.is_some();
        if has_hop && metrics.reject.is_some() {
            return Err(format!("`{text}`: an unreachable route has no next hop and no device"));
        }
        if has_hop && !prefix.prefix().is_v4() {
            return Err(format!("`{text}`: only IPv4 has next hops and devices here"));
        }
        Ok(Line { prefix, via, device, metrics })
    }
}

fn next_hop(word: &str) -> Result<Ipv4Addr, String> {
    word.parse().map_err(|_| {
        let said = format!("via {word}");
        format!("`{}`: the next hop is an IPv4 address, e.g. via 198.51.100.254", said.trim_end())
    })
}

fn device_number(word: &str) -> Result<usize, String> {
    let number = word.strip_prefix("eth").and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("`dev`: unknown device `{word}`; write eth0 or eth1"))
}

impl FromStr for Routes {
    type Err = String;

    fn from_str(line: &str) -> Result<Routes, String> {
        line.parse().map(|line| Routes(vec![line]))
    }
}

impl Routes {
    /// Returns the first line that covers none of these addresses: its number and its prefix.
    pub(super) fn beside(&self, peers: &[IpAddr]) -> Option<(usize, String)> {
        let holds = |prefix: &Prefix, address: &IpAddr| {
            let address = Addr::from(*address);
            address.is_v4() == prefix.prefix().is_v4() && Prefix::new(address, prefix.prefix_len()) == *prefix
        };
        let is_beside = |line: &Line| !peers.iter().any(|address| holds(&line.prefix, address));
        let n = self.0.iter().position(is_beside)?;
        let Line { prefix, .. } = self.0[n];
        Some((n, format!("{}/{}", prefix.prefix().to_ip(), prefix.prefix_len())))
    }

    /// Adds the routes to a host: next hops to its table, if it has one, the rest to its stack.
    pub(super) fn apply(
        &self,
        now: Instant,
        stack: &mut Stack,
        mut ways: Option<&mut Ways>,
    ) -> Result<(), Mistake> {
        for (n, Line { prefix, via, device, metrics }) in self.0.iter().enumerate() {
            let has_hop = via.is_some() || device.is_some();
            match (&mut ways, v4(prefix)) {
                (Some(ways), Some(network)) if has_hop => {
                    let replaced = ways.replace_route(network, *via, *device);
                    replaced.map_err(|error| error.to_string()).within(n)?;
                }
                (Some(ways), Some(network)) if metrics.reject.is_some() => ways.reject_route(network),
                (None, _) if has_hop => {
                    let error = "`via` and `dev` need a `router` on the path; it is the next hop";
                    return Err(error).within(n);
                }
                _ => {}
            }
            stack.set_route(now, *prefix, *metrics);
        }
        Ok(())
    }
}

fn v4(prefix: &Prefix) -> Option<(Ipv4Addr, u8)> {
    match prefix.prefix().to_ip() {
        IpAddr::V4(address) => Some((address, prefix.prefix_len())),
        IpAddr::V6(_) => None,
    }
}

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Routes, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = Routes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a route or a list of them, such as \"default initcwnd 30\"")
            }

            fn visit_str<E: Error>(self, line: &str) -> Result<Routes, E> {
                line.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Routes, A::Error> {
                let mut lines = Vec::new();
                while let Some(Words(line)) = list.next_element()? {
                    lines.push(line);
                }
                Ok(Routes(lines))
            }
        }
        de.deserialize_any(Lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Line>().unwrap_err()
    }

    #[test]
    fn a_next_hop_and_metrics_stand_in_one_line() {
        let line: Line = "default via 198.18.0.254 dev eth1 initcwnd 20".parse().unwrap();
        assert_eq!((line.via, line.device), (Some(Ipv4Addr::new(198, 18, 0, 254)), Some(1)));
        assert_eq!(line.metrics.to_string(), "initcwnd 20");
    }

    #[test]
    fn a_line_that_is_no_route_is_told() {
        for (text, part) in [
            ("default via", "the next hop is an IPv4 address"),
            ("default via fe80::1", "the next hop is an IPv4 address"),
            ("default dev wlan0", "write eth0 or eth1"),
            ("via 198.18.0.254", "begins with its prefix"),
            ("unreachable default via 198.18.0.254", "no next hop"),
            ("2001:db8::/32 via 198.18.0.254", "only IPv4"),
            ("default vai 198.18.0.254", "`vai` is not one of"),
        ] {
            let error = refused(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
