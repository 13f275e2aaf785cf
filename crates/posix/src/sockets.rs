//! The sockets of one process on one stack.
//!
//! Every system call is one attempt. It succeeds, fails with an errno, or reports that it must wait
//! ([`Stop::Wait`]). The caller, such as [`virtual_time`](crate::virtual_time) or a test, repeats
//! it after an event. Nothing here reads a clock.

use crate::errno::{self, Errno, Stop};
use crate::files::open::Open;
use crate::files::{File, Files};
use crate::parting::Parting;
use crate::ready::Ready;
use crate::socket::{Former, Opening, Options, Role, Shut, Socket};
use core::time::Duration;
use proto::{ConnId, Events, Instant, SocketId, Stack, State};
use std::collections::{BTreeSet, HashMap};

/// The sockets of one process over one stack.
pub struct Sockets {
    pub(crate) stack: Stack,
    pub(crate) files: Files,
    /// Whose file an event concerns. Never iterated.
    pub(crate) owners: HashMap<SocketId, Open>,
    /// Which of the files are epoll instances.
    pub(crate) epolls: Vec<Open>,
    /// Names that closed sockets still hold.
    pub(crate) parting: Parting,
    /// `SO_COOKIE`s given out.
    cookies: u64,
    /// Files to which something has happened.
    stirred: BTreeSet<Open>,
    /// `CLOCK_REALTIME` when the stack's clock showed zero.
    epoch: Duration,
}

impl std::fmt::Debug for Sockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Sockets {
    /// No socket yet. `base` is the lowest descriptor given out.
    pub fn new(stack: Stack, base: i32) -> Sockets {
        Sockets {
            stack,
            files: Files::new(base),
            owners: HashMap::new(),
            epolls: Vec::new(),
            parting: Parting::default(),
            cookies: 0,
            stirred: BTreeSet::new(),
            epoch: Duration::ZERO,
        }
    }

    /// Sets the time of the wall clock (`CLOCK_REALTIME`, since 1970) at the stack's time zero.
    /// Time stamps for applications count from it. The default is zero.
    pub fn set_epoch(&mut self, epoch: Duration) {
        self.epoch = epoch;
    }

    /// A time of the stack as `CLOCK_REALTIME`.
    pub(crate) fn wall_clock(&self, at: Instant) -> Duration {
        self.epoch + at.since(Instant::ZERO)
    }

    /// A number that no other socket has (`SO_COOKIE`).
    pub(crate) fn cookie(&mut self, fd: i32) -> Result<u64, Errno> {
        let next = self.cookies + 1;
        let cookie = *self.files.socket_mut(fd)?.cookie.get_or_insert(next);
        self.cookies = self.cookies.max(cookie);
        Ok(cookie)
    }

    /// The stack below.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The stack below, for packets, time and settings; [`notice`](Self::notice) comes after.
    pub fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// No descriptor is lower.
    pub(crate) fn first_descriptor(&self) -> i32 {
        self.files.lowest()
    }

    /// Returns whether this descriptor is open.
    pub fn is_open(&self, fd: i32) -> bool {
        self.files.get(fd).is_ok()
    }

    /// Handles the reports of the stack. Returns true if waiting calls should make another attempt.
    pub fn notice(&mut self) -> bool {
        let mut any = false;
        while let Some((id, events)) = self.stack.poll_event() {
            any = true;
            let Some(open) = self.owners.get(&id).copied() else { continue };
            if let SocketId::Connection(conn) = id {
                if events.contains(Events::REPORT) {
                    self.take_reports(open, conn);
                }
                self.notice_end(open, conn);
            }
            let mut ready = ready_by(events);
            if ready == Ready::IN | Ready::RDNORM && self.waits_for_more(open) {
                ready = Ready::empty();
            }
            // The end of the stream is something to read.
            ready.set(Ready::RDHUP, ready.contains(Ready::IN) && self.has_heard_the_end(open));
            self.wake_epolls(open, ready);
        }
        any
    }

    /// Notes that something has happened to a file.
    pub(crate) fn note_stirred(&mut self, open: Open) {
        self.stirred.insert(open);
    }

    fn has_heard_the_end(&mut self, open: Open) -> bool {
        self.files.socket_at(open).is_some_and(|socket| socket.peer_finished)
    }

