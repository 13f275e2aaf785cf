//! IPv6 extension headers (RFC 8200 §4). They are skipped if the RFC allows it, and rejected
//! otherwise.
//!
//! | header | rule |
//! |---|---|
//! | hop-by-hop | only first; the options below decide |
//! | destination options | the options below decide |
//! | routing | skipped with no segments left; type 0 is always rejected (RFC 5095 says "ignore") |
//! | fragment | an atomic fragment (RFC 6946) is skipped, any other is [`IpError::Fragment`] |
//! | AH, ESP | rejected, because they cannot be verified |
//! | options | none is supported: action bits 00 are skipped, others reject the packet (§4.2) |
use super::{IpError, array_at};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AH: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// Extension headers a packet may have. RFC 8200 §4.1 foresees each kind once, destination options twice: six.
const EXTENSION_HEADERS_MAX: usize = 8;

const OPTION_PAD1: u8 = 0;
/// What to do with an option that is not understood: 00 = skip it, anything else = discard the packet (RFC 8200 §4.2).
const OPTION_ACTION: u8 = 0b1100_0000;

/// From `next_header` at `start`: the upper-layer protocol and where its packet begins.
pub(super) fn skip(packet: &[u8], mut next_header: u8, mut start: usize) -> Result<(u8, usize), IpError> {
    let mut position = 0;
    loop {
        let kind = next_header;
        let refused = Err(IpError::ExtensionHeader(kind));
        if !matches!(kind, HOP_BY_HOP | ROUTING | FRAGMENT | ESP | AH | DESTINATION_OPTIONS) {
            return Ok((kind, start));
        }
        if kind == AH
            || kind == ESP
            || (kind == HOP_BY_HOP && position > 0)
            || position == EXTENSION_HEADERS_MAX
        {
            return refused;
        }
        let fixed: &[u8; 8] = array_at(packet, start)?;
        let len = if kind == FRAGMENT { fixed.len() } else { (usize::from(fixed[1]) + 1) * 8 };
        let truncated = IpError::Truncated { required: start + len, available: packet.len() };
        let header = packet.get(start..start + len).ok_or(truncated)?;
        match kind {
            FRAGMENT if is_fragment(fixed) => return Err(IpError::Fragment),
            ROUTING if !may_skip_routing(fixed) => return refused,
            HOP_BY_HOP | DESTINATION_OPTIONS if !may_skip_options(&header[2..])? => return refused,
            _ => {}
        }
        next_header = fixed[0];
        start += len;
        position += 1;
    }
}

/// Offset (13 bits) and M flag: both zero in an atomic fragment.
fn is_fragment(header: &[u8; 8]) -> bool {
    u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0
}

fn may_skip_routing(header: &[u8; 8]) -> bool {
    let [_, _, routing_type, segments_left, ..] = *header;
    routing_type != 0 && segments_left == 0
}

fn may_skip_options(mut options: &[u8]) -> Result<bool, IpError> {
    while let [kind, rest @ ..] = options {
        if *kind == OPTION_PAD1 {
            options = rest;
            continue;
        }
        if kind & OPTION_ACTION != 0 {
            return Ok(false);
        }
        let (len, body) = rest.split_first().ok_or(IpError::Length)?;
        options = body.get(usize::from(*len)..).ok_or(IpError::Length)?;
    }
    Ok(true)
}
