//! A socket's error queue (`recvmsg` with `MSG_ERRQUEUE`): time stamps of what was sent, ends of sends without a copy, ICMP errors; and
//! the time stamps of what is received.
//!
//! What the engine reports becomes an entry when it is noticed. As in Linux an entry that waits makes the socket ready for `POLLERR`.

use crate::errno::Errno;
use crate::files::Open;
use crate::readiness::Ready;
use crate::socket::{Domain, Socket};
use crate::sockets::Sockets;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use proto::{ConnId, IcmpReport, ReportKind, ReportKinds, SendReport, SeqNum};
use std::collections::VecDeque;

/// Where an entry comes from (`SO_EE_ORIGIN_…`).
pub mod origin {
    /// ICMP.
    pub const ICMP: u8 = 2;
    /// ICMPv6.
    pub const ICMP6: u8 = 3;
    /// A time stamp of what was sent.
    pub const TIMESTAMPING: u8 = 4;
    /// The end of sends with `MSG_ZEROCOPY`.
    pub const ZEROCOPY: u8 = 5;
}

/// Flags of `SO_TIMESTAMPING` (`SOF_TIMESTAMPING_…`).
pub mod stamping {
    /// To stamp what a device sends: there is none that could.
    pub const TX_HARDWARE: u32 = 1 << 0;
    /// To stamp what is handed to the device.
    pub const TX_SOFTWARE: u32 = 1 << 1;
    /// To note when data comes.
    pub const RX_SOFTWARE: u32 = 1 << 3;
    /// To tell the stamps made without a device.
    pub const SOFTWARE: u32 = 1 << 4;
    /// To number the bytes of the stream, from the first that is not acknowledged.
    pub const OPT_ID: u32 = 1 << 7;
    /// To stamp what leaves the stack.
    pub const TX_SCHED: u32 = 1 << 8;
    /// To stamp what is acknowledged.
    pub const TX_ACK: u32 = 1 << 9;
    /// Stamps come without the packet.
    pub const OPT_TSONLY: u32 = 1 << 11;
    /// And with what Linux knows of the connection, in netlink's form: not here.
    pub const OPT_STATS: u32 = 1 << 12;
    /// To convert a device's stamps: there are none.
    pub const BIND_PHC: u32 = 1 << 15;
    /// To number the bytes from the next that is written.
    pub const OPT_ID_TCP: u32 = 1 << 16;
    /// Stamps of received data only with [`RX_SOFTWARE`].
    pub const OPT_RX_FILTER: u32 = 1 << 17;
    /// All that Linux knows.
    pub const ALL: u32 = (1 << 19) - 1;
}

/// One entry (`sock_extended_err`, and what goes with it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedError {
    /// `ENOMSG` for a time stamp, 0 for the end of a send, else what the error means.
    pub errno: i32,
    /// One of [`origin`].
    pub origin: u8,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code; 1 with [`origin::ZEROCOPY`]: the data was copied.
    pub code: u8,
    /// Which time stamp (`SCM_TSTAMP_…`); the first of the sends that ended; ICMP's bytes 4 to 8.
    pub info: u32,
    /// Which byte of the stream with [`stamping::OPT_ID`]; the last of the sends that ended.
    pub data: u32,
    /// Of a time stamp.
    pub at: Option<Duration>,
    /// The packet, or what an ICMP error quotes of TCP.
    pub payload: Bytes,
    /// Who sent the ICMP error.
    pub offender: Option<IpAddr>,
    /// To whom went what it is about.
    pub name: Option<SocketAddr>,
}

/// What `recvmsg` tells beside the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ancillary {
    /// `SO_TIMESTAMP`; `wide`: asked for by its number with 64-bit seconds.
    Timestamp {
        /// When.
        at: Duration,
        /// `SO_TIMESTAMP_NEW`.
        wide: bool,
    },
    /// `SO_TIMESTAMPNS`.
    TimestampNs {
        /// When.
        at: Duration,
        /// `SO_TIMESTAMPNS_NEW`.
        wide: bool,
    },
    /// `SCM_TIMESTAMPING`, of which the first of three times is set.
    Timestamping {
        /// When.
        at: Duration,
        /// `SO_TIMESTAMPING_NEW`.
        wide: bool,
    },
    /// `TCP_CM_INQ`.
    Inq(i32),
    /// `IP_RECVERR` of an IPv4 socket.
    Error4(QueuedError),
    /// `IPV6_RECVERR`.
    Error6(QueuedError),
}

