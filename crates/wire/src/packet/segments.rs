//! Software GSO: one large TCP packet to the packets a wire carries.
use super::plain::V4_LEN;
use super::{MAX_HEADER, TxPacket};
use crate::{Checksum, Flags, IpHeader, SeqNum, TCP_HEADER_LEN, TcpHeader, protocol};
use bytes::{Bytes, BytesMut};

/// Cuts a GSO packet, one packet after the other: see [`TxPacket::cut`].
#[derive(Debug)]
pub struct Segments<'a> {
    headers: Headers,
    gso_size: usize,
    /// Payload not yet cut: its first slice (the rest of it), and the slices behind.
    current: &'a [u8],
    rest: core::slice::Iter<'a, Bytes>,
    left: usize,
    /// Payload cut so far.
    offset: usize,
    /// The TCP checksums are wanted.
    sums: bool,
}

impl<'a> Segments<'a> {
    /// `None` when there is nothing to cut.
    pub(super) fn new(packet: &'a TxPacket) -> Option<Segments<'a>> {
        let gso_size = usize::from(packet.gso_size);
        let left = packet.payload_len();
        if gso_size == 0 || left <= gso_size {
            return None;
        }
        let mut headers = Headers::parse(packet.header())?;
        headers.first_only.set(Flags::CWR, !packet.repeats_cwr);
        let rest = packet.shared.iter();
        Some(Segments { headers, gso_size, current: packet.text(), rest, left, offset: 0, sums: true })
    }

    /// Leaves the TCP checksums unset, for a link on which nobody verifies them.
    pub fn without_sums(self) -> Segments<'a> {
        Segments { sums: false, ..self }
    }

    /// Length of the next packet; `None` after the last.
    pub fn next_len(&self) -> Option<usize> {
        (self.left > 0).then(|| self.headers.len + self.left.min(self.gso_size))
    }

    /// Writes the next packet with its checksums to the start of `buf`, and returns its length, or
    /// `None` after the last packet.
    ///
    /// # Panics
    /// Panics if `buf` is shorter than [`next_len`](Self::next_len).
    #[inline]
    pub fn write_next(&mut self, buf: &mut [u8]) -> Option<usize> {
        let len = self.next_len()?;
        let buf = &mut buf[..len];
        self.headers.lay(buf);
        let (header, payload) = buf.split_at_mut(self.headers.len);
        let mut sum = Checksum::new();
        self.copy_payload(payload, &mut sum);
        self.left -= payload.len();
        self.headers.finish(header, self.offset, self.left == 0, payload.len(), sum);
        self.offset += payload.len();
        Some(len)
    }

    /// Appends the next packet to `to`, as [`write_next`](Self::write_next) writes it, or returns
    /// `None` after the last packet. New memory need not be initialized first.
    #[inline]
    pub fn append_next(&mut self, to: &mut BytesMut) -> Option<usize> {
        let len = self.next_len()?;
        let start = to.len();
        to.extend_from_slice(&self.headers.bytes[..self.headers.len]);
        let payload_len = len - self.headers.len;
        let mut sum = Checksum::new();
        let mut missing = payload_len;
        while let Some(part) = self.take_part(missing) {
            if self.sums {
                sum.add(part);
            }
            to.extend_from_slice(part);
            missing -= part.len();
        }
        self.left -= payload_len;
        let header = &mut to[start..start + self.headers.len];
        self.headers.finish(header, self.offset, self.left == 0, payload_len, sum);
        self.offset += payload_len;
        Some(len)
    }

    fn copy_payload(&mut self, mut to: &mut [u8], sum: &mut Checksum) {
        while let Some(from) = self.take_part(to.len()) {
            let (now, rest) = to.split_at_mut(from.len());
            if self.sums {
                sum.copy_and_add(now, from);
            } else {
                now.copy_from_slice(from);
            }
            to = rest;
        }
    }

    /// Payload that lies together, at most so many bytes; `None`: no more is wanted, or there is no more.
    #[inline]
    fn take_part(&mut self, most: usize) -> Option<&'a [u8]> {
        if most == 0 {
            return None;
        }
        while self.current.is_empty() {
            self.current = self.rest.next()?;
        }
        let (part, later) = self.current.split_at(most.min(self.current.len()));
        self.current = later;
        Some(part)
    }
}

/// The headers every segment gets. What differs between segments is written, and summed, for each; the rest once.
#[derive(Debug)]
struct Headers {
    bytes: [u8; MAX_HEADER],
    ip_len: usize,
    len: usize,
    is_v4: bool,
    /// Of the IPv4 header: all but total length, identification and checksum.
    ip_sum: Checksum,
    /// Of pseudo-header and TCP header: all but length, sequence number, the word with the flags, and checksum.
    tcp_sum: Checksum,
    ident: u16,
    seq: SeqNum,
    /// The first segment's, and the last's.
    flags: Flags,
    /// Those that the others do not have.
    first_only: Flags,
    data_offset: u8,
}

