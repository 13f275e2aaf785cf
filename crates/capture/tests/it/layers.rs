//! Decoding of frames: link types, tags, tunnels, and headers that a host would reject.
use crate::written::{pcap_of, syn, up};
use capture::{CaptureFile, NotTcp, Packet};

const ETHERNET: u32 = 1;
const RAW: u32 = 101;

/// Reads one frame of this link type, cut to `kept` bytes.
fn read_cut<T>(
    link_type: u32,
    frame: &[u8],
    kept: usize,
    show: impl FnOnce(Result<Packet<'_>, NotTcp>) -> T,
) -> T {
    let mut file = pcap_of(link_type, &[(0, frame.to_vec())]);
    file.truncate(24 + 16 + kept);
    file[24 + 8..][..4].copy_from_slice(&u32::try_from(kept).unwrap().to_le_bytes());
    let mut file = CaptureFile::open(&file[..]).unwrap();
    let frame = file.next_frame().unwrap();
    show(frame.tcp())
}

fn read<T>(link_type: u32, frame: &[u8], show: impl FnOnce(Result<Packet<'_>, NotTcp>) -> T) -> T {
    read_cut(link_type, frame, frame.len(), show)
}

/// Returns the reason why a frame has no segment.
fn refusal(link_type: u32, frame: &[u8]) -> Option<NotTcp> {
    read(link_type, frame, |packet| packet.err())
}

/// Asserts that the segment in an IP packet after these header bytes is found, in these tunnels.
fn is_found(link_type: u32, head: &[u8], tunnels: &str) {
    let packet = up(1, 1, 100).stamped(7).bytes();
    let frame = [head, &packet, &[0; 4]].concat();
    read(link_type, &frame, |found| {
        let found = found.unwrap_or_else(|why| panic!("{link_type} {head:02x?}: {why}"));
        let ports = (found.src.port(), found.dst.port());
        assert_eq!((ports, found.text_len, found.text.len()), ((40_000, 80), 100, 100), "{head:02x?}");
        assert_eq!(found.options.timestamps.map(|stamps| stamps.tsval), Some(7));
        assert_eq!(found.tunnels.to_string(), tunnels, "{link_type} {head:02x?}");
    });
}

fn ethernet(rest: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], rest].concat()
}

/// Returns the header of an Ethernet frame for IPv4, as in a tunnel.
fn inner_ethernet() -> Vec<u8> {
    ethernet(&[8, 0])
}

/// Returns an IPv4 header over Ethernet, with a length that suffices for this file.
fn ip(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let header = [0x45, 0, 1, 0xf4, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    ethernet(&[&[8, 0], &header[..], rest].concat())
}

fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let header = [0x60, 0, 0, 0, 1, 0xf4, next, 64];
    ethernet(&[&[0x86, 0xdd], &header[..], &[0x20; 32], rest].concat())
}

fn udp(port: u16, rest: &[u8]) -> Vec<u8> {
    let [high, low] = port.to_be_bytes();
    ip(17, &[&[0xc0, 0, high, low, 0, 0, 0, 0], rest].concat())
}

#[test]
fn ip_is_found_behind_each_link_type() {
    let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let wifi = [&[0x08, 1, 0, 0][..], &[2; 18], &[0, 0], &llc].concat();
    is_found(ETHERNET, &ethernet(&[8, 0]), "");
    is_found(ETHERNET, &ethernet(&[&[0, 200][..], &llc].concat()), "");
    is_found(RAW, &[], "");
    is_found(12, &[], "");
    is_found(228, &[], "");
    is_found(0, &[2, 0, 0, 0], "");
    is_found(108, &[0, 0, 0, 2], "");
    is_found(113, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0], "");
    is_found(113, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x81, 0, 0, 5, 8, 0], "");
    is_found(276, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0], "");
    is_found(9, &[0xff, 3, 0, 0x21], "");
    is_found(9, &[0x21], "");
    is_found(50, &[0xff, 3, 0, 0x21], "");
    is_found(50, &[0x0f, 0, 8, 0], "");
    is_found(51, &[0x11, 0, 0, 1, 0, 6, 0, 0x21], "PPPoE");
    is_found(104, &[0x0f, 0, 8, 0], "");
    is_found(107, &[0x18, 0x41, 3, 0xcc], "");
    is_found(107, &[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0], "");
    is_found(107, &[0x18, 0x41, 8, 0], "");
    is_found(105, &wifi, "");
    is_found(105, &[&[0x88, 3, 0, 0][..], &[2; 18], &[0, 0], &[2; 6], &[0, 0], &llc].concat(), "");
    is_found(127, &[&[0, 0, 8, 0, 0, 0, 0, 0][..], &wifi].concat(), "");
    is_found(119, &[&[0, 0, 0, 0x41, 144, 0, 0, 0][..], &[0; 136], &wifi].concat(), "");
    is_found(163, &[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[0; 56], &wifi].concat(), "");
    is_found(192, &[&[0, 0, 8, 0, 105, 0, 0, 0][..], &wifi].concat(), "");
    is_found(10, &[&[0x50][..], &[2; 12], &llc].concat(), "");
    is_found(6, &[&[0x10, 0x40][..], &[2; 12], &llc].concat(), "");
    is_found(274, &[&[0x55; 7][..], &[0xd5], &inner_ethernet()].concat(), "");
    is_found(242, &[&[0; 40][..], &[8, 0, 0, 0]].concat(), "");
    let juniper = [0x4d, 0x47, 0x43, 0x80, 0, 4, 1, 2, 3, 4];
    is_found(178, &[&juniper[..], &inner_ethernet()].concat(), "");
    is_found(258, &[&[12, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0][..]].concat(), "");
}

