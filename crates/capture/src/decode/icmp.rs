//! ICMP errors that quote a TCP segment (RFC 792, RFC 4443).

use super::ip;
use super::layer::{Bytes, Layer};
use crate::icmp::{IcmpError, Unreachable};
use crate::packet::IpHeader;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::SeqNum;

/// Bytes before the quoted packet.
const HEADER_LEN: usize = 8;

/// Returns the error if it ends an attempt to open a connection.
pub(super) fn error(at: Duration, outer: IpHeader, message: Bytes<'_>) -> Option<IcmpError> {
    let [kind, code] = message.array(0).ok()?;
    let reason = match outer.src {
        IpAddr::V4(_) => v4(kind, code)?,
        IpAddr::V6(_) => v6(kind, code)?,
    };
    let quoted = message.after(HEADER_LEN).ok()?;
    // The quotation is cut: its length is that of the packet that was sent.
    let Layer::Over(header, protocol, segment) = ip::inside(quoted).ok()? else { return None };
    let Layer::Tcp(_, segment) = ip::over(header, protocol, segment, &mut Default::default()).ok()? else {
        return None;
    };
    Some(IcmpError {
        at,
        from: outer.src,
        reason,
        src: SocketAddr::new(header.src, segment.u16(0).ok()?),
        dst: SocketAddr::new(header.dst, segment.u16(2).ok()?),
        seq: SeqNum(u32::from_be_bytes(segment.array(4).ok()?)),
    })
}

fn v4(kind: u8, code: u8) -> Option<Unreachable> {
    Some(match (kind, code) {
        (3, 0 | 6 | 11) => Unreachable::Network,
        (3, 1 | 7 | 8 | 12) => Unreachable::Host,
        (3, 2) => Unreachable::Protocol,
        (3, 3) => Unreachable::Port,
        // A smaller packet may pass.
        (3, 4) => return None,
        (3, 9 | 10 | 13) => Unreachable::Prohibited,
        (3, _) => Unreachable::Other,
        (11, 0) => Unreachable::TimeExceeded,
        _ => return None,
    })
}

fn v6(kind: u8, code: u8) -> Option<Unreachable> {
    Some(match (kind, code) {
        (1, 0) => Unreachable::Network,
        (1, 1 | 5 | 6) => Unreachable::Prohibited,
        (1, 3) => Unreachable::Host,
        (1, 4) => Unreachable::Port,
        (1, _) => Unreachable::Other,
        (3, 0) => Unreachable::TimeExceeded,
        _ => return None,
    })
}