    /// What has come is less than `SO_RCVLOWAT`: nobody is woken by it (Linux's `tcp_data_ready`).
    fn waits_for_more(&self, open: Open) -> bool {
        let Ok(File::Socket(socket)) = self.files.at(open) else { return false };
        socket.options.rcvlowat > 1 && self.readiness_at(open).is_ok_and(|ready| !ready.contains(Ready::IN))
    }

    /// Hands over the files to which something has happened, for a driver that wakes only whom it concerns.
    pub(crate) fn take_stirred(&mut self, tell: impl FnMut(Open)) {
        std::mem::take(&mut self.stirred).into_iter().for_each(tell);
    }

    /// As [`notice_end`](Self::notice_end), for who knows the descriptor.
    pub(crate) fn notice_state(&mut self, fd: i32, conn: ConnId) {
        if let Ok(open) = self.files.open(fd) {
            self.notice_end(open, conn);
        }
    }

    /// What the connection has come to: its end becomes the socket's error.
    pub(crate) fn notice_end(&mut self, open: Open, conn: ConnId) {
        let reason = self.stack.close_reason(conn);
        let state = self.stack.state(conn);
        if reason.is_some() {
            self.take_reports(open, conn);
        }
        let Some(socket) = self.files.socket_at(open) else { return };
        let had_finished = socket.peer_finished;
        socket.peer_finished |= state.is_some_and(peer_has_finished);
        let Some(reason) = reason else { return };
        if !std::mem::replace(&mut socket.ended, true) {
            socket.error = errno::of_end(reason, had_finished, socket.unreachable.map(|(errno, _)| errno));
            socket.release_all();
            socket.let_go_of_name(None);
        }
    }

    /// Engine's state of a connection; what is gone is closed.
    pub(crate) fn state(&self, conn: ConnId) -> State {
        self.stack.state(conn).unwrap_or(State::Closed)
    }

    /// Gives a connection or a listener to a descriptor.
    pub(crate) fn own(&mut self, fd: i32, role: Role) -> Result<(), Errno> {
        let open = self.files.open(fd)?;
        self.files.socket_mut(fd)?.role = role;
        if let Some(id) = role.id() {
            self.owners.insert(id, open);
        }
        Ok(())
    }

    /// As [`close_all`](Self::close_all), and no descriptor can be made any more.
    pub(crate) fn end(&mut self, now: Instant) {
        self.close_all(now);
        self.files.end();
    }

    /// Closes every descriptor, and what waiting calls hold.
    pub(crate) fn close_all(&mut self, now: Instant) {
        let open: Vec<i32> = self.files.numbers().collect();
        for fd in open {
            // It is open, and closing has no other error.
            let _ = self.close(now, fd);
        }
        let held: Vec<Open> = self.files.iter().map(|(open, _)| open).collect();
        for open in held {
            while self.files.at(open).is_ok() {
                self.let_go(now, open);
            }
        }
    }

    /// What these numbers stand for, held open for a call that waits, as the kernel does while one is in progress; each is to be
    /// [let go](Self::let_go).
    pub(crate) fn hold(&mut self, fds: &[i32]) -> Vec<(i32, Open)> {
        let held: Vec<(i32, Open)> =
            fds.iter().filter_map(|fd| Some((*fd, self.files.open(*fd).ok()?))).collect();
        held.iter().for_each(|(_, open)| self.files.hold(*open));
        held
    }

    /// The call is over: a file whose last number was closed meanwhile is closed now.
    pub(crate) fn let_go(&mut self, now: Instant, open: Open) {
        if let Some(file) = self.files.let_go(open)
            && let Some(socket) = self.close_file(open, file)
        {
            self.release(now, &socket);
        }
    }

