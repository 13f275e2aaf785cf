//! TCP headers and options: bytes captured from Linux, and the rules of RFC 7413 §4.1.1.
use crate::common::{hex, v4};
use wire::{
    AccurateEcnOption, AccurateEcnOrder, Cookie, Ecn, FastOpenKind, FastOpenOption, Flags, IpHeader,
    PacketError, SeqNum, TcpError, TcpHeader, TcpOptions, Timestamps, UsualSyn, build_tcp_packet,
    parse_tcp_packet,
};

/// Linux 6.18 repeats a Fast Open connection to itself. The checksum field holds the pseudo-header's sum (loopback offload).
const LINUX_SYN_WITH_COOKIE_AND_DATA: &str = "
    4500 0058 a57b 4000 4006 9722 7f00 0001 7f00 0001
    8260 1f90 6b94 31ed 0000 0000 d002 ffd7 fe4c 0000
    0204 ffd7 0402 080a 8333 72a9 0000 0000 0103 030a 220a 12c3 d3d6 6081 fc12 0101
    6865 6c6c 6f2c 2066 6173 7420 6f70 656e";

/// And the SYN-ACK that brought the cookie before.
const LINUX_SYN_ACK_WITH_COOKIE: &str = "
    1f90 8258 b848 a1e4 7061 0226 d012 ffcb fe3c 0000
    0204 ffd7 0402 080a 3e16 8da6 4916 813a 0103 030a 220a 12c3 d3d6 6081 fc12 0101";

fn options(bytes: &[u8]) -> TcpOptions {
    TcpOptions::parse(bytes)
}

fn emitted(options: &TcpOptions) -> Vec<u8> {
    let header = TcpHeader { options: options.clone(), ..TcpHeader::new(1, 2) };
    let mut buf = vec![0xee; header.emit_len()];
    header.emit(&mut buf);
    buf.split_off(20)
}

fn fast_open(kind: FastOpenKind, cookie: &[u8]) -> Option<FastOpenOption> {
    Some(FastOpenOption { kind, cookie: Cookie::new(cookie) })
}

#[test]
fn a_linux_syn_with_cookie_and_data_is_read_and_written_back() {
    let packet = hex(LINUX_SYN_WITH_COOKIE_AND_DATA);
    let segment = &packet[20..];
    let (header, payload) = TcpHeader::parse(segment, None).expect("valid");
    let expected = TcpHeader {
        seq: SeqNum(1804874221),
        flags: Flags::SYN,
        window: 65495,
        options: TcpOptions {
            mss: Some(65495),
            sack_permitted: true,
            timestamps: Some(Timestamps { tsval: 2201186985, tsecr: 0 }),
            window_scale: Some(10),
            fast_open: fast_open(FastOpenKind::Standard, &hex("12c3d3d66081fc12")),
            ..TcpOptions::default()
        },
        ..TcpHeader::new(33376, 8080)
    };
    assert_eq!(header, expected);
    assert_eq!(&segment[payload], b"hello, fast open");
    let mut written = vec![0xee; header.emit_len()];
    header.emit(&mut written);
    assert_eq!(written[..16], segment[..16]);
    assert_eq!(written[16..18], [0, 0]);
    assert_eq!(written[18..], segment[18..52]);
}

#[test]
fn the_usual_options_are_read_at_once_where_nothing_else_is() {
    let packet = hex(LINUX_SYN_WITH_COOKIE_AND_DATA);
    let (whole, with_cookie) = (&packet[40..60], &packet[40..72]);
    let timestamps = Timestamps { tsval: 2201186985, tsecr: 0 };
    assert_eq!(UsualSyn::read(whole), Some(UsualSyn { mss: 65495, window_scale: 10, timestamps }));
    // Every kind and length that is another makes it another SYN, and so does one byte more or less.
    for at in [0, 1, 4, 5, 6, 7, 16, 17, 18] {
        let mut other = whole.to_vec();
        other[at] ^= 0x80;
        assert_eq!(UsualSyn::read(&other), None, "byte {at}");
    }
    for len in [0, 19, 21, 32] {
        assert_eq!(UsualSyn::read(&with_cookie[..len]), None, "{len} bytes");
    }
}

#[test]
fn a_linux_syn_ack_with_cookie_is_read_and_written_back() {
    let segment = hex(LINUX_SYN_ACK_WITH_COOKIE);
    let (header, payload) = TcpHeader::parse(&segment, None).expect("valid");
    assert_eq!((header.flags, header.ack), (Flags::SYN | Flags::ACK, SeqNum(1885405734)));
    assert!(payload.is_empty());
    assert_eq!(emitted(&header.options), segment[20..]);
}

