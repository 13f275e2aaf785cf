//! What became of Fast Open, and what went wrong, in plain words.
use firstbyte::{ConnectionInfo, NotAcknowledged, Outcome, Skipped, Verdict};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// A connection's outcome: a word for tables and programs, and a sentence. `syn_fin`: a FIN was to ride on a SYN with data.
pub(crate) fn outcome(info: &ConnectionInfo, syn_fin: bool) -> (&'static str, &'static str) {
    match info.outcome {
        Outcome::NotAcknowledged(NotAcknowledged::Lost) if syn_fin => (
            "lost",
            "no answer to the SYN with data and FIN, but to the plain one after it: Linux drops such SYNs, and so do many firewalls; \
             to this peer the FIN is left off them from now on",
        ),
        Outcome::Pending => ("pending", "the SYN was not answered"),
        Outcome::Accepted if info.syn_data_len == 0 => (
            "accepted",
            "the cookie was taken: a server that speaks first could do so at once, but the request followed the handshake",
        ),
        Outcome::Accepted => {
            ("accepted", "the request rode on the SYN and was taken at once: one round trip less")
        }
        Outcome::CookieRequested { granted: true } => {
            ("cookie granted", "asked for a cookie and got one: the next visit sends its request on the SYN")
        }
        Outcome::CookieRequested { granted: false } => (
            "no cookie",
            "asked for a cookie and got none: the server has Fast Open switched off, or something on the path strips the option",
        ),
        Outcome::CookieAsked => {
            ("cookie asked", "asked for a cookie; the kernel does not report whether one came back")
        }
        Outcome::NotAcknowledged(why) => not_acknowledged(why),
        Outcome::Skipped(why) => skipped(why),
    }
}

fn not_acknowledged(why: NotAcknowledged) -> (&'static str, &'static str) {
    match why {
        NotAcknowledged::StaleCookie => (
            "stale cookie",
            "the cookie was refused because the server's key has changed; a new one came, and the request was sent again at once",
        ),
        NotAcknowledged::Busy => (
            "busy",
            "the cookie is right but the data was not taken: the server's Fast Open queue was full, or it had seen this very SYN before; \
             the request was sent again at once",
        ),
        NotAcknowledged::Ignored => (
            "ignored",
            "the SYN-ACK took no notice of cookie and data: Fast Open is off there now, or something on the path strips the option; \
             the request was sent again at once",
        ),
        NotAcknowledged::Partial => {
            ("partial", "a part of the SYN's data was taken; the rest was sent again at once")
        }
        NotAcknowledged::Lost => (
            "lost",
            "no answer to the SYN with data, but to the plain one after it: something on the path drops such SYNs, or the packet was lost",
        ),
        NotAcknowledged::Reset => {
            ("reset", "the SYN with data was answered by a reset, the plain one after it was not")
        }
        NotAcknowledged::TooBig => (
            "too big",
            "the SYN with data was too big for the path, and the plain one followed at once; the next one is smaller",
        ),
        NotAcknowledged::Unknown => (
            "not acknowledged",
            "the SYN's data was not acknowledged and was retransmitted at once; the kernel does not report why",
        ),
        NotAcknowledged::OldConnection => (
            "old connection",
            "the peer still had an older connection between the same ports and answered for that one; a plain SYN opened this one, and \
             the next visit uses Fast Open again",
        ),
    }
}

fn skipped(why: Skipped) -> (&'static str, &'static str) {
    match why {
        Skipped::NotAsked => ("off", "not asked for: a plain handshake"),
        Skipped::Disabled => ("disabled", "switched off: bit 0x1 of net.ipv4.tcp_fastopen is not set"),
        Skipped::NothingToSend => ("empty", "nothing to send, and no cookie to show: a plain handshake"),
        Skipped::Paused => {
            ("paused", "switched off for a while, after black holes (tcp_fastopen_blackhole_timeout_sec)")
        }
        Skipped::Simultaneous => ("simultaneous", "the peer's SYN crossed ours"),
        Skipped::Verdict(verdict) => (
            "verdict",
            match verdict {
                Verdict::Dropped => "not tried: SYNs with data to this peer were not answered before",
                Verdict::NotAcknowledged => "not tried: this peer took no notice of cookie and data before",
                Verdict::Stripped => "not tried: this peer gave no cookie before",
                Verdict::Reset => "not tried: this peer answered such a SYN by a reset before",
                Verdict::Stalled => "not tried: a connection with Fast Open to this peer stalled before",
                Verdict::SynFin => "not tried: this peer did not take a FIN on the SYN before",
            },
        ),
    }
}

/// A failed visit, and what to do about it.
pub(crate) fn failure(error: &io::Error, peer: SocketAddr) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!("{peer} refused the connection: nothing listens on port {} there", peer.port())
        }
        ErrorKind::ConnectionReset => format!("{peer} reset the connection"),
        ErrorKind::TimedOut => format!("{peer} does not answer; {WAY}"),
        ErrorKind::HostUnreachable => format!("{peer} cannot be reached ({error}); {WAY}"),
        ErrorKind::NetworkUnreachable => {
            let example = if peer.is_ipv6() { "fd78::2/64" } else { "10.78.0.2/24" };
            format!("{peer} cannot be reached: {error}; give it one, such as --address {example}")
        }
        ErrorKind::BrokenPipe => {
            format!(
                "the connection to {peer} takes no more data; with --syn-fin the whole request must fit on the SYN"
            )
        }
        ErrorKind::UnexpectedEof => format!("{peer} closed the connection before its reply was complete"),
        ErrorKind::InvalidData => format!("{peer} does not speak HTTP/1: {error}"),
        _ => format!("{peer}: {error}"),
    }
}

/// A visit that took too long.
pub(crate) fn timeout(limit: Duration, peer: SocketAddr) -> String {
    format!("no reply from {peer} within {limit:?} (--timeout); {WAY}")
}

const WAY: &str = "is it up, and is there a way there and back? The stack's only way out is its TUN device: peers beyond this machine need \
                   forwarding and masquerading, see firstbyte get --help";

/// What lies under hyper's error.
pub(crate) fn io_error(error: hyper::Error) -> io::Error {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return io::Error::new(cause.kind(), cause.to_string());
        }
        source = cause.source();
    }
    let kind = match () {
        () if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            ErrorKind::UnexpectedEof
        }
        () if error.is_parse() => ErrorKind::InvalidData,
        () => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