/// The header is padded to four bytes if radiotap's flags say so. They come after a time of eight
/// aligned bytes.
#[test]
fn radiotap_says_whether_the_header_is_padded() {
    let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let qos = [&[0x88, 1, 0, 0][..], &[2; 18], &[0, 0], &[0, 0], &[0, 0], &llc].concat();
    let tap = [0, 0, 17, 0, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20];
    is_found(127, &[&tap[..], &qos].concat(), "");
}

#[test]
fn records_of_netfilters_log_come_in_either_byte_order() {
    let packet = up(1, 1, 100).bytes();
    let len = u16::try_from(packet.len() + 4).unwrap();
    let little =
        [&[2, 0, 0, 0, 5, 0, 10, 0, b'x', 0, 0, 0][..], &len.to_le_bytes(), &[9, 0], &packet].concat();
    let big = [&[2, 0, 0, 0, 0, 5, 0, 10, b'x', 0, 0, 0][..], &len.to_be_bytes(), &[0, 9], &packet].concat();
    for frame in [little, big] {
        read(239, &frame, |found| assert_eq!(found.unwrap().text_len, 100));
    }
}

#[test]
fn tags_are_passed_over_and_bridges_are_named() {
    is_found(ETHERNET, &ethernet(&[0x81, 0, 0, 5, 8, 0]), "");
    is_found(ETHERNET, &ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]), "");
    is_found(ETHERNET, &ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21]), "PPPoE");
    is_found(ETHERNET, &ethernet(&[0x89, 0x09, 1, 1, 0, 1, 0, 5, 8, 0]), "Cisco metadata");
    is_found(ETHERNET, &ethernet(&[0x89, 0x26, 0, 0, 0, 1, 8, 0]), "VN-Tag");
    let pbb = [&[0x88, 0xa8, 0, 5, 0x88, 0xe7, 0, 0, 0, 7][..], &inner_ethernet()].concat();
    is_found(ETHERNET, &ethernet(&pbb), "PBB");
    is_found(ETHERNET, &ethernet(&[0x88, 0xe5, 0, 0, 0, 0, 0, 1, 8, 0]), "MACsec");
    is_found(ETHERNET, &ethernet(&[&[0x89, 3, 0, 5][..], &inner_ethernet()].concat()), "FabricPath");
    is_found(
        ETHERNET,
        &ethernet(&[&[0x22, 0xf3, 0, 1, 0, 2, 0, 3][..], &inner_ethernet()].concat()),
        "TRILL",
    );
    is_found(ETHERNET, &ethernet(&[0x89, 0x4f, 0, 2, 1, 1, 0, 0, 0, 0]), "NSH");
    let isl = [&[1, 0, 0x0c, 0, 0][..], &[0; 21], &inner_ethernet()].concat();
    is_found(ETHERNET, &isl, "ISL");
}

#[test]
fn mpls_has_ip_or_a_pseudowire() {
    let label = [0, 0x01, 0x01, 0x40];
    is_found(ETHERNET, &ethernet(&[&[0x88, 0x47][..], &label].concat()), "MPLS");
    is_found(ETHERNET, &ethernet(&[&[0x88, 0x47, 0, 2, 0, 64][..], &label].concat()), "MPLS");
    let with_control_word = [&[0x88, 0x47][..], &label, &[0; 4], &inner_ethernet()].concat();
    is_found(ETHERNET, &ethernet(&with_control_word), "MPLS");
    let without = [&[0x88, 0x47][..], &label, &inner_ethernet()].concat();
    is_found(ETHERNET, &ethernet(&without), "MPLS");
}

