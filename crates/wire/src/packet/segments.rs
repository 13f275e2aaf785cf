//! Software GSO: one large TCP packet to the packets a wire carries.
use super::{TxPacket, copy_slices};
use crate::{Checksum, Flags, IpHeader, SeqNum, TCP_HEADER_LEN, TcpHeader, protocol};
use bytes::{Buf, Bytes};
use smallvec::SmallVec;

/// `None` when there is nothing to cut.
pub(super) fn cut(packet: &TxPacket) -> Option<Vec<Bytes>> {
    let gso_size = usize::from(packet.gso_size);
    let payload_len = packet.payload_len();
    if gso_size == 0 || payload_len <= gso_size {
        return None;
    }
    let headers = Headers::parse(packet.header())?;
    let count = payload_len.div_ceil(gso_size);
    let mut slices = packet.payload.iter().cloned();
    let mut current = Bytes::new();
    let segments = (0..count).map(|index| {
        let offset = index * gso_size;
        let len = gso_size.min(payload_len - offset);
        let payload = take_slices(&mut current, &mut slices, len);
        headers.segment(index, offset, index + 1 == count, len, &payload)
    });
    Some(segments.collect())
}

/// The next `len` bytes of a chain of slices, without copying.
fn take_slices(
    current: &mut Bytes,
    rest: &mut impl Iterator<Item = Bytes>,
    mut len: usize,
) -> SmallVec<[Bytes; 2]> {
    let mut taken = SmallVec::new();
    while len > 0 {
        if current.is_empty() {
            let Some(next) = rest.next() else { break };
            *current = next;
        }
        let n = len.min(current.len());
        taken.push(current.slice(..n));
        current.advance(n);
        len -= n;
    }
    taken
}

/// The headers every segment gets, with a few fields changed.
struct Headers<'a> {
    ip: IpHeader,
    /// The TCP header's bytes: options are copied as they are.
    tcp: &'a [u8],
    seq: SeqNum,
    flags: Flags,
}

impl<'a> Headers<'a> {
    fn parse(header: &'a [u8]) -> Option<Headers<'a>> {
        let (ip, range) = IpHeader::parse_quoted(header).ok()?;
        let tcp = header.get(range.start..)?;
        let (TcpHeader { seq, flags, .. }, payload) = TcpHeader::parse(tcp, None).ok()?;
        let is_bare_tcp = ip.protocol == protocol::TCP && range.start == ip.emit_len() && payload.is_empty();
        is_bare_tcp.then_some(Headers { ip, tcp, seq, flags })
    }

    fn segment(
        &self,
        index: usize,
        offset: usize,
        is_last: bool,
        payload_len: usize,
        payload: &[Bytes],
    ) -> Bytes {
        let start = self.ip.emit_len();
        let segment_len = self.tcp.len() + payload_len;
        let mut packet = vec![0; start + segment_len];
        let ident = self.ip.ident.wrapping_add(index as u16);
        IpHeader { ident, ..self.ip.clone() }.emit(segment_len, &mut packet);
        let (tcp, data) = packet[start..].split_at_mut(self.tcp.len());
        tcp.copy_from_slice(self.tcp);
        let fixed = &mut tcp[..TCP_HEADER_LEN];
        fixed[4..8].copy_from_slice(&(self.seq + offset as u32).0.to_be_bytes());
        fixed[13] = self.flags_of(index, is_last).bits() as u8;
        fixed[16..18].fill(0);
        let mut sum = Checksum::pseudo_header(self.ip.src, self.ip.dst, protocol::TCP, segment_len as u32);
        sum.add(tcp);
        copy_slices(payload, data, |to, from| sum.copy_and_add(to, from));
        tcp[16..18].copy_from_slice(&sum.finish().to_be_bytes());
        packet.into()
    }

    fn flags_of(&self, index: usize, is_last: bool) -> Flags {
        let mut flags = self.flags;
        flags.set(Flags::CWR, flags.contains(Flags::CWR) && index == 0);
        if !is_last {
            flags.remove(Flags::FIN | Flags::PSH);
        }
        flags
    }
}