impl Headers {
    fn parse(header: &[u8]) -> Option<Headers> {
        let (ip, range) = IpHeader::parse_quoted(header).ok()?;
        let (TcpHeader { seq, flags, .. }, payload) =
            TcpHeader::parse(header.get(range.start..)?, None).ok()?;
        let ip_len = ip.emit_len();
        let is_bare_tcp = ip.protocol == protocol::TCP && range.start == ip_len && payload.is_empty();
        if !is_bare_tcp || header.len() > MAX_HEADER {
            return None;
        }
        let mut bytes = [0; MAX_HEADER];
        bytes[..header.len()].copy_from_slice(header);
        let (ip_bytes, tcp) = bytes[..header.len()].split_at_mut(ip_len);
        let is_v4 = ip.src.is_v4();
        let mut ip_sum = Checksum::new();
        if is_v4 {
            ip_bytes[2..6].fill(0);
            ip_bytes[10..12].fill(0);
            ip_sum.add(ip_bytes);
        }
        let data_offset = tcp[12];
        tcp[4..8].fill(0);
        tcp[12..14].fill(0);
        tcp[16..18].fill(0);
        let mut tcp_sum = Checksum::pseudo_header(ip.src, ip.dst, protocol::TCP, 0);
        tcp_sum.add(tcp);
        let len = header.len();
        let (ident, first_only) = (ip.ident, Flags::empty());
        Some(Headers {
            bytes,
            ip_len,
            len,
            is_v4,
            ip_sum,
            tcp_sum,
            ident,
            seq,
            flags,
            first_only,
            data_offset,
        })
    }

    /// Copies what is the same in every segment to the front of one. Of a long one the room for payload behind it is overwritten, too:
    /// a length known beforehand takes no call.
    #[inline]
    fn lay(&self, buf: &mut [u8]) {
        match buf.first_chunk_mut::<MAX_HEADER>() {
            Some(front) => *front = self.bytes,
            None => self.lay_short(buf),
        }
    }

    #[inline(never)]
    fn lay_short(&self, buf: &mut [u8]) {
        buf[..self.len].copy_from_slice(&self.bytes[..self.len]);
    }

    /// Completes the headers of the next segment, which begins `offset` bytes into the payload and whose own sums to `sum`.
    #[inline]
    fn finish(&mut self, buf: &mut [u8], offset: usize, is_last: bool, payload_len: usize, sum: Checksum) {
        let (ip, tcp) = buf.split_at_mut(self.ip_len);
        let segment_len = tcp.len() + payload_len;
        if self.is_v4 {
            self.write_v4(ip, segment_len);
        } else if let Some(ip) = ip.first_chunk_mut::<V4_LEN>() {
            ip[4..6].copy_from_slice(&length_field(segment_len).to_be_bytes());
        }
        let Some(fixed) = tcp.first_chunk_mut::<TCP_HEADER_LEN>() else { return };
        let seq = (self.seq + offset as u32).0;
        let flags = [self.data_offset, self.flags_of(offset == 0, is_last).bits() as u8];
        let mut whole = self.tcp_sum;
        whole.add_u32(segment_len as u32);
        whole.add_u32(seq);
        whole.add_u16(u16::from_be_bytes(flags));
        whole.append(sum);
        fixed[4..8].copy_from_slice(&seq.to_be_bytes());
        fixed[12..14].copy_from_slice(&flags);
        fixed[16..18].copy_from_slice(&whole.finish().to_be_bytes());
    }

    fn write_v4(&mut self, ip: &mut [u8], segment_len: usize) {
        let total_len = length_field(self.ip_len + segment_len);
        let mut sum = self.ip_sum;
        sum.add_u16(total_len);
        sum.add_u16(self.ident);
        let Some(ip) = ip.first_chunk_mut::<V4_LEN>() else { return };
        ip[2..4].copy_from_slice(&total_len.to_be_bytes());
        ip[4..6].copy_from_slice(&self.ident.to_be_bytes());
        ip[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        self.ident = self.ident.wrapping_add(1);
    }

    fn flags_of(&self, is_first: bool, is_last: bool) -> Flags {
        let mut flags = self.flags;
        if !is_first {
            flags.remove(self.first_only);
        }
        if !is_last {
            flags.remove(Flags::FIN | Flags::PSH);
        }
        flags
    }
}

/// A length that the 16-bit field cannot hold is written as 0, as [`IpHeader::emit`] does.
fn length_field(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(0)
}
