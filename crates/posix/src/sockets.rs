//! The sockets of one process over one stack.
//!
//! Every system call is one attempt: it is done at once, fails with an errno, or says that it waits ([`Stop::Wait`]). Who calls it again
//! when something has happened is [`virtual_time`](crate::virtual_time)'s business, or the test's. Nothing here asks for the time.

use crate::errno::{self, Errno, Stop};
use crate::files::{File, Files};
use crate::readiness::Ready;
use crate::socket::{Opening, Role, Socket};
use proto::{ConnId, Events, Instant, SocketId, Stack, State};
use std::collections::HashMap;

/// The sockets of one process over one stack.
pub struct Sockets {
    pub(crate) stack: Stack,
    pub(crate) files: Files,
    /// Whose descriptor an event concerns. Never iterated.
    pub(crate) owners: HashMap<SocketId, i32>,
    /// The port `bind` tries next when it is to choose.
    pub(crate) next_port: u16,
    /// Descriptors to which something has happened.
    stirred: Vec<i32>,
}

impl std::fmt::Debug for Sockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Sockets {
    /// No socket yet. `base` is the lowest descriptor given out.
    pub fn new(stack: Stack, base: i32) -> Sockets {
        Sockets { stack, files: Files::new(base), owners: HashMap::new(), next_port: 0, stirred: Vec::new() }
    }

    /// The stack below.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The stack below, for packets, time and settings; [`notice`](Self::notice) comes after.
    pub fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// Is this descriptor open?
    pub fn is_open(&self, fd: i32) -> bool {
        self.files.get(fd).is_ok()
    }

    /// Takes what the stack reports. True: calls that wait are worth another attempt.
    pub fn notice(&mut self) -> bool {
        let mut any = false;
        while let Some((id, events)) = self.stack.poll_event() {
            any = true;
            let Some(fd) = self.owners.get(&id).copied() else { continue };
            if let SocketId::Connection(conn) = id {
                self.notice_state(fd, conn);
            }
            self.wake_epolls(fd, ready_by(events));
        }
        any
    }

    /// Notes that something has happened to a descriptor.
    pub(crate) fn note_stirred(&mut self, fd: i32) {
        if self.stirred.last() != Some(&fd) {
            self.stirred.push(fd);
        }
    }

    /// Hands over the descriptors to which something has happened, for a driver that wakes only whom it concerns.
    pub(crate) fn take_stirred(&mut self, tell: impl FnMut(i32)) {
        self.stirred.drain(..).for_each(tell);
    }

    /// What the connection has come to: its end becomes the socket's error.
    pub(crate) fn notice_state(&mut self, fd: i32, conn: ConnId) {
        let reason = self.stack.close_reason(conn);
        let state = self.stack.info(conn).map(|info| info.state);
        let Ok(socket) = self.files.socket_mut(fd) else { return };
        let had_finished = socket.peer_finished;
        socket.peer_finished |= state.is_some_and(peer_has_finished);
        let Some(reason) = reason else { return };
        if !std::mem::replace(&mut socket.ended, true) {
            socket.error = errno::of_end(reason, had_finished);
        }
    }

    /// Engine's state of a connection; what is gone is closed.
    pub(crate) fn state(&self, conn: ConnId) -> State {
        self.stack.info(conn).map_or(State::Closed, |info| info.state)
    }

