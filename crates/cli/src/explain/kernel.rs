//! Visits by the kernel's sockets: no rights are needed, and the kernel says what became of its SYN.
use crate::failure::Failure;
use doctor::sample::{Address, Info, Socket};
use doctor::sources;
use firstbyte::device::kernel_socket::set_fast_open_without_cookie;
use probe::{Agreed, Answer, Probe, Visit};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What the kernel can be made to send.
const PROBES: &[Probe] = &[Probe::Plain, Probe::Request, Probe::Cookie, Probe::CookieAgain, Probe::DataAlone];
/// What one that never asks for a cookie and uses none can be made to send.
const PROBES_WITHOUT_COOKIE: &[Probe] = &[Probe::Plain, Probe::DataAlone];
/// TFO_CLIENT_NO_COOKIE of `net.ipv4.tcp_fastopen` (include/net/tcp.h).
const NO_COOKIE: u32 = 0x4;
/// Long enough for a SYN with data, and a plain one behind it, to be lost once each.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// MSG_FASTOPEN (include/linux/socket.h).
const FAST_OPEN: u32 = 0x2000_0000;
/// A SYN is sent again after so long (TCP_TIMEOUT_INIT).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// TFO_SYN_RETRANSMITTED of `tcpi_fastopen_client_fail` (include/uapi/linux/tcp.h).
const SYN_RETRANSMITTED: u8 = 3;
/// TCPI_OPT_*: timestamps, SACK, window scale, ECN, SYN data acknowledged (include/uapi/linux/tcp.h).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const SCALE: u8 = 4;
const ECN: u8 = 8;
const SYN_DATA: u8 = 32;

/// What this host's settings let the kernel send.
pub(super) fn probes() -> &'static [Probe] {
    let settings = sources::procfs().settings;
    let fast_open = settings.get("net.ipv4.tcp_fastopen").and_then(|value| value.parse::<u32>().ok());
    if fast_open.is_some_and(|bits| bits & NO_COOKIE != 0) { PROBES_WITHOUT_COOKIE } else { PROBES }
}

/// What they and the route there let it send.
fn probes_to(server: SocketAddr) -> &'static [Probe] {
    // Where there is no route, the first probe will say so.
    match sources::is_route_without_cookie(server.ip()) {
        Ok(true) => PROBES_WITHOUT_COOKIE,
        _ => probes(),
    }
}

