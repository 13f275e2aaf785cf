//! Visits with the kernel's sockets: they need no root, and the kernel reports the fate of its SYN.
use crate::failure::Failure;
use doctor::sample::Info;
use doctor::sources;
use firstbyte::device::kernel_socket::{TcpOption, set_tcp_option, tcp_info};
use probe::{Agreed, Answer, Probe, Visit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, connect, ipproto, sendto, socket_with};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The probes that the kernel can send.
const PROBES: &[Probe] = &[Probe::Plain, Probe::Request, Probe::Cookie, Probe::CookieAgain, Probe::DataAlone];
/// The probes of a kernel that neither requests nor uses cookies.
const PROBES_WITHOUT_COOKIE: &[Probe] = &[Probe::Plain, Probe::DataAlone];
/// TFO_CLIENT_NO_COOKIE of `net.ipv4.tcp_fastopen` (include/net/tcp.h).
const NO_COOKIE: u32 = 0x4;
/// Long enough to lose a SYN with data and the plain SYN after it.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// MSG_FASTOPEN (include/linux/socket.h).
const FAST_OPEN: u32 = 0x2000_0000;
/// Time until a SYN is retransmitted (TCP_TIMEOUT_INIT).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// TFO_SYN_RETRANSMITTED of `tcpi_fastopen_client_fail` (include/uapi/linux/tcp.h).
const SYN_RETRANSMITTED: u8 = 3;
/// TCPI_OPT_*: timestamps, SACK, window scale, ECN, SYN data acknowledged
/// (include/uapi/linux/tcp.h).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const SCALE: u8 = 4;
const ECN: u8 = 8;
const SYN_DATA: u8 = 32;

/// Returns the probes that this host's settings allow.
pub(super) fn probes() -> &'static [Probe] {
    let settings = sources::procfs().settings;
    let fast_open = settings.get("net.ipv4.tcp_fastopen").and_then(|value| value.parse::<u32>().ok());
    if fast_open.is_some_and(|bits| bits & NO_COOKIE != 0) { PROBES_WITHOUT_COOKIE } else { PROBES }
}

/// Returns the probes that the settings and the route to the server allow.
fn probes_to(server: SocketAddr) -> &'static [Probe] {
    // Without a route, the first probe will report it.
    match sources::is_route_without_cookie(server.ip()) {
        Ok(true) => PROBES_WITHOUT_COOKIE,
        _ => probes(),
    }
}

