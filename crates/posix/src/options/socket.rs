//! Options of `SOL_SOCKET`.

use super::{bytes, flag, int};
use crate::errno::Errno;
use crate::socket::{Domain, Role};
use crate::sockets::Sockets;
use core::time::Duration;
use proto::{Instant, SocketOption};

/// Linux's `SOCK_MIN_SNDBUF`.
const SNDBUF_MIN: u32 = 4608;
/// Linux's `SOCK_MIN_RCVBUF`.
const RCVBUF_MIN: u32 = 2304;
/// Fields of `SO_MEMINFO`, and the place of some.
const MEMINFO_FIELDS: usize = 9;
const MEMINFO_RCVBUF: usize = 1;
const MEMINFO_SNDBUF: usize = 3;
const MEMINFO_WMEM_QUEUED: usize = 5;

/// A stream over one device has nothing that these could change: no broadcasts, routes, queues by priority or driver to poll. They
/// can be set and read back.
fn means_nothing_here(name: i32) -> bool {
    matches!(
        name,
        libc::SO_BROADCAST
            | libc::SO_DONTROUTE
            | libc::SO_PRIORITY
            | libc::SO_MARK
            | libc::SO_INCOMING_CPU
            | libc::SO_BUSY_POLL
    )
}

impl Sockets {
    pub(super) fn set_socket_option(
        &mut self,
        now: Instant,
        fd: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        match name {
            libc::SO_LINGER => return self.set_linger(now, fd, value),
            libc::SO_RCVTIMEO | libc::SO_SNDTIMEO => return self.set_timeout(fd, name, value),
            _ => {}
        }
        let number = int(value)?;
        let on = number != 0;
        match name {
            libc::SO_REUSEADDR => self.files.socket_mut(fd)?.options.reuse_addr = on,
            libc::SO_REUSEPORT => self.files.socket_mut(fd)?.options.reuse_port = on,
            libc::SO_OOBINLINE => self.files.socket_mut(fd)?.options.oob_inline = on,
            libc::SO_KEEPALIVE => return self.set_engine(now, fd, SocketOption::KeepAlive(on)),
            libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => return self.set_send_buffer(now, fd, number),
            libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => return self.set_receive_buffer(now, fd, number),
            libc::SO_RCVLOWAT => {
                let lowat = if number < 0 { i32::MAX } else { number.max(1) };
                self.files.socket_mut(fd)?.options.rcvlowat = lowat;
                self.stir(fd);
            }
            libc::SO_MAX_PACING_RATE => {
                let rate = u32::try_from(number).ok().filter(|rate| *rate != u32::MAX);
                return self.set_engine(now, fd, SocketOption::MaxPacingRate(rate));
            }
            _ if means_nothing_here(name) => return self.remember(fd, libc::SOL_SOCKET, name, number),
            _ => return Err(Errno::ENOPROTOOPT),
        }
        Ok(())
    }

