//! Which calls would not wait now: `poll`, and what `epoll` asks (Linux's `tcp_poll`).

use crate::errno::{Errno, Stop};
use crate::files::File;
use crate::files::open::Open;
use crate::ready::Ready;
use crate::socket::{Opening, Role, Socket};
use crate::sockets::{Sockets, peer_has_finished};
use proto::{ConnId, Instant, State};

const READABLE: Ready = Ready::IN.union(Ready::RDNORM);
const WRITABLE: Ready = Ready::OUT.union(Ready::WRNORM);

/// One entry of `poll`.
#[derive(Clone, Copy, Debug)]
pub struct PollFd {
    /// Negative: skipped.
    pub fd: i32,
    /// Asked for.
    pub events: Ready,
    /// Found; `ERR`, `HUP` and `NVAL` without being asked for.
    pub found: Ready,
}

impl Sockets {
    /// `poll`: returns the number of ready entries. A `deadline` of `Some(now)` or earlier does not
    /// wait. `None` waits without limit.
    ///
    /// # Errors
    /// Only [`Stop::Wait`].
    pub fn poll(
        &mut self,
        now: Instant,
        fds: &mut [PollFd],
        deadline: Option<Instant>,
    ) -> Result<usize, Stop> {
        for entry in fds.iter_mut() {
            entry.found = self.found(entry);
        }
        let count = fds.iter().filter(|entry| !entry.found.is_empty()).count();
        match deadline {
            _ if count > 0 => Ok(count),
            Some(deadline) if now >= deadline => Ok(0),
            deadline => Err(Stop::Wait(deadline)),
        }
    }

    /// What there is of what an entry asks for.
    pub(crate) fn found(&mut self, entry: &PollFd) -> Ready {
        let always = Ready::ERR | Ready::HUP | Ready::NVAL;
        match self.files.open(entry.fd) {
            _ if entry.fd < 0 => Ready::empty(),
            Ok(open) => self.asked(open).unwrap_or(Ready::NVAL) & (entry.events | always),
            Err(_) => Ready::NVAL,
        }
    }

    /// As [`readiness_at`](Self::readiness_at), for who waits for what is not there: where there is no room to write, he is told when there
    /// is some, whatever he asked for (Linux's `tcp_poll`).
    pub(crate) fn asked(&mut self, open: Open) -> Result<Ready, Errno> {
        let ready = self.readiness_at(open)?;
        match self.files.at(open)? {
            File::Socket(socket) if !ready.contains(Ready::OUT) => {
                if let Role::Connection(id) = socket.role {
                    self.stack.await_room(id);
                }
            }
            File::Epoll(epoll) => {
                let listed: Vec<Open> = epoll.listed().collect();
                for open in listed {
                    self.asked(open)?;
                }
            }
            File::Socket(_) | File::Pipe(_) => {}
        }
        Ok(ready)
    }

    /// Returns the readiness of a descriptor.
    ///
    /// # Errors
    /// Returns `EBADF`.
    pub fn readiness(&self, fd: i32) -> Result<Ready, Errno> {
        self.readiness_at(self.files.open(fd)?)
    }

    pub(crate) fn readiness_at(&self, open: Open) -> Result<Ready, Errno> {
        Ok(match self.files.at(open)? {
            File::Socket(socket) => self.socket_readiness(socket),
            File::Epoll(epoll) => {
                let any = epoll.may_be_ready(|watched| self.readiness_at(watched).unwrap_or(Ready::empty()));
                if any { READABLE } else { Ready::empty() }
            }
            File::Pipe(end) => self.pipe_readiness(end),
        })
    }

    fn socket_readiness(&self, socket: &Socket) -> Ready {
        let failed = socket.error.is_some() || !socket.errors.is_empty();
        let error = if failed { Ready::ERR } else { Ready::empty() };
        match socket.role {
            Role::Listener(id) if self.stack.accept_queue(id) > 0 => READABLE,
            Role::Listener(_) => Ready::empty(),
            Role::Fresh if socket.shut.read => WRITABLE | READABLE | Ready::RDHUP | Ready::HUP | error,
            Role::Fresh => WRITABLE | Ready::HUP | error,
            Role::Connection(id) => self.connection_readiness(socket, id) | error,
        }
    }

    fn connection_readiness(&self, socket: &Socket, id: ConnId) -> Ready {
        let Some(queues) = self.stack.queues(id) else { return READABLE | WRITABLE | Ready::HUP };
        let closed = socket.ended || matches!(queues.state, State::Closed | State::TimeWait);
        let rcv_shut = closed || socket.shut.read || peer_has_finished(queues.state);
        let snd_shut = closed || socket.shut.write;
        let mut ready = Ready::empty();
        ready.set(Ready::HUP, rcv_shut && snd_shut);
        ready.set(READABLE | Ready::RDHUP, rcv_shut);
        let crossed = queues.state == State::SynReceived && socket.opening != Opening::Connected;
        if queues.state == State::SynSent && socket.opening == Opening::Deferred {
            // Whoever writes sends the SYN.
            return ready | WRITABLE;
        }
        if queues.state == State::SynSent || crossed {
            return ready;
        }
        let lowat = usize::try_from(socket.options.rcvlowat).unwrap_or(1).max(1);
        // An urgent byte that is next and not for those who read the stream does not count.
        let at_urgent = socket.options.engine.urgent_apart && self.stack.urgent_mark(id) == Some(0);
        let least = lowat.min(queues.recv_buffer as usize) + usize::from(at_urgent);
        if queues.received >= least {
            ready |= READABLE;
        }
        ready.set(Ready::PRI, self.stack.urgent_has_come(id));
        if snd_shut || queues.writable {
            ready |= WRITABLE;
        }
        ready
    }

    /// Bytes that can be read, up to an urgent one that is not in the stream (Linux's `tcp_inq`).
    pub(crate) fn readable_now(&self, socket: &Socket, id: ConnId) -> usize {
        let received = self.stack.queues(id).map_or(0, |queues| queues.received);
        match self.stack.urgent_mark(id) {
            Some(before) if socket.options.engine.urgent_apart && before < received => before,
            _ => received,
        }
    }
}
