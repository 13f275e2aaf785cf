//! Programs as the distribution ships them: curl, nginx, tcpdump, tshark. Each runs inside a
//! namespace, with files in a folder of its own, and ends with its handle.
use crate::direction::Direction;
use crate::netns::{DEVICE, Host};
use crate::record::{Fate, Packet, Record};
use crate::segment::Segment;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A program and the package that has it.
pub type Program = (&'static str, &'static str);
/// curl with `--tcp-fastopen`.
pub const CURL: Program = ("curl", "curl");
/// nginx with `listen … fastopen=`.
pub const NGINX: Program = ("nginx", "nginx-light");
/// Runs [`crate::KernelPeer`].
pub const PYTHON: Program = ("python3", "python3");
/// tcpdump.
pub const TCPDUMP: Program = ("tcpdump", "tcpdump");
/// tshark.
pub const TSHARK: Program = ("tshark", "tshark");

/// May a test run that makes namespaces and needs these programs? If not, says on stderr what is
/// missing: the test is skipped then.
pub fn ready(programs: &[Program]) -> bool {
    if let Err(reason) = testnet::can() {
        skip(&format!("needs root and /dev/net/tun ({reason})"));
        return false;
    }
    let missing =
        programs.iter().filter(|(program, _)| !testnet::has_program(program) && !is_admin_tool(program));
    missing.map(|(program, package)| skip(&format!("needs {program} (apt install {package})"))).count() == 0
}

/// Written past the test harness, which would swallow it.
fn skip(reason: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr(), "SKIPPED: {reason}"));
}

/// /usr/sbin is not in everyone's PATH.
fn is_admin_tool(program: &str) -> bool {
    ["/usr/sbin", "/sbin"].iter().any(|folder| Path::new(folder).join(program).is_file())
}