/// `SCM_TSTAMP_…`.
const STAMP_SENT: u32 = 0;
const STAMP_SCHEDULED: u32 = 1;
const STAMP_ACKNOWLEDGED: u32 = 2;
/// `SO_EE_CODE_ZEROCOPY_COPIED`.
const COPIED: u8 = 1;
/// Sends of one notification go no further than so many bytes, or so many calls (`msg_zerocopy_realloc`).
const ZEROCOPY_BYTES_MAX: usize = 1 << 19;
const ZEROCOPY_CALLS_MAX: u32 = u16::MAX as u32 - 1;
/// What may wait to end, or to be read (`net.core.optmem_max` over the size of an empty buffer).
const ZEROCOPY_MAX: usize = 131_072 / 576;
/// What an entry weighs beside its payload (Linux's empty buffer).
const ENTRY_WEIGHT: usize = 768;

/// What `SO_TIMESTAMP…` ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    #[default]
    Off,
    Micros,
    Nanos,
}

/// What a socket is told of times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamping {
    pub(crate) received: Clock,
    /// [`stamping`].
    pub(crate) flags: u32,
    /// By the newer numbers.
    pub(crate) wide: bool,
    /// Sequence number of byte 0.
    pub(crate) first: u32,
}

impl Stamping {
    pub(crate) fn notes_arrivals(&self) -> bool {
        self.received != Clock::Off || self.flags & stamping::RX_SOFTWARE != 0
    }

    pub(crate) fn is(&self, clock: Clock, wide: bool) -> bool {
        self.received == clock && self.wide == wide
    }

    /// What the engine is to report of a send.
    fn wanted(&self, instead: Option<u32>) -> ReportKinds {
        let flags = instead.unwrap_or(self.flags);
        let mut kinds = ReportKinds::empty();
        kinds.set(ReportKinds::SCHEDULED, flags & stamping::TX_SCHED != 0);
        kinds.set(ReportKinds::SENT, flags & stamping::TX_SOFTWARE != 0);
        kinds.set(ReportKinds::ACKNOWLEDGED, flags & stamping::TX_ACK != 0);
        if !kinds.is_empty() {
            kinds.set(ReportKinds::PACKET, self.flags & stamping::OPT_TSONLY == 0);
        }
        kinds
    }
}

/// Sends with `MSG_ZEROCOPY` that end together.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    first: u32,
    calls: u32,
    bytes: usize,
    /// They end when this is acknowledged.
    end: SeqNum,
}

/// The queue, and what is to come into it.
#[derive(Debug, Default)]
pub(crate) struct ErrorQueue {
    entries: VecDeque<QueuedError>,
    next_call: u32,
    unfinished: VecDeque<Unfinished>,
}

impl ErrorQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets what waits to be told.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    fn weight(&self) -> usize {
        self.entries.iter().map(|entry| entry.payload.len() + ENTRY_WEIGHT).sum()
    }

    /// `room`: what the queue may weigh (Linux charges it to the receive buffer); an entry beyond it is not told.
    fn push(&mut self, entry: QueuedError, room: usize) {
        if self.weight() + entry.payload.len() + ENTRY_WEIGHT < room {
            self.entries.push_back(entry);
        }
    }

    /// Sends have ended: those that follow the last ones told become one entry with them.
    fn finish(&mut self, sends: Unfinished) {
        let last = sends.first.wrapping_add(sends.calls - 1);
        if let Some(entry) = self.entries.back_mut()
            && entry.origin == origin::ZEROCOPY
            && entry.data.wrapping_add(1) == sends.first
        {
            entry.data = last;
            return;
        }
        self.entries.push_back(QueuedError {
            errno: 0,
            origin: origin::ZEROCOPY,
            kind: 0,
            code: COPIED,
            info: sends.first,
            data: last,
            at: None,
            payload: Bytes::new(),
            offender: None,
            name: None,
        });
    }
}

impl Socket {
    /// Whatever has been sent with `MSG_ZEROCOPY` is not needed any more.
    pub(crate) fn release_all(&mut self) {
        while let Some(sends) = self.errors.unfinished.pop_front() {
            self.errors.finish(sends);
        }
    }

    fn queue(&mut self, entry: QueuedError, room: usize) {
        self.errors.push(entry, room);
    }
}

