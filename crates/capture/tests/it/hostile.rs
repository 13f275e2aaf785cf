//! Malicious captures: nothing panics, and reading ends.
use crate::written::{connections_of, down, pcap, syn, syn_ack, up};
use capture::{CaptureFile, Table};
use proptest::prelude::*;
use wire::Flags;

fn base() -> Vec<u8> {
    let conversation = [
        (0, syn().cookie(Some(&[1; 8])).text(20)),
        (400, syn_ack(21).cookie(Some(&[2; 8]))),
        (401, up(21, 1, 100).stamped(7)),
        (800, down(1, 121, 1000)),
        (801, down(2001, 121, 1000)),
        (802, down(1001, 121, 1000).window(0)),
        (900, up(121, 3001, 0).with(Flags::FIN)),
        (1000, down(3001, 122, 0).with(Flags::FIN | Flags::RST)),
    ];
    pcap(&conversation.map(|(at, draft)| (at * 100, draft.bytes())))
}

/// Returns the number of cases. `PROPTEST_CASES` sets another number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
}

/// Reads a capture to its end, and calls every query on the result.
fn judge(bytes: &[u8]) {
    if CaptureFile::open(bytes).is_err() {
        return;
    }
    for connection in connections_of(bytes) {
        let _ = (
            connection.fast_open(),
            connection.fast_open_effect(),
            connection.rtt(),
            connection.time_to_first_byte(),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_captures_are_read_to_their_end(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = base();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        judge(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_header_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..600), is_ng in any::<bool>()) {
        let head: &[u8] = match is_ng {
            true => &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0],
            false => &base()[..24],
        };
        judge(&[head, &bytes].concat());
    }
}

/// Connections with the maximum number of holes, late acknowledgements and recent packets.
#[test]
fn memory_is_bounded_in_bytes() {
    const MEMORY: usize = 1 << 20;
    let mut table = Table::default().within(MEMORY);
    let (mut most, mut over) = (0, 0);
    for port in 0..200_u16 {
        for n in 0..200_u32 {
            let from_client = n % 4 != 0;
            let draft = if from_client { up(1 + n * 300, 1, 100) } else { down(1, 1 + n * 10, 0) };
            let mut bytes = draft.ident(n as u16 + 1).bytes();
            let at = if from_client { 20 } else { 22 };
            bytes[at..at + 2].copy_from_slice(&(10_000 + port).to_be_bytes());
            let file = pcap(&[(u64::from(port) * 100_000 + u64::from(n) * 10, bytes)]);
            let mut file = CaptureFile::open(&file[..]).unwrap();
            let frame = file.next_frame().unwrap();
            table.handle(&frame.tcp().unwrap(), &mut |_| over += 1);
            most = most.max(table.memory());
        }
    }
    let largest = most / 64;
    assert!(most <= MEMORY + largest && most > MEMORY / 2, "{most}");
    assert!(over > 0 && table.evicted() == over, "{over}");
    table.finish(&mut |_| over += 1);
    assert_eq!(over, 200, "no number is used twice");
}
