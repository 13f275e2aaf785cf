//! `firstbyte explain`: whether Fast Open works between this host and a server, and what breaks it.
//!
//! - `explain/hello.rs`: the ClientHello for servers that speak TLS;
//! - `explain/kernel.rs`: visits with the kernel's sockets; with `--tun`, the crate `probe` sends
//!   its own SYNs instead;
//! - `explain/report.rs`: observations and verdict as text and JSON; `explain/page.rs`: as an HTML
//!   page.
mod hello;
mod kernel;
mod page;
mod report;

pub(crate) use hello::client_hello;
pub(crate) use kernel::{cookie as known_cookie, visits};

use crate::failure::Failure;
use crate::output;
use crate::terminal::print;
use crate::values::{self, Cidr};
use clap::Args;
use firstbyte::device::tun::Tun;
use probe::plan::{HOPS_MAX, PACKETS_MAX};
use probe::{Cause, Ends, Probe, Prober, Verdict};
use report::Report;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Test whether TCP Fast Open works to a server, and if not, find out why
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte explain example.org\n  \
    firstbyte explain https://example.org\n  \
    firstbyte explain --dry-run 192.0.2.1:443\n  \
    sudo firstbyte explain --tun firstbyte2 --address 10.79.0.2/24 192.0.2.1 --html page.html\n\n\
    Explain sends a few SYNs of different forms and compares the answers.\n\
    Without --tun it uses the kernel's sockets: it needs no root, but the kernel decides the \
    form of its SYNs.\n\
    With --tun it sends its own SYNs from its own address: the kernel must forward them \
    (net.ipv4.ip_forward = 1),\n\
    and masquerade the address if the server has no route back.\n\n\
    Exit codes: 0 Fast Open works, 1 it does not work or could not be tested, 2 wrong arguments.")]
pub(crate) struct ExplainArgs {
    /// Server to test, with an IPv6 address in brackets; the default port is 80, and 443 for https
    #[arg(value_name = "[http[s]://]HOST[:PORT]", value_parser = target)]
    target: Target,
    /// Use only IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use only IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    /// First bytes that an application would send; understands \r, \n and \\ [default: a
    /// ClientHello of TLS to port 443 and for https, else `GET / HTTP/1.0\r\n\r\n`]
    #[arg(long, value_name = "TEXT", value_parser = unescaped)]
    request: Option<Bytes>,
    /// Wait this long for an answer to a SYN before it is retransmitted (only with --tun)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, requires = "tun")]
    timeout: Option<Duration>,
    /// Send own SYNs through this TUN device; it is created if it does not exist
    #[arg(long, value_name = "NAME", requires = "address")]
    tun: Option<String>,
    /// Own address on the TUN device, with its prefix length; one for each IP version
    #[arg(long, value_name = "ADDR/LEN", requires = "tun")]
    address: Vec<Cidr>,
    /// Show what would be sent, and send nothing
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write an HTML page to FILE as well: the verdict, and each visit as a ladder diagram
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    html: Option<PathBuf>,
}

/// A host name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The server speaks TLS.
    pub(crate) is_secure: bool,
}

impl Target {
    /// Returns the first bytes for the server, which it answers.
    pub(crate) fn request(&self) -> Result<Vec<u8>, Failure> {
        match self.is_secure {
            true => client_hello(&self.host),
            false => Ok(REQUEST.to_vec()),
        }
    }
}

/// The request to a server that speaks HTTP.
const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
/// The ports of HTTP and HTTPS.
const PORTS: (u16, u16) = (80, 443);

#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

/// Runs the verb.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    if args.dry_run {
        return print(&plan(args));
    }
    let mut reports = Vec::new();
    let request = match &args.request {
        Some(given) => given.0.clone(),
        None => args.target.request()?,
    };
    for server in args.servers()? {
        let mut report = match &args.tun {
            Some(name) => own(args, name, server, &request)?,
            None => visits(server, &request)
                .map(|visits| Report::new(server, "the kernel's sockets".to_owned(), visits))?,
        };
        if args.says_hello() {
            report.by += ", with a ClientHello of TLS";
        }
        print(&if args.json { report.json() + "\n" } else { report.text() })?;
        reports.push(report);
    }
    if let Some(path) = &args.html {
        let page = page::document(&args.target, &reports).to_html();
        output::write_whole(path, page)?;
    }
    let all_work = reports.iter().all(Report::works);
    Ok(ExitCode::from(u8::from(!all_work)))
}

impl ExplainArgs {
    /// True if the request is a ClientHello.
    fn says_hello(&self) -> bool {
        self.request.is_none() && self.target.is_secure
    }

