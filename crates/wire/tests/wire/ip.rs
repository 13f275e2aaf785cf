//! IPv4 and IPv6 headers: what is taken, what is refused, and why.

use crate::common::{hex, naive_sum, v4, v6};
use wire::{Addr, Ecn, IpError, IpHeader, protocol};

/// A SYN of Linux 6.18 to itself.
const LINUX_V4: &str = "4500 0040 bcd5 4000 4006 7fe0 7f00 0001 7f00 0001";

fn with_v4_checksum(mut packet: Vec<u8>) -> Vec<u8> {
    let header_len = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let checksum = !naive_sum(&packet[..header_len]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// An IPv4 packet with these options (a multiple of 4 bytes) and 8 bytes of payload.
fn v4_with_options(options: &[u8]) -> Vec<u8> {
    let mut packet = hex(LINUX_V4);
    packet[0] = 0x45 + options.len() as u8 / 4;
    packet[3] = 28 + options.len() as u8;
    packet.extend_from_slice(options);
    packet.extend_from_slice(&[7; 8]);
    with_v4_checksum(packet)
}

/// An IPv6 packet from fd77::1 to fd77::2 with these extension headers and upper layer.
fn v6_packet(next_header: u8, rest: &[u8]) -> Vec<u8> {
    let ip = IpHeader::new(v6("fd77::1"), v6("fd77::2"), next_header);
    let mut packet = vec![0; 40];
    ip.emit(rest.len(), &mut packet);
    packet.extend_from_slice(rest);
    packet
}

fn refusal(packet: &[u8]) -> IpError {
    IpHeader::parse(packet).expect_err("must be refused")
}

#[test]
fn a_linux_header_is_read_and_written_back() {
    let mut packet = hex(LINUX_V4);
    packet.resize(0x40, 0);
    let (ip, payload) = IpHeader::parse(&packet).expect("valid");
    let loopback = v4(127, 0, 0, 1);
    assert_eq!(ip, IpHeader { ident: 0xbcd5, ..IpHeader::new(loopback, loopback, protocol::TCP) });
    assert_eq!(payload, 20..64);
    let mut written = [0xee; 20];
    ip.emit(44, &mut written);
    assert_eq!(written[..], packet[..20]);
}

#[test]
fn an_ipv6_header_is_read_and_written_back() {
    let mut packet = hex(
        "6ba1 2345 0004 0640 fd77 0000 0000 0000 0000 0000 0000 0001 fd77 0000 0000 0000 0000 0000 0000 0002",
    );
    packet.extend_from_slice(&[1, 2, 3, 4]);
    let (ip, payload) = IpHeader::parse(&packet).expect("valid");
    let expected = IpHeader {
        dscp: 0x2e,
        ecn: Ecn::Ect0,
        flow_label: 0x12345,
        ..IpHeader::new(v6("fd77::1"), v6("fd77::2"), protocol::TCP)
    };
    assert_eq!((&ip, payload), (&expected, 40..44));
    let mut written = [0xee; 40];
    ip.emit(4, &mut written);
    assert_eq!(written[..], packet[..40]);
}

#[test]
fn padding_is_cut_off() {
    let mut packet = v4_with_options(&[]);
    packet.extend_from_slice(&[0; 18]);
    assert_eq!(IpHeader::parse(&packet).expect("valid").1, 20..28);
    let mut packet = v6_packet(6, &[1, 2, 3]);
    packet.extend_from_slice(&[0; 3]);
    assert_eq!(IpHeader::parse(&packet).expect("valid").1, 40..43);
}

#[test]
fn too_few_bytes_are_truncated() {
    assert_eq!(refusal(&[]), IpError::Truncated { required: 20, available: 0 });
    assert_eq!(refusal(&hex(LINUX_V4)[..19]), IpError::Truncated { required: 20, available: 19 });
    assert_eq!(refusal(&hex(LINUX_V4)), IpError::Truncated { required: 64, available: 20 });
    assert_eq!(refusal(&v6_packet(6, &[])[..39]), IpError::Truncated { required: 40, available: 39 });
    assert_eq!(refusal(&v6_packet(6, &[0; 9])[..48]), IpError::Truncated { required: 49, available: 48 });
    let options_missing = &v4_with_options(&[1; 8])[..24];
    assert_eq!(refusal(options_missing), IpError::Truncated { required: 28, available: 24 });
}

#[test]
fn versions_and_lengths_must_make_sense() {
    assert_eq!(refusal(&[0x55; 40]), IpError::Version(5));
    let mut ihl_4 = v4_with_options(&[]);
    ihl_4[0] = 0x44;
    assert_eq!(refusal(&ihl_4), IpError::Length);
    let mut total_len_19 = v4_with_options(&[]);
    total_len_19[3] = 19;
    assert_eq!(refusal(&with_v4_checksum(total_len_19)), IpError::Length);
}

#[test]
fn a_wrong_header_checksum_is_refused_but_not_in_a_quote() {
    let mut packet = v4_with_options(&[]);
    packet[8] -= 1;
    assert_eq!(refusal(&packet), IpError::Checksum);
    assert_eq!(IpHeader::parse_quoted(&packet).expect("readable").0.hop_limit, 63);
    assert_eq!(IpHeader::parse_quoted(&packet[..24]).expect("readable").1, 20..24);
}

#[test]
fn a_total_length_of_zero_means_the_whole_buffer() {
    let mut packet = v4_with_options(&[]);
    packet.resize(70_000, 7);
    packet[2..4].fill(0);
    assert_eq!(IpHeader::parse(&with_v4_checksum(packet)).expect("merged").1, 20..70_000);
    let mut packet = v6_packet(6, &[]);
    packet.resize(70_000, 7);
    assert_eq!(IpHeader::parse(&packet).expect("merged").1, 40..70_000);
    assert_eq!(IpHeader::parse(&v6_packet(6, &[])).expect("empty").1, 40..40);
}

#[test]
fn lengths_beyond_the_field_are_written_as_zero() {
    let (a, b) = (v4(10, 0, 0, 1), v4(10, 0, 0, 2));
    let mut buf = [0xee; 40];
    IpHeader::new(a, b, 6).emit(65_515, &mut buf);
    assert_eq!(buf[2..4], [0xff, 0xff]);
    IpHeader::new(a, b, 6).emit(65_516, &mut buf);
    assert_eq!(buf[2..4], [0, 0]);
    let ip = IpHeader::new(v6("::1"), v6("::1"), 6);
    ip.emit(65_535, &mut buf);
    assert_eq!(buf[4..6], [0xff, 0xff]);
    ip.emit(65_536, &mut buf);
    assert_eq!(buf[4..6], [0, 0]);
}

#[test]
fn ipv4_fragments_are_refused() {
    for flags_offset in [0x2000, 0x0001, 0x1fff, 0x2010] {
        let mut packet = v4_with_options(&[]);
        packet[6..8].copy_from_slice(&u16::to_be_bytes(flags_offset));
        assert_eq!(refusal(&with_v4_checksum(packet)), IpError::Fragment, "{flags_offset:#x}");
    }
}

#[test]
fn ipv4_options_are_skipped_except_source_routes() {
    const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
    for options in [&ROUTER_ALERT[..], &[1, 1, 1, 0], &[0, 0x83, 3, 4], &[7, 7, 4, 0, 0, 0, 0, 0]] {
        assert_eq!(
            IpHeader::parse(&v4_with_options(options)).map(|(_, payload)| payload.len()),
            Ok(8),
            "{options:?}"
        );
    }
    assert_eq!(refusal(&v4_with_options(&[1, 0x83, 3, 4])), IpError::SourceRoute);
    assert_eq!(refusal(&v4_with_options(&[0x89, 3, 4, 0])), IpError::SourceRoute);
    for broken in [[0x94, 1, 0, 0], [0x94, 0, 0, 0], [0x94, 5, 0, 0], [1, 1, 1, 0x94]] {
        assert_eq!(refusal(&v4_with_options(&broken)), IpError::Length, "{broken:?}");
    }
}

#[test]
fn sources_that_cannot_be_are_refused() {
    for src in [[224, 0, 0, 1], [239, 1, 2, 3], [255, 255, 255, 255]] {
        let mut packet = v4_with_options(&[]);
        packet[12..16].copy_from_slice(&src);
        assert_eq!(refusal(&with_v4_checksum(packet)), IpError::Address);
    }
    let mut multicast_source = v6_packet(6, &[]);
    multicast_source[8] = 0xff;
    assert_eq!(refusal(&multicast_source), IpError::Address);
}

#[test]
fn mapped_addresses_on_the_wire_are_refused() {
    let Addr(mapped) = v4(10, 0, 0, 1);
    for at in [8, 24] {
        let mut packet = v6_packet(6, &[]);
        packet[at..at + 16].copy_from_slice(&mapped);
        assert_eq!(refusal(&packet), IpError::Address);
    }
}

const PAD: [u8; 8] = [6, 0, 1, 4, 0, 0, 0, 0];

fn extension(next_header: u8, rest: [u8; 7]) -> [u8; 8] {
    let [a, b, c, d, e, f, g] = rest;
    [next_header, a, b, c, d, e, f, g]
}

#[test]
fn harmless_extension_headers_are_skipped() {
    let hop_by_hop_router_alert = extension(60, [0, 5, 2, 0, 0, 1, 0]);
    let destination_options = extension(43, [0, 0x1e, 4, 1, 2, 3, 4]);
    let routing_type_4_done = extension(44, [0, 4, 0, 0, 0, 0, 0]);
    let atomic_fragment = extension(6, [0, 0, 0, 1, 2, 3, 4]);
    let upper = [9; 20];
    let chain =
        [&hop_by_hop_router_alert[..], &destination_options, &routing_type_4_done, &atomic_fragment, &upper]
            .concat();
    let (ip, payload) = IpHeader::parse(&v6_packet(0, &chain)).expect("skipped");
    assert_eq!((ip.protocol, payload), (6, 40 + 32..40 + 52));
}

#[test]
fn long_extension_headers_are_skipped_whole() {
    let mut destination_options = vec![6, 2, 1, 20];
    destination_options.resize(24, 0);
    destination_options.extend_from_slice(&[9; 5]);
    assert_eq!(IpHeader::parse(&v6_packet(60, &destination_options)).expect("skipped").1, 64..69);
    let cut = v6_packet(60, &destination_options[..20]);
    assert_eq!(refusal(&cut), IpError::Truncated { required: 64, available: 60 });
    assert_eq!(refusal(&v6_packet(60, &[6, 0, 1])), IpError::Truncated { required: 48, available: 43 });
}

#[test]
fn options_that_say_discard_are_refused() {
    for (header, name) in [(0, "hop-by-hop"), (60, "destination")] {
        for kind in [0x40, 0x80, 0xc0, 0xc2, 0xc9] {
            let options = extension(6, [0, kind, 4, 0, 0, 0, 0]);
            assert_eq!(
                refusal(&v6_packet(header, &options)),
                IpError::ExtensionHeader(header),
                "{name} {kind:#x}"
            );
        }
    }
}

#[test]
fn an_option_that_runs_over_its_header_is_a_bad_length() {
    assert_eq!(refusal(&v6_packet(60, &extension(6, [0, 1, 5, 0, 0, 0, 0]))), IpError::Length);
    assert_eq!(refusal(&v6_packet(60, &extension(6, [0, 1, 3, 0, 0, 0, 1]))), IpError::Length);
}

#[test]
fn headers_that_cannot_be_skipped_are_refused() {
    let second_hop_by_hop = [extension(0, [0, 1, 4, 0, 0, 0, 0]), PAD].concat();
    assert_eq!(refusal(&v6_packet(60, &second_hop_by_hop)), IpError::ExtensionHeader(0));
    let segments_left = extension(6, [0, 4, 1, 0, 0, 0, 0]);
    assert_eq!(refusal(&v6_packet(43, &segments_left)), IpError::ExtensionHeader(43));
    let type_0 = extension(6, [0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(refusal(&v6_packet(43, &type_0)), IpError::ExtensionHeader(43));
    assert_eq!(refusal(&v6_packet(50, &PAD)), IpError::ExtensionHeader(50));
    assert_eq!(refusal(&v6_packet(51, &PAD)), IpError::ExtensionHeader(51));
}

#[test]
fn ipv6_fragments_are_refused() {
    for offset_flags in [[0, 1], [0, 8], [0xff, 0xf8]] {
        let [high, low] = offset_flags;
        let fragment = extension(6, [0, high, low, 1, 2, 3, 4]);
        assert_eq!(refusal(&v6_packet(44, &fragment)), IpError::Fragment);
    }
}

#[test]
fn eight_extension_headers_are_the_most() {
    let chain = |count: usize| {
        let mut headers = [extension(60, [0, 1, 4, 0, 0, 0, 0])].repeat(count);
        headers[count - 1][0] = 6;
        headers.concat()
    };
    assert_eq!(IpHeader::parse(&v6_packet(60, &chain(8))).map(|(ip, _)| ip.protocol), Ok(6));
    assert_eq!(refusal(&v6_packet(60, &chain(9))), IpError::ExtensionHeader(60));
}

#[test]
fn addresses_know_what_they_are() {
    assert!(v4(10, 0, 0, 1).is_v4() && !v6("fd77::1").is_v4());
    assert_eq!(v6("::ffff:10.0.0.1"), v4(10, 0, 0, 1));
    assert_eq!(v4(10, 0, 0, 1).native_bytes(), [10, 0, 0, 1]);
    assert_eq!(v6("fd77::1").native_bytes().len(), 16);
    assert_eq!(v6("fd77::1").v4_bytes(), None);
    assert!(v4(0, 0, 0, 0).is_unspecified() && v6("::").is_unspecified() && !v6("::1").is_unspecified());
    assert!(v4(127, 9, 9, 9).is_loopback() && v6("::1").is_loopback() && !v4(10, 0, 0, 1).is_loopback());
    assert!(
        v4(224, 0, 0, 1).is_multicast()
            && v4(255, 255, 255, 255).is_multicast()
            && v6("ff02::1").is_multicast()
    );
    assert!(!v4(10, 0, 0, 255).is_multicast() && !v6("fe80::1").is_multicast());
    assert_eq!(format!("{} {:?}", v4(10, 0, 0, 1), v6("fd77::1")), "10.0.0.1 fd77::1");
}