impl Sockets {
    /// Turns the engine's reports into entries.
    pub(crate) fn take_reports(&mut self, open: Open, id: ConnId) {
        let room = self.stack.queues(id).map_or(usize::MAX, |queues| queues.recv_buffer as usize);
        while let Some(report) = self.stack.take_report(id) {
            let at = self.wall_clock(report.at);
            let Some(socket) = self.files.socket_at(open) else { return };
            match report.kind {
                ReportKind::Released => {
                    let ended = |sends: &mut Unfinished| sends.end.before_or_eq(report.seq);
                    while let Some(sends) = socket.errors.unfinished.pop_front_if(ended) {
                        socket.errors.finish(sends);
                    }
                }
                _ => {
                    let entry = stamp(&socket.options.stamping, report, at);
                    socket.queue(entry, room);
                }
            }
        }
        if let Some(report) = self.stack.take_icmp_report(id) {
            self.note_icmp(open, id, report, room);
        }
    }

    /// An ICMP error came that the engine believes. It ends an attempt to connect, which is queued; later it is told only to who asked
    /// for errors (`IP_RECVERR`), as an error of the socket (Linux's `tcp_v4_err`, `tcp_v6_err`).
    fn note_icmp(&mut self, open: Open, id: ConnId, report: IcmpReport, room: usize) {
        let Some((_, peer)) = self.stack.names(id) else { return };
        let una = self.stack.send_span(id).map(|(una, _)| una);
        let ended = self.stack.close_reason(id).is_some();
        let Some(socket) = self.files.socket_at(open) else { return };
        let v6 = report.from.is_ipv6();
        let errno = crate::errno::of_icmp(v6, report.kind, report.code);
        if !ended && socket.options.receives_errors(v6) {
            socket.error = Some(errno);
            return;
        }
        socket.unreachable = Some((errno, una));
        if ended {
            let name = Some(socket.domain.to_user(peer));
            let entry = QueuedError {
                errno: errno.0,
                origin: if v6 { origin::ICMP6 } else { origin::ICMP },
                kind: report.kind,
                code: report.code,
                info: if v6 { report.info } else { 0 },
                data: 0,
                at: None,
                payload: report.quote,
                offender: Some(report.from),
                name,
            };
            socket.queue(entry, room);
        }
    }

    /// May a send with `MSG_ZEROCOPY` begin? What it is then told of, [`zerocopy_sent`](Self::zerocopy_sent) decides.
    pub(crate) fn zerocopy_begin(&self, fd: i32) -> Result<Option<SeqNum>, Errno> {
        let socket = self.files.socket(fd)?;
        let told = socket.errors.entries.iter().filter(|entry| entry.origin == origin::ZEROCOPY).count();
        if socket.errors.unfinished.len() + told >= ZEROCOPY_MAX {
            return Err(Errno::ENOBUFS);
        }
        // Calls whose data waits in one segment end together.
        let tail = socket.errors.unfinished.back().map(|sends| sends.end);
        let unsent = |id| self.stack.queues(id).is_some_and(|queues| queues.unsent > 0);
        let span = socket.connection().filter(|id| unsent(*id)).and_then(|id| self.stack.send_span(id));
        Ok(tail.filter(|tail| span.is_some_and(|(_, end)| end == *tail)))
    }

    /// It has taken something; `joins`: what waited before it is the tail it continues. Every byte was copied, and the notification
    /// says so.
    pub(crate) fn zerocopy_sent(
        &mut self,
        fd: i32,
        bytes: usize,
        joins: Option<SeqNum>,
    ) -> Result<(), Errno> {
        let open = self.files.open(fd)?;
        let Some(id) = self.files.socket(fd)?.connection() else { return Ok(()) };
        let Some((_, end)) = self.stack.send_span(id) else { return Ok(()) };
        let held = self.stack.report_released(id).unwrap_or(false);
        let socket = self.files.socket_mut(fd)?;
        let call = socket.errors.next_call;
        socket.errors.next_call = call.wrapping_add(1);
        let fits = |sends: &&mut Unfinished| {
            joins == Some(sends.end)
                && sends.calls < ZEROCOPY_CALLS_MAX
                && sends.bytes + bytes <= ZEROCOPY_BYTES_MAX
        };
        if let Some(sends) = socket.errors.unfinished.back_mut().filter(fits) {
            sends.calls += 1;
            sends.bytes += bytes;
            sends.end = end;
        } else {
            socket.errors.unfinished.push_back(Unfinished { first: call, calls: 1, bytes, end });
        }
        if !held {
            socket.release_all();
            self.wake_epolls(open, Ready::ERR);
        }
        Ok(())
    }