    /// `close`, which does not wait for the peer whatever `SO_LINGER` says: [`Close`] does.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn close(&mut self, now: Instant, fd: i32) -> Result<(), Errno> {
        if let Some(socket) = self.remove(fd)? {
            self.release(now, &socket);
        }
        Ok(())
    }

    /// Takes a descriptor away; the socket, if it was the last one of it.
    pub(crate) fn remove(&mut self, fd: i32) -> Result<Option<Box<Socket>>, Errno> {
        let removed = self.files.remove(fd)?;
        Ok(removed.and_then(|(open, file)| self.close_file(open, file)))
    }

    /// Nothing stands for this file any more.
    fn close_file(&mut self, open: Open, file: File) -> Option<Box<Socket>> {
        self.forget_in_epolls(open);
        self.note_stirred(open);
        match file {
            File::Socket(socket) => return Some(socket),
            File::Pipe(end) => self.close_pipe(&end),
            File::Epoll(_) => self.epolls.retain(|epoll| *epoll != open),
        }
        None
    }

    /// Lets go of what a socket holds in the engine.
    pub(crate) fn release(&mut self, now: Instant, socket: &Socket) {
        if let Some(id) = socket.role.id() {
            self.owners.remove(&id);
        }
        match socket.role {
            Role::Fresh => {}
            Role::Listener(id) => self.stack.close_listener(now, id),
            Role::Connection(id) if socket.repair.on => self.stack.discard(now, id),
            Role::Connection(id) => {
                if let Some((local, _)) = self.stack.names(id) {
                    let Options { reuse_addr, reuse_port, .. } = socket.options;
                    self.parting.note((local.ip(), local.port()), reuse_addr, reuse_port);
                }
                self.stack.close(now, id);
            }
        }
    }

    /// `fcntl(F_GETFL)`: the access mode and `O_NONBLOCK`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn flags(&self, fd: i32) -> Result<i32, Errno> {
        let (mode, nonblocking) = match self.files.get(fd)? {
            File::Socket(socket) => (libc::O_RDWR | socket.status, socket.nonblocking),
            File::Epoll(_) => (libc::O_RDWR, false),
            File::Pipe(end) => (end.mode(), end.nonblocking),
        };
        Ok(mode | if nonblocking { libc::O_NONBLOCK } else { 0 })
    }

    /// Returns whether both refer to the same file.
    pub fn is_same_file(&self, one: i32, other: i32) -> bool {
        matches!((self.files.open(one), self.files.open(other)), (Ok(one), Ok(other)) if one == other)
    }

    /// A socket that neither listens nor connects, and has not.
    pub fn is_unconnected(&self, fd: i32) -> bool {
        self.files.socket(fd).is_ok_and(Socket::is_closed)
    }

    /// Returns whether the socket may be bound to addresses that no interface has (`IP_FREEBIND`,
    /// `IP_TRANSPARENT`).
    pub fn binds_anywhere(&self, fd: i32) -> bool {
        self.files.socket(fd).is_ok_and(|socket| socket.options.freebind || socket.options.transparent)
    }

    /// `fcntl(F_SETFL)`. Only the flag `O_NONBLOCK` has an effect.
    ///
    /// # Errors
    /// Returns `EBADF`; `EINVAL` for `O_DIRECT`; `EOPNOTSUPP` for `O_ASYNC`, because sockets raise
    /// no signal.
    pub fn set_flags(&mut self, fd: i32, flags: i32) -> Result<(), Errno> {
        let nonblocking = flags & libc::O_NONBLOCK != 0;
        match self.files.get_mut(fd)? {
            File::Socket(_) if flags & libc::O_DIRECT != 0 => return Err(Errno::EINVAL),
            File::Socket(_) if flags & libc::O_ASYNC != 0 => return Err(Errno::EOPNOTSUPP),
            File::Socket(socket) => {
                socket.nonblocking = nonblocking;
                socket.status = flags & (libc::O_APPEND | libc::O_NOATIME);
            }
            File::Pipe(end) => end.nonblocking = nonblocking,
            File::Epoll(_) => {}
        }
        Ok(())
    }

    /// `fcntl(F_GETFD)`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn closes_on_exec(&self, fd: i32) -> Result<bool, Errno> {
        self.files.closes_on_exec(fd)
    }

    /// `fcntl(F_SETFD)`. It is remembered; no descriptor of a library survives `exec`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn set_close_on_exec(&mut self, fd: i32, on: bool) -> Result<(), Errno> {
        self.files.set_close_on_exec(fd, on)
    }

    /// `dup`, and `fcntl(F_DUPFD)`: returns the lowest free descriptor that is at least `least`,
    /// for the same file.
    ///
    /// # Errors
    /// Returns `EBADF`, `EMFILE`, or `EINVAL` if no descriptor can be as high as `least`.
    pub fn duplicate(&mut self, fd: i32, least: i32, close_on_exec: bool) -> Result<i32, Errno> {
        self.files.get(fd)?;
        if least < 0 || least > self.files.highest() {
            return Err(Errno::EINVAL);
        }
        self.files.duplicate(fd, least, close_on_exec)
    }

    /// `dup3` of two different descriptors. Closes the previous file of `new`.
    ///
    /// # Errors
    /// Returns `EBADF`, also if `new` cannot be one of the library's, and `EINVAL` if they are
    /// equal.
    pub fn duplicate_as(
        &mut self,
        now: Instant,
        fd: i32,
        new: i32,
        close_on_exec: bool,
    ) -> Result<i32, Errno> {
        if fd == new {
            return Err(Errno::EINVAL);
        }
        self.files.get(fd)?;
        if !self.files.is_number(new) {
            return Err(Errno::EBADF);
        }
        if self.is_open(new) {
            self.close(now, new)?;
        }
        self.files.duplicate_as(fd, new, close_on_exec)?;
        Ok(new)
    }

    /// `shutdown` (Linux's `inet_shutdown`). It is remembered even if the socket has nothing to
    /// shut down.
    ///
    /// # Errors
    /// Returns `EINVAL` for an invalid `how`, and `ENOTCONN` for an unconnected socket.
    pub fn shutdown(&mut self, now: Instant, fd: i32, how: i32) -> Result<(), Errno> {
        let (read, write) = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => {
                self.files.socket(fd)?;
                return Err(Errno::EINVAL);
            }
        };
        if let Some(id) = self.files.socket(fd)?.connection() {
            self.notice_state(fd, id);
        }
        let socket = self.files.socket(fd)?;
        let state = socket.connection().map(|id| self.state(id));
        let opening = matches!(state, Some(State::SynSent | State::SynReceived)) || socket.is_closed();
        let socket = self.files.socket_mut(fd)?;
        if socket.opening == Opening::Connecting {
            socket.opening = if opening { Opening::Disconnecting } else { Opening::Connected };
        }
        match socket.role {
            Role::Listener(_) if !read => Ok(()),
            Role::Listener(_) => self.disconnect(now, fd),
            Role::Connection(_) if state == Some(State::SynSent) => self.disconnect(now, fd),
            Role::Connection(id) if !socket.ended => self.shut(now, fd, id, read, write),
            Role::Fresh | Role::Connection(_) => {
                socket.shut.read |= read;
                socket.shut.write |= write;
                self.stir(fd);
                Err(Errno::ENOTCONN)
            }
        }
    }

    fn shut(&mut self, now: Instant, fd: i32, id: ConnId, read: bool, write: bool) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        socket.shut.read |= read;
        socket.shut.write |= write;
        if read {
            self.stack.shutdown_read(now, id);
        }
        if write {
            // The second time there is nothing left to end, which is no error.
            let _ = self.stack.shutdown(now, id);
        }
        self.stir(fd);
        Ok(())
    }

    /// Back to a socket that is not connected (`AF_UNSPEC`, `shutdown` before the handshake is over; Linux's `tcp_disconnect`). An error
    /// that waits to be told still does.
    pub(crate) fn disconnect(&mut self, now: Instant, fd: i32) -> Result<(), Errno> {
        let named = self.files.socket(fd)?.connection().and_then(|id| self.stack.names(id));
        let info = self.files.socket(fd)?.connection().and_then(|id| self.stack.info(id));
        let former = info.map(|info| Box::new(Former { mss: self.segment_of(&info), info }));
        let skipped =
            former.as_deref().map_or(0, |former| former.info.tcp_info.notsent_bytes + former.info.snd_wnd);
        let socket = self.files.socket_mut(fd)?;
        socket.numbers_skipped = socket.numbers_skipped.wrapping_add(skipped).wrapping_add(2);
        socket.former = former.or(socket.former.take());
        socket.lacks_cookie = false;
        socket.fast_open_begun = false;
        if socket.role != Role::Fresh {
            socket.let_go_of_name(named.map(|(local, _)| local));
        }
        let role = std::mem::replace(&mut socket.role, Role::Fresh);
        let repaired = socket.repair.on;
        if repaired {
            socket.error = Some(Errno::ECONNABORTED);
        }
        socket.opening = Opening::Unconnected;
        socket.ended = false;
        socket.peer_finished = false;
        socket.shut = Shut::default();
        socket.unreachable = None;
        if let Some(id) = role.id() {
            self.owners.remove(&id);
        }
        match role {
            Role::Fresh => {}
            Role::Listener(id) => self.stack.close_listener(now, id),
            Role::Connection(id) if repaired => self.stack.discard(now, id),
            Role::Connection(id) => {
                // What ends so is reset, and its own application is told of it, too.
                let unsent = self.stack.queues(id).is_some_and(|queues| queues.unsent > 0);
                let told = match self.state(id) {
                    State::Closed | State::TimeWait => false,
                    State::Closing | State::LastAck => unsent,
                    _ => true,
                };
                self.stack.abort(now, id);
                let socket = self.files.socket_mut(fd)?;
                socket.error = told.then_some(Errno::ECONNRESET).or(socket.error);
            }
        }
        self.stir(fd);
        Ok(())
    }

    /// A descriptor's readiness may have changed otherwise than by the network.
    pub(crate) fn stir(&mut self, fd: i32) {
        if let Ok(open) = self.files.open(fd) {
            self.wake_epolls(open, Ready::all());
        }
    }
}

