//! The MD5 signature of a segment (RFC 2385): an option whose 16 bytes only who knows the key can make.

use super::{TCP_HEADER_LEN, TCP_OPTIONS_MAX, TcpHeader, raw_options::kind};
use crate::{Addr, IpHeader, TxChecksum, TxPacket, protocol};
use md5::{Digest, Md5};
use smallvec::SmallVec;

/// Bytes of the digest.
pub const SIGNATURE_LEN: usize = 16;
/// Bytes that the option takes of every segment, padded.
pub const SIGNATURE_OPTION_LEN: u16 = 20;
const CHECKSUM_AT: usize = 16;

/// Computes the digest of RFC 2385 §2.0 over pseudo-header, TCP header without options and with a
/// zero checksum, payload and key, in that order. `header` is the first 20 bytes of the segment's
/// header. `len` includes options and payload.
pub fn signature<'a>(
    (src, dst): (Addr, Addr),
    header: &[u8; TCP_HEADER_LEN],
    len: u32,
    text: impl IntoIterator<Item = &'a [u8]>,
    key: &[u8],
) -> [u8; SIGNATURE_LEN] {
    let mut digest = Md5::new();
    match (src.to_ip(), dst.to_ip()) {
        (core::net::IpAddr::V4(src), core::net::IpAddr::V4(dst)) => {
            digest.update(src.octets());
            digest.update(dst.octets());
            digest.update([0, protocol::TCP]);
            digest.update((len as u16).to_be_bytes());
        }
        _ => {
            // As RFC 8200 §8.1 has it.
            digest.update(src.0);
            digest.update(dst.0);
            digest.update(len.to_be_bytes());
            digest.update(u32::from(protocol::TCP).to_be_bytes());
        }
    }
    let mut header = *header;
    header[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    digest.update(header);
    text.into_iter().for_each(|part| digest.update(part));
    digest.update(key);
    digest.finalize().into()
}

/// The 16 bytes that options bring.
pub fn signature_in(header: &TcpHeader) -> Option<[u8; SIGNATURE_LEN]> {
    let mut options = header.options.unknown.iter();
    options.find(|(found, _)| *found == kind::MD5).and_then(|(_, body)| body.as_slice().try_into().ok())
}

impl TxPacket {
    /// Adds the option to a TCP packet without it. Returns false if there is no room, or if it is
    /// not such a packet.
    pub fn sign(&mut self, key: &[u8]) -> bool {
        let Ok((ip, _)) = IpHeader::parse_quoted(self.header()) else { return false };
        let start = ip.emit_len();
        let Ok((mut tcp, _)) = TcpHeader::parse(&self.header()[start..], None) else { return false };
        if tcp.options.md5 {
            return true;
        }
        tcp.options.unknown.push((kind::MD5, SmallVec::from_slice(&[0; SIGNATURE_LEN])));
        if tcp.options.emit_len() > TCP_OPTIONS_MAX {
            return false;
        }
        let partial = self.checksum != TxChecksum::Complete;
        let mut header = [0; TCP_HEADER_LEN + TCP_OPTIONS_MAX];
        let len = tcp.emit(&mut header) + self.payload_len();
        let fixed = header.first_chunk().copied().unwrap_or([0; TCP_HEADER_LEN]);
        let made = signature((ip.src, ip.dst), &fixed, len as u32, self.slices(), key);
        tcp.options.unknown.pop();
        tcp.options.unknown.push((kind::MD5, SmallVec::from_slice(&made)));
        self.write_tcp(&ip, &tcp, self.gso_size, partial);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;

    /// Digests by another program, of what RFC 2385 §2.0 lists.
    #[test]
    fn it_is_the_digest_of_what_the_rfc_lists() {
        let header = [0x9c, 0x40, 0, 0x50, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xa0, 0x18, 2, 0, 0xab, 0xcd, 0, 0];
        let of = |src: &str, dst: &str| {
            let addr = |text: &str| Addr::from(text.parse::<IpAddr>().unwrap());
            let text = [&b"hello, "[..], b"world"];
            u128::from_be_bytes(signature((addr(src), addr(dst)), &header, 40 + 12, text, b"a key"))
        };
        assert_eq!(of("10.0.0.1", "10.0.0.2"), 0x6567f6528ac93cee1e63c75e7002b4a3);
        assert_eq!(of("fd00::1", "fd00::2"), 0xc6375aaa296e55cc37fad67a59625d7d);
    }
}