/// Runs every useful probe, one after another.
pub(crate) fn visits(server: SocketAddr, request: &[u8]) -> Result<Vec<Visit>, Failure> {
    let mut visits: Vec<Visit> = Vec::new();
    for &probe in probes_to(server) {
        let known = cookie(server).is_some();
        match probe {
            // It would wait another second and show nothing new.
            Probe::DataAlone if visits.iter().any(|visit| visit.fell_back) => continue,
            // The kernel would use the cookie that it has.
            Probe::Request if known => continue,
            Probe::Cookie | Probe::CookieAgain if !known => continue,
            _ => {}
        }
        let visit = visit(probe, server, request)?;
        let reached = visit.answer == Answer::SynAck;
        visits.push(visit);
        if !reached {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(visits)
}

fn visit(probe: Probe, server: SocketAddr, request: &[u8]) -> Result<Visit, Failure> {
    let before = cookie(server);
    let begun = Instant::now();
    let failed = |error: std::io::Error| Failure::failed(format!("{server}: {error}"));
    let on_syn = if probe.has_data() { request.len() } else { 0 };
    let mut visit = Visit { syns: 1, answer: Answer::SynAck, ..Visit::new(probe, on_syn) };
    let (mut stream, sent) = match begin(probe, server, request) {
        Ok(begun) => begun,
        Err(error) if error.kind() == ErrorKind::Unsupported => return Err(switched_off()),
        Err(error) => return unanswered(visit, server, error),
    };
    match handshake(&stream).map_err(failed)? {
        None => {}
        Some(error) if error.kind() == ErrorKind::ConnectionReset => visit.reset = true,
        Some(error) => return unanswered(visit, server, error),
    }
    let answered = begun.elapsed();
    stream.set_nonblocking(false).map_err(failed)?;
    let _ = stream.set_read_timeout(Some(TIMEOUT));
    let conversed = converse(&mut stream, &request[sent..], begun, &mut visit);
    visit.reset = visit.reply == 0 && (visit.reset || conversed.is_err_and(is_reset));
    if probe == Probe::Plain {
        visit.answered_ms = Some(millis(answered));
    }
    let info = tcp_info(&stream).map_err(failed)?;
    let info = sources::tcp_info(&info)
        .ok_or_else(|| Failure::failed("this kernel does not report the fate of a SYN; use --tun"))?;
    note_info(&mut visit, &info, server, begun);
    visit.cookie = cookie(server).filter(|now| before.as_ref() != Some(now));
    Ok(visit)
}

/// Records the event that came instead of a SYN-ACK.
fn unanswered(mut visit: Visit, server: SocketAddr, error: std::io::Error) -> Result<Visit, Failure> {
    visit.answer = match error.kind() {
        ErrorKind::ConnectionRefused => Answer::Reset,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Answer::Nothing,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Answer::Unreachable(server.ip()),
        _ => return Err(Failure::failed(format!("{server}: {error}"))),
    };
    Ok(visit)
}

/// Sends the bytes that the SYN did not carry, and reads the beginning of the reply.
fn converse(stream: &mut TcpStream, rest: &[u8], begun: Instant, visit: &mut Visit) -> std::io::Result<()> {
    let written = stream.write_all(rest);
    let mut buffer = [0; 4096];
    // A server that does not wait for the request may have replied before it resets.
    let read = stream.read(&mut buffer);
    if let Ok(bytes @ 1..) = read {
        visit.first_byte_ms = Some(millis(begun.elapsed()));
        visit.reply = bytes;
    }
    written.and(read.map(|_| ()))
}

/// Returns whether the error is a reset, which the program may notice late.
fn is_reset(error: std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Records what the kernel reports about the SYN. Asks the socket itself, because a socket that was
/// reset is not listed any more.
fn note_info(visit: &mut Visit, info: &Info, server: SocketAddr, begun: Instant) {
    let probe = visit.probe;
    visit.fell_back = match probe {
        // Of a cookie request, the kernel only reports that it has no cookie; the SYN's timeout
        // shows in the elapsed time.
        Probe::Request => info.total_retrans > 0 && cookie(server).is_none() && begun.elapsed() > SYN_TIMEOUT,
        _ => info.fastopen_client_fail == SYN_RETRANSMITTED,
    };
    visit.acknowledged = if info.options & SYN_DATA != 0 { visit.sent } else { 0 };
    // The kernel reports acknowledged data or a reason, also for a cookie request. It reports
    // neither if the SYN had no Fast Open option (tcp_fastopen_cookie_check while Fast Open is
    // paused).
    visit.paused = probe != Probe::Plain
        && visit.acknowledged == 0
        && info.fastopen_client_fail == 0
        && (probe != Probe::Request || has_paused());
    if visit.paused {
        visit.sent = 0;
    }
    // Otherwise the request itself may have been retransmitted, if it was not on the SYN.
    if visit.fell_back || visit.reply == 0 || visit.acknowledged > 0 {
        visit.syns += info.total_retrans as usize;
    }
    visit.agreed = Some(agreed(info));
    if probe != Probe::Plain && info.rtt > 0 {
        visit.answered_ms = Some(f64::from(info.min_rtt.min(info.rtt)) / 1000.0);
    }
}

/// Opens a socket and starts to connect it. Returns the number of request bytes that its SYN has
/// accepted. Does not wait: a call that waits for the handshake forgets the fate of the SYN if a
/// reset follows at once (Linux's `__inet_stream_connect`).
///
/// The data goes with the SYN if the kernel has a cookie or needs none. Otherwise the SYN asks for
/// a cookie.
fn begin(probe: Probe, server: SocketAddr, request: &[u8]) -> std::io::Result<(TcpStream, usize)> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    let begun = match probe {
        Probe::Plain => connect(&socket, &server).map(|()| 0),
        _ => {
            if probe == Probe::DataAlone {
                set_tcp_option(&socket, TcpOption::FastOpenNoCookie, 1)?;
            }
            sendto(&socket, request, SendFlags::from_bits_retain(FAST_OPEN), &server)
        }
    };
    match begun {
        Err(Errno::INPROGRESS) => Ok((TcpStream::from(socket), 0)),
        begun => Ok((TcpStream::from(socket), begun?)),
    }
}

/// Waits for the end of the handshake. Returns the error that ended it, if one did.
fn handshake(stream: &TcpStream) -> std::io::Result<Option<std::io::Error>> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut entry = [PollFd::new(stream, PollFlags::OUT)];
        match poll(&mut entry, Some(&wait)) {
            Ok(0) => return Ok(Some(ErrorKind::TimedOut.into())),
            Ok(_) => return stream.take_error(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// True if Fast Open has ever been paused here. A kernel before 5.5 does not report the fate of a
/// request.
fn has_paused() -> bool {
    sources::procfs().counters.get("TcpExtTCPFastOpenBlackhole").is_some_and(|count| *count > 0)
}

fn switched_off() -> Failure {
    Failure::failed(
        "Fast Open is off for clients on this host; run `sysctl -w net.ipv4.tcp_fastopen=1` (bit \
        0x1), or send own SYNs with --tun",
    )
}

/// Returns the cookie that the kernel has cached for a server.
pub(crate) fn cookie(server: SocketAddr) -> Option<String> {
    let paths = sources::paths().unwrap_or_default();
    let path = paths.iter().find(|path| path.peer.0 == server.ip() && path.fo_cookie)?;
    Some(path.cookie.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn agreed(info: &Info) -> Agreed {
    let timestamps = info.options & TIMESTAMPS != 0;
    let options = if timestamps { 12 } else { 0 };
    Agreed {
        mss: u16::try_from(info.snd_mss + options).ok(),
        window_scale: (info.options & SCALE != 0).then_some(info.snd_wscale),
        sack: info.options & SACK != 0,
        timestamps,
        ecn: info.options & ECN != 0,
        accurate_ecn: false,
        hop_limit: None,
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