    /// A send has taken bytes of the stream: the last of them is stamped, if that was asked for.
    pub(crate) fn stamp_sent(&mut self, fd: i32, instead: Option<u32>) -> Result<(), Errno> {
        let socket = self.files.socket(fd)?;
        let wanted = socket.options.stamping.wanted(instead);
        if let Some(id) = socket.connection().filter(|_| !wanted.is_empty()) {
            // A connection that has ended sends nothing to be stamped.
            let _ = self.stack.report_last(id, wanted);
        }
        Ok(())
    }

    /// `recvmsg` with `MSG_ERRQUEUE`: the oldest entry. It never waits.
    ///
    /// # Errors
    /// `EAGAIN`, `EBADF`, `ENOTSOCK`.
    pub fn receive_error(&mut self, fd: i32) -> Result<(QueuedError, Vec<Ancillary>), Errno> {
        let open = self.files.open(fd)?;
        let socket = self.files.socket_mut(fd)?;
        let entry = socket.errors.entries.pop_front().ok_or(Errno::EAGAIN)?;
        let of_icmp = |entry: &QueuedError| matches!(entry.origin, origin::ICMP | origin::ICMP6);
        let next = socket.errors.entries.front();
        match next.filter(|next| of_icmp(next)) {
            Some(next) => socket.error = Some(Errno(next.errno)),
            None if of_icmp(&entry) => socket.error = None,
            None => {}
        }
        let more = next.is_some();
        let Stamping { received, flags, wide, .. } = socket.options.stamping;
        let mut told = Vec::new();
        if let Some(at) = entry.at {
            told.extend(clock(received, at, wide));
            if flags & stamping::SOFTWARE != 0 {
                told.push(Ancillary::Timestamping { at, wide });
            }
        }
        told.push(match socket.domain {
            Domain::V4 => Ancillary::Error4(entry.clone()),
            Domain::V6 => Ancillary::Error6(entry.clone()),
        });
        if more {
            self.wake_epolls(open, Ready::ERR);
        }
        Ok((entry, told))
    }

    /// What `recvmsg` tells beside `len` bytes it has given; `peeked`: and left where they were.
    ///
    /// # Errors
    /// `EBADF`, `ENOTSOCK`.
    pub fn ancillary(&self, fd: i32, len: usize, peeked: bool) -> Result<Vec<Ancillary>, Errno> {
        let socket = self.files.socket(fd)?;
        let Stamping { received, flags, wide, .. } = socket.options.stamping;
        let mut told = Vec::new();
        let came = socket.connection().filter(|_| len > 0).and_then(|id| {
            let ahead = if peeked { len } else { 0 };
            self.stack.arrived_at(id, ahead)
        });
        if let Some(at) = came.map(|at| self.wall_clock(at)) {
            told.extend(clock(received, at, wide));
            let filtered = flags & stamping::OPT_RX_FILTER != 0 && flags & stamping::RX_SOFTWARE == 0;
            if flags & stamping::SOFTWARE != 0 && !filtered {
                told.push(Ancillary::Timestamping { at, wide });
            }
        }
        told.extend(self.left_to_read(fd)?.map(Ancillary::Inq));
        Ok(told)
    }
}

fn clock(received: Clock, at: Duration, wide: bool) -> Option<Ancillary> {
    match received {
        Clock::Off => None,
        Clock::Micros => Some(Ancillary::Timestamp { at, wide }),
        Clock::Nanos => Some(Ancillary::TimestampNs { at, wide }),
    }
}

fn stamp(stamping: &Stamping, report: SendReport, at: Duration) -> QueuedError {
    let numbered = stamping.flags & self::stamping::OPT_ID != 0;
    QueuedError {
        errno: libc::ENOMSG,
        origin: origin::TIMESTAMPING,
        kind: 0,
        code: 0,
        info: match report.kind {
            ReportKind::Scheduled => STAMP_SCHEDULED,
            ReportKind::Acknowledged => STAMP_ACKNOWLEDGED,
            _ => STAMP_SENT,
        },
        data: if numbered { report.seq.0.wrapping_sub(stamping.first) } else { 0 },
        at: Some(at),
        payload: report.packet,
        offender: None,
        name: None,
    }
}
