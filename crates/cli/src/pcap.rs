//! `firstbyte pcap`: Fast Open and the limit of each connection in a capture.
//!
//! `account` sums up while the file is read; `text` and `json` show the sums (`reading`: notes on
//! how it was read); `detail` shows one connection; `picture` draws some. The crate `capture`
//! interprets packets.
mod account;
mod detail;
mod json;
mod picture;
mod reading;
mod text;

use crate::failure::{Failure, warn};
use crate::output;
use crate::{terminal, values};
use ::lab::report::{Page, PageStyle};
use account::Account;
use capture::{CaptureFile, End, Frame, Packet, Table};
use clap::Args;
use picture::{DRAWN_MAX, Pictures};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Analyze each connection in a capture: Fast Open, and what limited its speed
///
/// Reads pcap and pcapng, plain or compressed with gzip or zstd, from Ethernet, raw IP, Linux
/// cooked, NFLOG, Wi-Fi, PPP and others. Finds TCP inside VLAN tags and tunnels: MPLS, GRE, IP in
/// IP, VXLAN, Geneve, GTP-U and others.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    tcpdump -i eth0 -s 128 -w web.pcap tcp port 443\n  \
    firstbyte pcap web.pcap\n  \
    firstbyte pcap web.pcap --connection 3\n  \
    zcat web.pcap.gz | firstbyte pcap - --json | jq .fast_open\n\n\
    Capture at the sender if possible: only there is the order of packets and acknowledgements \
    certain. Elsewhere it is inferred, and marked as likely.")]
pub(crate) struct PcapArgs {
    /// Capture file; `-` is standard input
    file: PathBuf,
    /// Show one connection in full, by its number in the list with the same --host and --port: its
    /// packets as a ladder, and the waits of both sides
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "top"], allow_negative_numbers = true, value_parser = values::ordinal)]
    connection: Option<u64>,
    /// List N connections: those that the network slowed down most
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "json", value_parser = clap::value_parser!(u16).range(0..=10_000))]
    top: u16,
    /// Show only connections of this address
    #[arg(long, value_parser = values::address)]
    host: Option<IpAddr>,
    /// Show only connections of this port
    #[arg(long, value_parser = values::port)]
    port: Option<u16>,
    /// Write an HTML page to FILE, with pictures of the first eight listed connections or of the
    /// selected one: time-sequence graph, bytes in flight, ladder
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Print a JSON object per connection when it ends, and a last one for the capture, one per
    /// line
    #[arg(long)]
    json: bool,
}

impl PcapArgs {
    fn wants(&self, packet: &Packet<'_>) -> bool {
        let has_host = |host: IpAddr| [packet.src.ip(), packet.dst.ip()].contains(&host);
        let has_port = |port: u16| [packet.src.port(), packet.dst.port()].contains(&port);
        self.host.is_none_or(has_host) && self.port.is_none_or(has_port)
    }

    /// Describes the filter; `None` without one.
    fn filter(&self) -> Option<String> {
        let host = self.host.map(|host| format!("of address {host}"));
        let port = self.port.map(|port| format!("of port {port}"));
        let words: Vec<String> = host.into_iter().chain(port).collect();
        (!words.is_empty()).then(|| words.join(" and "))
    }

    /// Returns the command that lists the same connections with the same numbers: filtered
    /// connections have no number.
    fn command(&self) -> String {
        let host = self.host.map_or(String::new(), |host| format!(" --host {host}"));
        let port = self.port.map_or(String::new(), |port| format!(" --port {port}"));
        format!("firstbyte pcap {}{host}{port}", self.file.display())
    }

    fn name(&self) -> String {
        if self.is_stdin() { "standard input".to_owned() } else { self.file.display().to_string() }
    }

    fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }
}

/// Runs the verb.
pub(crate) fn run(args: &PcapArgs) -> Result<ExitCode, Failure> {
    if args.html.is_some() && args.is_stdin() && args.connection.is_none() {
        return Err(Failure::usage(
            "--html reads the capture twice, but standard input can only be read once; name a file, \
            or choose one connection with --connection N",
        ));
    }
    let mut file = open(args)?;
    match (args.connection, args.json) {
        (Some(number), _) => show_one(args, &mut file, number),
        (None, true) => stream_json(args, &mut file),
        (None, false) => show_all(args, &mut file),
    }
}

fn open(args: &PcapArgs) -> Result<CaptureFile<'static>, Failure> {
    let source: Box<dyn Read> = match args.is_stdin() {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(&args.file).map_err(|error| Failure::file("read", &args.file, &error))?),
    };
    CaptureFile::open(source).map_err(|error| Failure::failed(format!("{} {error}", args.name())))
}

fn show_all(args: &PcapArgs, file: &mut CaptureFile<'_>) -> Result<ExitCode, Failure> {
    let mut account = Account::keeping(args.top.into());
    let mut table = Table::default();
    read(args, file, |frame, packet| match packet {
        Ok(packet) => {
            account.note_packet(&packet);
            table.handle(&packet, &mut |connection| account.note(connection));
        }
        Err(why) => {
            account.note_other(why);
            frame.icmp_error().into_iter().for_each(|error| table.handle_icmp(&error));
        }
    });
    account.note_evicted(table.evicted());
    table.finish(&mut |connection| account.note(connection));
    let mut page = Page::new(terminal::page_style());
    let command = args.command();
    text::render(&mut page, &args.name(), args.filter().as_deref(), &command, file, &account);
    if let Some(path) = &args.html {
        let mut pictures =
            Pictures::of(account.kept().iter().take(DRAWN_MAX).map(|connection| connection.number()));
        watch(args, &mut open(args)?, &mut pictures);
        draw(args, path, &pictures, &mut page)?;
    }
    terminal::print(&page.into_text())?;
    Ok(ended(args, file))
}

