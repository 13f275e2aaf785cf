//! Parses values of arguments. Errors show a correct example.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// Parses a whole number within a range.
pub(crate) fn whole(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match (range.start(), range.end()) {
            (least, &u32::MAX) => format!("expected a whole number of at least {least}"),
            (least, most) => format!("expected a whole number from {least} to {most}"),
        })
    }
}

/// Formats a number of things.
pub(crate) fn counted(count: impl Into<u128>, one: &str, many: &str) -> String {
    let count = count.into();
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Parses a port to listen on.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "expected a port from 1 to 65535".to_owned())
}

/// Parses a local address and a port.
pub(crate) fn listening_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address and a port up to 65535, such as 127.0.0.1:9100 or [::1]:9100".to_owned()
    })
}

/// Parses a number in a list that starts with 1.
pub(crate) fn ordinal(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number of at least 1".to_owned())
}

/// Parses an IPv4 or IPv6 address.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address, such as 192.0.2.1 or 2001:db8::1; names are not looked up".to_owned()
    })
}

/// Returns "did you mean NAME? " for the nearest setting, or nothing.
pub(crate) fn meant_setting(name: &str, known: &[&str]) -> String {
    lab::experiment::nearest_setting(name, known)
        .map_or(String::new(), |near| format!("did you mean {near}? "))
}

/// Parses a time with a unit, such as `500us`, `1ms`, `1.5s` or `10 ms`; plain `0` is zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const SHAPE: &str = "expected a time with a unit, such as 500us, 1ms or 1.5s";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(SHAPE.to_owned()),
    };
    let number: f64 = digits.trim_end().parse().map_err(|_| SHAPE.to_owned())?;
    let nanos = (number * unit * 1e9).round();
    if !(0.0..=LONGEST.as_nanos() as f64).contains(&nanos) {
        return Err("expected a time from 0 to 3600s".to_owned());
    }
    Ok(Duration::from_nanos(nanos as u64))
}

const LONGEST: Duration = Duration::from_secs(3600);

/// Parses a percentage above 0: `5`, `0.5`, `5%`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or("expected a percentage above 0 and at most 100, such as 5 or 0.5".to_owned())
}

/// Parses a time of up to days, in seconds: `0`, `90s`, `30min`, `6h`, `2d`.
#[cfg(any(test, feature = "fleet"))]
pub(crate) fn long_duration(text: &str) -> Result<Duration, String> {
    const SHAPE: &str = "expected a time with a unit, such as 90s, 30min, 6h or 2d, of at most 366d";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(SHAPE.to_owned()),
    };
    let seconds = digits.parse::<u32>().ok().map(|number| u64::from(number) * unit);
    seconds.filter(|seconds| *seconds <= 366 * 86_400).map(Duration::from_secs).ok_or(SHAPE.to_owned())
}

/// Calls [`duration`], and rejects zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected a time above 0, such as 500ms or 10s".to_owned()),
        duration => Ok(duration),
    }
}

/// Parses a rate with a unit into bits per second: `100mbit`, `100Mbit/s`, `1Gbps`, `12.5MB/s`.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    const SHAPE: &str = "expected a rate with a unit, such as 100mbit, 2.5Gbps or 12.5MB/s";
    let start = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(start);
    let unit = rate_unit(unit).ok_or(SHAPE)?;
    let number: f64 = digits.trim_end().parse().map_err(|_| SHAPE.to_owned())?;
    let bits = (number * unit).round();
    if !(1.0..=1e13).contains(&bits) {
        return Err("expected a rate from 1bit to 10000gbit".to_owned());
    }
    Ok(bits as u64)
}