    /// Gives a connection or a listener to a descriptor.
    pub(crate) fn own(&mut self, fd: i32, role: Role) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        socket.role = role;
        match role {
            Role::Connection(id) => self.owners.insert(SocketId::Connection(id), fd),
            Role::Listener(id) => self.owners.insert(SocketId::Listener(id), fd),
            Role::Fresh => None,
        };
        Ok(())
    }

    /// `close`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn close(&mut self, now: Instant, fd: i32) -> Result<(), Errno> {
        let file = self.files.remove(fd)?;
        self.forget_in_epolls(fd);
        self.note_stirred(fd);
        match file {
            File::Socket(socket) => self.release(now, &socket),
            File::Pipe(end) => self.close_pipe(&end),
            File::Epoll(_) => {}
        }
        Ok(())
    }

    /// Closes every descriptor.
    pub(crate) fn close_all(&mut self, now: Instant) {
        let open: Vec<i32> = self.files.iter().map(|(fd, _)| fd).collect();
        for fd in open {
            // It is open, and closing has no other error.
            let _ = self.close(now, fd);
        }
    }

    /// Lets go of what a socket holds in the engine.
    pub(crate) fn release(&mut self, now: Instant, socket: &Socket) {
        match socket.role {
            Role::Fresh => {}
            Role::Listener(id) => {
                self.owners.remove(&SocketId::Listener(id));
                self.stack.close_listener(now, id);
            }
            Role::Connection(id) => {
                self.owners.remove(&SocketId::Connection(id));
                self.stack.close(now, id);
            }
        }
    }

    /// `fcntl(F_GETFL)`: the access mode and `O_NONBLOCK`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn flags(&self, fd: i32) -> Result<i32, Errno> {
        let nonblocking = match self.files.get(fd)? {
            File::Socket(socket) => socket.nonblocking,
            File::Epoll(_) => false,
            File::Pipe(end) => end.nonblocking,
        };
        Ok(libc::O_RDWR | if nonblocking { libc::O_NONBLOCK } else { 0 })
    }

    /// `fcntl(F_SETFL)`: of the flags only `O_NONBLOCK` means something here.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn set_flags(&mut self, fd: i32, flags: i32) -> Result<(), Errno> {
        let nonblocking = flags & libc::O_NONBLOCK != 0;
        match self.files.get_mut(fd)? {
            File::Socket(socket) => socket.nonblocking = nonblocking,
            File::Pipe(end) => end.nonblocking = nonblocking,
            File::Epoll(_) => {}
        }
        Ok(())
    }

    /// `shutdown`.
    ///
    /// # Errors
    /// `EINVAL` for another `how`, `ENOTCONN` for a socket that is not connected.
    pub fn shutdown(&mut self, now: Instant, fd: i32, how: i32) -> Result<(), Errno> {
        let (read, write) = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(Errno::EINVAL),
        };
        match self.files.socket(fd)?.role {
            Role::Fresh => Err(Errno::ENOTCONN),
            Role::Listener(_) if read => self.disconnect(now, fd),
            Role::Listener(_) => Ok(()),
            Role::Connection(id) if self.state(id) == State::SynSent => self.disconnect(now, fd),
            Role::Connection(id) => self.shut(now, fd, id, read, write),
        }
    }

    fn shut(&mut self, now: Instant, fd: i32, id: ConnId, read: bool, write: bool) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        if socket.ended {
            return Err(Errno::ENOTCONN);
        }
        socket.shut.read |= read;
        socket.shut.write |= write;
        if write {
            // The second time there is nothing left to end, which is no error.
            let _ = self.stack.shutdown(now, id);
        }
        self.wake_epolls(fd, Ready::all());
        Ok(())
    }

    /// Back to a socket that is not connected (`AF_UNSPEC`, `shutdown` before the handshake is over).
    pub(crate) fn disconnect(&mut self, now: Instant, fd: i32) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        let role = std::mem::replace(&mut socket.role, Role::Fresh);
        socket.opening = Opening::Unconnected;
        socket.ended = false;
        socket.peer_finished = false;
        socket.error = None;
        match role {
            Role::Fresh => {}
            Role::Listener(id) => {
                self.owners.remove(&SocketId::Listener(id));
                self.stack.close_listener(now, id);
            }
            Role::Connection(id) => {
                self.owners.remove(&SocketId::Connection(id));
                self.stack.abort(now, id);
            }
        }
        self.wake_epolls(fd, Ready::all());
        Ok(())
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
    ready.set(Ready::IN, events.intersects(Events::READABLE | Events::ACCEPTABLE));
    ready.set(Ready::OUT, events.intersects(Events::WRITABLE | Events::CONNECTED));
    ready.set(Ready::PRI, events.contains(Events::URGENT));
    if events.contains(Events::CLOSED) {
        ready = Ready::all();
    }
    ready
}