#[test]
fn the_checksum_is_verified_only_on_request() {
    let packet = hex(LINUX_SYN_WITH_COOKIE_AND_DATA);
    assert_eq!(parse_tcp_packet(&packet), Err(PacketError::Tcp(TcpError::Checksum)));
    let (ip, range) = IpHeader::parse(&packet).expect("valid");
    let (tcp, payload) = TcpHeader::parse(&packet[range.clone()], None).expect("valid");
    let rebuilt = build_tcp_packet(&ip, &tcp, &packet[range][payload]);
    assert_eq!(rebuilt.len(), packet.len());
    assert_eq!(parse_tcp_packet(&rebuilt), Ok((ip, tcp, 72..88)));
    let mut flipped = rebuilt.to_vec();
    flipped[80] ^= 4;
    assert_eq!(parse_tcp_packet(&flipped), Err(PacketError::Tcp(TcpError::Checksum)));
}

/// Both checksums computed by hand with Python's struct module from the fields alone.
#[test]
fn a_built_packet_has_the_right_bytes() {
    let ip = IpHeader { ident: 0x1234, ..IpHeader::new(v4(10, 0, 0, 1), v4(10, 0, 0, 2), 6) };
    let tcp = TcpHeader {
        seq: SeqNum(0x01020304),
        ack: SeqNum(0x05060708),
        flags: Flags::PSH | Flags::ACK,
        window: 502,
        ..TcpHeader::new(40000, 80)
    };
    let expected = "4500 002b 1234 4000 4006 1497 0a00 0001 0a00 0002
                    9c40 0050 0102 0304 0506 0708 5018 01f6 28ca 0000 6162 63";
    assert_eq!(build_tcp_packet(&ip, &tcp, b"abc")[..], hex(expected));
}

#[test]
fn bad_headers_are_refused() {
    let good = hex(LINUX_SYN_ACK_WITH_COOKIE);
    let parse = |segment: &[u8]| TcpHeader::parse(segment, None).expect_err("must be refused");
    assert_eq!(parse(&good[..19]), TcpError::Truncated { required: 20, available: 19 });
    assert_eq!(parse(&good[..51]), TcpError::DataOffset(13));
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        bad
    };
    assert_eq!(parse(&with(12, &[0x40])), TcpError::DataOffset(4));
    assert_eq!(parse(&with(12, &[0xf0])), TcpError::DataOffset(15));
    assert_eq!(parse(&with(0, &[0, 0])), TcpError::Port);
    assert_eq!(parse(&with(2, &[0, 0])), TcpError::Port);
}

#[test]
fn reserved_bits_are_ignored_and_ae_is_not() {
    let mut segment = hex(LINUX_SYN_ACK_WITH_COOKIE);
    segment[12] |= 0x0f;
    let (header, _) = TcpHeader::parse(&segment, None).expect("valid");
    assert_eq!(header.flags, Flags::SYN | Flags::ACK | Flags::AE);
}

#[test]
fn options_are_emitted_in_the_order_of_linux() {
    let timestamps = Some(Timestamps { tsval: 1, tsecr: 2 });
    let established = TcpOptions { timestamps, ..TcpOptions::default() };
    assert_eq!(emitted(&established), hex("0101 080a 0000 0001 0000 0002"));
    let blocks = [(SeqNum(1), SeqNum(2)), (SeqNum(3), SeqNum(4))];
    let with_sack = TcpOptions { sack: blocks.into_iter().collect(), ..established };
    assert_eq!(
        emitted(&with_sack),
        hex("0101 080a 0000 0001 0000 0002 0101 0512 0000 0001 0000 0002 0000 0003 0000 0004")
    );
    let syn_without_timestamps = TcpOptions {
        mss: Some(1460),
        sack_permitted: true,
        window_scale: Some(7),
        fast_open: fast_open(FastOpenKind::Experimental, &[]),
        ..TcpOptions::default()
    };
    assert_eq!(emitted(&syn_without_timestamps), hex("0204 05b4 0101 0402 0103 0307 fe04 f989"));
}

