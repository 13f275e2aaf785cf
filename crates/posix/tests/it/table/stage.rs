//! A socket in a state, and what must be open beside it for that.

use super::cases::{name, to, with_port};
use super::{Calls, Given};
use core::ptr::null_mut;
use libc::{SOL_SOCKET, c_int, pollfd};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fresh,
    Bound,
    Listening,
    /// Listening, with a connection to accept.
    Offering,
    Connecting,
    /// `connect` with `TCP_FASTOPEN_CONNECT` has returned, and the SYN waits for the first data.
    Deferred,
    Refused,
    Established,
    Accepted,
    /// Established, and eight bytes wait to be read.
    Reading,
    PeerClosed,
    /// The end waits behind eight bytes.
    Ending,
    Shut,
    ReadsShut,
    Reset,
    Disconnected,
}

pub(super) const STATES: [State; 16] = [
    State::Fresh,
    State::Bound,
    State::Listening,
    State::Offering,
    State::Connecting,
    State::Deferred,
    State::Refused,
    State::Established,
    State::Accepted,
    State::Reading,
    State::PeerClosed,
    State::Ending,
    State::Shut,
    State::ReadsShut,
    State::Reset,
    State::Disconnected,
];

pub(super) struct Stage<'a> {
    pub(super) calls: &'a dyn Calls,
    pub(super) fd: c_int,
    /// Where a listener is, or was.
    pub(super) addr: Vec<u8>,
    /// The other end of the connection.
    peer: Cell<Option<c_int>>,
    others: Vec<c_int>,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for fd in self.others.iter().chain(self.peer.get().iter()).chain([&self.fd]) {
            let _ = self.calls.close(*fd);
        }
    }
}

fn until(calls: &dyn Calls, fd: c_int, events: i16) {
    calls.deliver_at_once();
    let mut entry = pollfd { fd, events, revents: 0 };
    assert_eq!(calls.poll(&raw mut entry, 1, 2000), Ok(1), "nothing happens");
}

/// There is no other end.
const NO_PEER: Given = Err(libc::EBADF);

impl<'a> Stage<'a> {
    pub(super) fn set(calls: &'a dyn Calls, domain: c_int, state: State) -> Stage<'a> {
        let socket = || calls.socket(domain, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap() as c_int;
        let any = name(if domain == libc::AF_INET { "127.0.0.1:0" } else { "[::1]:0" });
        let bind = |fd| calls.bind(fd, to(&any), any.len() as u32).unwrap();
        let listener = socket();
        bind(listener);
        // With no backlog one connection fits, and a second one finds no room.
        calls.listen(listener, 0).unwrap();
        let (mut buf, mut len) = ([0_u8; 28], 28);
        calls.getsockname(listener, buf.as_mut_ptr().cast(), &raw mut len).unwrap();
        let addr = with_port(any.clone(), [buf[2], buf[3]]);
        let connect =
            |fd| assert_eq!(calls.connect(fd, to(&addr), addr.len() as u32), Err(libc::EINPROGRESS));
        let stage = |fd, others| Stage { calls, fd, addr: addr.clone(), peer: Cell::new(None), others };
        match state {
            State::Fresh => return stage(socket(), vec![listener]),
            State::Bound => {
                let fd = socket();
                bind(fd);
                return stage(fd, vec![listener]);
            }
            State::Listening => return stage(listener, vec![]),
            State::Deferred => {
                let fd = socket();
                for option in [libc::TCP_FASTOPEN_CONNECT, libc::TCP_FASTOPEN_NO_COOKIE] {
                    let on = 1_i32;
                    calls.setsockopt(fd, (libc::IPPROTO_TCP, option), (&raw const on).cast(), 4).unwrap();
                }
                assert_eq!(calls.connect(fd, to(&addr), addr.len() as u32), Ok(0));
                return stage(fd, vec![listener]);
            }
            State::Refused => {
                calls.close(listener).unwrap();
                let fd = socket();
                // Loopback may tell at once.
                let _ = calls.connect(fd, to(&addr), addr.len() as u32);
                until(calls, fd, libc::POLLHUP);
                return stage(fd, vec![]);
            }
            _ => {}
        }
        let client = socket();
        connect(client);
        until(calls, client, libc::POLLOUT);
        until(calls, listener, libc::POLLIN);
        match state {
            State::Offering => return stage(listener, vec![client]),
            State::Connecting => {
                let second = socket();
                connect(second);
                calls.deliver_at_once();
                return stage(second, vec![listener, client]);
            }
            _ => {}
        }
        let server = calls.accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK).unwrap() as c_int;
        let is_child = state == State::Accepted;
        let (fd, peer) = if is_child { (server, client) } else { (client, server) };
        let stage = stage(fd, vec![listener]);
        stage.peer.set(Some(peer));
        stage.go_to(state);
        stage
    }

    /// From an open connection.
    fn go_to(&self, state: State) {
        match state {
            State::Reading => _ = self.peer_sends(b"abcdefgh", 0).unwrap(),
            State::PeerClosed => _ = self.peer_shuts().unwrap(),
            State::Ending => {
                self.peer_sends(b"abcdefgh", 0).unwrap();
                self.peer_shuts().unwrap();
            }
            State::Shut => _ = self.calls.shutdown(self.fd, libc::SHUT_WR).unwrap(),
            State::ReadsShut => _ = self.calls.shutdown(self.fd, libc::SHUT_RD).unwrap(),
            State::Reset => _ = self.peer_closes(true).unwrap(),
            State::Disconnected => _ = self.calls.connect(self.fd, to(&[0; 16]), 16).unwrap(),
            _ => {}
        }
        match state {
            State::Reading => until(self.calls, self.fd, libc::POLLIN),
            State::PeerClosed | State::Ending => until(self.calls, self.fd, libc::POLLRDHUP),
            State::Reset => until(self.calls, self.fd, libc::POLLHUP),
            State::Shut => until(self.calls, self.peer.get().unwrap(), libc::POLLRDHUP),
            State::Disconnected => until(self.calls, self.peer.get().unwrap(), libc::POLLHUP),
            _ => {}
        }
    }

    pub(super) fn peer_sends(&self, bytes: &[u8], flags: c_int) -> Given {
        self.peer
            .get()
            .map_or(NO_PEER, |peer| self.calls.send(peer, bytes.as_ptr().cast(), bytes.len(), flags))
    }

    pub(super) fn peer_shuts(&self) -> Given {
        self.peer.get().map_or(NO_PEER, |peer| self.calls.shutdown(peer, libc::SHUT_WR))
    }

    pub(super) fn peer_reads(&self) -> Given {
        let mut buf = [0_u8; 64];
        self.peer.get().map_or(NO_PEER, |peer| self.calls.recv(peer, buf.as_mut_ptr().cast(), 64, 0))
    }

    pub(super) fn peer_closes(&self, reset: bool) -> Given {
        let Some(peer) = self.peer.take() else { return NO_PEER };
        if reset {
            let linger = [1, 0];
            self.calls.setsockopt(peer, (SOL_SOCKET, libc::SO_LINGER), linger.as_ptr().cast(), 8)?;
        }
        self.calls.close(peer)
    }
}