/// A call of `close`. It waits up to `SO_LINGER` until the peer has everything, then returns in any
/// case. Unacknowledged data is still sent (Linux's `inet_release`).
#[derive(Debug)]
pub struct Close {
    fd: i32,
    lingering: Option<(Box<Socket>, ConnId, Instant)>,
}

impl Close {
    /// A call not yet begun.
    pub fn new(fd: i32) -> Close {
        Close { fd, lingering: None }
    }

    /// Makes an attempt. The first attempt already removes the descriptor.
    ///
    /// # Errors
    /// Returns `EBADF` or [`Stop::Wait`].
    pub fn attempt(&mut self, sockets: &mut Sockets, now: Instant) -> Result<(), Stop> {
        if self.lingering.is_none() {
            let Some(socket) = sockets.remove(self.fd)? else { return Ok(()) };
            let linger = socket.options.linger.filter(|linger| !linger.is_zero());
            let unread = |id| sockets.stack.queues(id).is_some_and(|queues| queues.received > 0);
            match (socket.connection(), linger) {
                (Some(id), Some(linger)) if !unread(id) && !socket.repair.on => {
                    // An end that has been reached already is no error.
                    let _ = sockets.stack.shutdown(now, id);
                    // Its place among the files may be another's from now on, whom nothing of this concerns.
                    sockets.owners.insert(SocketId::Connection(id), Open::NOBODYS);
                    self.lingering = Some((socket, id, now + linger));
                }
                _ => {
                    sockets.release(now, &socket);
                    return Ok(());
                }
            }
        }
        let Some((_, id, deadline)) = &self.lingering else { return Ok(()) };
        let closing = matches!(sockets.state(*id), State::FinWait1 | State::Closing | State::LastAck);
        if closing && now < *deadline {
            return Err(Stop::Wait(Some(*deadline)));
        }
        self.give_up(sockets, now);
        Ok(())
    }