/// RFC 9768 §3.2.3: both orders, and the shorter forms.
#[test]
fn counters_of_marks_are_told_in_either_order() {
    let of = |codepoint: Ecn| u32::from(codepoint.bits()) * 0x01_0203;
    let ect1_first = |fields| TcpOptions {
        accurate_ecn: Some(AccurateEcnOption::new(AccurateEcnOrder::Ect1First, fields, of)),
        ..TcpOptions::default()
    };
    assert_eq!(emitted(&ect1_first(3)), hex("ae0b 0102 0303 0609 0204 0601"));
    assert_eq!(emitted(&ect1_first(2)), hex("ae08 0102 0303 0609"));
    assert_eq!(emitted(&ect1_first(1)), hex("ae05 0102 0301 0101"));
    assert_eq!(emitted(&ect1_first(0)), hex("ae02 0101"));
    let parsed = options(&hex("ac0b 0204 0603 0609 0102 0301")).accurate_ecn.expect("an option");
    assert_eq!(parsed.order(), AccurateEcnOrder::Ect0First);
    let counters: Vec<(Ecn, u32)> = parsed.counters().collect();
    assert_eq!(counters, [Ecn::Ect0, Ecn::Ce, Ecn::Ect1].map(|codepoint| (codepoint, of(codepoint))));
}

/// As Linux lays them out (`tcp_options_write`): what there is beyond whole words goes where NOPs would.
#[test]
fn counters_of_marks_use_the_room_of_nops() {
    let of = |_| 0x0a_0b0c;
    let counters = |fields| Some(AccurateEcnOption::new(AccurateEcnOrder::Ect1First, fields, of));
    let syn_ack = TcpOptions { mss: Some(1460), window_scale: Some(7), ..TcpOptions::default() };
    let one = TcpOptions { accurate_ecn: counters(1), ..syn_ack.clone() };
    assert_eq!(emitted(&one), hex("0204 05b4 ae05 0a0b 0c03 0307"));
    let none = TcpOptions { accurate_ecn: counters(0), sack_permitted: true, ..syn_ack };
    assert_eq!(emitted(&none), hex("0204 05b4 ae02 0402 0103 0307"));
    let blocks = [(SeqNum(1), SeqNum(2))];
    let with_sack = |fields| TcpOptions {
        accurate_ecn: counters(fields),
        sack: blocks.into_iter().collect(),
        ..TcpOptions::default()
    };
    assert_eq!(emitted(&with_sack(0)), hex("ae02 050a 0000 0001 0000 0002"));
    assert_eq!(emitted(&with_sack(1)), hex("ae05 0a0b 0c01 050a 0000 0001 0000 0002"));
    assert_eq!(emitted(&with_sack(2)), hex("ae08 0a0b 0c0a 0b0c 0101 050a 0000 0001 0000 0002"));
}

/// Whole counters count, three at most, whatever length is told; of two options the last (as Linux).
#[test]
fn counters_of_marks_of_odd_lengths_count_as_far_as_they_are_whole() {
    let fields = |bytes: &str| options(&hex(bytes)).accurate_ecn.map(|option| option.fields_len());
    assert_eq!(fields("ac03 ff01"), Some(0));
    assert_eq!(fields("ae06 0000 01ff 0101"), Some(1));
    assert_eq!(fields("ac0f 0000 0100 0002 0000 03ff ffff ff01"), Some(3));
    assert_eq!(fields("ac0b 0000 0100 0002 0000 03ae 0200"), Some(0));
    assert_eq!(fields("ac01 0000"), None);
    assert_eq!(fields("ac0b 0000"), None);
}

/// 24 bits wrap (RFC 9768 §3.2.3).
#[test]
fn counts_of_24_bits_differ_by_less_than_half_of_them() {
    use wire::accurate_ecn_difference as difference;
    assert_eq!(difference(5, 3), 2);
    assert_eq!(difference(1, 0xff_ffff), 2);
    assert_eq!(difference(0xff_ffff, 1), -2);
    assert_eq!(difference(0x7f_ffff, 0), 0x7f_ffff);
    assert_eq!(difference(0x80_0000, 0), -0x80_0000);
}

#[test]
fn options_that_do_not_fit_with_padding_are_packed() {
    let bytes = hex(
        "0522 0000 0001 0000 0002 0000 0003 0000 0004 0000 0005 0000 0006 0000 0007 0000 0008 0303 0904 0201",
    );
    let options = options(&bytes);
    assert_eq!((options.sack.len(), options.window_scale, options.sack_permitted), (4, Some(9), true));
    assert_eq!(options.emit_len(), 40);
    assert_eq!(TcpOptions::parse(&emitted(&options)), options);
}

#[test]
#[should_panic(expected = "44 bytes of TCP options")]
fn more_than_40_bytes_cannot_be_emitted() {
    let options = TcpOptions {
        mss: Some(1),
        unknown: vec![(99, [0; 38].into_iter().collect())].into(),
        ..TcpOptions::default()
    };
    emitted(&options);
}

