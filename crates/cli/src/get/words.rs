//! Fast Open outcomes and errors as sentences.
use super::watched::{FastOpenUse, TlsUse};
use firstbyte::tls::rustls::{self, ProtocolVersion};
use firstbyte::tls::{EarlyBytes, NotSent, Ticket};
use firstbyte::{Backend, NotAcknowledged, Outcome, Skipped, Verdict};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// Returns a connection's outcome: a word for tables and programs, and a sentence.
pub(crate) fn outcome(used: &FastOpenUse) -> (&'static str, &'static str) {
    match used.outcome {
        Outcome::NotAcknowledged(NotAcknowledged::Lost) if used.syn_fin => (
            "lost",
            "no answer to the SYN with data and FIN, but to the plain SYN after it: Linux and many \
            firewalls drop such SYNs; connections to this peer do not use a FIN on the SYN from now \
            on",
        ),
        Outcome::Pending => ("pending", "the SYN was not answered"),
        Outcome::Accepted if used.is_tls => {
            ("accepted", "the ClientHello was on the SYN and was accepted: one round trip saved")
        }
        Outcome::Accepted if !used.has_data => (
            "accepted",
            "the cookie was accepted: a server that speaks first could have sent data at once, but \
            the request followed the handshake",
        ),
        Outcome::Accepted => {
            ("accepted", "the request was on the SYN and was accepted: one round trip saved")
        }
        Outcome::CookieRequested { granted: true } => (
            "cookie granted",
            "requested a cookie and received one: the next visit sends its request on the SYN",
        ),
        Outcome::CookieRequested { granted: false } => (
            "no cookie",
            "requested a cookie and received none: the server has Fast Open off, or a middlebox \
            strips the option",
        ),
        Outcome::CookieAsked => {
            ("cookie asked", "asked for a cookie; the kernel does not report whether one came back")
        }
        Outcome::Unknown => ("unknown", "the kernel does not report what became of Fast Open"),
        Outcome::NotAcknowledged(why) => not_acknowledged(why),
        Outcome::Skipped(why) => skipped(why),
    }
}

fn not_acknowledged(why: NotAcknowledged) -> (&'static str, &'static str) {
    match why {
        NotAcknowledged::StaleCookie => (
            "stale cookie",
            "the server rejected the cookie because its key has changed, and sent a new one; the \
            request was retransmitted at once",
        ),
        NotAcknowledged::Busy => (
            "busy",
            "the cookie is valid but the data was not accepted: the server's Fast Open queue was \
            full, or it had seen the same SYN before; the request was retransmitted at once",
        ),
        NotAcknowledged::Ignored => (
            "ignored",
            "the SYN-ACK ignored cookie and data: the server has Fast Open off now, or a middlebox \
            strips the option; the request was retransmitted at once",
        ),
        NotAcknowledged::Partial => {
            ("partial", "a part of the SYN's data was accepted; the rest was retransmitted at once")
        }
        NotAcknowledged::Lost => (
            "lost",
            "no answer to the SYN with data, but to the plain SYN after it: a middlebox drops such \
            SYNs, or the packet was lost",
        ),
        NotAcknowledged::Reset => {
            ("reset", "the SYN with data was answered with a reset, the plain SYN after it was not")
        }
        NotAcknowledged::TooBig => (
            "too big",
            "the SYN with data was too big for the path; a plain SYN followed at once, and the next \
            SYN is smaller",
        ),
        NotAcknowledged::Unknown => (
            "not acknowledged",
            "the SYN's data was not acknowledged and was retransmitted at once; the kernel does not report why",
        ),
        NotAcknowledged::OldConnection => (
            "old connection",
            "the peer answered for an older connection between the same ports; a plain SYN opened \
            this one, and the next visit uses Fast Open again",
        ),
    }
}

fn skipped(why: Skipped) -> (&'static str, &'static str) {
    match why {
        Skipped::NotAsked => ("off", "not requested: a plain handshake"),
        Skipped::Disabled => ("disabled", "disabled: bit 0x1 of net.ipv4.tcp_fastopen is not set"),
        Skipped::NothingToSend => ("empty", "nothing to send and no cookie: a plain handshake"),
        Skipped::Paused => ("paused", "paused after black holes (tcp_fastopen_blackhole_timeout_sec)"),
        Skipped::Simultaneous => ("simultaneous", "the peer's SYN crossed ours"),
        Skipped::Verdict(verdict) => (
            "verdict",
            match verdict {
                Verdict::Dropped => "not attempted: earlier SYNs with data to this peer were not answered",
                Verdict::NotAcknowledged => "not attempted: this peer ignored cookie and data before",
                Verdict::Stripped => "not attempted: this peer sent no cookie before",
                Verdict::Reset => "not attempted: this peer answered such a SYN with a reset before",
                Verdict::Stalled => "not attempted: an earlier Fast Open connection to this peer stalled",
                Verdict::SynFin => "not attempted: this peer did not accept a FIN on the SYN before",
            },
        ),
    }
}

/// The place of a failed visit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) peer: SocketAddr,
    pub(crate) backend: Backend,
}