/// Bits per second of a unit: a prefix, then bits (`bit`, `b`, `bps`) or bytes (`B`, `byte`), then
/// perhaps `/s`.
///
/// `bps` always means bits, unlike in tc(8), where `mbps` are megabytes.
fn rate_unit(unit: &str) -> Option<f64> {
    let unit = ["/sec", "/s", "ps"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(unit);
    let bytes = ["bytes", "byte", "Bytes", "Byte", "B"];
    let bits = ["bits", "bit", "Bits", "Bit", "b"];
    let split = |ends: [&str; 5], of: f64| {
        ends.iter().find_map(|end| Some((unit.strip_suffix(end)?.to_ascii_lowercase(), of)))
    };
    let (prefix, of) = split(bytes, 8.0).or_else(|| split(bits, 1.0))?;
    let factor = match prefix.as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(factor * of)
}

/// Units of printed rates and their bits per second.
const RATES: [(&str, u128); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

/// Formats bits per second in the largest unit that fits, with at most three decimals.
pub(crate) fn show_rate(bits: u128) -> String {
    let (name, unit) = RATES.iter().find(|(_, unit)| bits >= *unit).unwrap_or(&RATES[3]);
    let thousandths = bits * 1000 / unit;
    let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    format!("{} {name}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// An address and the prefix length of its network: `10.77.0.2/24`, `fd77::2/64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) addr: IpAddr,
    pub(crate) prefix_len: u8,
}

impl Cidr {
    fn width(addr: IpAddr) -> u8 {
        if addr.is_ipv4() { 32 } else { 128 }
    }

    /// Returns the first other host address of the network, for the kernel's side of a link.
    /// Returns `None` if there is none.
    pub(crate) fn neighbour(self) -> Option<Cidr> {
        let host_bits = Cidr::width(self.addr) - self.prefix_len;
        let first = if host_bits > 1 { 1 } else { 0 };
        let network = self.network_bits();
        (first..1_u128 << host_bits.min(2))
            .map(|host| Cidr { addr: self.with_bits(network | host), ..self })
            .find(|candidate| candidate.addr != self.addr)
    }

    fn network_bits(self) -> u128 {
        let (bits, width) = match self.addr {
            IpAddr::V4(addr) => (u128::from(addr.to_bits()), 32),
            IpAddr::V6(addr) => (addr.to_bits(), 128),
        };
        let host_bits = u32::from(width - self.prefix_len);
        bits.checked_shr(host_bits).and_then(|network| network.checked_shl(host_bits)).unwrap_or(0)
    }

    fn with_bits(self, bits: u128) -> IpAddr {
        match self.addr {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Cidr, String> {
        let shape =
            || "expected an address with its prefix length, such as 10.77.0.2/24 or fd77::2/64".to_owned();
        let (addr, prefix_len) = text.split_once('/').ok_or_else(shape)?;
        let addr: IpAddr = addr.parse().map_err(|_| shape())?;
        let width = Cidr::width(addr);
        let prefix_len = prefix_len
            .parse()
            .ok()
            .filter(|len| *len <= width)
            .ok_or_else(|| format!("expected a prefix length from 0 to {width} after `{addr}/`"))?;
        if addr.is_unspecified() || addr.is_multicast() || addr.is_loopback() {
            return Err(format!("{addr} cannot be the address of a host on a TUN device"));
        }
        Ok(Cidr { addr, prefix_len })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.prefix_len)
    }
}

/// Parses a setting, `NAME=VALUE`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, such as net.ipv4.tcp_fastopen=0x3".to_owned()),
    }
}

/// A destination and the metrics of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) destination: firstbyte::fast_open::Network,
    pub(crate) metrics: firstbyte::RouteMetrics,
}

/// Parses `PREFIX METRIC VALUE …`, in the format of `ip route`.
pub(crate) fn route(text: &str) -> Result<Route, String> {
    let (destination, metrics) = firstbyte::parse_route(text).map_err(|error| error.to_string())?;
    let route = Route { destination, metrics };
    if route.metrics == firstbyte::RouteMetrics::default() {
        return Err("expected a metric after the prefix, such as '10.0.0.0/8 initcwnd 20'".to_owned());
    }
    Ok(route)
}

/// A name with its address, in curl's format `NAME:PORT:ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) name: String,
    pub(crate) addr: SocketAddr,
}

impl FromStr for Resolved {
    type Err = String;

