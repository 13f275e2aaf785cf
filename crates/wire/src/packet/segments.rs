//! Software GSO: one large TCP packet to the packets a wire carries.
use super::TxPacket;
use crate::{Checksum, Flags, IpHeader, SeqNum, TCP_HEADER_LEN, TcpHeader, protocol};
use bytes::Bytes;

/// Cuts a GSO packet, one packet after the other: see [`TxPacket::cut`].
#[derive(Debug)]
pub struct Segments<'a> {
    headers: Headers<'a>,
    gso_size: usize,
    /// Payload not yet cut: its first slice (the rest of it), and the slices behind.
    current: &'a [u8],
    rest: core::slice::Iter<'a, Bytes>,
    left: usize,
    /// Payload cut so far.
    offset: usize,
}

impl<'a> Segments<'a> {
    /// `None` when there is nothing to cut.
    pub(super) fn new(packet: &'a TxPacket) -> Option<Segments<'a>> {
        let gso_size = usize::from(packet.gso_size);
        let left = packet.payload_len();
        if gso_size == 0 || left <= gso_size {
            return None;
        }
        let headers = Headers::parse(packet.header())?;
        Some(Segments { headers, gso_size, current: &[], rest: packet.payload.iter(), left, offset: 0 })
    }

    /// Length of the next packet; `None` after the last.
    pub fn next_len(&self) -> Option<usize> {
        (self.left > 0).then(|| self.headers.len() + self.left.min(self.gso_size))
    }

    /// Writes the next packet, complete with its checksums, to the front of `buf` and returns its length; `None` after the last.
    ///
    /// # Panics
    /// If `buf` is shorter than [`next_len`](Self::next_len).
    pub fn write_next(&mut self, buf: &mut [u8]) -> Option<usize> {
        let len = self.next_len()?;
        let (header, payload) = buf[..len].split_at_mut(self.headers.len());
        let mut sum = Checksum::new();
        self.copy_payload(payload, &mut sum);
        self.left -= payload.len();
        self.headers.write(header, self.offset, self.left == 0, payload.len(), sum);
        self.offset += payload.len();
        Some(len)
    }

    fn copy_payload(&mut self, mut to: &mut [u8], sum: &mut Checksum) {
        while !to.is_empty() {
            if self.current.is_empty() {
                let Some(next) = self.rest.next() else { return };
                self.current = next;
                continue;
            }
            let len = to.len().min(self.current.len());
            let (from, later) = self.current.split_at(len);
            let (now, rest) = to.split_at_mut(len);
            sum.copy_and_add(now, from);
            (self.current, to) = (later, rest);
        }
    }
}

/// The headers every segment gets, with a few fields changed.
#[derive(Debug)]
struct Headers<'a> {
    ip: IpHeader,
    ip_len: usize,
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
        let ip_len = ip.emit_len();
        let is_bare_tcp = ip.protocol == protocol::TCP && range.start == ip_len && payload.is_empty();
        is_bare_tcp.then_some(Headers { ip, ip_len, tcp, seq, flags })
    }

    fn len(&self) -> usize {
        self.ip_len + self.tcp.len()
    }

    /// Writes the headers of the next segment, which begins `offset` bytes into the payload and whose own sums to `sum`.
    fn write(&mut self, buf: &mut [u8], offset: usize, is_last: bool, payload_len: usize, sum: Checksum) {
        let (ip, tcp) = buf.split_at_mut(self.ip_len);
        let segment_len = tcp.len() + payload_len;
        self.ip.emit(segment_len, ip);
        self.ip.ident = self.ip.ident.wrapping_add(1);
        tcp.copy_from_slice(self.tcp);
        let Some(fixed) = tcp.first_chunk_mut::<TCP_HEADER_LEN>() else { return };
        fixed[4..8].copy_from_slice(&(self.seq + offset as u32).0.to_be_bytes());
        fixed[13] = self.flags_of(offset == 0, is_last).bits() as u8;
        fixed[16..18].fill(0);
        let mut whole = Checksum::pseudo_header(self.ip.src, self.ip.dst, protocol::TCP, segment_len as u32);
        whole.add(tcp);
        whole.append(sum);
        tcp[16..18].copy_from_slice(&whole.finish().to_be_bytes());
    }

    fn flags_of(&self, is_first: bool, is_last: bool) -> Flags {
        let mut flags = self.flags;
        if !is_first {
            flags.remove(Flags::CWR);
        }
        if !is_last {
            flags.remove(Flags::FIN | Flags::PSH);
        }
        flags
    }
}
