//! Every parser of `wire` over one packet.
use bytes::Bytes;
use wire::{
    Cookie, GroRun, Icmp, IpHeader, QuotedTcp, Summary, TcpHeader, TcpOptions, TxChecksum, TxPacket,
    UsualSyn, build_icmp_packet, build_tcp_packet, ends_of, parse_tcp_packet, protocol, set_checksum,
};

/// Reads the bytes as they are, and again with correct checksums, to reach the code behind them.
pub fn packets(data: &[u8]) {
    read(data);
    let mut corrected = data.to_vec();
    if mend(&mut corrected).is_some() {
        read(&corrected);
    }
    let (first, second) = data.split_at(data.len() / 2);
    if let Some(run) = GroRun::between(first, second) {
        let _ = run.text(first, true);
        let _ = run.text(second, false);
    }
    cut(data);
}

/// Makes the checksums of IPv4 and TCP right.
fn mend(packet: &mut [u8]) -> Option<()> {
    if packet.first()? >> 4 == 4 {
        let header_len = usize::from(packet[0] & 15) * 4;
        let header = packet.get_mut(..header_len.max(20))?;
        header[10..12].fill(0);
        let mut sum = wire::Checksum::new();
        sum.add(header);
        let sum = sum.finish();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let (ip, segment) = IpHeader::parse(packet).ok()?;
    if ip.protocol == protocol::TCP && segment.len() >= wire::TCP_HEADER_LEN {
        set_checksum(&ip, &mut packet[segment]);
    }
    Some(())
}

fn read(packet: &[u8]) {
    let line = Summary(packet).to_string();
    assert!(!line.is_empty() && !line.contains('\n'), "a summary is one line");
    let _ = (QuotedTcp::parse(packet), ends_of(packet), Cookie::new(packet));
    options(packet);
    if let Ok((ip, range)) = IpHeader::parse_quoted(packet) {
        upper_layer(&ip, &packet[range]);
    }
    if let Ok((ip, range)) = IpHeader::parse(packet) {
        assert!(ip.emit_len() <= range.start && range.end <= packet.len(), "the payload lies in the packet");
        upper_layer(&ip, &packet[range]);
    }
    if let Ok((ip, tcp, text)) = parse_tcp_packet(packet) {
        let again = build_tcp_packet(&ip, &tcp, &packet[text.clone()]);
        let (ip_again, tcp_again, text_again) =
            parse_tcp_packet(&again).expect("what is written can be read");
        assert_eq!((ip_again, tcp_again, &again[text_again]), (ip, tcp, &packet[text]));
    }
}

fn upper_layer(ip: &IpHeader, data: &[u8]) {
    if let Ok((tcp, text)) = TcpHeader::parse(data, None) {
        assert!(text.start >= wire::TCP_HEADER_LEN && text.end == data.len(), "the text ends the segment");
        assert!(tcp.emit_len() <= 60, "what was read can be written");
        options(&data[wire::TCP_HEADER_LEN..text.start]);
    }
    let Ok(icmp) = Icmp::parse(ip.src, ip.dst, data) else { return };
    assert!(icmp.emit_len() <= data.len());
    if matches!(icmp, Icmp::Other { .. }) {
        return;
    }
    let built = build_icmp_packet(ip, &icmp);
    let (ip_again, body) = IpHeader::parse(&built).expect("what is written can be read");
    let again = Icmp::parse(ip_again.src, ip_again.dst, &built[body]).expect("what is written can be read");
    if let (Icmp::EchoRequest { .. } | Icmp::EchoReply { .. }, _) = (&icmp, &again) {
        assert_eq!(again, icmp);
    }
}

fn options(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(wire::TCP_OPTIONS_MAX)];
    let _ = UsualSyn::read(bytes);
    let options = TcpOptions::parse(bytes);
    let mut written = [0; wire::TCP_OPTIONS_MAX];
    assert!(options.emit_len() <= written.len(), "{options:?} cannot be written");
    let header = TcpHeader { options, ..TcpHeader::new(1, 2) };
    let mut segment = [0; 60];
    let len = header.emit(&mut segment);
    written[..len - 20].copy_from_slice(&segment[20..len]);
    assert_eq!(TcpOptions::parse(&written[..len - 20]), header.options);
}

/// A device may be handed any header to cut.
fn cut(data: &[u8]) {
    let (header, payload) = data.split_at(data.len().min(60));
    let mut packet = TxPacket::new(header, [Bytes::copy_from_slice(payload)].into_iter().collect());
    packet.gso_size = 7;
    packet.checksum = TxChecksum::Partial { start: 20, offset: 16 };
    assert!(packet.segments().iter().map(Bytes::len).sum::<usize>() >= data.len());
}
