//! Formats of files, and how files end.
use crate::written::{pcap, syn, syn_ack, up};
use capture::{CaptureFile, End, Oddity, OpenError};
use core::time::Duration;
use flate2::Compression;
use flate2::write::GzEncoder;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use std::borrow::Cow;
use std::io::{Read, Write};

fn packets() -> Vec<(u64, Vec<u8>)> {
    vec![(1_500_000, syn().bytes()), (1_540_000, syn_ack(1).bytes()), (1_540_010, up(1, 1, 10).bytes())]
}

/// Returns times and lengths of the frames, and how the file ended.
fn frames(source: impl Read) -> (Vec<(u128, usize)>, End) {
    let mut file = CaptureFile::open(source).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = file.next_frame() {
        all.push((frame.at.as_nanos(), frame.data.len()));
    }
    assert_eq!(file.frames(), all.len() as u64);
    (all, file.end())
}

/// Returns the violations of the format in a file.
fn oddities(file: &[u8]) -> Vec<(Oddity, u64)> {
    let mut file = CaptureFile::open(file).unwrap();
    while file.next_frame().is_some() {}
    file.oddities().collect()
}

const EXPECTED: [(u128, usize); 3] = [(1_500_000_000, 48), (1_540_000_000, 48), (1_540_010_000, 50)];

#[test]
fn pcap_in_either_order_of_bytes() {
    assert_eq!(frames(&pcap(&packets())[..]), (EXPECTED.to_vec(), End::Whole));
    let mut big = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101];
    for (us, packet) in packets() {
        for word in
            [(us / 1_000_000) as u32, (us % 1_000_000) as u32, packet.len() as u32, packet.len() as u32]
        {
            big.extend(word.to_be_bytes());
        }
        big.extend(packet);
    }
    assert_eq!(frames(&big[..]), (EXPECTED.to_vec(), End::Whole));
}

fn pcapng() -> Vec<u8> {
    let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
    for exponent in [6, 9] {
        let resolution = InterfaceTsResolution::new(false, exponent).unwrap();
        writer
            .write_pcapng_block(InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![InterfaceDescriptionOption::IfTsResol(resolution)],
            })
            .unwrap();
    }
    for (index, (us, packet)) in packets().into_iter().enumerate() {
        writer
            .write_pcapng_block(EnhancedPacketBlock {
                interface_id: index as u32 % 2,
                timestamp: Duration::from_micros(us),
                original_len: packet.len() as u32,
                data: Cow::Owned(packet),
                options: Vec::new(),
            })
            .unwrap();
    }
    writer.into_inner()
}

#[test]
fn pcapng_with_the_resolution_of_each_interface() {
    assert_eq!(frames(&pcapng()[..]), (EXPECTED.to_vec(), End::Whole));
}

#[test]
fn compressed_by_gzip() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&pcapng()).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(frames(&gzip[..]), (EXPECTED.to_vec(), End::Whole));
    let mut file = CaptureFile::open(&gzip[..gzip.len() - 20]).unwrap();
    while file.next_frame().is_some() {}
    assert_eq!(file.end(), End::Truncated);
}

