//! `ioctl` of a socket: how much waits in its queues.

use crate::errno::Errno;
use crate::files::File;
use crate::socket::{Role, Socket};
use crate::sockets::Sockets;
use proto::State;

/// Linux's `SIOCINQ`, which is `FIONREAD`.
pub const SIOCINQ: u64 = 0x541b;
/// Linux's `SIOCOUTQ`, which is `TIOCOUTQ`.
pub const SIOCOUTQ: u64 = 0x5411;
/// Linux's `SIOCOUTQNSD`.
pub const SIOCOUTQNSD: u64 = 0x894b;
/// Linux's `SIOCATMARK`.
pub const SIOCATMARK: u64 = 0x8905;
/// Linux's `FIOCLEX` and `FIONCLEX`: `FD_CLOEXEC` on and off.
pub const FIOCLEX: u64 = 0x5451;
/// See [`FIOCLEX`].
pub const FIONCLEX: u64 = 0x5450;
/// Linux's `FIONBIO`; its argument is read, not written.
pub const FIONBIO: u64 = 0x5421;

/// Linux's `FIOASYNC`: signals when something happens, which there are none of here.
pub const FIOASYNC: u64 = 0x5452;
/// Linux's `FIOSETOWN` and `SIOCSPGRP`, `FIOGETOWN` and `SIOCGPGRP`: the receiver of signals, like
/// `F_SETOWN` and `F_GETOWN`.
pub const FIOSETOWN: u64 = 0x8901;
/// See [`FIOSETOWN`].
pub const SIOCSPGRP: u64 = 0x8902;
/// See [`FIOSETOWN`].
pub const FIOGETOWN: u64 = 0x8903;
/// See [`FIOSETOWN`].
pub const SIOCGPGRP: u64 = 0x8904;
/// Linux's `SIOCGSTAMP_OLD` and `SIOCGSTAMPNS_OLD`.
const SIOCGSTAMP: u64 = 0x8906;
const SIOCGSTAMPNS: u64 = 0x8907;

impl Sockets {
    /// `ioctl` that returns an int.
    ///
    /// # Errors
    /// Returns `ENOTTY` for a request that sockets do not support, and `EINVAL` for a listener
    /// (Linux's `tcp_ioctl`) and an epoll instance.
    pub fn ioctl(&self, fd: i32, request: u64) -> Result<i32, Errno> {
        let socket = match self.files.get(fd)? {
            File::Socket(socket) => socket,
            File::Epoll(_) => return Err(Errno::EINVAL),
            // Of either end (Linux's `pipe_ioctl`).
            File::Pipe(end) if request == SIOCINQ => {
                return Ok(i32::try_from(end.queued()).unwrap_or(i32::MAX));
            }
            File::Pipe(_) => return Err(Errno::ENOTTY),
        };
        let known = matches!(request, SIOCINQ | SIOCOUTQ | SIOCOUTQNSD | SIOCATMARK);
        match socket.role {
            // Of the packet that was read last, if stamps are asked for: `recvmsg` tells them.
            _ if matches!(request, SIOCGSTAMP | SIOCGSTAMPNS) => Err(Errno::ENOENT),
            _ if !known => Err(Errno::ENOTTY),
            Role::Listener(_) if request == SIOCATMARK => Ok(0),
            Role::Listener(_) => Err(Errno::EINVAL),
            Role::Fresh => Ok(0),
            Role::Connection(_) => Ok(self.queue(socket, request)),
        }
    }

    fn queue(&self, socket: &Socket, request: u64) -> i32 {
        let Some((id, queues)) = socket.connection().and_then(|id| Some((id, self.stack.queues(id)?))) else {
            return 0;
        };
        let opening = matches!(queues.state, State::SynSent | State::SynReceived);
        let fin_unacked = matches!(queues.state, State::FinWait1 | State::Closing | State::LastAck);
        let count = match request {
            SIOCINQ if opening => 0,
            SIOCINQ => self.readable_now(socket, id),
            SIOCOUTQ | SIOCOUTQNSD if opening => 0,
            SIOCOUTQ if queues.state == State::Closed => queues.left_behind,
            SIOCOUTQ => queues.unacknowledged + usize::from(fin_unacked),
            SIOCOUTQNSD => self.stack.info(id).map_or(0, |info| info.tcp_info.notsent_bytes) as usize,
            _ => usize::from(self.stack.urgent_mark(id) == Some(0)),
        };
        i32::try_from(count).unwrap_or(i32::MAX)
    }
}
