//! Strategies for valid values, shared by the property tests.
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::{
    AccurateEcnOption, AccurateEcnOrder, Addr, Cookie, Ecn, FastOpenKind, FastOpenOption, Flags, IpHeader,
    SeqNum, TCP_OPTIONS_MAX, TcpHeader, TcpOptions, Timestamps,
};

pub(crate) fn v4(a: u8, b: u8, c: u8, d: u8) -> Addr {
    std::net::Ipv4Addr::new(a, b, c, d).into()
}

pub(crate) fn v6(text: &str) -> Addr {
    text.parse::<std::net::Ipv6Addr>().expect("an address").into()
}

/// `"4500 003c"` to bytes; white space does not matter.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    assert_eq!(digits.len() % 2, 0, "whole bytes");
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// RFC 1071 by the letter: 16-bit words in network order, an odd byte padded with zero, carries folded at once.
pub(crate) fn naive_sum(data: &[u8]) -> u16 {
    data.chunks(2).fold(0, |sum: u16, pair| {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        let (wrapped, carry) = sum.overflowing_add(word);
        wrapped + u16::from(carry)
    })
}

pub(crate) fn addr_v4() -> impl Strategy<Value = Addr> {
    any::<[u8; 4]>().prop_map(|bytes| std::net::Ipv4Addr::from(bytes).into())
}

pub(crate) fn addr_v6() -> impl Strategy<Value = Addr> {
    any::<[u8; 16]>().prop_map(Addr).prop_filter("mapped", |addr| !addr.is_v4())
}

/// Source and destination of one version, the source a unicast address.
pub(crate) fn addrs() -> impl Strategy<Value = (Addr, Addr)> {
    let v4 = (addr_v4(), addr_v4()).boxed();
    let v6 = (addr_v6(), addr_v6()).boxed();
    prop_oneof![v4, v6].prop_filter("source is multicast", |(src, _)| !src.is_multicast())
}

pub(crate) fn ip_header() -> impl Strategy<Value = IpHeader> {
    let protocol = any::<u8>().prop_filter("extension header", |n| ![0, 43, 44, 50, 51, 60].contains(n));
    let fields = (any::<u8>(), 0..64u8, 0..4u8, any::<bool>(), any::<u16>(), 0..1u32 << 20);
    (addrs(), protocol, fields).prop_map(|((src, dst), protocol, fields)| {
        let (hop_limit, dscp, ecn, dont_fragment, ident, flow_label) = fields;
        let ecn = Ecn::from_bits(ecn);
        let common = IpHeader { hop_limit, dscp, ecn, ..IpHeader::new(src, dst, protocol) };
        if src.is_v4() {
            IpHeader { dont_fragment, ident, ..common }
        } else {
            IpHeader { flow_label, ..common }
        }
    })
}

pub(crate) fn cookie() -> impl Strategy<Value = Cookie> {
    (2..=8usize)
        .prop_flat_map(|pairs| vec(any::<u8>(), 2 * pairs))
        .prop_map(|bytes| Cookie::new(&bytes).expect("even"))
}

pub(crate) fn fast_open() -> impl Strategy<Value = FastOpenOption> {
    let kind = prop_oneof![Just(FastOpenKind::Standard), Just(FastOpenKind::Experimental)];
    (kind, option::of(cookie())).prop_map(|(kind, cookie)| FastOpenOption { kind, cookie })
}

/// An option without a meaning, or with a length its kind cannot have.
fn unknown_option() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let kind =
        prop_oneof![3 => 2..=255u8, 1 => prop::sample::select(vec![2, 3, 4, 5, 8, 19, 29, 34, 172, 254])];
    (kind, vec(any::<u8>(), 0..24)).prop_filter("has a meaning", |(kind, body)| match kind {
        2 => body.len() != 2,
        3 => body.len() != 1,
        4 => !body.is_empty(),
        5 => body.is_empty() || body.len() % 8 != 0,
        8 => body.len() != 8,
        34 => body.len() % 2 == 1 || body.len() == 2 || body.len() > 16,
        172 | 174 => false,
        254 => !body.starts_with(&[0xf9, 0x89]),
        _ => true,
    })
}

fn accurate_ecn() -> impl Strategy<Value = AccurateEcnOption> {
    (any::<bool>(), 0..=3usize, any::<u32>()).prop_map(|(ect0_first, fields, bytes)| {
        let order = if ect0_first { AccurateEcnOrder::Ect0First } else { AccurateEcnOrder::Ect1First };
        AccurateEcnOption::new(order, fields, |codepoint| bytes.rotate_left(codepoint.bits().into()))
    })
}

/// Options of every kind that fit in a header.
pub(crate) fn tcp_options() -> impl Strategy<Value = TcpOptions> {
    let sack = vec((any::<u32>(), any::<u32>()), 0..=4);
    let timestamps = option::of((any::<u32>(), any::<u32>()));
    let unknown = vec(unknown_option(), 0..3);
    let known = (option::of(any::<u16>()), option::of(any::<u8>()), any::<bool>(), timestamps, sack);
    let rare = (option::of(fast_open()), option::of(accurate_ecn()));
    (known, rare, unknown).prop_map(|(known, (fast_open, accurate_ecn), unknown)| {
        let (mss, window_scale, sack_permitted, timestamps, sack) = known;
        let mut options = TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(tsval, tsecr)| Timestamps { tsval, tsecr }),
            sack: sack.into_iter().map(|(left, right)| (SeqNum(left), SeqNum(right))).collect(),
            fast_open,
            accurate_ecn,
            unknown: unknown.into_iter().map(|(kind, body)| (kind, body.into())).collect(),
            ..TcpOptions::default()
        };
        make_fit(&mut options);
        options.md5 = options.unknown.iter().any(|(kind, _)| *kind == 19);
        options.ao = options.unknown.iter().any(|(kind, _)| *kind == 29);
        options
    })
}

fn make_fit(options: &mut TcpOptions) {
    while options.emit_len() > TCP_OPTIONS_MAX {
        if options.sack.len() > 1 {
            options.sack.pop();
        } else if options.unknown.pop().is_none() && options.fast_open.take().is_none() {
            options.accurate_ecn = None;
        }
    }
}

pub(crate) fn tcp_header() -> impl Strategy<Value = TcpHeader> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>());
    (1..=u16::MAX, 1..=u16::MAX, numbers, 0..0x200u16, tcp_options()).prop_map(
        |(src_port, dst_port, (seq, ack, window, urgent), flags, options)| TcpHeader {
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags: Flags::from_bits_truncate(flags),
            window,
            urgent,
            options,
            ..TcpHeader::new(src_port, dst_port)
        },
    )
}
