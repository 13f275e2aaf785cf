//! The interface of the application: handles, events, options of calls, outcomes.
use crate::SocketOptions;
use crate::fast_open::KeyRing;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

/// A handle of a connection. Its generation makes a stale handle harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
impl ConnId {
    /// Returns a small number, unique among the current connections of the stack, for tables of the
    /// application. Later connections reuse it.
    pub fn slot(self) -> usize {
        self.index as usize
    }
}
/// A handle of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
/// The socket that an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SocketId {
    /// A connection.
    Connection(ConnId),
    /// A listener.
    Listener(ListenerId),
}
bitflags::bitflags! {
    /// Possible changes of a socket. Events are hints; the calls return the real state.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct Events: u16 {
        /// `read` may return something new: data, end of stream, or an error.
        const READABLE = 0x01;
        /// `write` may take more, or fail.
        const WRITABLE = 0x02;
        /// The handshake of an active open is complete, or its outcome is known.
        const CONNECTED = 0x04;
        /// The connection ended (closed, reset, timed out); `close_reason` says why.
        const CLOSED = 0x08;
        /// A listener has a connection to accept.
        const ACCEPTABLE = 0x10;
        /// Everything written has been acknowledged.
        const SENT_ALL = 0x20;
        /// The peer announced urgent bytes, or the last of them has come; `urgent_mark` says how far it is to that.
        const URGENT = 0x40;
        /// `take_report` has something, or `take_icmp_report`.
        const REPORT = 0x80;
    }
}
bitflags::bitflags! {
    /// Options of one write (Linux's `MSG_` flags).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct WriteFlags: u8 {
        /// Another write follows at once (`MSG_MORE`): no push, and what does not fill a segment waits for it, until the peer sends
        /// something or, with nothing in flight, a retransmission time-out passes.
        const MORE = 0x1;
        /// A record ends with it (`MSG_EOR`): what is written later never shares a segment with it.
        const END_OF_RECORD = 0x2;
        /// Its last byte is urgent (`MSG_OOB`): the peer hears of it at once, and nothing holds it back but the windows. New protocols should
        /// not use it (RFC 6093 §5); a large burst becomes single segments until it is acknowledged.
        const URGENT = 0x4;
    }
}