#[test]
fn tunnels_over_ip_are_named() {
    is_found(ETHERNET, &ip(4, &[]), "IPv4 in IPv4");
    is_found(ETHERNET, &ipv6(4, &[]), "IPv4 in IPv6");
    is_found(ETHERNET, &ip(47, &[0, 0, 8, 0]), "GRE");
    is_found(ETHERNET, &ip(47, &[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8]), "GRE");
    is_found(ETHERNET, &ip(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 7, 0][..], &inner_ethernet()].concat()), "GRE");
    is_found(ETHERNET, &ip(47, &[0, 0, 0x88, 0x47, 0, 1, 1, 64]), "GRE, MPLS");
    is_found(ETHERNET, &ip(47, &[&[0, 0, 0x88, 0xbe][..], &inner_ethernet()].concat()), "ERSPAN");
    let erspan_2 = [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0x10; 8], &inner_ethernet()].concat();
    is_found(ETHERNET, &ip(47, &erspan_2), "ERSPAN");
    let erspan_3 =
        [&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &[0x20; 11], &[1], &[0; 8], &inner_ethernet()].concat();
    is_found(ETHERNET, &ip(47, &erspan_3), "ERSPAN");
    is_found(ETHERNET, &ip(47, &[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x21]), "PPTP");
    is_found(ETHERNET, &ip(51, &[&[4, 4, 0, 0][..], &[0; 20]].concat()), "AH, IPv4 in IPv4");
    is_found(ETHERNET, &ip(97, &[&[0x30, 0][..], &inner_ethernet()].concat()), "EtherIP");
    is_found(ETHERNET, &ip(137, &[0, 1, 1, 64]), "MPLS");
}

#[test]
fn tunnels_over_udp_are_named() {
    let frame = inner_ethernet();
    is_found(ETHERNET, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat()), "VXLAN");
    is_found(ETHERNET, &udp(8472, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat()), "VXLAN");
    is_found(ETHERNET, &udp(4790, &[12, 0, 0, 1, 0, 0, 7, 0]), "VXLAN-GPE");
    let geneve = [&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 4][..], &frame].concat();
    is_found(ETHERNET, &udp(6081, &geneve), "Geneve");
    is_found(ETHERNET, &udp(2152, &[0x30, 255, 0, 0, 0, 0, 0, 1]), "GTP-U");
    is_found(ETHERNET, &udp(2152, &[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0]), "GTP-U");
    is_found(ETHERNET, &udp(1701, &[0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21]), "L2TP");
    is_found(ETHERNET, &udp(1701, &[0x4a, 2, 0, 0, 0, 1, 0, 2, 0, 1, 0, 0, 0, 1, 9, 0x21]), "L2TP");
    is_found(ETHERNET, &udp(6635, &[0, 1, 1, 64]), "MPLS");
    is_found(ETHERNET, &udp(4341, &[0; 8]), "LISP");
    is_found(ETHERNET, &udp(37008, &[&[1, 0, 0, 1, 0, 10, 1, 5, 1][..], &frame].concat()), "TZSP");
    let wifi = [&[0x11, 0x08, 0, 0][..], &[2; 18], &[7, 0], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    is_found(ETHERNET, &udp(5247, &[&[0, 0x10, 3, 0x20, 0, 0, 0, 0][..], &wifi].concat()), "CAPWAP");
    is_found(ETHERNET, &udp(5247, &[&[0, 0x10, 2, 0, 0, 0, 0, 0][..], &frame].concat()), "CAPWAP");
    is_found(ETHERNET, &ip(47, &[&[0, 0, 0x82, 0][..], &wifi].concat()), "GRE");
    is_found(ETHERNET, &udp(4754, &[0, 0, 8, 0]), "GRE");
    is_found(ETHERNET, &udp(5072, &[&[0x41, 0x52, 0x11, 4][..], &[0; 4 + 16 + 20]].concat()), "AYIYA");
    is_found(ETHERNET, &udp(6080, &[0, 4, 0, 0]), "GUE");
    let inner_of_both = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(&[0x88, 0x47, 0, 1, 1, 64])].concat();
    is_found(ETHERNET, &udp(4789, &inner_of_both), "VXLAN, MPLS");
    // IPv6 in Teredo, after the client's address.
    let v6 = &ipv6(4, &[])[14..];
    is_found(ETHERNET, &udp(3544, &[&[0; 8], v6].concat()), "Teredo, IPv4 in IPv6");
}

