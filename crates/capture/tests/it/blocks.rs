//! Files that violate pcap and pcapng: reading continues, and the violations are counted.
use crate::written::{pcap, syn, syn_ack, up};
use capture::{CaptureFile, End, Oddity, file::TIME_MAX};
use core::time::Duration;

/// Times and lengths of the frames, oddities, and the end.
type Seen = (Vec<(Duration, usize)>, Vec<(Oddity, u64)>, End);

fn seen(file: &[u8]) -> Seen {
    let mut file = CaptureFile::open(file).unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = file.next_frame() {
        assert!(frame.tcp().is_ok());
        frames.push((frame.at, frame.data.len()));
    }
    (frames, file.oddities().collect(), file.end())
}

/// A pcapng file, written block by block in either byte order.
struct Blocks {
    is_big_endian: bool,
    bytes: Vec<u8>,
}

impl Blocks {
    fn new(is_big_endian: bool) -> Blocks {
        let mut blocks = Blocks { is_big_endian, bytes: Vec::new() };
        blocks.section();
        blocks
    }

    fn u16(&self, number: u16) -> [u8; 2] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u32(&self, number: u32) -> [u8; 4] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let len = 12 + body.len().next_multiple_of(4) as u32;
        let (kind, len) = (self.u32(kind), self.u32(len));
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        self.bytes.extend([&kind, &len, body, &padding, &len].concat());
    }

    fn section(&mut self) {
        let body = [&self.u32(0x1a2b_3c4d)[..], &self.u16(1), &self.u16(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body);
    }

    fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
        [&self.u16(code)[..], &self.u16(value.len() as u16), value, &padding].concat()
    }

    /// An interface of raw IP.
    fn interface(&mut self, snaplen: u32, options: &[u8]) {
        let body = [&self.u16(101)[..], &self.u16(0), &self.u32(snaplen), options].concat();
        self.block(1, &body);
    }

    fn packet(&mut self, interface: u32, ticks: u64, packet: &[u8], options: &[u8]) {
        let (high, low, len) = ((ticks >> 32) as u32, ticks as u32, packet.len() as u32);
        let mut body = [interface, high, low, len, len].map(|word| self.u32(word)).concat();
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(options);
        self.block(6, &body);
    }
}

const AT: Duration = Duration::from_micros(1_500_000);

#[test]
fn comments_and_options_of_any_content_are_passed_over() {
    for is_big_endian in [false, true] {
        let mut file = Blocks::new(is_big_endian);
        let odd = [file.option(9, &[6, 6]), file.option(14, &[1]), file.option(2, b"eth0")].concat();
        file.interface(0, &odd);
        let comment = file.option(1, b"caf\xe9");
        file.packet(0, 1_500_000, &syn().bytes(), &comment);
        let beyond = [&file.u16(1)[..], &file.u16(400), b"short"].concat();
        file.packet(0, 1_500_000, &syn().bytes(), &beyond);
        let (frames, oddities, end) = seen(&file.bytes);
        assert_eq!((frames, end), (vec![(AT, 48); 2], End::Whole));
        assert_eq!(oddities, [(Oddity::Comment, 1), (Oddity::OptionLength, 3)]);
    }
}

#[test]
fn blocks_without_packets_and_of_unknown_kinds_are_skipped() {
    let mut file = Blocks::new(false);
    file.interface(0, &[]);
    for kind in [4, 5, 9, 10, 0xbad, 0x4000_0bad, 0x8000_0001, 77] {
        file.block(kind, &[0xff; 40]);
    }
    file.block(77, &vec![0; 20_000_000]);
    file.packet(0, 1_500_000, &syn().bytes(), &[]);
    assert_eq!(seen(&file.bytes), (vec![(AT, 48)], Vec::new(), End::Whole));
}

#[test]
fn a_section_has_its_own_interfaces_and_byte_order() {
    let mut file = Blocks::new(false);
    let nanoseconds = file.option(9, &[9]);
    file.interface(0, &nanoseconds);
    file.packet(0, 1_500_000_000, &syn().bytes(), &[]);
    file.is_big_endian = true;
    file.section();
    file.interface(0, &[]);
    file.packet(0, 1_500_000, &syn_ack(1).bytes(), &[]);
    file.packet(1, 1_500_000, &up(1, 1, 10).bytes(), &[]);
    let (frames, oddities, end) = seen(&file.bytes);
    assert_eq!((frames, end), (vec![(AT, 48); 2], End::Whole));
    assert_eq!(oddities, [(Oddity::Interface, 1)], "the second section has one interface");
}