/// Options of a listener.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Limit of the accept queue, at most `net.core.somaxconn`.
    pub backlog: u32,
    /// Maximum pending Fast Open connections (`TCP_FASTOPEN`'s qlen). `None` or 0 disables Fast
    /// Open, unless `tcp_fastopen` has 0x400.
    pub fast_open: Option<u32>,
    /// Cookie keys of the listener (`TCP_FASTOPEN_KEY`); `None` for the stack's.
    pub key: Option<KeyRing>,
    /// Maximum time a SYN-ACK waits for the answer. `None` is the stack's setting, zero is Linux's
    /// behavior.
    pub synack_hold: Option<Duration>,
    /// True to accept SYN data without a cookie (`TCP_FASTOPEN_NO_COOKIE`).
    pub fast_open_no_cookie: bool,
    /// Minimum time a client stays half-open until its first data (`TCP_DEFER_ACCEPT`); zero
    /// disables it. The time ends with a timeout of the SYN-ACK: 1, 3, 7, 15 … s after the SYN.
    /// Clients of SYN cookies and of Fast Open are not deferred.
    pub defer_accept: Duration,
    /// True to refuse IPv4 on a listener at `[::]` (`IPV6_V6ONLY`).
    pub v6_only: bool,
    /// True to share address and port with other such listeners (`SO_REUSEPORT`). A hash of
    /// addresses and ports selects the listener of a connection. Like `v6_only`, it is read once,
    /// by `listen`.
    pub share_port: bool,
    /// Options that accepted connections inherit.
    pub socket: SocketOptions,
}
impl Default for ListenOptions {
    fn default() -> Self {
        ListenOptions {
            backlog: 1024,
            fast_open: None,
            key: None,
            synack_hold: None,
            fast_open_no_cookie: false,
            defer_accept: Duration::ZERO,
            v6_only: false,
            share_port: false,
            socket: SocketOptions::default(),
        }
    }
}
/// Use of Fast Open by an active open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FastOpen {
    /// No Fast Open.
    #[default]
    Off,
    /// Uses a cached cookie if there is no verdict against the path; otherwise requests a cookie.
    Auto,
    /// Like `Auto`, but ignores negative verdicts.
    Force,
    /// Sends SYN data without an option (`TCP_FASTOPEN_NO_COOKIE`). Both ends must have agreed on
    /// that.
    NoCookie,
}
/// Whether the SYN of an active open would carry data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenReadiness {
    /// The SYN would carry data.
    Ready,
    /// The SYN would request a cookie, because there is none.
    LacksCookie,
    /// Fast Open is off or paused, or there is no route.
    Unavailable,
}
/// Options of an active open.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// Local address. The stack chooses an absent or unspecified address, and a port of 0.
    pub local: Option<SocketAddr>,
    /// Lowest and highest port to choose from, within the stack's range; 0 is the stack's limit
    /// (`IP_LOCAL_PORT_RANGE`).
    pub local_ports: Option<(u16, u16)>,
    /// Use of Fast Open.
    pub fast_open: FastOpen,
    /// First bytes of the stream. With Fast Open the SYN carries as many as fit; without it they
    /// follow with the ACK of the handshake.
    pub first_bytes: Bytes,
    /// True to accept only as many of `first_bytes` as the SYN carries.
    /// `ConnectionInfo::send_queue` has their number.
    pub syn_only: bool,
    /// True to send no SYN yet. The connection has its addresses and waits for
    /// [`send_held_syn`](crate::Stack::send_held_syn) (`TCP_FASTOPEN_CONNECT`). Pass the other
    /// options of the SYN to that call.
    pub held: bool,
    /// True to send the cookie even without data, so that a server that speaks first can send at
    /// once.
    pub data_less: bool,
    /// True to queue a FIN after `first_bytes`. With Fast Open and `syn_fin` the SYN may carry it.
    pub fin: bool,
    /// True to allow SYN+data+FIN. Both ends must be Firstbyte, and the server needs a replay
    /// guard.
    pub syn_fin: bool,
    /// Options of the connection.
    pub socket: SocketOptions,
}
/// The outcome of Fast Open on an active open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No SYN-ACK has arrived.
    Pending,
    /// The data of the SYN, or its data-less cookie, was accepted.
    Accepted,
    /// Data was sent and not acknowledged. It was retransmitted at once.
    NotAcknowledged(NotAcknowledged),
    /// A cookie was requested.
    CookieRequested {
        /** a cookie came back */
        granted: bool,
    },
    /// A cookie was asked for. The kernel's sockets do not report whether one came back; our stack
    /// reports [`CookieRequested`](Self::CookieRequested).
    CookieAsked,
    /// The kernel does not report the outcome (FreeBSD, and macOS with Fast Open off).
    Unknown,
    /// Fast Open was not tried.
    Skipped(Skipped),
}
/// The reason why SYN data was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAcknowledged {
    /// The server's key changed; the rejection brought a new cookie.
    StaleCookie,
    /// The server returned the same cookie: its Fast Open queue was full, or its replay guard hit.
    Busy,
    /// No option was returned: Fast Open is off at the server, or a middlebox removed the option.
    Ignored,
    /// Only part of the data was acknowledged.
    Partial,
    /// No answer before the plain SYN: the path drops SYN data, or the packet was lost.
    Lost,
    /// The SYN with data was reset, the plain one was not.
    Reset,
    /// ICMP reported that the SYN with data is too large for the path. The next SYN is smaller.
    TooBig,
    /// The peer answered for an older connection with the same ports. A plain SYN opened this
    /// connection.
    OldConnection,
    /// The kernel's sockets do not report why. Our stack always does.
    Unknown,
}
/// The reason why Fast Open was not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The caller did not request it.
    NotAsked,
    /// `tcp_fastopen` bit 0x1 is off.
    Disabled,
    /// There is no data to send and no cookie to present (cookie-less mode).
    NothingToSend,
    /// A negative verdict applies to this path.
    Verdict(Verdict),
    /// The stack-wide pause after black holes (`tcp_fastopen_blackhole_timeout_sec`).
    Paused,
    /// Simultaneous open: the SYNs crossed.
    Simultaneous,
}
/// Negative evidence about a path (local network, peer, port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The Fast Open SYN was not answered, the plain one was.
    Dropped,
    /// Cookie and data were sent; the SYN-ACK acknowledged only the SYN and had no option.
    NotAcknowledged,
    /// A cookie request was answered without a cookie.
    Stripped,
    /// The Fast Open SYN was reset, the plain one was not.
    Reset,
    /// The data was accepted, then acknowledgments made no progress for three timeouts.
    Stalled,
    /// SYN+data+FIN failed; SYN+data may still work.
    SynFin,
}
/// Data that arrived before the handshake completed, and may be a replay (RFC 7413 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EarlyData {
    /** bytes at the start of the stream that came in the SYN */
    pub len: usize,
    /** the handshake has completed since: the peer really holds its address */
    pub confirmed: bool,
}