/// All that make sense, one after another.
pub(crate) fn visits(server: SocketAddr, request: &[u8]) -> Result<Vec<Visit>, Failure> {
    let mut visits: Vec<Visit> = Vec::new();
    for &probe in probes_to(server) {
        let known = cookie(server).is_some();
        match probe {
            // It would wait for another second and say nothing new.
            Probe::DataAlone if visits.iter().any(|visit| visit.fell_back) => continue,
            // The kernel takes the cookie that it has.
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
    let opened = match probe {
        Probe::Plain => plain(server, request),
        _ => fast(server, request, probe == Probe::DataAlone),
    };
    let answered = begun.elapsed();
    let sent = if probe.has_data() { request.len() } else { 0 };
    let mut visit = Visit { syns: 1, answer: Answer::SynAck, ..Visit::new(probe, sent) };
    let mut stream = match opened {
        Ok(stream) => stream,
        Err(error) => {
            visit.answer = match error.kind() {
                ErrorKind::ConnectionRefused => Answer::Reset,
                ErrorKind::Unsupported => return Err(switched_off()),
                ErrorKind::TimedOut | ErrorKind::WouldBlock => Answer::Nothing,
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                    Answer::Unreachable(server.ip())
                }
                _ => return Err(Failure::failed(format!("{server}: {error}"))),
            };
            return Ok(visit);
        }
    };
    let _ = stream.set_read_timeout(Some(TIMEOUT));
    let mut buffer = [0; 4096];
    // A server that says nothing, or resets, has sent no reply.
    let read = stream.read(&mut buffer).unwrap_or(0);
    if read > 0 {
        visit.first_byte_ms = Some(millis(begun.elapsed()));
        visit.reply = read;
    }
    if probe == Probe::Plain {
        visit.answered_ms = Some(millis(answered));
    }
    if let Some(info) = info(&stream) {
        visit.fell_back = match probe {
            // That the kernel has no cookie is all it says of a request; the SYN's time-out shows in what it took.
            Probe::Request => {
                info.total_retrans > 0 && cookie(server).is_none() && begun.elapsed() > SYN_TIMEOUT
            }
            _ => info.fastopen_client_fail == SYN_RETRANSMITTED,
        };
        visit.acknowledged = if info.options & SYN_DATA != 0 { sent } else { 0 };
        // Data in a SYN is acknowledged, or the kernel says why not, as it does of a cookie that it asks for; neither holds where the SYN had
        // nothing of the kind (tcp_fastopen_cookie_check while Fast Open pauses).
        visit.paused = probe != Probe::Plain
            && visit.acknowledged == 0
            && info.fastopen_client_fail == 0
            && (probe != Probe::Request || has_paused());
        if visit.paused {
            visit.sent = 0;
        }
        // What else may have been sent again is the request, where it was not in the SYN.
        if visit.fell_back || visit.reply == 0 || visit.acknowledged > 0 {
            visit.syns += info.total_retrans as usize;
        }
        visit.agreed = Some(agreed(&info));
        if probe != Probe::Plain && info.rtt > 0 {
            visit.answered_ms = Some(f64::from(info.min_rtt.min(info.rtt)) / 1000.0);
        }
    }
    visit.cookie = cookie(server).filter(|now| before.as_ref() != Some(now));
    Ok(visit)
}

fn plain(server: SocketAddr, request: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.write_all(request)?;
    Ok(stream)
}

/// Has Fast Open ever paused here? A kernel before 5.5 does not say what became of a request.
fn has_paused() -> bool {
    sources::procfs().counters.get("TcpExtTCPFastOpenBlackhole").is_some_and(|count| *count > 0)
}

/// The data goes with the SYN where the kernel has a cookie, or is to need none; else it asks for one, and sends the data behind the handshake.
fn fast(server: SocketAddr, request: &[u8], without_cookie: bool) -> std::io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::STREAM, Some(ipproto::TCP))?;
    set_socket_timeout(&socket, Timeout::Send, Some(TIMEOUT))?;
    if without_cookie {
        set_fast_open_without_cookie(&socket)?;
    }
    sendto(&socket, request, SendFlags::from_bits_retain(FAST_OPEN), &server)?;
    Ok(TcpStream::from(socket))
}

fn switched_off() -> Failure {
    Failure::failed(
        "the client's half of Fast Open is off here: sysctl -w net.ipv4.tcp_fastopen=1 (bit 0x1), or send SYNs of our own with --tun",
    )
}

/// What the kernel knows of this connection.
fn info(stream: &TcpStream) -> Option<Info> {
    let (local, peer) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    connection(&sources::sockets().sockets, local, peer)?.info
}

/// The socket between these ends. A local port alone tells too little: connections to other addresses may have it too.
fn connection(sockets: &[Socket], local: SocketAddr, peer: SocketAddr) -> Option<&Socket> {
    let end = |end: SocketAddr| (Address(end.ip().to_canonical()), end.port());
    sockets.iter().find(|socket| {
        (socket.local, socket.local_port) == end(local) && (socket.peer, socket.peer_port) == end(peer)
    })
}

/// The cookie that the kernel remembers for a server.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_known_by_both_ends_not_by_its_ports() {
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let socket = |inode, peer: &str| Socket {
            inode,
            local: Address("127.0.0.1".parse().unwrap()),
            local_port: 40_000,
            peer: Address(peer.parse().unwrap()),
            peer_port: 8080,
            ..Socket::default()
        };
        let sockets = [socket(1, "127.0.0.2"), socket(2, "127.0.0.3")];
        let found = |local, peer| connection(&sockets, end(local), end(peer)).map(|socket| socket.inode);
        assert_eq!(found("127.0.0.1:40000", "127.0.0.3:8080"), Some(2));
        assert_eq!(found("[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.3]:8080"), Some(2));
        assert_eq!(found("127.0.0.9:40000", "127.0.0.3:8080"), None);
    }
}
