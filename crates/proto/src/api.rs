//! What the application says and hears: handles, events, options of the verbs, outcomes.
use crate::SocketOptions;
use crate::fast_open::KeyRing;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

/// A connection of a stack. Generations make a stale handle harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
impl ConnId {
    /// A small number that no other connection of the stack has at the same time: for a table of the application's own. One that
    /// comes later may have it again.
    pub fn slot(self) -> usize {
        self.index as usize
    }
}
/// A listener of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
/// Whom an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SocketId {
    /// A connection.
    Connection(ConnId),
    /// A listener.
    Listener(ListenerId),
}
bitflags::bitflags! {
    /// What may have changed. Events are hints; the verbs tell the truth.
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
    /// What an application says of one write (Linux's `MSG_` flags).
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

/// How a listener behaves.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Accept-queue limit (capped at `net.core.somaxconn`).
    pub backlog: u32,
    /// Fast Open: the most pending Fast Open connections (`TCP_FASTOPEN`'s qlen); `None` or 0 = off, unless `tcp_fastopen` has 0x400.
    pub fast_open: Option<u32>,
    /// Own cookie keys (`TCP_FASTOPEN_KEY`); otherwise the stack's.
    pub key: Option<KeyRing>,
    /// Longest time a SYN-ACK waits for the answer; `None` = the stack's setting, zero = Linux's behaviour.
    pub synack_hold: Option<Duration>,
    /// Accept SYN data without a cookie here (`TCP_FASTOPEN_NO_COOKIE`).
    pub fast_open_no_cookie: bool,
    /// Leave a client half-open until its first data, at least this long (`TCP_DEFER_ACCEPT`); zero = off. It ends with a time-out of
    /// the SYN-ACK: 1, 3, 7, 15 … s after the SYN. Clients in SYN cookies, and Fast Open's, are not deferred.
    pub defer_accept: Duration,
    /// Of a listener at `[::]`: no IPv4 (`IPV6_V6ONLY`).
    pub v6_only: bool,
    /// Share the address and port with other listeners that do; each connection goes to one of them, by its addresses and ports
    /// (`SO_REUSEPORT`). Like `v6_only` it is read once, by `listen`.
    pub share_port: bool,
    /// Options accepted connections inherit.
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
/// How an active open uses Fast Open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FastOpen {
    /// Not at all.
    #[default]
    Off,
    /// With a cached cookie if there is one and no verdict against the path; else ask for a cookie.
    Auto,
    /// As `Auto`, but ignoring negative verdicts.
    Force,
    /// SYN data without any option (`TCP_FASTOPEN_NO_COOKIE`): only where both ends agreed.
    NoCookie,
}
/// Whether data of an active open would ride on its SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenReadiness {
    /// It would.
    Ready,
    /// It would, were there a cookie: the SYN asks for one.
    LacksCookie,
    /// Fast Open is off, paused, or there is no route.
    Unavailable,
}
/// How to connect.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// Local address; chosen when absent or unspecified, likewise the port when 0.
    pub local: Option<SocketAddr>,
    /// The lowest and the highest port that may be chosen, where they lie within the stack's own range; 0 is the stack's
    /// (`IP_LOCAL_PORT_RANGE`).
    pub local_ports: Option<(u16, u16)>,
    /// Fast Open.
    pub fast_open: FastOpen,
    /// First bytes of the stream. With Fast Open as much as fits rides on the SYN, without it they go with the handshake's ACK.
    pub first_bytes: Bytes,
    /// Take no more of `first_bytes` than the SYN carries; `ConnectionInfo::send_queue` tells how much that is.
    pub syn_only: bool,
    /// Send no SYN yet. The connection has its name, and waits for
    /// [`send_held_syn`](crate::Stack::send_held_syn) (`TCP_FASTOPEN_CONNECT`). Pass the other
    /// options of the SYN to that call.
    pub held: bool,
    /// Send the cookie even without data, so that a server that speaks first may do so at once.
    pub data_less: bool,
    /// Queue the FIN right behind `first_bytes`; with Fast Open and `syn_fin` it may ride on the SYN.
    pub fin: bool,
    /// Allow SYN+data+FIN (both ends must be ours; needs a replay guard at the server).
    pub syn_fin: bool,
    /// Options of the connection.
    pub socket: SocketOptions,
}
/// What became of Fast Open on a connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No SYN-ACK yet.
    Pending,
    /// The SYN's data (or data-less cookie) was accepted.
    Accepted,
    /// Data was sent and not acknowledged; it was retransmitted at once.
    NotAcknowledged(NotAcknowledged),
    /// A cookie was asked for; was one granted?
    CookieRequested {
        /** a cookie came back */
        granted: bool,
    },
    /// A cookie was asked for. The kernel's sockets do not report whether one came back; our stack
    /// reports [`CookieRequested`](Self::CookieRequested).
    CookieAsked,
    /// Fast Open was not tried.
    Skipped(Skipped),
}
/// Why SYN data was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAcknowledged {
    /// The server's key changed; a new cookie came with the refusal.
    StaleCookie,
    /// The server answered with the cookie it was given: its Fast Open queue was full, or its replay guard hit.
    Busy,
    /// No option came back: Fast Open is off there, or a middlebox stripped the option.
    Ignored,
    /// Only a part of the data was acknowledged.
    Partial,
    /// No answer until the plain SYN: something on the path drops SYN data, or the packet was lost.
    Lost,
    /// The SYN with data was answered by a reset, the plain one was not.
    Reset,
    /// ICMP reported that the SYN with data is too big for the path. The next SYN is smaller.
    TooBig,
    /// The peer answered for an older connection between the same ports. A plain SYN opened this
    /// connection.
    OldConnection,
    /// The kernel's sockets do not report why. Our stack always does.
    Unknown,
}
/// Why Fast Open was not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The caller did not ask.
    NotAsked,
    /// `tcp_fastopen` bit 0x1 is off.
    Disabled,
    /// There is nothing to send, and no cookie to show (cookie-less mode).
    NothingToSend,
    /// A negative verdict holds for this path.
    Verdict(Verdict),
    /// The stack-wide pause after black holes (`tcp_fastopen_blackhole_timeout_sec`).
    Paused,
    /// Simultaneous open: the peer's SYN crossed ours.
    Simultaneous,
}
/// Negative evidence about a path (local network, peer, port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// No answer to the Fast Open SYN, but to the plain one.
    Dropped,
    /// Cookie and data sent; SYN-ACK of the ISN without any option.
    NotAcknowledged,
    /// A cookie request came back without a cookie.
    Stripped,
    /// A reset answered the Fast Open SYN but not the plain one.
    Reset,
    /// Accepted, then no acknowledgement progress for three time-outs.
    Stalled,
    /// SYN+data+FIN failed where SYN+data may work.
    SynFin,
}
/// What arrived before the handshake was complete, and may be a replay (RFC 7413 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EarlyData {
    /** bytes at the start of the stream that came in the SYN */
    pub len: usize,
    /** the handshake has completed since: the peer really holds its address */
    pub confirmed: bool,
}