impl Place {
    /// Describes a failed visit, and what to do.
    pub(crate) fn failure(self, error: &io::Error) -> String {
        let peer = self.peer;
        match error.kind() {
            ErrorKind::ConnectionRefused => {
                format!("{peer} refused the connection: nothing listens on port {} there", peer.port())
            }
            ErrorKind::ConnectionReset => format!("{peer} reset the connection"),
            ErrorKind::TimedOut => format!("{peer} does not answer; {}", self.advice()),
            ErrorKind::HostUnreachable => {
                format!("{peer} cannot be reached ({error}); {}", self.advice())
            }
            ErrorKind::NetworkUnreachable => match self.backend {
                Backend::Kernel => format!("cannot reach {peer}: {error}; this machine has no route to it"),
                Backend::Stack => {
                    let example = if peer.is_ipv6() { "fd78::2/64" } else { "10.78.0.2/24" };
                    format!("cannot reach {peer}: {error}; add an address, such as --address {example}")
                }
            },
            ErrorKind::BrokenPipe => {
                format!(
                    "the connection to {peer} accepts no more data; with --syn-fin the whole request \
                    must fit on the SYN"
                )
            }
            ErrorKind::UnexpectedEof => format!("{peer} closed the connection before its reply was complete"),
            _ if tls_error(error).is_some() => self.tls_failure(error),
            ErrorKind::InvalidData => format!("{peer} does not speak HTTP: {error}"),
            _ => format!("{peer}: {error}"),
        }
    }

    fn tls_failure(self, error: &io::Error) -> String {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
        let peer = self.peer;
        match tls_error(error) {
            Some(InvalidCertificate(why)) => format!(
                "cannot trust the certificate of {peer}: {}; give its authority with --cacert FILE, or \
                 skip the check with --insecure",
                certificate(why)
            ),
            Some(InvalidMessage(_)) => format!("{peer} does not speak TLS ({error}); try http://"),
            Some(AlertReceived(alert)) => format!("{peer} refused the TLS handshake: {alert:?}"),
            _ => format!("the TLS handshake with {peer} failed: {error}"),
        }
    }

    /// Describes a visit without progress. `has_begun`: a part of the reply has arrived.
    pub(crate) fn stalled(self, limit: Duration, has_begun: bool) -> String {
        let peer = self.peer;
        match has_begun {
            true => format!("{peer} sent nothing more for {limit:?} (--timeout)"),
            false => format!("no reply from {peer} within {limit:?} (--timeout); {}", self.advice()),
        }
    }

    /// Describes a visit that took too long.
    pub(crate) fn too_long(self, limit: Duration) -> String {
        format!("the reply of {} was not complete within {limit:?} (--max-time)", self.peer)
    }

    fn advice(self) -> &'static str {
        match self.backend {
            Backend::Stack => {
                "check that it is up and that there is a route in both directions. The stack's \
                only device is its TUN device: to reach other machines, the kernel must forward and \
                masquerade, see firstbyte get --help"
            }
            Backend::Kernel => "check that it is up, and that no firewall is in between",
        }
    }
}

fn certificate(error: &rustls::CertificateError) -> String {
    use rustls::CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, Other, UnknownIssuer,
    };
    match error {
        UnknownIssuer => "no trusted authority has signed it".to_owned(),
        Expired | ExpiredContext { .. } => "it has expired".to_owned(),
        NotValidForName | NotValidForNameContext { .. } => "it is not for this name".to_owned(),
        Other(other) => other.to_string(),
        other => other.to_string(),
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Describes what TLS did to save round trips: its ticket, and early data.
pub(crate) fn tls(used: &TlsUse) -> String {
    let version = match used.version {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    };
    let alpn = used.alpn.as_deref().map(|alpn| format!(", {alpn}")).unwrap_or_default();
    format!("{version}{alpn}: {}; {}", ticket(used.outcome.ticket).1, early_data(used.outcome.early_data).1)
}

/// Returns the outcome of a ticket: a word for programs, and a clause.
pub(crate) fn ticket(ticket: Ticket) -> (&'static str, &'static str) {
    match ticket {
        Ticket::None => ("none", "no ticket of an earlier visit, so a whole handshake"),
        Ticket::Pending => ("pending", "the server has not answered the ticket"),
        Ticket::Accepted => ("accepted", "the ticket of an earlier visit was accepted"),
        Ticket::Refused => ("refused", "the ticket was refused, so a whole handshake"),
    }
}

/// Returns the outcome of early data: a word for programs, and a clause.
pub(crate) fn early_data(early: EarlyBytes) -> (&'static str, &'static str) {
    match early {
        EarlyBytes::Accepted => ("accepted", "the request was early data and was accepted"),
        EarlyBytes::Pending => ("pending", "the server has not answered the early data"),
        EarlyBytes::Refused => ("refused", "early data was refused, and the request repeated"),
        EarlyBytes::NotSent(why) => match why {
            NotSent::NotAsked | NotSent::NoTicket => ("not sent", "the request followed the handshake"),
            NotSent::NotTaken => ("not taken", "the server takes no early data"),
            NotSent::NotRepeatable => {
                ("not repeatable", "the request followed the handshake, because it must not be repeated")
            }
            NotSent::TooLong => {
                ("too long", "the request is longer than the early data that the server takes")
            }
        },
    }
}

/// Returns the I/O error inside hyper's error.
pub(crate) fn io_error(error: hyper::Error) -> io::Error {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return match tls_error(cause) {
                Some(inner) => io::Error::new(cause.kind(), inner.clone()),
                None => io::Error::new(cause.kind(), cause.to_string()),
            };
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