#[test]
fn fast_open_options_of_every_length_follow_r1_and_r5() {
    for len in 2..=40usize {
        let mut standard = vec![34, len as u8];
        standard.resize(len, 0xaa);
        let expected = match len {
            2 => fast_open(FastOpenKind::Standard, &[]),
            6 | 8 | 10 | 12 | 14 | 16 | 18 => fast_open(FastOpenKind::Standard, &standard[2..]),
            _ => None,
        };
        assert_eq!(options(&standard).fast_open, expected, "kind 34, length {len}");
        assert_eq!(options(&standard).unknown.is_empty(), expected.is_some(), "kind 34, length {len}");
    }
    for len in 4..=40usize {
        let mut experimental = vec![254, len as u8, 0xf9, 0x89];
        experimental.resize(len, 0xaa);
        let expected = match len {
            4 => fast_open(FastOpenKind::Experimental, &[]),
            8 | 10 | 12 | 14 | 16 | 18 | 20 => fast_open(FastOpenKind::Experimental, &experimental[4..]),
            _ => None,
        };
        assert_eq!(options(&experimental).fast_open, expected, "kind 254, length {len}");
    }
}

#[test]
fn other_experiments_are_unknown() {
    let other = options(&hex("fe06 f98a 1122"));
    assert_eq!(other.fast_open, None);
    assert_eq!(other.unknown[..], [(254, hex("f98a 1122").into())]);
    assert_eq!(options(&hex("fe03 f9")).unknown[..], [(254, hex("f9").into())]);
}

#[test]
fn cookies_have_4_to_16_bytes_and_are_even() {
    for len in 0..=20 {
        let valid = [4, 6, 8, 10, 12, 14, 16].contains(&len);
        assert_eq!(Cookie::new(&vec![1; len]).is_some(), valid, "{len} bytes");
    }
    let cookie = Cookie::new(&hex("1d0aa246d060bffa")).expect("valid");
    assert_eq!(format!("{cookie} {cookie:?}"), "1d0aa246d060bffa Cookie(1d0aa246d060bffa)");
    assert_eq!(cookie.as_bytes(), hex("1d0aa246d060bffa"));
}

#[test]
fn of_duplicates_the_last_counts() {
    let twice = options(&hex("0204 0200 0204 05b4 0303 0103 0302 2202 220a 1111 1111 1111 1111"));
    assert_eq!((twice.mss, twice.window_scale), (Some(1460), Some(2)));
    assert_eq!(twice.fast_open, fast_open(FastOpenKind::Standard, &[0x11; 8]));
    let then_invalid = options(&hex("2206 1122 3344 2205 1122 33"));
    assert_eq!(then_invalid.fast_open, fast_open(FastOpenKind::Standard, &hex("11223344")));
    let sack_twice = options(&hex("050a 0000 0001 0000 0002 050a 0000 0003 0000 0004"));
    assert_eq!(sack_twice.sack[..], [(SeqNum(3), SeqNum(4))]);
}

#[test]
fn a_broken_length_ends_the_options_and_keeps_what_came_before() {
    for rest in ["0800", "0801", "08", "080a 0000", "0329"] {
        let broken = options(&hex(&format!("0204 05b4 {rest}")));
        assert_eq!(broken, TcpOptions { mss: Some(1460), ..TcpOptions::default() }, "{rest}");
    }
}

#[test]
fn nothing_counts_after_the_end_of_options() {
    assert_eq!(options(&hex("0100 0204 05b4")), TcpOptions::default());
}

#[test]
fn known_kinds_with_wrong_lengths_are_kept_as_unknown() {
    for wrong in [
        "0203 01",
        "0205 010203",
        "0302",
        "0304 0102",
        "0403 01",
        "0502",
        "0506 01020304",
        "0808 010203040506",
    ] {
        let bytes = hex(wrong);
        let parsed = options(&bytes);
        let expected =
            TcpOptions { unknown: vec![(bytes[0], bytes[2..].into())].into(), ..TcpOptions::default() };
        assert_eq!(parsed, expected, "{wrong}");
    }
}

#[test]
fn md5_and_ao_are_recognised_and_kept() {
    let md5 = hex("1312 000102030405060708090a0b0c0d0e0f 0101");
    let parsed = options(&md5);
    assert!(parsed.md5 && !parsed.ao);
    assert_eq!(emitted(&parsed), md5);
    let ao = hex("1d08 0102 03040506");
    let parsed = options(&ao);
    assert!(parsed.ao && !parsed.md5);
    assert_eq!(emitted(&parsed), ao);
}

#[test]
fn an_mss_of_zero_and_a_large_shift_are_reported_as_received() {
    let parsed = options(&hex("0204 0000 0303 ff00"));
    assert_eq!((parsed.mss, parsed.window_scale), (Some(0), Some(255)));
}
