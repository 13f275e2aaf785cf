//! A capture as tshark reads it: its TCP segments, and tshark's analysis of each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// Preferences that make tshark read each frame alone, like `firstbyte pcap`.
const PREFERENCES: [&str; 3] =
    ["ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE"];

/// Fields of a line, in this order.
const FIELDS: [&str; 17] = [
    "frame.number",
    "frame.protocols",
    "tcp.stream",
    "tcp.flags",
    "tcp.len",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.keep_alive",
    "tcp.analysis.spurious_retransmission",
    "tcp.options.tfo.cookie",
    "tcp.options.tfo.request",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
];

/// A frame with TCP.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) number: u64,
    /// Layers, from `frame.protocols`.
    pub(crate) protocols: String,
    /// Stream number. `None` if the header was too short for tshark.
    pub(crate) stream: Option<u64>,
    pub(crate) is_syn: bool,
    pub(crate) text_len: u32,
    /// Sequence and acknowledgement number, and the ports.
    pub(crate) fields: [u32; 4],
    pub(crate) is_retransmission: bool,
    pub(crate) is_out_of_order: bool,
    pub(crate) is_keep_alive: bool,
    pub(crate) has_cookie_option: bool,
}

impl Line {
    /// Returns whether its first TCP header is quoted in an ICMP error, and is not a packet of a
    /// connection.
    pub(crate) fn is_quoted_by_icmp(&self) -> bool {
        self.layers_below().any(|layer| matches!(layer, "icmp" | "icmpv6"))
    }

    /// Returns whether this protocol carries its first TCP header.
    pub(crate) fn has_below(&self, protocol: &str) -> bool {
        self.layers_below().any(|layer| layer == protocol)
    }

    fn layers_below(&self) -> impl Iterator<Item = &str> {
        self.protocols.split(':').take_while(|layer| *layer != "tcp")
    }
}

/// A whole capture.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) lines: Vec<Line>,
    /// The reason why reading stopped or did not start.
    pub(crate) problem: Option<String>,
}

/// Reads a capture. With a folder, stores tshark's output there, and reuses it the next time.
pub(crate) fn read(capture: &Path, kept: Option<PathBuf>) -> io::Result<Reading> {
    let text = match &kept {
        Some(file) if file.exists() => fs::read_to_string(file)?,
        _ => run(capture)?,
    };
    if let Some(file) = kept.filter(|file| !file.exists()) {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, &text)?;
    }
    Ok(parse(&text))
}

/// Returns tshark's lines, and a last one of the form `#end STATUS MESSAGE`.
fn run(capture: &Path) -> io::Result<String> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture).args(["-Y", "tcp", "-T", "fields", "-E", "occurrence=a"]);
    for preference in PREFERENCES {
        command.args(["-o", preference]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot run `tshark`: {error}; install it (Debian: apt install tshark)"),
        )
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.lines().filter(|line| !line.contains("Running as")).collect();
    let status = output.status.code().unwrap_or(-1);
    Ok(format!("{}#end {status} {}\n", String::from_utf8_lossy(&output.stdout), said.join(" ")))
}

fn parse(text: &str) -> Reading {
    let mut reading = Reading { lines: Vec::new(), problem: Some("tshark was killed".to_owned()) };
    for line in text.lines() {
        match line.strip_prefix("#end ") {
            Some(end) => {
                let (status, said) = end.split_once(' ').unwrap_or((end, ""));
                reading.problem = (status != "0").then(|| said.trim().to_owned());
            }
            None => reading.lines.extend(parse_line(line)),
        }
    }
    reading
}

fn parse_line(line: &str) -> Option<Line> {
    let fields: Vec<&str> = line.split('\t').collect();
    // Of several TCP headers in a frame, the outermost counts.
    let first = |index: usize| fields.get(index).and_then(|field| field.split(',').next()).unwrap_or("");
    let has = |index: usize| fields.get(index).is_some_and(|field| !field.is_empty());
    let flags = u32::from_str_radix(first(3).trim_start_matches("0x"), 16).unwrap_or(0);
    Some(Line {
        number: first(0).parse().ok()?,
        protocols: fields.get(1)?.to_string(),
        stream: first(2).parse().ok(),
        is_syn: flags & 2 != 0,
        text_len: first(4).parse().unwrap_or(0),
        fields: [5, 6, 7, 8].map(|index| first(index).parse().unwrap_or(0)),
        is_retransmission: has(9),
        is_out_of_order: has(10),
        is_keep_alive: has(11),
        has_cookie_option: has(13) || has(14),
    })
}