    /// Linux doubles the number for its bookkeeping, and says so when asked.
    fn set_send_buffer(&mut self, now: Instant, fd: i32, bytes: i32) -> Result<(), Errno> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.stack.config().wmem_max);
        let doubled = bytes.saturating_mul(2).max(SNDBUF_MIN);
        self.files.socket_mut(fd)?.options.sndbuf = Some(doubled);
        self.set_engine(now, fd, SocketOption::SendBuffer(doubled / 2))
    }

    fn set_receive_buffer(&mut self, now: Instant, fd: i32, bytes: i32) -> Result<(), Errno> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.stack.config().rmem_max);
        let doubled = bytes.saturating_mul(2).max(RCVBUF_MIN);
        self.files.socket_mut(fd)?.options.rcvbuf = Some(doubled);
        self.set_engine(now, fd, SocketOption::RecvBuffer(doubled / 2))
    }

    fn set_linger(&mut self, now: Instant, fd: i32, value: &[u8]) -> Result<(), Errno> {
        let on = int(value)?;
        let secs = int(value.get(4..).unwrap_or_default())?;
        let secs = u64::try_from(secs).unwrap_or(u64::from(u32::MAX));
        let linger = (on != 0).then(|| Duration::from_secs(secs));
        self.set_engine(now, fd, SocketOption::Linger(linger))
    }

    fn set_timeout(&mut self, fd: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
        let secs = value.first_chunk().map(|bytes| i64::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)?;
        let micros = value.get(8..).and_then(|rest| rest.first_chunk()).ok_or(Errno::EINVAL)?;
        let micros = u32::try_from(i64::from_ne_bytes(*micros)).ok().filter(|micros| *micros < 1_000_000);
        let micros = micros.ok_or(Errno::EDOM)?;
        let time = match u64::try_from(secs) {
            Ok(secs) => Some(Duration::new(secs, micros * 1000)).filter(|time| !time.is_zero()),
            Err(_) => Some(Duration::ZERO),
        };
        let options = &mut self.files.socket_mut(fd)?.options;
        if name == libc::SO_RCVTIMEO {
            options.rcvtimeo = time
        } else {
            options.sndtimeo = time
        }
        Ok(())
    }

    pub(super) fn socket_option(&mut self, fd: i32, name: i32, _room: usize) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket_mut(fd)?;
        let options = &socket.options;
        Ok(match name {
            libc::SO_ERROR => {
                if let Role::Connection(id) = socket.role {
                    self.notice_state(fd, id);
                }
                bytes(self.files.socket_mut(fd)?.take_error().map_or(0, |errno| errno.0))
            }
            libc::SO_TYPE => bytes(libc::SOCK_STREAM),
            libc::SO_PROTOCOL => bytes(libc::IPPROTO_TCP),
            libc::SO_DOMAIN if socket.domain == Domain::V4 => bytes(libc::AF_INET),
            libc::SO_DOMAIN => bytes(libc::AF_INET6),
            libc::SO_ACCEPTCONN => flag(matches!(socket.role, Role::Listener(_))),
            libc::SO_REUSEADDR => flag(options.reuse_addr),
            libc::SO_REUSEPORT => flag(options.reuse_port),
            libc::SO_OOBINLINE => flag(options.oob_inline),
            libc::SO_KEEPALIVE => flag(options.engine.keepalive),
            libc::SO_LINGER => {
                let linger = options.engine.linger;
                let secs = linger.map_or(0, super::whole_seconds);
                [flag(linger.is_some()), bytes(secs)].concat()
            }
            libc::SO_RCVLOWAT => bytes(options.rcvlowat),
            libc::SO_SNDLOWAT => bytes(1),
            libc::SO_RCVTIMEO => timeval(options.rcvtimeo),
            libc::SO_SNDTIMEO => timeval(options.sndtimeo),
            libc::SO_SNDBUF => bytes(self.buffers(fd)?.0),
            libc::SO_RCVBUF => bytes(self.buffers(fd)?.1),
            libc::SO_MAX_PACING_RATE => {
                options.engine.max_pacing_rate.unwrap_or(u32::MAX).to_ne_bytes().to_vec()
            }
            SO_MEMINFO => self.meminfo(fd)?,
            _ if means_nothing_here(name) => bytes(self.remembered(fd, libc::SOL_SOCKET, name)?),
            _ => return Err(Errno::ENOPROTOOPT),
        })
    }

    /// Sizes of the send and the receive buffer, as Linux would tell them.
    fn buffers(&self, fd: i32) -> Result<(i32, i32), Errno> {
        let socket = self.files.socket(fd)?;
        let info = socket.connection().and_then(|id| self.stack.info(id));
        let config = self.stack.config();
        let send = info.as_ref().map_or(config.tcp_wmem[1], |info| info.send_buffer);
        let receive = info.as_ref().map_or(config.tcp_rmem[1], |info| info.recv_buffer);
        let told = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
        Ok((told(socket.options.sndbuf.unwrap_or(send)), told(socket.options.rcvbuf.unwrap_or(receive))))
    }

    fn meminfo(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        let (send, receive) = self.buffers(fd)?;
        let socket = self.files.socket(fd)?;
        let queued =
            socket.connection().and_then(|id| self.stack.info(id)).map_or(0, |info| info.send_buffer_used);
        let mut fields = [0; MEMINFO_FIELDS];
        fields[MEMINFO_SNDBUF] = send;
        fields[MEMINFO_RCVBUF] = receive;
        fields[MEMINFO_WMEM_QUEUED] = i32::try_from(queued).unwrap_or(i32::MAX);
        Ok(fields.into_iter().flat_map(i32::to_ne_bytes).collect())
    }
}

/// `SO_MEMINFO`, which libc does not name for every target.
const SO_MEMINFO: i32 = 55;

fn timeval(time: Option<Duration>) -> Vec<u8> {
    let time = time.unwrap_or_default();
    let secs = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    [secs.to_ne_bytes(), i64::from(time.subsec_micros()).to_ne_bytes()].concat()
}
