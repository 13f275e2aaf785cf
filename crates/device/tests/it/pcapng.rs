//! Captures, read back by pcap-file, tshark and tcpdump.

use crate::packets::{Flow, parse};
use device::tap::{Capture, Captured, Direction, PcapngWriter, complete_checksum};
use device::{Device, memory};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::block_common::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{Capabilities, RxBatch, TxPacket};

const OFFLOADS: Capabilities = Capabilities { mtu: 1500, gso_max_size: 65_435, tx_checksum: true };

/// A record as read by a reader.
#[derive(Debug, PartialEq)]
struct Record {
    interface: u32,
    at: Duration,
    flags: Option<u32>,
    comments: Vec<String>,
    data: Vec<u8>,
}

fn read(file: &[u8]) -> (Vec<(DataLink, String)>, Vec<Record>) {
    let mut reader = PcapNgReader::new(file).unwrap();
    let (mut interfaces, mut records) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap().0 {
            Block::InterfaceDescription(block) => {
                interfaces.push((block.linktype, format!("{:?}", block.options)))
            }
            Block::EnhancedPacket(block) => {
                let mut record = Record {
                    interface: block.interface_id,
                    at: block.timestamp,
                    flags: None,
                    comments: Vec::new(),
                    data: block.data.to_vec(),
                };
                for option in &block.options {
                    match option {
                        EnhancedPacketOption::Flags(flags) => record.flags = Some(*flags),
                        EnhancedPacketOption::Common(CommonOption::Comment(text)) => {
                            record.comments.push(text.to_string());
                        }
                        other => panic!("unexpected option {other:?}"),
                    }
                }
                records.push(record);
            }
            other => panic!("unexpected block {other:?}"),
        }
    }
    (interfaces, records)
}

/// Returns a file with a plain packet, one with two comments, and one over IPv6.
fn sample() -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let client = writer.add_interface("client", "the client's end").unwrap();
    let server = writer.add_interface("server", "").unwrap();
    let packets = [
        (
            client,
            1_500_000_001,
            Some(Direction::Outbound),
            vec![],
            Flow::v4().data(b"GET /".to_vec(), 0, false),
        ),
        (
            server,
            1_585_000_000,
            Some(Direction::Inbound),
            vec!["first comment".to_owned(), "zweiter Kommentar: é".to_owned()],
            Flow::v4().data(b"x".to_vec(), 0, false),
        ),
        (server, 1_763_000_000_123_456_789, None, vec![], Flow::v6().data(b"GET /".to_vec(), 0, false)),
    ];
    for (interface, at, direction, comments, packet) in packets {
        let data = packet.to_bytes();
        writer
            .write_packet(&Captured { interface, at, direction, comments: &comments, data: &data })
            .unwrap();
    }
    writer.flush().unwrap();
    writer.into_inner()
}

#[test]
fn what_is_written_is_read_back() {
    let (interfaces, records) = read(&sample());
    assert_eq!(interfaces.len(), 2);
    assert!(interfaces.iter().all(|(link, _)| *link == DataLink::RAW));
    assert!(interfaces[0].1.contains("IfName(\"client\")") && interfaces[0].1.contains("the client's end"));
    assert!(interfaces[1].1.contains("IfName(\"server\")"));
    assert_eq!(records[0].at, Duration::from_nanos(1_500_000_001));
    assert_eq!((records[0].flags, records[0].interface), (Some(2), 0));
    assert_eq!(records[1].comments, ["first comment", "zweiter Kommentar: é"]);
    assert_eq!((records[1].flags, records[1].interface), (Some(1), 1));
    assert_eq!((records[2].flags, records[2].at), (None, Duration::from_nanos(1_763_000_000_123_456_789)));
    assert_eq!(parse(&records[2].data).2, b"GET /");
}

#[test]
fn a_comment_longer_than_an_option_is_cut_between_characters() {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let interface = writer.add_interface("a", "").unwrap();
    let comments = ["é".repeat(40_000)];
    let data = Flow::v4().data(vec![1], 0, false).to_bytes();
    writer
        .write_packet(&Captured { interface, at: 0, direction: None, comments: &comments, data: &data })
        .unwrap();
    assert_eq!(read(&writer.into_inner()).1[0].comments[0].len(), 65_534);
}

