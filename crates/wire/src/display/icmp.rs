//! An ICMP message in tcpdump's words; the packet an error quotes follows in brackets.
use super::{Depth, Part, packet};
use crate::{Icmp, IcmpError, IcmpParseError, IpHeader, protocol};
use core::fmt;

pub(super) fn message(f: &mut fmt::Formatter<'_>, part: &Part<'_>) -> fmt::Result {
    let IpHeader { src, dst, .. } = part.ip;
    let name = if src.is_v4() { "ICMP " } else { "ICMP6, " };
    write!(f, "{src} > {dst}: {name}")?;
    let message = Icmp::parse_unchecked(src.is_v4(), part.data);
    let quote = match message {
        Ok(Icmp::EchoRequest { ident, seq, .. }) => {
            write!(f, "echo request, id {ident}, seq {seq}")?;
            None
        }
        Ok(Icmp::EchoReply { ident, seq, .. }) => {
            write!(f, "echo reply, id {ident}, seq {seq}")?;
            None
        }
        Ok(Icmp::Error { error, quote }) => {
            error_in_words(f, src.is_v4(), error, &Quoted::read(quote))?;
            Some(quote)
        }
        Ok(Icmp::Other { kind, code }) => {
            write!(f, "type-#{kind}, code {code}")?;
            None
        }
        Err(IcmpParseError::Truncated | IcmpParseError::Checksum) => {
            return write!(f, "[truncated: {} of 8 bytes]", part.data.len());
        }
    };
    write!(f, ", length {}", part.declared_len)?;
    match quote {
        Some(quote) if part.depth == Depth::Outer => {
            f.write_str(" [")?;
            packet(f, quote, Depth::Quoted)?;
            f.write_str("]")
        }
        _ => Ok(()),
    }
}

/// What tcpdump names of the quoted packet: its destination, protocol and port.
struct Quoted {
    ip: Option<IpHeader>,
    dst_port: Option<u16>,
}

impl Quoted {
    fn read(quote: &[u8]) -> Quoted {
        match IpHeader::parse_quoted(quote) {
            Ok((ip, range)) => {
                let port = quote[range].get(2..4).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
                Quoted { ip: Some(ip), dst_port: port }
            }
            Err(_) => Quoted { ip: None, dst_port: None },
        }
    }

    fn protocol_name(&self) -> &'static str {
        match self.ip.as_ref().map(|ip| ip.protocol) {
            Some(protocol::TCP) => "tcp",
            Some(protocol::UDP) => "udp",
            _ => "ip",
        }
    }
}

/// The quoted packet's destination.
impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ip {
            Some(ip) => ip.dst.fmt(f),
            None => f.write_str("?"),
        }
    }
}

fn error_in_words(f: &mut fmt::Formatter<'_>, is_v4: bool, error: IcmpError, quoted: &Quoted) -> fmt::Result {
    match (is_v4, error) {
        (true, IcmpError::HostUnreachable) => write!(f, "host {quoted} unreachable"),
        (true, IcmpError::Prohibited) => write!(f, "host {quoted} unreachable - admin prohibited filter"),
        (true, IcmpError::ProtocolUnreachable) => {
            let protocol = quoted.ip.as_ref().map_or(0, |ip| ip.protocol);
            write!(f, "{quoted} protocol {protocol} unreachable")
        }
        (true, IcmpError::PortUnreachable) => {
            write!(f, "{quoted} {} port {} unreachable", quoted.protocol_name(), quoted.dst_port.unwrap_or(0))
        }
        (true, IcmpError::PacketTooBig { mtu }) => {
            write!(f, "{quoted} unreachable - need to frag (mtu {mtu})")
        }
        (true, IcmpError::TimeExceeded) => f.write_str("time exceeded in-transit"),
        (true, IcmpError::ParameterProblem) => f.write_str("parameter problem"),
        (false, IcmpError::HostUnreachable) => {
            write!(f, "destination unreachable, unreachable address {quoted}")
        }
        (false, IcmpError::Prohibited) => {
            write!(f, "destination unreachable, unreachable prohibited {quoted}")
        }
        (false, IcmpError::ProtocolUnreachable) => f.write_str("parameter problem, next header"),
        (false, IcmpError::PortUnreachable) => {
            let (protocol, port) = (quoted.protocol_name(), quoted.dst_port.unwrap_or(0));
            write!(f, "destination unreachable, unreachable port, {quoted} {protocol} port {port}")
        }
        (false, IcmpError::PacketTooBig { mtu }) => write!(f, "packet too big, mtu {mtu}"),
        (false, IcmpError::TimeExceeded) => write!(f, "time exceeded in-transit for {quoted}"),
        (false, IcmpError::ParameterProblem) => f.write_str("parameter problem"),
    }
}