    /// Lingers no longer.
    pub(crate) fn give_up(&mut self, sockets: &mut Sockets, now: Instant) {
        if let Some((socket, ..)) = self.lingering.take() {
            sockets.release(now, &socket);
        }
    }
}

/// Waits until something happens, or fails with `EAGAIN` where the caller does not wait.
pub(crate) fn wait<T>(nonblocking: bool, now: Instant, deadline: Option<Instant>) -> Result<T, Stop> {
    if nonblocking || deadline.is_some_and(|deadline| now >= deadline) {
        return Err(Errno::EAGAIN.into());
    }
    Err(Stop::Wait(deadline))
}

pub(crate) fn peer_has_finished(state: State) -> bool {
    matches!(state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait)
}

fn ready_by(events: Events) -> Ready {
    let mut ready = Ready::empty();
    ready.set(Ready::IN | Ready::RDNORM, events.intersects(Events::READABLE | Events::ACCEPTABLE));
    ready.set(Ready::OUT | Ready::WRNORM, events.intersects(Events::WRITABLE | Events::CONNECTED));
    ready.set(Ready::PRI, events.contains(Events::URGENT));
    ready.set(Ready::ERR, events.contains(Events::REPORT));
    if events.contains(Events::CLOSED) {
        ready = Ready::all();
    }
    ready
}