fn show_one(args: &PcapArgs, file: &mut CaptureFile<'_>, number: u64) -> Result<ExitCode, Failure> {
    let mut pictures = Pictures::of([number]);
    let begun = watch(args, file, &mut pictures);
    let mut page = Page::new(terminal::page_style());
    if !pictures.detail(number).is_some_and(|detail| detail.render(&mut page)) {
        let which = args.filter().map_or(String::new(), |filter| format!(" {filter}"));
        return Err(Failure::usage(format!(
            "there is no connection {number}: {} has {begun}{which} (`{}` lists all)",
            args.name(),
            args.command()
        )));
    }
    if let Some(path) = &args.html {
        draw(args, path, &pictures, &mut page)?;
    }
    terminal::print(&page.into_text())?;
    Ok(ended(args, file))
}

/// Reads the whole file to draw some of its connections. Returns the number of connections.
fn watch(args: &PcapArgs, file: &mut CaptureFile<'_>, pictures: &mut Pictures) -> u64 {
    let mut table = Table::default();
    read(args, file, |frame, packet| match packet {
        Ok(packet) => {
            let connection = table.handle(&packet, &mut |over| pictures.note_over(over));
            pictures.note_packet(connection, &packet);
        }
        Err(_) => frame.icmp_error().into_iter().for_each(|error| table.handle_icmp(&error)),
    });
    let begun = table.begun();
    table.finish(&mut |over| pictures.note_over(over));
    begun
}

/// Writes the page with pictures, and prints its path.
fn draw(args: &PcapArgs, path: &Path, pictures: &Pictures, page: &mut Page) -> Result<(), Failure> {
    let question = match args.connection {
        Some(number) => format!("What happened in connection {number}, and what limited it?"),
        None => "What did Fast Open do, and what limited each connection?".to_owned(),
    };
    let whole = if args.connection.is_some() { Page::new(PageStyle::default()) } else { page.clone() };
    let document = pictures.document(format!("firstbyte pcap {}", args.name()), question, &whole);
    output::write_whole(path, document.to_html())?;
    page.gap();
    page.line(&format!("Pictures are in {}.", path.display()));
    Ok(())
}

fn stream_json(args: &PcapArgs, file: &mut CaptureFile<'_>) -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut account = Account::keeping(0);
    let mut table = Table::default();
    let mut failed: Option<io::Error> = None;
    let mut write = |value: &serde_json::Value| {
        if failed.is_none() {
            failed = writeln!(out, "{value}").err();
        }
    };
    read(args, file, |frame, packet| match packet {
        Ok(packet) => {
            account.note_packet(&packet);
            table.handle(&packet, &mut |connection| {
                write(&json::connection(&connection));
                account.note(connection);
            });
        }
        Err(why) => {
            account.note_other(why);
            frame.icmp_error().into_iter().for_each(|error| table.handle_icmp(&error));
        }
    });
    account.note_evicted(table.evicted());
    table.finish(&mut |connection| {
        write(&json::connection(&connection));
        account.note(connection);
    });
    write(&json::capture(file, &account));
    match failed.or_else(|| out.flush().err()) {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(ended(args, file)),
    }
}

/// Reads every selected frame: its segment, or the reason why it has none.
fn read(
    args: &PcapArgs,
    file: &mut CaptureFile<'_>,
    mut handle: impl FnMut(&Frame<'_>, Result<Packet<'_>, capture::NotTcp>),
) {
    while let Some(frame) = file.next_frame() {
        let packet = frame.tcp();
        if packet.as_ref().map_or(true, |packet| args.wants(packet)) {
            handle(&frame, packet);
        }
    }
}

/// Reports how the file ends. A damaged file is an error, after its readable part is shown; a
/// truncated one is not.
fn ended(args: &PcapArgs, file: &CaptureFile<'_>) -> ExitCode {
    let (name, frames) = (args.name(), file.frames());
    match file.end() {
        End::Whole => ExitCode::SUCCESS,
        End::Truncated => {
            let before = match frames {
                0 => "there is no packet before it".to_owned(),
                1 => "the packet before it was read".to_owned(),
                _ => format!("the {frames} before it were read"),
            };
            warn(format!("{name} ends in the middle of a packet; {before}"));
            ExitCode::SUCCESS
        }
        End::Damaged(what) => {
            let packets = values::counted(frames, "packet", "packets");
            let unread = match unread(args, file) {
                Some(bytes) => format!("the {bytes} bytes after that were not read"),
                None => "the rest was not read".to_owned(),
            };
            warn(format!("{name} is damaged after {packets}: {what}; {unread}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns how many bytes of a file were not read. Returns `None` if unknown, as in a compressed
/// file.
fn unread(args: &PcapArgs, file: &CaptureFile<'_>) -> Option<u64> {
    if file.is_compressed() || args.is_stdin() {
        return None;
    }
    let meta = std::fs::metadata(&args.file).ok().filter(std::fs::Metadata::is_file)?;
    meta.len().checked_sub(file.bytes_passed()).filter(|bytes| *bytes > 1)
}
