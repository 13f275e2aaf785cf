//! What goes into the error queue of a socket, and calls that take it out.

use super::*;
use crate::files::open::Open;
use crate::ready::Ready;
use crate::socket::{Domain, Socket};
use crate::sockets::Sockets;

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

    /// Returns the ancillary data of `recvmsg` for `len` bytes. `peeked`: the bytes stay in the
    /// queue.
    ///
    /// # Errors
    /// Returns `EBADF` or `ENOTSOCK`.
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