/// A packet of another protocol that uses the port by chance.
#[test]
fn a_port_alone_makes_no_tunnel() {
    assert_eq!(refusal(ETHERNET, &udp(2152, b"hello, world")), Some(NotTcp::Protocol));
    assert_eq!(refusal(ETHERNET, &udp(4789, &[8, 0, 0, 0])), Some(NotTcp::Protocol));
    assert_eq!(refusal(ETHERNET, &udp(53, &[0; 40])), Some(NotTcp::Protocol));
}

#[test]
fn extension_headers_of_ipv6_are_passed_over() {
    let segment = &up(1, 1, 100).bytes()[20..];
    let frame = |next, headers: &[u8]| ipv6(next, &[headers, segment].concat());
    let found = |frame: &[u8]| {
        read(ETHERNET, frame, |packet| packet.map(|packet| (packet.src.port(), packet.dst.ip().to_string())))
    };
    let same = "2020:2020:2020:2020:2020:2020:2020:2020".to_owned();
    assert_eq!(found(&frame(6, &[])), Ok((40_000, same.clone())));
    let options = [60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(found(&frame(0, &options)), Ok((40_000, same.clone())), "hop-by-hop, destination options");
    let first_fragment = [6, 0, 0, 1, 0, 0, 0, 9];
    assert_eq!(found(&frame(44, &first_fragment)), Ok((40_000, same)), "the first fragment");
    let later_fragment = [6, 0, 5, 0xa8, 0, 0, 0, 9];
    assert_eq!(found(&frame(44, &later_fragment)), Err(NotTcp::Fragment));
    let route = [&[6, 2, 4, 1, 0, 0, 0, 0][..], &[0x30; 16]].concat();
    let last = "3030:3030:3030:3030:3030:3030:3030:3030".to_owned();
    assert_eq!(found(&frame(43, &route)), Ok((40_000, last)), "the final destination");
    assert_eq!(found(&frame(50, &[0, 0, 0, 7])), Err(NotTcp::Protocol), "ESP");
}

/// Prefix-preserving anonymizers produce any address, hosts send IPv4 options, and offload leaves
/// wrong checksums.
#[test]
fn headers_that_a_host_refuses_are_read() {
    let whole = up(1, 1, 100).bytes();
    let is_read = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = whole.clone();
        change(&mut packet);
        read(RAW, &packet, |found| found.map(|found| (found.text_len, found.text.len())))
    };
    for addr in [[237, 1, 2, 3], [255, 255, 255, 255], [0, 0, 0, 0], [127, 0, 0, 1], [250, 0, 0, 1]] {
        assert_eq!(is_read(&|packet| packet[12..16].copy_from_slice(&addr)), Ok((100, 100)), "{addr:?}");
        assert_eq!(is_read(&|packet| packet[16..20].copy_from_slice(&addr)), Ok((100, 100)), "{addr:?}");
    }
    assert_eq!(is_read(&|packet| packet[10] ^= 0xff), Ok((100, 100)), "IPv4's checksum");
    assert_eq!(is_read(&|packet| packet[36] ^= 0xff), Ok((100, 100)), "TCP's checksum");
    assert_eq!(is_read(&|packet| packet[20..24].fill(0)), Ok((100, 100)), "port 0");
    assert_eq!(is_read(&|packet| packet[6] = 0x80), Ok((100, 100)), "the reserved flag");
    assert_eq!(is_read(&|packet| packet[6] = 0x20), Ok((100, 100)), "the first fragment");
    let in_fragments = is_read(&|packet| {
        packet[6] = 0x20;
        packet[2..4].copy_from_slice(&36_u16.to_be_bytes());
        packet.truncate(36);
    });
    assert_eq!(in_fragments, Ok((0, 0)), "the first fragment ends within TCP's header");
    let with_options = is_read(&|packet| {
        packet[0] = 0x47;
        packet[2..4].copy_from_slice(&148_u16.to_be_bytes());
        // A strict source route (RFC 791).
        packet.splice(20..20, [0x89, 7, 4, 10, 0, 0, 9, 0]);
    });
    assert_eq!(with_options, Ok((100, 100)), "a source route");
    let mapped = [&[0x60, 0, 0, 0, 0, 120, 6, 64][..], &[0; 10], &[0xff, 0xff, 10, 0, 0, 1], &[0; 10]];
    let mapped = [&mapped.concat()[..], &[0xff, 0xff, 10, 0, 0, 2], &whole[20..]].concat();
    assert_eq!(read(RAW, &mapped, |found| found.map(|found| found.text_len)), Ok(100), "mapped addresses");
}