fn command(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = testnet::command(program);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// A folder that vanishes with this value.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new empty one.
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("firstbyte-interop-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// nginx with Fast Open on port 80 of both address families of its host.
#[derive(Debug)]
pub struct Nginx {
    _process: Process,
    _folder: Folder,
}

impl Nginx {
    /// Starts it; every path is answered with `body` and `Connection: close`.
    pub fn start(host: &Host, body: &str) -> Nginx {
        let (v4, v6) = (host.addresses.v4, host.addresses.v6);
        let server = format!(
            "keepalive_timeout 0;\n\
             server {{ listen {v4}:80 fastopen=16; listen [{v6}]:80 fastopen=16;\n\
             location / {{ return 200 \"{body}\"; }} }}\n"
        );
        Nginx::run(host, Folder::new(), &Nginx::config(&server), 80)
    }

    /// Starts it with TLS 1.3 and early data on port 443; every path is answered with `body`, and
    /// connections stay open. `certificate` and `key` are PEM.
    pub fn start_tls(host: &Host, body: &str, certificate: &str, key: &str) -> Nginx {
        let folder = Folder::new();
        fs::write(folder.file("certificate.pem"), certificate).expect("certificate.pem");
        fs::write(folder.file("key.pem"), key).expect("key.pem");
        let (v4, v6) = (host.addresses.v4, host.addresses.v6);
        let options = "ssl http2 fastopen=256";
        let server = format!(
            "keepalive_timeout 65; ssl_certificate certificate.pem; ssl_certificate_key key.pem;\n\
             ssl_protocols TLSv1.3; ssl_session_cache shared:s:1m; ssl_early_data on;\n\
             server {{ listen {v4}:443 {options}; listen [{v6}]:443 {options};\n\
             location / {{ return 200 \"{body}\"; }} }}\n"
        );
        Nginx::run(host, folder, &Nginx::config(&server), 443)
    }

    fn run(host: &Host, folder: Folder, config: &str, port: u16) -> Nginx {
        let file = folder.file("nginx.conf");
        fs::write(&file, config).expect("nginx.conf");
        let mut nginx = command("nginx");
        nginx.arg("-p").arg(&folder.0).arg("-c").arg(&file).arg("-e").arg(folder.file("error.log"));
        let process = Process(host.spawn(nginx.stderr(Stdio::null())));
        wait_for_port(host, SocketAddr::new(host.addresses.v4.into(), port));
        Nginx { _process: process, _folder: folder }
    }

    fn config(server: &str) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {kind};\n"));
        format!(
            "daemon off; master_process off; pid nginx.pid; error_log error.log;\n\
             events {{ worker_connections 512; }}\n\
             http {{ access_log off; {temporary}\n{server} }}\n",
            temporary = temporary.concat()
        )
    }
}

/// Waits until something listens (at most 10 s), asking from inside the namespace over its
/// loopback.
pub fn wait_for_port(host: &Host, address: SocketAddr) {
    let begun = Instant::now();
    while host.run(|| TcpStream::connect_timeout(&address, Duration::from_secs(1))).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "nothing listens on {address}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Runs curl with these arguments, for at most a minute; returns what it wrote to standard output.
///
/// # Panics
/// If it fails.
pub fn curl(host: &Host, arguments: &[&str]) -> String {
    let mut curl = command("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60"]).args(arguments);
    let output = host.output(&mut curl);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// `http://address:port/path`, IPv6 in brackets.
pub fn url(address: IpAddr, port: u16, path: &str) -> String {
    format!("http://{}/{path}", SocketAddr::new(address, port))
}

/// tcpdump at a host's TUN device.
#[derive(Debug)]
pub struct Capture {
    process: Process,
    said: BufReader<ChildStderr>,
    folder: Folder,
}

impl Capture {
    /// Starts it and waits until it listens.
    pub fn start(host: &Host) -> Capture {
        let folder = Folder::new();
        let mut tcpdump = command("tcpdump");
        // With room for 256 KiB per packet, tcpdump's default, its buffer holds eight packets.
        tcpdump.args(["-i", DEVICE, "-s", "2048", "-B", "8192"]);
        tcpdump.args(["--immediate-mode", "-Z", "root", "-U", "-w"]);
        tcpdump.arg(folder.file("capture.pcap")).arg("tcp").stderr(Stdio::piped());
        let mut process = Process(host.spawn(&mut tcpdump));
        let mut said = BufReader::new(process.0.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(said.read_line(&mut line).expect("tcpdump speaks") > 0, "tcpdump ended");
        }
        Capture { process, said, folder }
    }

    /// Ends it after `quiet` and gives what it saw; the folder holds `capture.pcap`. Packets of
    /// `client` go to the server.
    pub fn finish(self, client: IpAddr, quiet: Duration) -> (Record, Folder) {
        let Capture { mut process, said, folder } = self;
        thread::sleep(quiet);
        kill_process(Pid::from_child(&process.0), Signal::INT).expect("tcpdump lives");
        process.0.wait().expect("tcpdump ends");
        let said: Vec<String> = said.lines().map_while(Result::ok).collect();
        let file = fs::read(folder.file("capture.pcap")).expect("capture.pcap");
        let record = read_pcap(&file, client);
        let lost = said.iter().find(|line| line.contains("dropped by kernel"));
        assert!(
            lost.is_some_and(|line| line.starts_with("0 ")),
            "tcpdump missed packets: {said:?}\n{record}"
        );
        (record, folder)
    }
}

/// Reads a capture with microsecond times and raw IP packets, as tcpdump writes it here.
fn read_pcap(file: &[u8], client: IpAddr) -> Record {
    let word = |at: usize| u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]);
    const RAW_IP: u32 = 101;
    assert_eq!((word(0), word(20)), (0xa1b2_c3d4, RAW_IP), "capture format");
    let mut record = Record::default();
    let mut at = 24;
    while at + 16 <= file.len() {
        let time = Duration::new(u64::from(word(at)), word(at + 4) * 1000);
        let bytes = file[at + 16..at + 16 + word(at + 8) as usize].to_vec();
        at += 16 + bytes.len();
        let Some(segment) = Segment::decode(&bytes) else { continue };
        let direction = if segment.src.ip() == client { Direction::ToServer } else { Direction::ToClient };
        record.packets.push(Packet { at: time, direction, segment, fate: Fate::Passed, bytes });
    }
    record
}

/// tshark's view of a capture: one line per packet, the named fields separated by tabs.
pub fn tshark(capture: &Path, fields: &[&str]) -> Vec<String> {
    let mut tshark = command("tshark");
    tshark.arg("-r").arg(capture).args(["-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.stderr(Stdio::null()).output().expect("tshark");
    assert!(output.status.success(), "tshark: {}", output.status);
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// A process that ends with this value.
#[derive(Debug)]
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
