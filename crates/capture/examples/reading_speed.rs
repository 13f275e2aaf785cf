//! Measures the speed and memory of reading and judging a large capture.
//!
//! `cargo run --profile dist -p firstbyte-capture --example reading_speed -- FILE [MEGABYTES]`
//! writes FILE unless it exists (1000 MB: downloads of 1 MB over raw IP, sixteen at a time, every
//! hundredth segment retransmitted), and reads it like `firstbyte pcap`.
use firstbyte_capture::{CaptureFile, End, Side, Table};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use wire::{Addr, Flags, IpHeader, SeqNum, TcpHeader, protocol};

/// Bytes of a full segment.
const SEGMENT: u32 = 1448;
/// Segments of a download.
const SEGMENTS: u32 = 690;
/// Concurrent downloads.
const AT_ONCE: u32 = 16;
/// Header of a pcap file with microseconds and raw IP.
const HEADER: [u8; 24] =
    [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];

struct Writer {
    out: BufWriter<File>,
    micros: u64,
    written: u64,
}

impl Writer {
    fn packet(&mut self, number: u32, down: bool, draft: (u32, u32, Flags), len: u32) -> io::Result<()> {
        let client = Addr::from(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + number / 20_000)));
        let server = Addr::from(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)));
        let port = 20_000 + (number % 20_000) as u16;
        let (src, dst, ports) =
            if down { (server, client, (443, port)) } else { (client, server, (port, 443)) };
        let mut tcp = TcpHeader::new(ports.0, ports.1);
        let (seq, ack, flags) = draft;
        (tcp.seq, tcp.ack, tcp.flags, tcp.window) = (SeqNum(seq), SeqNum(ack), flags, 60_000);
        let text = [0; SEGMENT as usize];
        let bytes =
            wire::build_tcp_packet(&IpHeader::new(src, dst, protocol::TCP), &tcp, &text[..len as usize]);
        self.micros += 12;
        let (seconds, micros) = ((self.micros / 1_000_000) as u32, (self.micros % 1_000_000) as u32);
        for word in [seconds, micros, bytes.len() as u32, bytes.len() as u32] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.written += 16 + bytes.len() as u64;
        self.out.write_all(&bytes)
    }

    /// Writes the packet at this position of a download.
    fn part(&mut self, number: u32, at: u32) -> io::Result<()> {
        let reached = 1 + at * SEGMENT;
        match at {
            0 => {
                self.packet(number, false, (0, 0, Flags::SYN), 0)?;
                self.packet(number, true, (0, 1, Flags::SYN | Flags::ACK), 0)?;
                self.packet(number, false, (1, 1, Flags::ACK), 200)
            }
            SEGMENTS => {
                self.packet(number, true, (reached, 201, Flags::FIN | Flags::ACK), 0)?;
                self.packet(number, false, (201, reached + 1, Flags::FIN | Flags::ACK), 0)?;
                self.packet(number, true, (reached + 1, 202, Flags::ACK), 0)
            }
            _ => {
                self.packet(number, true, (reached - SEGMENT, 201, Flags::ACK), SEGMENT)?;
                if at.is_multiple_of(100) {
                    self.packet(number, true, (reached - 10 * SEGMENT, 201, Flags::ACK), SEGMENT)?;
                }
                if at.is_multiple_of(2) {
                    self.packet(number, false, (201, reached, Flags::ACK), 0)?;
                }
                Ok(())
            }
        }
    }
}

fn write(path: &Path, megabytes: u64) -> io::Result<()> {
    let mut writer = Writer { out: BufWriter::new(File::create(path)?), micros: 0, written: 0 };
    writer.out.write_all(&HEADER)?;
    let mut first = 0;
    while writer.written < megabytes * 1_000_000 {
        for at in 0..=SEGMENTS {
            (first..first + AT_ONCE).try_for_each(|number| writer.part(number, at))?;
        }
        first += AT_ONCE;
    }
    writer.out.flush()
}

/// Returns the processor time of this program in seconds (`/proc/self/schedstat`), which the load
/// of the machine does not change.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux reports the program's time");
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("the first number") / 1e9
}

/// Returns the maximum memory of this program in kB.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux reports the program's memory");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map(|kilobytes| kilobytes.trim().to_owned()).unwrap_or_default()
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("expected a FILE to write and read");
    let megabytes =
        arguments.next().map_or(1000, |text| text.parse().expect("expected MEGABYTES as a number"));
    if !Path::new(&path).exists() {
        write(Path::new(&path), megabytes)?;
    }
    let begun = processor_time();
    let mut file = CaptureFile::open(File::open(&path)?).expect("the file was written as a capture");
    let (mut table, mut connections, mut resent) = (Table::default(), 0u64, 0u64);
    let mut judge = |connection: firstbyte_capture::Connection| {
        connections += 1;
        resent += connection.half(Side::Server).retransmitted_bytes();
        let _ = (connection.fast_open(), connection.half(Side::Server).sender().longest());
    };
    while let Some(frame) = file.next_frame() {
        if let Ok(packet) = frame.tcp() {
            table.handle(&packet, &mut judge);
        }
    }
    table.finish(&mut judge);
    assert_eq!(file.end(), End::Whole);
    let (spent, len) = (processor_time() - begun, std::fs::metadata(&path)?.len());
    println!(
        "{} frames, {connections} connections, {resent} bytes retransmitted: {:.0} MB/s of one core, at most {} of memory",
        file.frames(),
        len as f64 / 1e6 / spent,
        memory()
    );
    Ok(())
}