#[test]
fn options_of_odd_lengths_leave_the_segment_readable() {
    let mut packet = up(1, 1, 100).stamped(7).bytes();
    // Timestamps that claim 200 bytes, or none.
    for len in [200, 0, 1] {
        packet[43] = len;
        read(RAW, &packet, |found| {
            let found = found.unwrap();
            assert_eq!((found.text_len, found.options.timestamps), (100, None), "{len}");
        });
    }
}

#[test]
fn a_header_that_was_cut_is_read_as_far_as_it_goes() {
    let frame = ethernet(&[&[8, 0][..], &syn().stamped(7).text(1000).bytes()].concat());
    let seen = |kept| {
        read_cut(ETHERNET, &frame, kept, |found| {
            found.map(|found| {
                let options = (found.options.mss, found.options.timestamps.map(|stamps| stamps.tsval));
                (found.text_len, found.window, found.is_header_cut, options)
            })
        })
    };
    assert_eq!(seen(frame.len()), Ok((1000, 65_535, false, (Some(1460), Some(7)))));
    assert_eq!(seen(68), Ok((1000, 65_535, true, (Some(1460), None))));
    assert_eq!(seen(54), Ok((1000, 65_535, true, (None, None))), "no option");
    assert_eq!(seen(48), Ok((1000, u16::MAX, true, (None, None))), "ports, numbers and control bits");
    assert_eq!(seen(47), Err(NotTcp::Short));
}

#[test]
fn a_packet_that_was_cut_keeps_its_length() {
    let whole = syn().text(1000).bytes();
    read_cut(RAW, &whole, 58, |cut| {
        let cut = cut.unwrap();
        assert_eq!((cut.text_len, cut.text.len(), cut.wire_len), (1000, 10, 1048));
        assert_eq!(cut.end_seq(), cut.seq + 1001);
    });
}

#[test]
fn padding_is_no_text_and_a_length_of_zero_is_the_frames() {
    let padded = [syn().bytes(), vec![0; 6]].concat();
    assert_eq!(read(RAW, &padded, |found| found.map(|found| found.text_len)), Ok(0));
    let mut merged = syn().text(3000).bytes();
    merged[2..4].fill(0);
    assert_eq!(read(RAW, &merged, |found| found.map(|found| found.text_len)), Ok(3000));
}

#[test]
fn frames_without_a_segment_say_why() {
    let whole = up(1, 1, 100).bytes();
    assert_eq!(refusal(ETHERNET, &[0; 13]), Some(NotTcp::Malformed));
    assert_eq!(refusal(ETHERNET, &ethernet(&[8, 6, 0, 0])), Some(NotTcp::Protocol));
    assert_eq!(refusal(147, &whole), Some(NotTcp::LinkType(147)));
    assert_eq!(refusal(105, &[&[0x08, 0x41][..], &[2; 40]].concat()), Some(NotTcp::Encrypted));
    assert_eq!(
        refusal(ETHERNET, &ethernet(&[&[0x88, 0xe5, 0x0c][..], &[0; 40]].concat())),
        Some(NotTcp::Encrypted)
    );
    let mut fragment = whole.clone();
    fragment[7] = 1;
    assert_eq!(refusal(RAW, &fragment), Some(NotTcp::Fragment));
    let mut short_header = whole.clone();
    short_header[32] = 0x40;
    assert_eq!(refusal(RAW, &short_header), Some(NotTcp::Malformed));
    let mut short_packet = whole;
    short_packet[2..4].copy_from_slice(&33_u16.to_be_bytes());
    assert_eq!(refusal(RAW, &short_packet), Some(NotTcp::Malformed));
}

/// Each layer may contain another one, but decoding ends for any frame.
#[test]
fn layers_without_end_are_given_up() {
    let tags = [0x81, 0, 0, 1].repeat(10_000);
    assert_eq!(refusal(ETHERNET, &ethernet(&tags)), Some(NotTcp::Malformed));
    let labels = [0, 0, 0, 64].repeat(10_000);
    assert_eq!(refusal(ETHERNET, &ethernet(&[&[0x88, 0x47][..], &labels].concat())), Some(NotTcp::Malformed));
    let nested = [12, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0].repeat(1000);
    assert_eq!(refusal(258, &nested), Some(NotTcp::Malformed));
}