    /// Returns the first address of each IP version.
    fn servers(&self) -> Result<Vec<SocketAddr>, Failure> {
        let Target { host, port, .. } = &self.target;
        let found = (host.as_str(), *port).to_socket_addrs();
        let found: Vec<SocketAddr> =
            found.map_err(|error| Failure::failed(format!("cannot resolve {host}: {error}")))?.collect();
        for address in &found {
            if let SocketAddr::V6(address) = address
                && address.ip().is_unicast_link_local()
                && address.scope_id() == 0
            {
                return Err(Failure::failed(without_zone(address.ip())));
            }
        }
        let usable = |address: &&SocketAddr| {
            let wanted = if address.is_ipv4() { !self.ipv6 } else { !self.ipv4 };
            let have =
                self.tun.is_none() || self.address.iter().any(|own| own.addr.is_ipv4() == address.is_ipv4());
            wanted && have
        };
        let (v4, v6) = (
            found.iter().filter(usable).find(|address| address.is_ipv4()),
            found.iter().filter(usable).find(|address| address.is_ipv6()),
        );
        let servers: Vec<SocketAddr> = v4.into_iter().chain(v6).copied().collect();
        match servers.is_empty() {
            true => {
                Err(Failure::failed(format!("cannot test {host}: it has no address of a usable IP version")))
            }
            false => Ok(servers),
        }
    }
}

fn own(args: &ExplainArgs, name: &str, server: SocketAddr, request: &[u8]) -> Result<Report, Failure> {
    let same = |own: &&Cidr| own.addr.is_ipv4() == server.is_ipv4();
    let local = args.address.iter().find(same).map(|own| own.addr);
    let Some(local) = local else {
        return Err(Failure::usage("--address has no address of that IP version"));
    };
    let device = open(args, name)?;
    let seed = RandomState::new().hash_one(server);
    let mut prober = Prober::new(device, Ends { local, server }, request, seed);
    if let Some(timeout) = args.timeout {
        prober = prober.timeout(timeout);
    }
    let failed = |error: std::io::Error| Failure::failed(format!("{name}: {error}"));
    let visits = prober.all(|_| {}).map_err(failed)?;
    let mut report = Report::new(server, format!("own SYNs, from {local} through {name}"), visits);
    // Finds the hop that drops them.
    if report.verdict.cause == Cause::DataDropped {
        report.hops = prober.hops(HOPS_MAX).map_err(failed)?;
    }
    if report.verdict.cause == Cause::Unreachable {
        report.verdict.fix +=
            " With --tun: does the kernel forward and masquerade (sysctl net.ipv4.ip_forward, nft)?";
    }
    report.packets = Some(prober.packets());
    Ok(report)
}

fn open(args: &ExplainArgs, name: &str) -> Result<Tun, Failure> {
    let mut builder = Tun::builder().name(name).offload(false);
    // The kernel is the other end of the TUN device.
    if firstbyte::device::interface::find(name).is_err() {
        for own in &args.address {
            let neighbour = own.neighbour().ok_or_else(|| {
                Failure::usage(format!(
                    "cannot use {own}: it leaves no address for \
                    the kernel's side; use a shorter prefix, such as /24"
                ))
            })?;
            builder = builder.address(neighbour.addr, neighbour.prefix_len);
        }
    }
    builder.open().map_err(|error| Failure::failed(error.to_string()))
}

fn plan(args: &ExplainArgs) -> String {
    let Target { host, port, .. } = &args.target;
    let probes: Vec<Probe> = match args.tun {
        Some(_) => Probe::ALL.to_vec(),
        None => kernel::probes().to_vec(),
    };
    let mut text = format!("To {host}, port {port}, over each IP version that both ends have:\n");
    for (at, probe) in probes.iter().enumerate() {
        text += &format!("  {}. {}\n", at + 1, probe.words());
    }
    if args.says_hello() {
        text += "The request is a ClientHello of TLS; the handshake ends with the server's answer.\n";
    }
    let most = probes.len() * PACKETS_MAX;
    match args.tun {
        Some(_) => {
            text += &format!(
                "Each ends with a reset. At most {most} packets; if SYNs with data are dropped, \
                {HOPS_MAX} more with a small hop limit.\n"
            );
        }
        None => text += "Each is a connection of the kernel, closed after the first bytes of the reply.\n",
    }
    text + "One after another, 100 ms apart. Probes that need a cookie are skipped if there is \
        none.\n"
}

/// Parses `HOST`, `HOST:PORT`, `ADDRESS`, `[V6]` or `[V6]:PORT`, with or without the scheme `http://`
/// or `https://` in front; an IPv6 address may have a zone, such as `fe80::1%eth0`. Port 443 speaks
/// TLS.
pub(crate) fn target(text: &str) -> Result<Target, String> {
    let (is_secure, authority) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (Some(false), rest),
        (_, Some(rest)) => (Some(true), rest),
        _ => {
            return authority(text, PORTS.0)
                .map(|target| Target { is_secure: target.port == PORTS.1, ..target });
        }
    };
    let is_secure = is_secure.unwrap_or_default();
    let host = authority.strip_suffix('/').unwrap_or(authority);
    let target = self::authority(host, if is_secure { PORTS.1 } else { PORTS.0 })?;
    Ok(Target { is_secure, ..target })
}

