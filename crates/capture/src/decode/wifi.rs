//! IEEE 802.11 data frames, and the headers that capture drivers put before them.

use super::layer::{Bytes, Dot11, Layer};
use crate::packet::NotTcp;

/// Returns the LLC header in a data frame. Of aggregated packets, only the first is decoded.
pub(super) fn inside(Dot11 { frame, is_padded }: Dot11<'_>) -> Result<Layer<'_>, NotTcp> {
    // Bytes of 16-bit fields are swapped if the version is not 0: Cisco's access points send them
    // so in CAPWAP.
    let [first, second] = frame.array(0)?;
    let is_swapped = first & 3 != 0;
    let [kind, flags] = if is_swapped { [second, first] } else { [first, second] };
    // Type 2 is data. A subtype with this bit has no payload.
    if kind & 0x0c != 0x08 || kind & 0x40 != 0 {
        return Err(NotTcp::Protocol);
    }
    let [to_and_from, is_protected, is_ordered] = [flags & 3 == 3, flags & 0x40 != 0, flags & 0x80 != 0];
    let has_qos = kind & 0x80 != 0;
    if is_protected {
        return Err(NotTcp::Encrypted);
    }
    // The lower bits of the sequence control field number the fragments.
    if frame.u8(if is_swapped { 23 } else { 22 })? & 0x0f != 0 {
        return Err(NotTcp::Fragment);
    }
    let qos_at = 24 + if to_and_from { 6 } else { 0 };
    let mut header_len = qos_at;
    let mut is_aggregate = false;
    if has_qos {
        is_aggregate = frame.u8(qos_at)? & 0x80 != 0;
        header_len += if is_ordered { 6 } else { 2 };
    }
    if is_padded {
        header_len = header_len.next_multiple_of(4);
    }
    // Addresses and length of the first aggregated packet.
    header_len += if is_aggregate { 14 } else { 0 };
    Ok(Layer::Llc(frame.after(header_len)?))
}

/// Decodes the radiotap header: its length and a set of fields. Only the flags matter here.
pub(super) fn radiotap(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const TSFT: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    const IS_PADDED: u8 = 0x20;
    let header_len = usize::from(u16::from_le_bytes(frame.array(2)?));
    let first = u32::from_le_bytes(frame.array(4)?);
    let mut fields_at = 8;
    let mut present = first;
    while present & MORE != 0 {
        present = u32::from_le_bytes(frame.array(fields_at)?);
        fields_at += 4;
    }
    let flags_at = if first & TSFT != 0 { fields_at.next_multiple_of(8) + 8 } else { fields_at };
    let flags = if first & FLAGS != 0 { frame.u8(flags_at)? } else { 0 };
    Ok(Layer::Wifi(Dot11 { frame: frame.after(header_len)?, is_padded: flags & IS_PADDED != 0 }))
}

/// Decodes the Prism header. Many drivers write the AVS header under its link type, or none.
pub(super) fn prism(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const AVS_MAGIC: [u8; 3] = [0x80, 0x21, 0x10];
    let [m0, m1, m2, _] = frame.array(0)?;
    if [m0, m1, m2] == AVS_MAGIC {
        return avs(frame);
    }
    // The length is in the byte order of the capturing host.
    let len = frame.array(4)?;
    let len = u32::from_le_bytes(len).min(u32::from_be_bytes(len));
    Ok(Layer::Wifi(Dot11 { frame: frame.after(len as usize)?, is_padded: false }))
}

/// Decodes the AVS header: version, then its length.
pub(super) fn avs(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let len = u32::from_be_bytes(frame.array(4)?);
    Ok(Layer::Wifi(Dot11 { frame: frame.after(len as usize)?, is_padded: false }))
}
