//! `firstbyte pcap`, with captures that the lab writes.
use super::{run, stderr, stdout};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use wire::{Flags, IpHeader, SeqNum, TcpHeader, build_tcp_packet, protocol};

/// A file of this process, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("firstbyte-pcap-{name}-{}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Captures a scenario such as `lab packets`: the lab reports the packets of each direction, the
/// capture must agree.
fn capture(name: &str, scenario: &[&str]) -> Scratch {
    let file = Scratch::new(name);
    let output = run(&[&["lab"], scenario, &["--pcap", file.path()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    file
}

fn json_lines(output: &std::process::Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_visit_with_a_cookie_is_accepted_and_saves_its_round_trip() {
    let file = capture("fast-open", &["fast-open", "--rtt", "100ms", "--count", "3"]);
    let output = run(&["pcap", file.path(), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = json_lines(&output);
    let (whole, connections) = lines.split_last().expect("a line for the capture");
    let accepted: Vec<&Value> =
        connections.iter().filter(|connection| connection["fast_open"]["class"] == "accepted").collect();
    assert_eq!(accepted.len(), 2, "{connections:?}");
    for connection in &accepted {
        assert_eq!(connection["rtt_ms"], 100.0, "{connection}");
        assert_eq!(connection["first_byte_ms"], 100.0, "{connection}");
        assert_eq!(connection["fast_open"]["saved_ms"], 100.0, "{connection}");
    }
    assert_eq!(whole["fast_open"]["cookie-granted"]["connections"], 1, "{whole}");
    assert_eq!(whole["capture"]["end"], "whole");
    assert_eq!(whole["capture"]["connections"], connections.len());
}

#[test]
fn people_are_told_what_to_do_and_may_look_at_one_connection() {
    let file = capture("middlebox", &["middlebox"]);
    let all = run(&["pcap", file.path()]);
    let words = stdout(&all).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("disable Fast Open for this path"), "{}", stdout(&all));
    let one = run(&["pcap", file.path(), "--connection", "2"]);
    let text = stdout(&one);
    assert!(text.contains("(retransmission)") && text.contains("Fast Open: SYN dropped"), "{text}");
    let none = run(&["pcap", file.path(), "--connection", "4000"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("there is no connection 4000"), "{}", stderr(&none));
}

#[test]
fn the_command_that_a_list_ends_with_shows_a_connection_of_that_list() {
    let file = capture("hint", &["fast-open", "--count", "3"]);
    let all = json_lines(&run(&["pcap", file.path(), "--json"]));
    let client = all[2]["client"].as_str().expect("the third").to_owned();
    let (_, port) = client.rsplit_once(':').expect("a port");
    let listed = run(&["pcap", file.path(), "--port", port]);
    let command = format!("firstbyte pcap {} --port {port} --connection N ", file.path());
    let said = stdout(&listed).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!(" 1 {client} ")) && said.contains(&command), "{said}");
    let one = run(&["pcap", file.path(), "--port", port, "--connection", "1"]);
    assert!(stdout(&one).starts_with(&format!("Connection 1: {client} ")), "{}", stdout(&one));
    let none = run(&["pcap", file.path(), "--port", port, "--connection", "3"]);
    let command = format!("(`firstbyte pcap {} --port {port}` lists all)", file.path());
    assert!(stderr(&none).contains(&command), "{}", stderr(&none));
}

#[test]
fn a_file_cut_short_gives_what_it_has_and_a_damaged_one_fails() {
    let file = capture("cut", &["fast-open", "--count", "2"]);
    let whole = std::fs::read(&file.0).expect("it was written");
    std::fs::write(&file.0, &whole[..whole.len() - 3]).expect("room");
    let cut = run(&["pcap", file.path()]);
    assert!(
        cut.status.success() && stderr(&cut).contains("ends in the middle of a packet"),
        "{}",
        stderr(&cut)
    );
    let mut damaged = whole.clone();
    let at = damaged.len() - 40;
    damaged[at..].fill(0xff);
    std::fs::write(&file.0, &damaged).expect("room");
    let failed = run(&["pcap", file.path()]);
    assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
    assert!(
        stderr(&failed).contains("is damaged after") && stdout(&failed).contains("Fast Open"),
        "{}",
        stderr(&failed)
    );
    std::fs::write(&file.0, "GET / HTTP/1.1").expect("room");
    assert!(stderr(&run(&["pcap", file.path()])).contains("is not a capture"));
    assert!(stderr(&run(&["pcap", "/nowhere"])).contains("cannot read /nowhere"));
}

/// A capture of tcpdump with 400 invalid bytes in the middle: the file does not end there.
#[test]
fn damage_in_the_middle_of_a_pcap_is_not_taken_for_its_end() {
    let file = Scratch::new("damaged.pcap");
    let record = |at: u32| {
        let words = [at, 0, 100, 100].map(u32::to_le_bytes).concat();
        [&words[..], &[0x45; 100]].concat()
    };
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101].map(u32::to_le_bytes).concat();
    let mut whole = [head, (0..100).flat_map(record).collect()].concat();
    // The 40th record begins in the damaged part.
    whole[24 + 116 * 39 - 50..][..400].fill(0xff);
    std::fs::write(&file.0, &whole).expect("room");
    let damaged = run(&["pcap", file.path()]);
    assert_eq!(damaged.status.code(), Some(1), "{}", stderr(&damaged));
    let told = "is damaged after 39 packets: a record claims 4294967295 bytes; the 7076 bytes after that were not read";
    assert!(stderr(&damaged).contains(told), "{}", stderr(&damaged));
}

/// The longest wait may be of either side: a lost SYN is the client's, although it sends less than
/// the server.
#[test]
fn the_longest_wait_of_a_connection_is_named() {
    // The words of a narrow column.
    let listed = |name, scenario| {
        let file = capture(name, &[scenario]);
        let output = run(&["pcap", file.path()]);
        stdout(&output).to_owned()
    };
    let dropped = listed("dropped", "syn-data-dropped");
    let connection = dropped.split(" dropped ").nth(1).expect("a connection of that class");
    assert!(connection.contains("client:") && connection.contains("loss 93"), "{dropped}");
    let buffer = listed("buffer", "send-buffer");
    for words in ["congestion", "window or", "send", "buffer 9"] {
        assert!(buffer.contains(words) && !buffer.contains("congestion-window"), "{words}: {buffer}");
    }
}

#[test]
fn a_page_shows_the_connections_that_are_listed() {
    let (file, page) = (capture("page", &["congestion", "--size", "300"]), Scratch::new("page.html"));
    let output = run(&["pcap", file.path(), "--html", page.path()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Pictures are in "), "{}", stdout(&output));
    let whole = std::fs::read_to_string(page.path()).expect("a page");
    for part in
        ["connection 1", "connection 2", "Time and sequence", "Bytes in flight", "class=\"rung ", "waited"]
    {
        assert!(whole.contains(part), "{part} is missing");
    }
    let output = run(&["pcap", file.path(), "--connection", "2", "--html", page.path()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let one = std::fs::read_to_string(page.path()).expect("a page");
    assert!(one.contains("connection 2") && !one.contains("connection 1"), "only the one that is chosen");
}

#[test]
fn a_page_of_standard_input_needs_one_connection() {
    let output = run(&["pcap", "-", "--html", "/nonexistent/page.html"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--connection N"), "{}", stderr(&output));
}

/// A packet between 10.0.0.1:40000 and 10.0.0.2:80: sent by the client, control bits, SEQ, ACK,
/// payload length, window.
type Drafted = (bool, Flags, u32, u32, usize, u16);

/// Writes a capture of these packets, with times in milliseconds.
fn written(name: &str, packets: &[(u32, Drafted)]) -> Scratch {
    let mut capture =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
    for (at, (from_client, flags, seq, ack, len, window)) in packets {
        let ((src, dst), ports) = if *from_client { ((1, 2), (40_000, 80)) } else { ((2, 1), (80, 40_000)) };
        let addr = |last| Ipv4Addr::new(10, 0, 0, last).into();
        let ip = IpHeader::new(addr(src), addr(dst), protocol::TCP);
        let mut tcp = TcpHeader {
            seq: SeqNum(*seq),
            ack: SeqNum(*ack),
            flags: *flags,
            window: *window,
            ..TcpHeader::new(ports.0, ports.1)
        };
        if flags.contains(Flags::SYN) {
            tcp.options.window_scale = Some(7);
        }
        let packet = build_tcp_packet(&ip, &tcp, &vec![0; *len]);
        let size = packet.len() as u32;
        [at / 1000, at % 1000 * 1000, size, size].iter().for_each(|word| capture.extend(word.to_le_bytes()));
        capture.extend(packet.to_vec());
    }
    let file = Scratch::new(name);
    std::fs::write(&file.0, capture).expect("room");
    file
}

/// Returns the words of an output, with a space for each line break.
fn words(output: &std::process::Output) -> String {
    stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// tcpdump under load: a segment is missing, but its acknowledgement is there.
#[test]
fn what_a_capture_lacks_is_said() {
    let text = [
        (0, (true, Flags::ACK, 1, 1, 10, 1000)),
        (1, (false, Flags::ACK, 1, 11, 100, 1000)),
        (2, (false, Flags::ACK, 301, 11, 100, 1000)),
        (3, (true, Flags::ACK, 11, 401, 0, 1000)),
    ];
    let file = written("lacks", &text);
    let said = words(&run(&["pcap", file.path()]));
    assert!(
        said.contains("The capture is not complete: of 1 connection, 200 acknowledged bytes are missing."),
        "{said}"
    );
    // Nothing in the file shows that a buffer was too small.
    assert!(
        said.contains("If tcpdump reported packets \"dropped by kernel\", use a larger buffer"),
        "{said}"
    );
    let one = words(&run(&["pcap", file.path(), "--connection", "1"]));
    assert!(one.contains("200 bytes more acknowledged and not in the capture"), "{one}");
    assert!(one.contains("win 1000?") && one.contains("its scale is unknown"), "{one}");
    let lines = json_lines(&run(&["pcap", file.path(), "--json"]));
    assert_eq!(lines[0]["from_server"]["unseen_bytes"], 200);
    assert_eq!(lines[1]["capture"]["unseen_bytes"], 200);
}

/// Returns a pcapng file of Ethernet frames, with `if_tsresol`, and a time in ticks for each.
fn pcapng(resolution: u8, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let len = (12 + body.len() + padding.len()) as u32;
        [&kind.to_le_bytes(), &len.to_le_bytes(), body, &padding, &len.to_le_bytes()].concat()
    };
    let mut file = block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat());
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, resolution, 0, 0, 0]));
    for (ticks, frame) in frames {
        let words = [0, (ticks >> 32) as u32, *ticks as u32, frame.len() as u32, frame.len() as u32];
        file.extend(block(6, &[&words.map(u32::to_le_bytes).concat()[..], frame].concat()));
    }
    file
}

/// Returns a TCP packet over Ethernet, of the client or the server, with these numbers.
fn frame(is_client: bool, seq: u32, ack: u32, flags: u8, text_len: u8) -> Vec<u8> {
    let mut ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let mut ports = [40_000_u16, 80].map(u16::to_be_bytes);
    if !is_client {
        ends.reverse();
        ports.reverse();
    }
    let ip = [0x45, 0, 0, 40 + text_len, 0, 0, 0x40, 0, 64, 6, 0, 0];
    let numbers = [seq, ack].map(u32::to_be_bytes).concat();
    let tcp = [&ports.concat()[..], &numbers, &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]].concat();
    [&[2; 12][..], &[8, 0], &ip, &ends.concat(), &tcp, &vec![b'x'; text_len.into()]].concat()
}

/// Returns a conversation with a retransmission, so that every kind of time is summed up.
fn conversation() -> Vec<Vec<u8>> {
    vec![
        frame(true, 1000, 0, 2, 0),
        frame(false, 5000, 1001, 0x12, 0),
        frame(true, 1001, 5001, 0x10, 0),
        frame(true, 1001, 5001, 0x18, 100),
        frame(false, 5001, 1101, 0x18, 200),
        frame(true, 1001, 5001, 0x18, 100),
        frame(false, 5201, 1101, 0x11, 0),
    ]
}

#[test]
fn times_at_the_ends_of_their_range_are_read_and_shown() {
    let file = Scratch::new("extreme.pcapng");
    for resolution in [0, 6, 0x80, 0x81, 0xff] {
        for order in 0..8_u32 {
            let time = |index: usize| if order >> (index % 3) & 1 == 0 { 0 } else { u64::MAX };
            let frames: Vec<_> =
                conversation().into_iter().enumerate().map(|(index, frame)| (time(index), frame)).collect();
            std::fs::write(&file.0, pcapng(resolution, &frames)).expect("room");
            for more in [&[][..], &["--json"], &["--connection", "1"]] {
                let shown = run(&[&["pcap", file.path()], more].concat());
                assert!(shown.status.success(), "{resolution} {order} {more:?}: {}", stderr(&shown));
            }
        }
    }
}

#[test]
fn tunnels_are_named_and_oddities_counted() {
    let file = Scratch::new("tunnels.pcapng");
    let in_mpls = |frame: Vec<u8>| [&frame[..12], &[0x88, 0x47, 0, 1, 1, 64], &frame[14..]].concat();
    let frames: Vec<_> = conversation().into_iter().map(|frame| (1_000_000, in_mpls(frame))).collect();
    let mut bytes = pcapng(6, &frames);
    // The interface's resolution has a wrong length.
    let option = 28 + 16;
    assert_eq!(bytes[option..option + 4], [9, 0, 1, 0]);
    bytes[option + 2] = 2;
    std::fs::write(&file.0, &bytes).expect("room");
    let shown = run(&["pcap", file.path()]);
    let text = stdout(&shown);
    assert!(text.contains("Inside MPLS: 7 TCP packets."), "{text}");
    assert!(text.contains("Ignored in the file: 1 option with a wrong length."), "{text}");
    let lines = json_lines(&run(&["pcap", file.path(), "--json"]));
    assert_eq!(lines[0]["tunnels"], serde_json::json!(["MPLS"]));
    assert_eq!(lines[1]["capture"]["tunnels"], serde_json::json!({ "MPLS": 7 }));
    assert_eq!(lines[1]["capture"]["ignored"], serde_json::json!({ "option-length": 1 }));
}

#[test]
fn headers_that_the_capture_cut_are_counted() {
    let file = Scratch::new("cut-headers.pcapng");
    let mut syn = frame(true, 1000, 0, 2, 8);
    // An options length of 8: the payload becomes options, half of them captured.
    syn[46] = 0x70;
    let mut bytes = pcapng(6, &[(1, syn.clone())]);
    let packet = bytes.len() - 4 - syn.len().next_multiple_of(4);
    bytes[packet - 8..packet - 4].copy_from_slice(&58_u32.to_le_bytes());
    std::fs::write(&file.0, &bytes).expect("room");
    let shown = run(&["pcap", file.path()]);
    assert!(stdout(&shown).contains("1 TCP header is cut"), "{}", stdout(&shown));
    assert!(stdout(&shown).contains("opening not captured"), "its options are not known: {}", stdout(&shown));
    let lines = json_lines(&run(&["pcap", file.path(), "--json"]));
    assert_eq!(lines[1]["capture"]["headers_cut"], 1);
}

#[test]
fn attempts_that_failed_come_first_each_with_its_reason() {
    let syn = (true, Flags::SYN, 1000, 0, 0, 65_535);
    let seconds = [0, 1, 3, 7, 15, 31, 63];
    let file = written("unanswered", &seconds.map(|second| (second * 1000, syn)));
    let list = words(&run(&["pcap", file.path()]));
    assert!(list.contains("no answer to 7 SYNs in 63.00 s"), "{list}");
    assert!(list.find("no answer") < list.find("Fast Open") && !list.contains("not tried"), "{list}");
    let one = words(&run(&["pcap", file.path(), "--connection", "1"]));
    assert_eq!(one.matches("(retransmission)").count(), 6, "{one}");
    assert!(
        one.contains("0 bytes in 7 segments, 6 retransmitted") && one.contains("no answer to 7 SYNs"),
        "{one}"
    );
    let lines = json_lines(&run(&["pcap", file.path(), "--json"]));
    assert_eq!(lines[0]["opening"]["outcome"], "no-answer");
    assert_eq!(lines[1]["capture"]["failed"]["no-answer"], 1);
    // A single SYN at the end of a capture is not a failed attempt.
    let file = written("one-syn", &[(0, syn)]);
    let list = words(&run(&["pcap", file.path()]));
    assert!(list.contains("no answer to 1 SYN; the capture ends 0.000 ms later"), "{list}");
}

#[test]
fn numbers_of_an_older_connection_are_said_and_not_used() {
    let file = written(
        "older",
        &[
            (0, (true, Flags::SYN, 1000, 0, 0, 65_535)),
            (20, (false, Flags::ACK, 3_000_000_000, 900_000_000, 0, 500)),
            (21, (true, Flags::RST, 900_000_000, 0, 0, 0)),
            (1000, (true, Flags::SYN, 1000, 0, 0, 65_535)),
            (1020, (false, Flags::SYN | Flags::ACK, 5000, 1001, 0, 65_535)),
            (1021, (true, Flags::ACK, 1001, 5001, 100, 500)),
            (1041, (false, Flags::ACK, 5001, 1101, 500, 500)),
        ],
    );
    let list = words(&run(&["pcap", file.path()]));
    assert!(list.contains("7 TCP packets in 1 connection"), "{list}");
    assert!(
        list.contains("2 packets between the ports of 1 connection with sequence numbers that do not fit"),
        "{list}"
    );
    assert!(!list.contains("not complete") && !list.contains("buffer"), "{list}");
    let one = words(&run(&["pcap", file.path(), "--connection", "1"]));
    assert_eq!(one.matches("(older connection)").count(), 2, "{one}");
    assert!(one.contains("win 64000") && one.contains("client scaled by 128, server scaled by 128"), "{one}");
    let lines = json_lines(&run(&["pcap", file.path(), "--json"]));
    assert_eq!((&lines[0]["older_connection_packets"], &lines[0]["packets"]), (&2.into(), &7.into()));
}

#[test]
fn the_ladder_shows_windows_in_bytes_and_what_they_do() {
    let opening = [
        (0, (true, Flags::SYN, 1000, 0, 0, 65_535)),
        (20, (false, Flags::SYN | Flags::ACK, 5000, 1001, 0, 65_535)),
        (21, (true, Flags::ACK, 1001, 5001, 0, 4)),
        (22, (false, Flags::ACK, 5001, 1001, 512, 500)),
        (23, (true, Flags::ACK, 1001, 5513, 0, 0)),
        (523, (false, Flags::ACK, 5512, 1001, 0, 500)),
        (524, (true, Flags::ACK, 1001, 5513, 0, 0)),
        (900, (true, Flags::ACK, 1001, 5513, 0, 4)),
    ];
    let file = written("windows", &opening);
    let one = words(&run(&["pcap", file.path(), "--connection", "1"]));
    for rung in [
        "seq 0 win 65535 wscale 7",
        "seq 1 ack 1 win 512 ─",
        "seq 1 ack 1 len 512 win 64000 (window full)",
        "seq 1 ack 513 win 0 (zero window)",
        "seq 512 ack 1 win 64000 (zero window probe)",
        "win 0 (zero window) (zero window probe ACK)",
        "seq 1 ack 513 win 512 (window update)",
    ] {
        assert!(one.contains(rung), "{rung}: {one}");
    }
}
