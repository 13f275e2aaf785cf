//! Mutations that an engine still accepts: fields near the numbers that matter, correct checksums.
use arbitrary::Unstructured;
use bytes::Bytes;
use wire::{
    AccurateEcnOption, AccurateEcnOrder, Cookie, Ecn, FastOpenKind, FastOpenOption, Flags, Icmp, IcmpError,
    IpHeader, SeqNum, TcpHeader, Timestamps, build_icmp_packet, build_tcp_packet, parse_tcp_packet, protocol,
};

/// Returns a number near one that matters to an engine. `seen` holds sequence and acknowledgement
/// numbers of both directions.
fn near(choices: &mut Unstructured<'_>, seen: &[u32]) -> u32 {
    const STEPS: [u32; 16] = [
        0,
        1,
        u32::MAX,
        2,
        536,
        1460,
        1460u32.wrapping_neg(),
        14_600,
        14_600u32.wrapping_neg(),
        65_535,
        65_535u32.wrapping_neg(),
        1 << 30,
        (1 << 31) - 1,
        1 << 31,
        (1 << 31) + 1,
        3 << 30,
    ];
    let base = choices.choose(seen).copied().unwrap_or(0);
    match choices.arbitrary::<u8>().unwrap_or(0) {
        at @ 0..16 => base.wrapping_add(STEPS[usize::from(at)]),
        at @ 16..64 => base.wrapping_add(u32::from(at)),
        at @ 64..128 => base.wrapping_add(u32::from(at - 64) * 1460),
        at @ 128..192 => base.wrapping_sub(u32::from(at - 128)),
        at @ 192..224 => base.wrapping_sub(u32::from(at - 192) * 1460),
        _ => base.wrapping_add(choices.arbitrary().unwrap_or(0)),
    }
}

/// Changes up to eight things of a TCP packet; other packets stay as they are.
pub(super) fn changed(choices: &mut Unstructured<'_>, packet: &[u8], seen: &[u32]) -> Bytes {
    let Ok((mut ip, mut tcp, text)) = parse_tcp_packet(packet) else { return Bytes::copy_from_slice(packet) };
    let mut payload = packet[text].to_vec();
    for _ in 0..=choices.arbitrary::<u8>().unwrap_or(0) % 8 {
        change(choices, &mut ip, &mut tcp, &mut payload, seen);
    }
    build_tcp_packet(&ip, &tcp, &payload)
}

fn change(
    choices: &mut Unstructured<'_>,
    ip: &mut IpHeader,
    tcp: &mut TcpHeader,
    payload: &mut Vec<u8>,
    seen: &[u32],
) {
    let number = choices.arbitrary::<u16>().unwrap_or(0);
    match choices.arbitrary::<u8>().unwrap_or(0) % 14 {
        0 | 1 => tcp.seq = SeqNum(near(choices, seen)),
        2 | 3 => tcp.ack = SeqNum(near(choices, seen)),
        4 => tcp.window = [0, 1, 2, 535, 536, 65_535, number][usize::from(number % 7)],
        5 => tcp.flags ^= Flags::from_bits_truncate(1 << (number % 9)),
        6 => (tcp.urgent, tcp.flags) = (number, tcp.flags | Flags::URG),
        7 => payload.resize(usize::from(number % 3000), b'x'),
        8 => payload.truncate(usize::from(number) % (payload.len() + 1)),
        9 => ip.ecn = Ecn::from_bits(number as u8),
        10 => (ip.hop_limit, ip.dont_fragment) = (number as u8, number & 0x100 != 0),
        _ => {
            let before = tcp.options.clone();
            change_option(choices, tcp, number, seen);
            if tcp.emit_len() > wire::TCP_HEADER_LEN + wire::TCP_OPTIONS_MAX {
                tcp.options = before;
            }
        }
    }
}

fn change_option(choices: &mut Unstructured<'_>, tcp: &mut TcpHeader, number: u16, seen: &[u32]) {
    let options = &mut tcp.options;
    match choices.arbitrary::<u8>().unwrap_or(0) % 12 {
        0..4 => options.sack.push((SeqNum(near(choices, seen)), SeqNum(near(choices, seen)))),
        4 => drop(options.sack.pop()),
        5 => {
            let old = options.timestamps.unwrap_or(Timestamps { tsval: 0, tsecr: 0 });
            let tsval = near(choices, &[old.tsval, old.tsecr, 0]);
            options.timestamps = Some(Timestamps { tsval, tsecr: near(choices, &[old.tsecr, old.tsval, 0]) });
        }
        6 => options.timestamps = None,
        7 => options.mss = (number & 1 == 0).then_some(number >> 1),
        8 => options.window_scale = (number & 1 == 0).then_some((number >> 1) as u8),
        9 => options.sack_permitted ^= true,
        10 => {
            let order =
                if number & 1 == 0 { AccurateEcnOrder::Ect0First } else { AccurateEcnOrder::Ect1First };
            let count = near(choices, &[0, 1 << 23]);
            let fields = usize::from(number >> 1) % (AccurateEcnOption::FIELDS_MAX + 1);
            options.accurate_ecn = Some(AccurateEcnOption::new(order, fields, |_| count));
        }
        _ => {
            let kind = if number & 1 == 0 { FastOpenKind::Standard } else { FastOpenKind::Experimental };
            let len = usize::from(number >> 1) % 17;
            let cookie = Cookie::new(&[number as u8; 16][..len.min(16)]);
            options.fast_open = Some(FastOpenOption { kind, cookie });
        }
    }
}

/// An ICMP error of the path about this packet.
pub(super) fn error_about(choices: &mut Unstructured<'_>, packet: &[u8]) -> Option<Bytes> {
    let (ip, _) = IpHeader::parse(packet).ok()?;
    let number = choices.arbitrary::<u16>().unwrap_or(0);
    let error = match choices.arbitrary::<u8>().unwrap_or(0) % 12 {
        0 => IcmpError::HostUnreachable,
        1 => IcmpError::Prohibited,
        2 => IcmpError::ProtocolUnreachable,
        3 => IcmpError::PortUnreachable,
        4 => IcmpError::TimeExceeded,
        5 => IcmpError::ParameterProblem,
        kind => {
            let mtu = [0, 1, 67, 68, 576, 1279, 1280, 1400, 1500, 65_535, number.into(), u32::MAX];
            IcmpError::PacketTooBig { mtu: mtu[usize::from(number) % mtu.len()].max(u32::from(kind == 11)) }
        }
    };
    let kind = if ip.src.is_v4() { protocol::ICMP } else { protocol::ICMPV6 };
    let quote = &packet[..packet.len().min(usize::from(number) % 256 + 20)];
    Some(build_icmp_packet(&IpHeader::new(ip.dst, ip.src, kind), &Icmp::Error { error, quote }))
}