#[test]
fn tshark_reads_it() {
    let path = std::env::temp_dir().join(format!("firstbyte-pcapng-{}.pcapng", std::process::id()));
    std::fs::write(&path, sample()).unwrap();
    let file = path.to_str().unwrap();
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.comment",
        "frame.packet_flags_direction",
        "tcp.len",
        "tcp.checksum.status",
    ];
    let mut arguments =
        vec!["-r", file, "-o", "tcp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    if let Some(text) = run("tshark", &arguments) {
        let text = text.replace("|0x0000000", "|"); // newer ones print the direction in decimal
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "1.500000001|client||2|5|1");
        assert_eq!(lines[1], "1.585000000|server|first comment,zweiter Kommentar: é|1|1|1");
        assert_eq!(lines[2], "1763000000.123456789|server|||5|1");
        assert_eq!(lines.len(), 3);
    }
    std::fs::remove_file(&path).unwrap();
}

/// One interface, because tcpdump's libpcap 1.10 rejects files with several of link type RAW.
#[test]
fn tcpdump_reads_a_capture_of_one_interface() {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let interface = writer.add_interface("tun0", "").unwrap();
    let comments = ["a comment".to_owned()];
    for (at, flow) in [(1_500_000_001, Flow::v4()), (1_763_000_000_123_456_789, Flow::v6())] {
        let data = flow.data(b"GET /".to_vec(), 0, false).to_bytes();
        let direction = Some(Direction::Outbound);
        writer
            .write_packet(&Captured { interface, at, direction, comments: &comments, data: &data })
            .unwrap();
    }
    let path = std::env::temp_dir().join(format!("firstbyte-tcpdump-{}.pcapng", std::process::id()));
    std::fs::write(&path, writer.into_inner()).unwrap();
    if let Some(text) = run("tcpdump", &["-r", path.to_str().unwrap(), "-n", "-tt", "--nano", "-v"]) {
        assert!(text.contains("1.500000001 IP") && text.contains("1763000000.123456789 IP6"), "{text}");
        assert!(text.contains("10.0.0.2.4000 > 10.0.0.1.80: Flags [P.], cksum"), "{text}");
        assert!(text.contains("fd00::2.4000 > fd00::1.80: Flags [P.], cksum"), "{text}");
        assert_eq!(text.matches("(correct)").count(), 2, "{text}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// Returns the output of a program; `None`, with a line on stderr, if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    if !testnet::has_program(program) {
        let _ = writeln!(io::stderr(), "SKIPPED: {program} is not installed");
        return None;
    }
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_capture_sees_both_directions_with_checksums_completed() {
    let (a, mut b) = memory::pair(OFFLOADS);
    let mut now = 0;
    let clock = Box::new(move || {
        now += 1_000;
        now
    });
    let mut a = Capture::new(a, "eth0", PcapngWriter::new(Vec::new()).unwrap(), clock).unwrap();
    let merged = Flow::v4().data(vec![3; 3000], 1400, true);
    let mut out = VecDeque::from([merged.clone(), Flow::v4().data(vec![4; 10], 0, false)]);
    assert_eq!(a.send(&mut out).unwrap(), 2);
    b.send(&mut VecDeque::from([Flow::v6().data(vec![5; 2000], 1000, true)])).unwrap();
    assert_eq!(a.recv(&mut RxBatch::default(), 64).unwrap(), 1);
    assert_eq!(b.recv(&mut RxBatch::default(), 64).unwrap(), 2, "the traffic itself went through");

    let records = read(a.writer().lock().unwrap().get_ref()).1;
    let seen: Vec<_> = records.iter().map(|r| (r.at.as_nanos(), r.flags, parse(&r.data).2.len())).collect();
    assert_eq!(seen, [(1_000, Some(2), 3000), (2_000, Some(2), 10), (3_000, Some(1), 2000)]);
    assert_eq!(records[0].comments, ["GSO: 3 segments of up to 1400 bytes"]);
    assert!(records[1].comments.is_empty());
    assert_eq!(records[2].comments, ["GRO: 2 segments of up to 1000 bytes"]);
}

#[test]
fn packets_that_were_pushed_back_are_not_captured() {
    let (a, _b) = memory::pair_with(OFFLOADS, OFFLOADS, 1);
    let mut a = Capture::new(a, "eth0", PcapngWriter::new(Vec::new()).unwrap(), Box::new(|| 0)).unwrap();
    let mut out: VecDeque<TxPacket> = (1..=3).map(|n| Flow::v4().data(vec![n], 0, false)).collect();
    assert_eq!(a.send(&mut out).unwrap(), 1);
    assert_eq!(out.iter().map(|packet| packet.shared[0][0]).collect::<Vec<u8>>(), [2, 3], "in order");
    assert_eq!(read(a.writer().lock().unwrap().get_ref()).1.len(), 1);
}

/// A device that segments bursts itself, and blocks after the first segment.
struct Narrow;

impl Device for Narrow {
    fn capabilities(&self) -> Capabilities {
        OFFLOADS
    }

    fn recv(&mut self, _: &mut RxBatch, _: usize) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&mut self, batch: &mut VecDeque<TxPacket>) -> io::Result<usize> {
        let Some(packet) = batch.pop_front() else { return Ok(0) };
        let rest = packet.segments().into_iter().skip(1);
        batch.extend(rest.map(|segment| TxPacket::new(&segment, Default::default())));
        Ok(0)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[test]
fn of_a_burst_that_was_sent_in_part_the_part_is_captured() {
    let mut tap =
        Capture::new(Narrow, "eth0", PcapngWriter::new(Vec::new()).unwrap(), Box::new(|| 0)).unwrap();
    let mut out = VecDeque::from([Flow::v4().data(vec![7; 30], 10, false)]);
    assert_eq!(tap.send(&mut out).unwrap(), 0);
    assert_eq!(out.len(), 2);
    let records = read(tap.writer().lock().unwrap().get_ref()).1;
    assert_eq!(records.iter().map(|record| parse(&record.data).2.len()).collect::<Vec<_>>(), [10]);
}

#[test]
fn several_devices_share_a_file() {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let ids = [writer.add_interface("client", "").unwrap(), writer.add_interface("server", "").unwrap()];
    let writer = Arc::new(Mutex::new(writer));
    let (a, b) = memory::pair(OFFLOADS);
    let mut a = Capture::shared(a, ids[0], Arc::clone(&writer), Box::new(|| 1));
    let mut b = Capture::shared(b, ids[1], Arc::clone(&writer), Box::new(|| 2));
    a.send(&mut VecDeque::from([Flow::v4().data(vec![1], 0, false)])).unwrap();
    b.recv(&mut RxBatch::default(), 1).unwrap();
    let records = read(writer.lock().unwrap().get_ref()).1;
    assert_eq!(
        records.iter().map(|r| (r.interface, r.flags)).collect::<Vec<_>>(),
        [(0, Some(2)), (1, Some(1))]
    );
}

/// A disk with space for this many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(data.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_stops_the_capture_and_not_the_traffic() {
    let (a, mut b) = memory::pair(OFFLOADS);
    let mut a = Capture::new(a, "eth0", PcapngWriter::new(Disk(300)).unwrap(), Box::new(|| 0)).unwrap();
    let mut out: VecDeque<TxPacket> = (1..=9).map(|n| Flow::v4().data(vec![n; 60], 0, false)).collect();
    assert_eq!(a.send(&mut out).unwrap(), 9);
    assert_eq!(a.fault().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    assert_eq!(b.recv(&mut RxBatch::default(), 64).unwrap(), 9);
    let flushed = a.writer().lock().unwrap().flush();
    assert_eq!(
        flushed.map_err(|error| error.kind()),
        Err(io::ErrorKind::StorageFull),
        "the file lacks packets"
    );
}

#[test]
fn only_a_wrong_checksum_is_completed() {
    for flow in [Flow::v4(), Flow::v6()] {
        let right = flow.data(b"hello".to_vec(), 0, false).to_bytes();
        assert_eq!(complete_checksum(&right), None);
        let mut partial = right.to_vec();
        let header_len = flow.ip().emit_len();
        partial[header_len + 16] ^= 0x55;
        assert_eq!(complete_checksum(&partial).as_deref(), Some(&right[..]));
        assert_eq!(complete_checksum(&partial[..30]), None);
    }
    assert_eq!(complete_checksum(b""), None);
}