fn authority(text: &str, default_port: u16) -> Result<Target, String> {
    let port = |text: &str| match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is not a port; write a number from 1 to 65535")),
    };
    let whole = |host: &str| Target { host: host.to_owned(), port: default_port, is_secure: false };
    if text.contains('/') {
        return Err("expected a host and a port, such as example.org:443, not a path".to_owned());
    }
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        check_zone(host)?;
        let target = whole(host);
        return match rest.strip_prefix(':') {
            Some(number) => Ok(Target { port: port(number)?, ..target }),
            None if rest.is_empty() => Ok(target),
            None => Err("write [ADDRESS]:PORT".to_owned()),
        };
    }
    if text.parse::<IpAddr>().is_ok() || zoned(text).is_some() {
        check_zone(text)?;
        return Ok(whole(text));
    }
    match text.split_once(':') {
        _ if text.is_empty() => Err("the host is missing; write HOST:PORT".to_owned()),
        Some(("", _)) => Err("the host is missing; write HOST:PORT".to_owned()),
        Some((host, number)) => Ok(Target { port: port(number)?, ..whole(host) }),
        None => Ok(whole(text)),
    }
}

/// Splits `ADDRESS%ZONE` into its address and zone.
fn zoned(text: &str) -> Option<(Ipv6Addr, &str)> {
    let (address, zone) = text.split_once('%')?;
    Some((address.parse().ok()?, zone))
}

/// Checks the zone: a link-local address is only complete with an interface (RFC 4007 §6).
fn check_zone(host: &str) -> Result<(), String> {
    if let Some((address, zone)) = zoned(host)
        && (zone.is_empty() || zone.contains(':'))
    {
        return Err(format!("`{host}` has no usable zone; write [{address}%INTERFACE]:PORT"));
    }
    match host.parse::<Ipv6Addr>() {
        Ok(address) if address.is_unicast_link_local() => Err(without_zone(&address)),
        _ => Ok(()),
    }
}

fn without_zone(address: &Ipv6Addr) -> String {
    format!(
        "cannot reach `{address}` without an interface: it is link-local; add its name, as in [{address}%eth0]:80"
    )
}

fn unescaped(text: &str) -> Result<Bytes, String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'r') => b'\r',
                Some(b'n') => b'\n',
                Some(b'\\') => b'\\',
                _ => return Err(r"expected r, n or \ after a \".to_owned()),
            },
            byte => byte,
        });
    }
    match bytes.len() {
        0 => Err("nothing would be sent; give at least one byte".to_owned()),
        1..=1000 => Ok(Bytes(bytes)),
        _ => Err("at most 1000 bytes: the request must fit on a SYN".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_requests_are_read() {
        let read = |text: &str| {
            target(text).map(|Target { host, port, is_secure }| {
                format!("{host} {port}{}", if is_secure { " TLS" } else { "" })
            })
        };
        for (text, expected) in [
            ("example.org", "example.org 80"),
            ("example.org:443", "example.org 443 TLS"),
            ("https://example.org", "example.org 443 TLS"),
            ("https://[2001:db8::1]:8443/", "2001:db8::1 8443 TLS"),
            ("http://example.org:443/", "example.org 443"),
            ("http://192.0.2.1", "192.0.2.1 80"),
            ("192.0.2.1", "192.0.2.1 80"),
            ("2001:db8::1", "2001:db8::1 80"),
            ("[2001:db8::1]:443", "2001:db8::1 443 TLS"),
            ("[2001:db8::1]", "2001:db8::1 80"),
            ("fe80::1%eth0", "fe80::1%eth0 80"),
            ("[fe80::1%eth0]", "fe80::1%eth0 80"),
            ("[fe80::1%2]:443", "fe80::1%2 443 TLS"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected));
        }
        for wrong in [
            "",
            ":80",
            "a:0",
            "a:x",
            "http://a/b",
            "https://",
            "ftp://a",
            "[::1]80",
            "fe80::1%",
            "fe80::1%eth0:80",
            "[fe80::1%]:80",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for no_zone in ["fe80::1", "[fe80::1]:443", "febf::1"] {
            assert!(read(no_zone).unwrap_err().contains("add its name, as in [fe"), "{no_zone}");
        }
        assert_eq!(unescaped(r"a\r\n\\").unwrap().0, b"a\r\n\\");
        assert!(unescaped(r"a\x").is_err() && unescaped("").is_err());
    }
}