#[test]
fn compressed_by_zstd_in_one_frame_or_two() {
    let whole = pcap(&packets());
    let (one, two) = whole.split_at(60);
    let compress =
        |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(frames(&compress(&whole)[..]), (EXPECTED.to_vec(), End::Whole));
    let both = [compress(one), compress(two)].concat();
    assert_eq!(frames(&both[..]), (EXPECTED.to_vec(), End::Whole));
    // Like pzstd.
    let skipped = vec![0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    let both = [skipped.clone(), compress(one), skipped.clone(), compress(two)].concat();
    assert_eq!(frames(&both[..]), (EXPECTED.to_vec(), End::Whole));
    let cut = [compress(&whole), skipped[..10].to_vec()].concat();
    assert_eq!(frames(&cut[..]), (EXPECTED.to_vec(), End::Truncated));
}

/// Blocks have at most 128 KiB. All packets before the cut block are returned.
#[test]
fn what_zstd_compressed_may_end_early_too() {
    let many: Vec<(u64, Vec<u8>)> = (0..3000_u64).map(|at| (at, at.to_be_bytes().repeat(20))).collect();
    let whole = pcap(&many);
    let zstd = ruzstd::encoding::compress_to_vec(&whole[..], ruzstd::encoding::CompressionLevel::Fastest);
    for kept in [zstd.len() / 2, zstd.len() - 1] {
        let mut file = CaptureFile::open(&zstd[..kept]).unwrap();
        let mut seen = 0;
        while let Some(frame) = file.next_frame() {
            assert_eq!(frame.data, many[seen].1);
            seen += 1;
        }
        assert_eq!(file.end(), End::Truncated, "{kept} of {}", zstd.len());
        assert!(seen > 3000 * kept / zstd.len() - 1000, "{seen} of {kept} bytes");
    }
}

#[test]
fn a_file_that_ends_early_gives_what_it_has() {
    let whole = pcap(&packets());
    let (seen, end) = frames(&whole[..whole.len() - 1]);
    assert_eq!((seen, end), (EXPECTED[..2].to_vec(), End::Truncated));
}

/// tcpdump and tshark continue, and add the fraction to the seconds.
#[test]
fn a_fraction_of_more_than_a_second_is_added() {
    let mut odd = pcap(&packets());
    // The second packet's microseconds.
    odd[24 + 16 + 48 + 4..][..4].copy_from_slice(&1_540_000_u32.to_le_bytes());
    odd[24 + 16 + 48..][..4].fill(0);
    assert_eq!(frames(&odd[..]), (EXPECTED.to_vec(), End::Whole));
    assert_eq!(oddities(&odd), [(Oddity::Fraction, 1)]);
}

/// No writer makes packets of that length, but the file does not end there.
#[test]
fn a_record_of_nonsensical_length_is_damage_and_no_end() {
    for len in [u32::MAX, 8_000_001, 5_000_000, 262_145] {
        let mut endless = pcap(&packets());
        endless[24 + 16 + 48 + 8..][..4].copy_from_slice(&len.to_le_bytes());
        let (seen, end) = frames(&endless[..]);
        assert_eq!(
            (seen, end),
            (EXPECTED[..1].to_vec(), End::Damaged(format!("a record claims {len} bytes")))
        );
    }
    let mut long = pcap(&packets());
    long[24 + 16 + 48 + 8..][..4].copy_from_slice(&262_144_u32.to_le_bytes());
    let mut file = CaptureFile::open(&long[..]).unwrap();
    while file.next_frame().is_some() {}
    assert_eq!((file.end(), file.bytes_passed()), (End::Truncated, 24 + 16 + 48), "some writers write it so");
}

/// A zstd frame has a checksum of its content: `zstd` writes one, and so does this encoder.
#[test]
fn what_zstd_compressed_is_compared_with_its_checksum() {
    let whole = pcap(&packets());
    let good =
        ruzstd::encoding::compress_to_vec(&whole[..], ruzstd::encoding::CompressionLevel::Uncompressed);
    assert_eq!(frames(&good[..]).1, End::Whole);
    let mut damaged = good.clone();
    let at = damaged.len() - 8;
    damaged[at] ^= 1;
    let (seen, end) = frames(&damaged[..]);
    assert_eq!(seen, EXPECTED, "the frames are returned unchanged");
    assert!(matches!(&end, End::Damaged(what) if what.contains("checksum")), "{end:?}");
    let both = [&damaged[..], &good[..]].concat();
    let mut file = CaptureFile::open(&both[..]).unwrap();
    while file.next_frame().is_some() {}
    assert!(matches!(file.end(), End::Damaged(_)), "the checksum of every frame is checked");
}

/// A decoder's own messages are for its authors, not for users.
#[test]
fn damage_of_zstd_is_told_in_words() {
    let many: Vec<(u64, Vec<u8>)> = (0..3000_u64).map(|at| (at, at.to_be_bytes().repeat(20))).collect();
    let whole = pcap(&many);
    let zstd = ruzstd::encoding::compress_to_vec(&whole[..], ruzstd::encoding::CompressionLevel::Fastest);
    let error = CaptureFile::open(&zstd[..12]).unwrap_err().to_string();
    assert_eq!(error, "cannot be read: its zstd data ends in the middle of a block");
    for at in (6..zstd.len()).step_by(zstd.len() / 50) {
        let mut damaged = zstd.clone();
        damaged[at..(at + 3).min(zstd.len())].fill(0xff);
        let told = match CaptureFile::open(&damaged[..]) {
            Err(error) => error.to_string(),
            Ok(mut file) => {
                while file.next_frame().is_some() {}
                format!("{:?}", file.end())
            }
        };
        assert!(!["Error", "Failed", "{", "Io("].iter().any(|word| told.contains(word)), "{at}: {told}");
        assert!(!told.contains("Whole"), "{at}: the damage is reported");
    }
}

#[test]
fn what_is_no_capture_is_refused_with_a_sentence() {
    let refused = |bytes: &'static [u8]| CaptureFile::open(bytes).unwrap_err();
    assert!(matches!(refused(b""), OpenError::Empty));
    assert!(matches!(refused(b"ab"), OpenError::NoCapture));
    assert!(refused(b"GET / HTTP/1.1\r\n").to_string().contains("tcpdump -w"));
    assert!(matches!(refused(&[0xd4, 0xc3, 0xb2, 0xa1, 2]), OpenError::Header(_)));
    assert!(matches!(refused(&[0x0a, 0x0d, 0x0d, 0x0a, 1, 2, 3, 4, 5, 6, 7, 8]), OpenError::Header(_)));
}
