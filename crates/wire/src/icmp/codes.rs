//! Types and codes of both ICMP versions to [`IcmpError`] and back.
use super::IcmpError;

pub(super) const ECHO_REPLY_V4: u8 = 0;
pub(super) const ECHO_REQUEST_V4: u8 = 8;
pub(super) const ECHO_REQUEST_V6: u8 = 128;
pub(super) const ECHO_REPLY_V6: u8 = 129;

const UNREACHABLE_V4: u8 = 3;
const TIME_EXCEEDED_V4: u8 = 11;
const PARAMETER_PROBLEM_V4: u8 = 12;

const UNREACHABLE_V6: u8 = 1;
const PACKET_TOO_BIG_V6: u8 = 2;
const TIME_EXCEEDED_V6: u8 = 3;
const PARAMETER_PROBLEM_V6: u8 = 4;

/// Offset of the next-header field in an IPv6 header: what an emitted "next header not recognised" points at.
const NEXT_HEADER_POINTER: u32 = 6;

/// `word`: bytes 4 to 8 of the message.
pub(super) fn error_of(is_v4: bool, kind: u8, code: u8, word: u32) -> Option<IcmpError> {
    if is_v4 { error_of_v4(kind, code, word) } else { error_of_v6(kind, code, word) }
}

/// RFC 792, RFC 1191 §4 (next-hop MTU), RFC 1122 §3.2.2.1 and RFC 1812 §5.2.7.1 (codes above 5).
fn error_of_v4(kind: u8, code: u8, word: u32) -> Option<IcmpError> {
    Some(match (kind, code) {
        (UNREACHABLE_V4, 0 | 1 | 5..=8 | 11 | 12 | 14 | 15) => IcmpError::HostUnreachable,
        (UNREACHABLE_V4, 2) => IcmpError::ProtocolUnreachable,
        (UNREACHABLE_V4, 3) => IcmpError::PortUnreachable,
        (UNREACHABLE_V4, 4) => IcmpError::PacketTooBig { mtu: word & 0xffff },
        (UNREACHABLE_V4, 9 | 10 | 13) => IcmpError::Prohibited,
        (TIME_EXCEEDED_V4, _) => IcmpError::TimeExceeded,
        (PARAMETER_PROBLEM_V4, _) => IcmpError::ParameterProblem,
        _ => return None,
    })
}

/// RFC 4443 §3.
fn error_of_v6(kind: u8, code: u8, word: u32) -> Option<IcmpError> {
    Some(match (kind, code) {
        (UNREACHABLE_V6, 0 | 2 | 3) => IcmpError::HostUnreachable,
        (UNREACHABLE_V6, 1 | 5 | 6) => IcmpError::Prohibited,
        (UNREACHABLE_V6, 4) => IcmpError::PortUnreachable,
        (PACKET_TOO_BIG_V6, _) => IcmpError::PacketTooBig { mtu: word },
        (TIME_EXCEEDED_V6, _) => IcmpError::TimeExceeded,
        (PARAMETER_PROBLEM_V6, 1) => IcmpError::ProtocolUnreachable,
        (PARAMETER_PROBLEM_V6, _) => IcmpError::ParameterProblem,
        _ => return None,
    })
}

/// Type, code, and bytes 4 to 8. An MTU that IPv4 cannot say becomes 65535.
pub(super) fn of_error(is_v4: bool, error: IcmpError) -> (u8, u8, u32) {
    match (is_v4, error) {
        (true, IcmpError::HostUnreachable) => (UNREACHABLE_V4, 1, 0),
        (true, IcmpError::Prohibited) => (UNREACHABLE_V4, 13, 0),
        (true, IcmpError::ProtocolUnreachable) => (UNREACHABLE_V4, 2, 0),
        (true, IcmpError::PortUnreachable) => (UNREACHABLE_V4, 3, 0),
        (true, IcmpError::PacketTooBig { mtu }) => (UNREACHABLE_V4, 4, mtu.min(0xffff)),
        (true, IcmpError::TimeExceeded) => (TIME_EXCEEDED_V4, 0, 0),
        (true, IcmpError::ParameterProblem) => (PARAMETER_PROBLEM_V4, 0, 0),
        (false, IcmpError::HostUnreachable) => (UNREACHABLE_V6, 3, 0),
        (false, IcmpError::Prohibited) => (UNREACHABLE_V6, 1, 0),
        (false, IcmpError::ProtocolUnreachable) => (PARAMETER_PROBLEM_V6, 1, NEXT_HEADER_POINTER),
        (false, IcmpError::PortUnreachable) => (UNREACHABLE_V6, 4, 0),
        (false, IcmpError::PacketTooBig { mtu }) => (PACKET_TOO_BIG_V6, 0, mtu),
        (false, IcmpError::TimeExceeded) => (TIME_EXCEEDED_V6, 0, 0),
        (false, IcmpError::ParameterProblem) => (PARAMETER_PROBLEM_V6, 0, 0),
    }
}

/// A quote that is followed by extensions is at least this long, padded with zeros (RFC 4884 §3).
const EXTENDED_QUOTE_MIN: usize = 128;

/// The quote alone: the length field of RFC 4884 §4 counts 32-bit words in IPv4 (byte 5), 64-bit words in IPv6 (byte 4).
pub(super) fn without_extensions(is_v4: bool, kind: u8, word: u32, body: &[u8]) -> &[u8] {
    let len = match (is_v4, kind) {
        (true, UNREACHABLE_V4 | TIME_EXCEEDED_V4 | PARAMETER_PROBLEM_V4) => (word >> 16 & 0xff) as usize * 4,
        (false, UNREACHABLE_V6 | TIME_EXCEEDED_V6) => (word >> 24) as usize * 8,
        _ => 0,
    };
    body.get(..len).filter(|quote| quote.len() >= EXTENDED_QUOTE_MIN).unwrap_or(body)
}