    fn from_str(text: &str) -> Result<Resolved, String> {
        let parse = || {
            let (name, rest) = text.split_once(':')?;
            let (port, addr) = rest.split_once(':')?;
            let addr = addr.trim_start_matches('[').trim_end_matches(']');
            let addr = SocketAddr::new(addr.parse().ok()?, port.parse().ok()?);
            (!name.is_empty()).then(|| Resolved { name: name.to_owned(), addr })
        };
        parse().ok_or_else(|| "expected NAME:PORT:ADDRESS, such as example.test:80:10.78.0.1".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("10 ms"), Ok(Duration::from_millis(10)));
        for wrong in ["", "1", "ms", "-1ms", "1m", "3601s", "nans", "1 m s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(positive_duration("0ms").is_err());
        assert_eq!(long_duration("0"), Ok(Duration::ZERO));
        assert_eq!(long_duration("30min"), Ok(Duration::from_secs(1800)));
        assert_eq!(long_duration("366d"), Ok(Duration::from_secs(366 * 86_400)));
        for wrong in ["", "1", "h", "-1h", "1.5h", "1m", "367d", "99999999999d"] {
            assert!(long_duration(wrong).is_err(), "{wrong}");
        }
    }

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn the_kernels_side_is_the_first_other_address() {
        let cases = [
            ("10.77.0.2/24", "10.77.0.1/24"),
            ("10.77.0.1/24", "10.77.0.2/24"),
            ("10.77.5.9/16", "10.77.0.1/16"),
            ("10.0.0.1/31", "10.0.0.0/31"),
            ("10.0.0.6/30", "10.0.0.5/30"),
            ("fd77::2/64", "fd77::1/64"),
            ("fd77::1/127", "fd77::/127"),
            ("10.0.0.9/0", "0.0.0.1/0"),
            ("fd77::1/0", "::1/0"),
        ];
        for (own, other) in cases {
            assert_eq!(cidr(own).neighbour().unwrap().to_string(), other, "{own}");
        }
        assert_eq!(cidr("10.0.0.1/32").neighbour(), None);
        assert_eq!(cidr("fd77::1/128").neighbour(), None);
    }

    #[test]
    fn addresses_are_checked() {
        for wrong in [
            "10.77.0.2",
            "10.77.0.2/33",
            "10.77.0/24",
            "x/24",
            "0.0.0.0/8",
            "127.0.0.2/8",
            "ff02::1/64",
            "10.0.0.1/-1",
        ] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_resolved_by_hand() {
        let resolved: Resolved = "example.test:80:10.78.0.1".parse().unwrap();
        assert_eq!(
            (resolved.name.as_str(), resolved.addr),
            ("example.test", "10.78.0.1:80".parse().unwrap())
        );
        let resolved: Resolved = "example.test:80:[fd78::1]".parse().unwrap();
        assert_eq!(resolved.addr, "[fd78::1]:80".parse().unwrap());
        for wrong in ["", "a", "a:80", "a:b:10.0.0.1", ":80:10.0.0.1", "a:80:b"] {
            assert!(wrong.parse::<Resolved>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_have_a_unit() {
        for (text, bits, shown) in [
            ("100mbit", 100_000_000, "100 Mbit/s"),
            ("2.5gbit", 2_500_000_000, "2.5 Gbit/s"),
            ("512kbit", 512_000, "512 kbit/s"),
            ("1bit", 1, "1 bit/s"),
        ] {
            assert_eq!(rate(text), Ok(bits));
            assert_eq!(show_rate(bits.into()), shown);
        }
        for (text, bits) in [
            ("100Mbit/s", 100_000_000),
            ("100 Mbit/s", 100_000_000),
            ("100Mb/s", 100_000_000),
            ("1Gbps", 1_000_000_000),
            ("100MB/s", 800_000_000),
            ("12.5MB/s", 100_000_000),
            ("12.5MBps", 100_000_000),
            ("1KiB/s", 8192),
            ("1tbit", 1_000_000_000_000),
        ] {
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
        for wrong in
            ["100", "100M", "mbit", "0mbit", "-1mbit", "11tbit", "1e30gbit", "1 0mbit", "100MB/h", "5ms"]
        {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn routes_have_a_prefix_and_metrics() {
        let read = route("default initcwnd 20 mtu lock 1400").unwrap();
        assert_eq!((read.destination.to_string(), read.metrics.initcwnd), ("0.0.0.0/0".to_owned(), Some(20)));
        assert_eq!(route("prohibit 10.0.0.0/8").unwrap().metrics.to_string(), "prohibit");
        for wrong in ["default", "10.0.0.0/40 initcwnd 2", "default initcwnd", "default via 10.0.0.1"] {
            assert!(route(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_ordinals_and_addresses_are_checked_in_plain_words() {
        assert_eq!((port("1"), port("65535"), ordinal("7")), (Ok(1), Ok(65_535), Ok(7)));
        for wrong in ["0", "65536", "-1", "http", ""] {
            assert_eq!(port(wrong), Err("expected a port from 1 to 65535".to_owned()), "{wrong}");
        }
        for wrong in ["0", "-1", "x"] {
            assert_eq!(ordinal(wrong), Err("expected a whole number of at least 1".to_owned()), "{wrong}");
        }
        assert_eq!(address("2001:db8::1"), Ok("2001:db8::1".parse().unwrap()));
        assert!(address("localhost").unwrap_err().contains("such as 192.0.2.1"));
    }

    #[test]
    fn settings_are_pairs() {
        assert_eq!(setting("a.b = 1 2 3"), Ok(("a.b".to_owned(), "1 2 3".to_owned())));
        assert!(setting("a.b").is_err() && setting("=1").is_err());
    }
}
