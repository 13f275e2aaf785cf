//! Packets made from recorded ones: another source port, another sequence number, other options.
use crate::segment::{RST, Segment, options, refresh_checksum};

/// `packet` as another client port would send it, with another initial sequence number.
pub fn with_port_and_seq(packet: &[u8], port: u16, seq: u32) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let tcp = tcp_start(&packet);
    packet[tcp..tcp + 2].copy_from_slice(&port.to_be_bytes());
    packet[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
    refresh_checksum(&mut packet);
    packet
}

/// A SYN like this one to another server port, with this cookie and this data.
pub fn syn_with_data(syn: &[u8], port: u16, cookie: &[u8], data: &[u8]) -> Vec<u8> {
    let mut packet = with_cookie(syn, Some(cookie));
    let tcp = tcp_start(&packet);
    packet[tcp + 2..tcp + 4].copy_from_slice(&port.to_be_bytes());
    packet.extend_from_slice(data);
    finish(packet)
}

/// A reset of the connection a SYN opened, as its sender would send it next, without options or
/// payload.
pub fn reset_after(syn: &[u8]) -> Vec<u8> {
    let segment = Segment::decode(syn).expect("a SYN");
    let tcp = tcp_start(syn);
    let mut packet = syn[..tcp + 20].to_vec();
    let seq = segment.seq.wrapping_add(1).wrapping_add(segment.payload.len() as u32);
    packet[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
    packet[tcp + 12] = 5 << 4;
    packet[tcp + 13] = RST;
    finish(packet)
}

/// `packet` with the cookie of its Fast Open option replaced, or with the option removed when
/// `cookie` is `None`. The header is padded with NOPs to a multiple of four bytes.
pub fn with_cookie(packet: &[u8], cookie: Option<&[u8]>) -> Vec<u8> {
    let segment = Segment::decode(packet).expect("a TCP segment");
    let tcp = tcp_start(packet);
    let mut list = Vec::new();
    for (kind, range) in options(packet, segment.options.clone()) {
        match (kind, cookie) {
            (34, Some(cookie)) => {
                list.extend([34, cookie.len() as u8 + 2]);
                list.extend_from_slice(cookie);
            }
            (34, None) => {}
            _ => list.extend_from_slice(&packet[range]),
        }
    }
    list.resize(list.len().next_multiple_of(4), 1);
    assert!(list.len() <= 40, "no room for a cookie of {:?} bytes", cookie.map(<[u8]>::len));
    let mut changed = packet[..tcp + 20].to_vec();
    changed[tcp + 12] = ((20 + list.len()) as u8 / 4) << 4;
    changed.extend_from_slice(&list);
    changed.extend_from_slice(&segment.payload);
    finish(changed)
}

/// Sets IP lengths and all checksums anew.
fn finish(mut packet: Vec<u8>) -> Vec<u8> {
    let len = packet.len();
    match packet[0] >> 4 {
        4 => {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            packet[10..12].fill(0);
            let sum = !crate::segment::internet_sum(&[&packet[..20]]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        _ => packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes()),
    }
    refresh_checksum(&mut packet);
    packet
}

fn tcp_start(packet: &[u8]) -> usize {
    if packet[0] >> 4 == 4 { usize::from(packet[0] & 0xf) * 4 } else { 40 }
}