#[test]
fn older_and_simple_packet_blocks_are_read() {
    let mut file = Blocks::new(false);
    file.interface(50, &[]);
    let packet = up(1, 1, 100).bytes();
    let len = file.u32(packet.len() as u32);
    let body =
        [&[0, 0, 0xff, 0xff][..], &[0; 4], &file.u32(1_500_000), &file.u32(50), &len, &packet[..50]].concat();
    file.block(2, &body);
    file.block(3, &[&len[..], &packet[..50]].concat());
    let (frames, oddities, end) = seen(&file.bytes);
    assert_eq!((frames, end), (vec![(AT, 50); 2], End::Whole), "a simple one has the time before it");
    assert_eq!(oddities, []);
}

#[test]
fn lengths_that_do_not_fit_cost_no_more_than_themselves() {
    let mut file = Blocks::new(false);
    file.interface(0, &[]);
    file.packet(0, 1_500_000, &syn().bytes(), &[]);
    let trailer = file.bytes.len() - 4;
    file.bytes[trailer] ^= 1;
    file.block(6, &[0; 8]);
    file.block(1, &[]);
    file.packet(0, 1_500_000, &syn().bytes(), &[]);
    let captured_len = file.bytes.len() - 4 - 48 - 8;
    file.bytes[captured_len] += 40;
    let (frames, oddities, end) = seen(&file.bytes);
    assert_eq!((frames, end), (vec![(AT, 48); 2], End::Whole));
    assert_eq!(oddities, [(Oddity::BlockLength, 1), (Oddity::PacketLength, 1), (Oddity::ShortBlock, 2)]);
    let trailer = file.bytes.len() - 4;
    file.bytes[trailer] ^= 1;
    assert!(matches!(seen(&file.bytes).2, End::Damaged(_)), "of the last block it may be damage");
    file.bytes.truncate(file.bytes.len() - 1);
    assert_eq!(seen(&file.bytes).2, End::Truncated);
}

#[test]
fn times_of_every_unit_and_offset_are_bounded() {
    for resolution in [0, 6, 9, 12, 0x7f, 0x80, 0x81, 0x8a, 0xff] {
        let mut file = Blocks::new(false);
        let options = file.option(9, &[resolution]);
        file.interface(0, &options);
        file.packet(0, 0, &syn().bytes(), &[]);
        file.packet(0, u64::MAX, &syn().bytes(), &[]);
        let (frames, _, end) = seen(&file.bytes);
        assert_eq!((frames[0].0, end), (Duration::ZERO, End::Whole));
        assert!(frames[1].0 <= TIME_MAX, "{resolution:#x}");
    }
    let mut file = Blocks::new(false);
    let options = [file.option(9, &[0]), file.option(14, &(-5_i64).to_le_bytes())].concat();
    file.interface(0, &options);
    for ticks in [6, 4, u64::MAX] {
        file.packet(0, ticks, &syn().bytes(), &[]);
    }
    let (frames, oddities, _) = seen(&file.bytes);
    let times: Vec<Duration> = frames.into_iter().map(|(at, _)| at).collect();
    assert_eq!(
        (times, oddities),
        (vec![Duration::from_secs(1), Duration::ZERO, TIME_MAX], vec![(Oddity::Time, 2)])
    );
}

/// A record of each variant of pcap: the magic defines times and lengths.
#[test]
fn pcap_comes_in_variants() {
    let packet = syn().bytes();
    let file = |magic: u32, minor: u16, more: [usize; 2], fraction: u32, lengths: [u32; 2]| {
        let mut file = [&magic.to_le_bytes()[..], &[2, 0], &minor.to_le_bytes(), &[0; 8]].concat();
        file.extend([0, 0, 4, 0, 101, 0, 0, 0x24]);
        file.extend(vec![0; more[0]]);
        for word in [1, fraction, lengths[0], lengths[1]] {
            file.extend(word.to_le_bytes());
        }
        file.extend(vec![0; more[1]]);
        file.extend(&packet);
        file
    };
    for file in [
        file(0xa1b2_c3d4, 4, [0, 0], 500_000, [48, 48]),
        file(0xa1b2_3c4d, 4, [0, 0], 500_000_000, [48, 48]),
        file(0xa1b2_cd34, 4, [0, 8], 500_000, [48, 48]),
        file(0x1c00_01ac, 4, [4, 0], 500_000_000, [48, 48]),
        file(0xa1b2_c3d4, 3, [0, 0], 500_000, [60, 48]),
        file(0xa1b2_c3d4, 1, [0, 0], 500_000, [60, 48]),
    ] {
        assert_eq!(seen(&file), (vec![(AT, 48)], Vec::new(), End::Whole));
    }
}

/// The length on the network is at least what was captured.
#[test]
fn a_record_that_claims_to_be_longer_than_the_packet_is_read() {
    let mut file = pcap(&[(0, syn().bytes())]);
    file[24 + 12..][..4].fill(0);
    let mut file = CaptureFile::open(&file[..]).unwrap();
    assert_eq!(file.next_frame().map(|frame| frame.original_len), Some(48));
}
