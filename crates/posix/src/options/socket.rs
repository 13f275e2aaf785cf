//! Options of `SOL_SOCKET`.

use super::{Asked, Given, Setting, bytes, flag, kept};
use crate::errno::Errno;
use crate::error_queue::{Clock, stamping};
use crate::name::name_bytes;
use crate::socket::{Domain, Role};
use crate::sockets::Sockets;
use core::time::Duration;
use proto::SocketOption;

/// Linux's `SK_FORCE_REUSE`, as it is read back.
const FORCE_REUSE: i32 = 2;
/// Linux's `SOCK_MIN_SNDBUF`.
const SNDBUF_MIN: u32 = 4608;
/// Linux's `SOCK_MIN_RCVBUF`.
const RCVBUF_MIN: u32 = 2304;
/// What Linux can double.
const BUFFER_MAX: u32 = i32::MAX as u32 / 2;
/// Size of `struct linger`.
const LINGER_LEN: usize = 8;
/// Fields of `SO_MEMINFO`, and the place of some.
const MEMINFO_FIELDS: usize = 9;
const MEMINFO_RMEM_ALLOC: usize = 0;
const MEMINFO_RCVBUF: usize = 1;
const MEMINFO_SNDBUF: usize = 3;
const MEMINFO_FWD_ALLOC: usize = 4;
const MEMINFO_WMEM_QUEUED: usize = 5;

/// Linux's numbers that libc does not name for every target: options with 64-bit seconds, and some that mean nothing here.
const SO_TIMESTAMP_NEW: i32 = 63;
const SO_TIMESTAMPNS_NEW: i32 = 64;
const SO_TIMESTAMPING_NEW: i32 = 65;
const SO_RCVTIMEO_NEW: i32 = 66;
const SO_SNDTIMEO_NEW: i32 = 67;
const SO_PASSPIDFD: i32 = 76;
const SO_PASSRIGHTS: i32 = 83;

const SO_PEERPIDFD: i32 = 77;
const SO_TXTIME: i32 = 61;
const SO_BINDTOIFINDEX: i32 = 62;
const SO_DETACH_REUSEPORT_BPF: i32 = 68;
const SO_NETNS_COOKIE: i32 = 71;
const SO_BUF_LOCK: i32 = 72;
const SO_RESERVE_MEM: i32 = 73;
const SO_DEVMEM_DONTNEED: i32 = 80;

/// `SOCK_BUF_LOCK_MASK`.
const SNDBUF_LOCK: i32 = 1;
const RCVBUF_LOCK: i32 = 2;
/// Sizes of `struct sock_fprog`, `struct sock_txtime` and `struct dmabuf_token`, the longest name of a device.
const FILTER_LEN: usize = 16;
const TXTIME_LEN: usize = 8;
const DEVMEM_TOKEN_LEN: usize = 8;
const DEVICE_NAME_MAX: usize = 15;
/// Instructions a filter may have.
const FILTER_MAX: u16 = 4096;
/// `SKF_AD_MAX`: what Linux's filters know beside the packet.
const BPF_EXTENSIONS: i32 = 64;
/// The cookie of the only network there is.
const NETNS_COOKIE: u64 = 1;

impl Sockets {
    pub(super) fn set_socket_option(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { fd, name, value, .. } = *setting;
        if name == libc::SO_BINDTODEVICE {
            return self.bind_to_device(fd, value.first(value.len().min(DEVICE_NAME_MAX))?);
        }
        let number = value.int()?;
        let on = number != 0;
        let socket = self.files.socket_mut(fd)?;
        let options = &mut socket.options;
        match name {
            libc::SO_REUSEADDR => {
                options.reuse_addr = on;
                socket.repair.forces_reuse = false;
            }
            libc::SO_REUSEPORT => options.reuse_port = on,
            libc::SO_ZEROCOPY => options.zerocopy = super::switch(number)?,
            // The second advises against a route, of which there is one.
            libc::SO_BSDCOMPAT | libc::SO_CNX_ADVICE => {}
            libc::SO_PEEK_OFF => options.peek_off = number,
            SO_TXTIME => options.txtime = txtime(value)?,
            SO_BINDTOIFINDEX => {
                return match number {
                    0 => self.bind_to_device(fd, &[]),
                    ..0 => Err(Errno::EINVAL),
                    _ => Err(Errno::ENODEV),
                };
            }
            SO_BUF_LOCK => return self.lock_buffers(setting, number),
            // Of memory groups, of which there are none.
            SO_RESERVE_MEM => return Err(if number < 0 { Errno::EINVAL } else { Errno::EOPNOTSUPP }),
            // Of tokens for a device's memory, of which none was ever given.
            SO_DEVMEM_DONTNEED if value.len() % DEVMEM_TOKEN_LEN == 0 => {}
            SO_DEVMEM_DONTNEED => return Err(Errno::EINVAL),
            libc::SO_ATTACH_FILTER
            | libc::SO_DETACH_FILTER
            | libc::SO_LOCK_FILTER
            | libc::SO_ATTACH_BPF
            | libc::SO_ATTACH_REUSEPORT_CBPF
            | libc::SO_ATTACH_REUSEPORT_EBPF
            | SO_DETACH_REUSEPORT_BPF => return self.set_filter(setting, on),
            libc::SO_LINGER => return self.set_linger(setting),
            libc::SO_RCVTIMEO | SO_RCVTIMEO_NEW => options.rcvtimeo = timeout(value)?,
            libc::SO_SNDTIMEO | SO_SNDTIMEO_NEW => options.sndtimeo = timeout(value)?,
            libc::SO_TIMESTAMP | SO_TIMESTAMP_NEW | libc::SO_TIMESTAMPNS | SO_TIMESTAMPNS_NEW => {
                return self.set_timestamp(setting, on);
            }
            libc::SO_TIMESTAMPING | SO_TIMESTAMPING_NEW => {
                return self.set_timestamping(setting, number.cast_unsigned());
            }
            libc::SO_OOBINLINE => return self.set_engine(setting, SocketOption::UrgentApart(!on)),
            libc::SO_KEEPALIVE => return self.set_engine(setting, SocketOption::KeepAlive(on)),
            libc::SO_SNDBUF => {
                let most = self.stack.config().wmem_max;
                return self.set_send_buffer(setting, number.cast_unsigned().min(most));
            }
            // Whoever runs a stack of its own may what Linux lets administrators.
            libc::SO_SNDBUFFORCE => return self.set_send_buffer(setting, number.max(0).cast_unsigned()),
            libc::SO_RCVBUF => {
                let most = self.stack.config().rmem_max;
                return self.set_receive_buffer(setting, number.cast_unsigned().min(most));
            }
            libc::SO_RCVBUFFORCE => return self.set_receive_buffer(setting, number.max(0).cast_unsigned()),
            libc::SO_RCVLOWAT => return self.set_receive_lowat(setting, number),
            libc::SO_MAX_PACING_RATE => {
                let wide = value.all()?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
                let unlimited = wide.map_or(number == -1, |wide| wide == u64::MAX);
                let rate = wide.map_or(number.cast_unsigned(), |wide| wide.min(u32::MAX.into()) as u32);
                let rate = Some(rate).filter(|_| !unlimited);
                return self.set_engine(setting, SocketOption::MaxPacingRate(rate));
            }
            libc::SO_PASSCRED | libc::SO_PASSSEC | SO_PASSPIDFD | SO_PASSRIGHTS => {
                return Err(Errno::EOPNOTSUPP);
            }
            _ => {
                let kept = kept::of_socket(name).ok_or(Errno::ENOPROTOOPT)?.take(number)?;
                // A new choice of path where none is made: the stack's habit.
                let kept = if name == kept::SO_TXREHASH && kept < 0 { 1 } else { kept };
                return self.remember(setting, kept);
            }
        }
        Ok(())
    }

    /// `SO_BINDTODEVICE` (Linux's `sock_setbindtodevice`): no name, or an empty one, takes it back. Every packet goes by the one device
    /// there is, so that it is only remembered.
    fn bind_to_device(&mut self, fd: i32, name: &[u8]) -> Result<(), Errno> {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if !name.is_empty() && name != self.stack.device_name().as_bytes() {
            return Err(Errno::ENODEV);
        }
        self.files.socket_mut(fd)?.options.bound_to_device = !name.is_empty();
        Ok(())
    }

    /// Programs that look at packets: none is run here, so that there is none to be taken away.
    fn set_filter(&mut self, setting: &Setting<'_>, on: bool) -> Result<(), Errno> {
        let Setting { fd, name, value, .. } = *setting;
        let locked = self.remembered(fd, libc::SOL_SOCKET, libc::SO_LOCK_FILTER)? == Some(1);
        let has_length = |len| if value.len() == len { Ok(()) } else { Err(Errno::EINVAL) };
        match name {
            libc::SO_LOCK_FILTER if locked && !on => Err(Errno::EPERM),
            libc::SO_LOCK_FILTER => self.remember(setting, on.into()),
            libc::SO_DETACH_FILTER => Err(if locked { Errno::EPERM } else { Errno::ENOENT }),
            SO_DETACH_REUSEPORT_BPF => {
                let socket = self.files.socket(fd)?;
                let in_group = socket.options.reuse_port && socket.is_named();
                Err(if in_group { Errno::ENOENT } else { Errno::EINVAL })
            }
            libc::SO_ATTACH_FILTER | libc::SO_ATTACH_REUSEPORT_CBPF => {
                has_length(FILTER_LEN)?;
                let program = value.all()?;
                let len = u16::from_ne_bytes([program[0], program[1]]);
                let is_null = program[8..].iter().all(|byte| *byte == 0);
                match () {
                    () if locked => Err(Errno::EPERM),
                    () if is_null || !(1..=FILTER_MAX).contains(&len) => Err(Errno::EINVAL),
                    () => Err(Errno::EOPNOTSUPP),
                }
            }
            _ => {
                has_length(size_of::<i32>())?;
                Err(if value.int()? < 0 { Errno::EBADF } else { Errno::EINVAL })
            }
        }
    }

    /// `SO_BUF_LOCK`: a buffer that is locked keeps its size, and grows with what it is used for when it is unlocked.
    fn lock_buffers(&mut self, setting: &Setting<'_>, which: i32) -> Result<(), Errno> {
        if which & !(SNDBUF_LOCK | RCVBUF_LOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        let (send, receive) = self.buffers(setting.fd)?;
        let options = &mut self.files.socket_mut(setting.fd)?.options;
        let chosen = (options.sndbuf.is_some(), options.rcvbuf.is_some());
        let wanted = (which & SNDBUF_LOCK != 0, which & RCVBUF_LOCK != 0);
        options.sndbuf = options.sndbuf.filter(|_| wanted.0).or(wanted.0.then_some(send.cast_unsigned()));
        options.rcvbuf = options.rcvbuf.filter(|_| wanted.1).or(wanted.1.then_some(receive.cast_unsigned()));
        if chosen.0 != wanted.0 {
            let half = send.cast_unsigned() / 2;
            self.set_engine(
                setting,
                if wanted.0 { SocketOption::SendBuffer(half) } else { SocketOption::SendBufferGrows },
            )?;
        }
        if chosen.1 != wanted.1 {
            let half = receive.cast_unsigned() / 2;
            self.set_engine(
                setting,
                if wanted.1 { SocketOption::RecvBuffer(half) } else { SocketOption::RecvBufferGrows },
            )?;
        }
        Ok(())
    }

    /// No more than half of what the receive buffer may come to hold (Linux's `tcp_set_rcvlowat`).
    fn set_receive_lowat(&mut self, setting: &Setting<'_>, number: i32) -> Result<(), Errno> {
        let largest = self.stack.config().tcp_rmem[2];
        let options = &mut self.files.socket_mut(setting.fd)?.options;
        let most = i32::try_from(options.rcvbuf.unwrap_or(largest) / 2).unwrap_or(i32::MAX);
        let lowat = if number < 0 { i32::MAX } else { number };
        options.rcvlowat = lowat.min(most).max(1);
        let lowat = options.rcvlowat.cast_unsigned();
        self.set_engine(setting, SocketOption::RecvLowat(lowat))?;
        self.stir(setting.fd);
        Ok(())
    }

    /// All four share one clock: the last that was set decides in which unit it is told.
    fn set_timestamp(&mut self, setting: &Setting<'_>, on: bool) -> Result<(), Errno> {
        let stamping = &mut self.files.socket_mut(setting.fd)?.options.stamping;
        stamping.received = match setting.name {
            _ if !on => Clock::Off,
            libc::SO_TIMESTAMP | SO_TIMESTAMP_NEW => Clock::Micros,
            _ => Clock::Nanos,
        };
        stamping.wide = on && matches!(setting.name, SO_TIMESTAMP_NEW | SO_TIMESTAMPNS_NEW);
        let notes = stamping.notes_arrivals();
        self.set_engine(setting, SocketOption::ReceiveTimes(notes))
    }

    /// Linux's `sock_set_timestamping`. What its devices or netlink would be needed for is refused.
    fn set_timestamping(&mut self, setting: &Setting<'_>, flags: u32) -> Result<(), Errno> {
        let lonely = flags & stamping::OPT_ID_TCP != 0 && flags & stamping::OPT_ID == 0;
        if flags & !stamping::ALL != 0 || lonely {
            return Err(Errno::EINVAL);
        }
        let socket = self.files.socket(setting.fd)?;
        let mut stamps = socket.options.stamping;
        if flags & stamping::OPT_ID != 0 && stamps.flags & stamping::OPT_ID == 0 {
            let span = socket.connection().filter(|_| !socket.ended).and_then(|id| self.stack.send_span(id));
            let (una, end) = span.ok_or(Errno::EINVAL)?;
            stamps.first = if flags & stamping::OPT_ID_TCP == 0 { una.0 } else { end.0 };
        }
        if flags & (stamping::BIND_PHC | stamping::OPT_STATS) != 0 {
            let clock = flags & stamping::BIND_PHC != 0;
            return Err(if clock { Errno::EOPNOTSUPP } else { Errno::EINVAL });
        }
        stamps.flags = flags;
        stamps.wide = setting.name == SO_TIMESTAMPING_NEW;
        self.files.socket_mut(setting.fd)?.options.stamping = stamps;
        self.set_engine(setting, SocketOption::ReceiveTimes(stamps.notes_arrivals()))
    }

    /// Linux doubles the number for its bookkeeping, and says so when asked.
    fn set_send_buffer(&mut self, setting: &Setting<'_>, bytes: u32) -> Result<(), Errno> {
        let doubled = bytes.min(BUFFER_MAX).saturating_mul(2).max(SNDBUF_MIN);
        self.files.socket_mut(setting.fd)?.options.sndbuf = Some(doubled);
        self.set_engine(setting, SocketOption::SendBuffer(doubled / 2))
    }

    fn set_receive_buffer(&mut self, setting: &Setting<'_>, bytes: u32) -> Result<(), Errno> {
        let doubled = bytes.min(BUFFER_MAX).saturating_mul(2).max(RCVBUF_MIN);
        self.files.socket_mut(setting.fd)?.options.rcvbuf = Some(doubled);
        self.set_engine(setting, SocketOption::RecvBuffer(doubled / 2))
    }

    /// The engine only has to know of a `close` that resets: any other wait is the call's.
    fn set_linger(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let value = setting.value.first(LINGER_LEN)?;
        let on = setting.value.int()? != 0;
        let secs = value[4..].first_chunk().map_or(0, |secs| i32::from_ne_bytes(*secs));
        let secs = u64::try_from(secs).unwrap_or(u64::from(u32::MAX));
        let linger = on.then(|| Duration::from_secs(secs));
        let options = &mut self.files.socket_mut(setting.fd)?.options;
        options.linger = linger;
        options.linger_time = linger.unwrap_or(options.linger_time);
        self.set_engine(setting, SocketOption::Linger(linger.filter(Duration::is_zero)))
    }

    pub(super) fn socket_option(&mut self, fd: i32, name: i32, asked: Asked) -> Result<Vec<u8>, Errno> {
        let room = usize::try_from(asked.room).unwrap_or(0);
        let exactly = |len: usize| if room == len { Ok(()) } else { Err(Errno::EINVAL) };
        let socket = self.files.socket_mut(fd)?;
        let options = &socket.options;
        Ok(match name {
            libc::SO_ERROR => {
                if let Role::Connection(id) = socket.role {
                    self.notice_state(fd, id);
                }
                bytes(self.take_any_error(fd)?.map_or(0, |errno| errno.0))
            }
            libc::SO_TYPE => bytes(libc::SOCK_STREAM),
            libc::SO_PROTOCOL => bytes(libc::IPPROTO_TCP),
            libc::SO_DOMAIN if socket.domain == Domain::V4 => bytes(libc::AF_INET),
            libc::SO_DOMAIN => bytes(libc::AF_INET6),
            libc::SO_ACCEPTCONN => flag(matches!(socket.role, Role::Listener(_))),
            libc::SO_REUSEADDR if socket.repair.forces_reuse => bytes(FORCE_REUSE),
            libc::SO_REUSEADDR => flag(options.reuse_addr),
            libc::SO_REUSEPORT => flag(options.reuse_port),
            libc::SO_OOBINLINE => flag(!options.engine.urgent_apart),
            libc::SO_KEEPALIVE => flag(options.engine.keepalive),
            libc::SO_LINGER => {
                [flag(options.linger.is_some()), bytes(super::whole_seconds(options.linger_time))].concat()
            }
            libc::SO_RCVLOWAT => bytes(options.rcvlowat),
            libc::SO_SNDLOWAT => bytes(1),
            libc::SO_RCVTIMEO | SO_RCVTIMEO_NEW => timeval(options.rcvtimeo),
            libc::SO_SNDTIMEO | SO_SNDTIMEO_NEW => timeval(options.sndtimeo),
            libc::SO_SNDBUF => bytes(self.buffers(fd)?.0),
            libc::SO_RCVBUF => bytes(self.buffers(fd)?.1),
            libc::SO_MAX_PACING_RATE if room >= size_of::<u64>() => {
                let rate = options.engine.max_pacing_rate;
                rate.map_or(u64::MAX, u64::from).to_ne_bytes().to_vec()
            }
            libc::SO_MAX_PACING_RATE => {
                options.engine.max_pacing_rate.unwrap_or(u32::MAX).to_ne_bytes().to_vec()
            }
            libc::SO_ZEROCOPY => flag(options.zerocopy),
            libc::SO_TIMESTAMP => flag(options.stamping.is(Clock::Micros, false)),
            libc::SO_TIMESTAMPNS => flag(options.stamping.is(Clock::Nanos, false)),
            SO_TIMESTAMP_NEW => flag(options.stamping.received != Clock::Off && options.stamping.wide),
            SO_TIMESTAMPNS_NEW => flag(options.stamping.is(Clock::Nanos, true)),
            SO_TIMESTAMPING_NEW if !options.stamping.wide => [bytes(0), bytes(0)].concat(),
            libc::SO_TIMESTAMPING | SO_TIMESTAMPING_NEW => {
                [bytes(options.stamping.flags.cast_signed()), bytes(0)].concat()
            }
            libc::SO_BSDCOMPAT | SO_INCOMING_NAPI_ID | SO_BINDTOIFINDEX | SO_RESERVE_MEM => flag(false),
            libc::SO_BINDTODEVICE if !options.bound_to_device => Vec::new(),
            libc::SO_BINDTODEVICE if room <= DEVICE_NAME_MAX => return Err(Errno::EINVAL),
            libc::SO_BINDTODEVICE => [self.stack.device_name().as_bytes(), &[0]].concat(),
            // The filter there may be: none.
            libc::SO_ATTACH_FILTER => Vec::new(),
            libc::SO_BPF_EXTENSIONS => bytes(BPF_EXTENSIONS),
            libc::SO_PEEK_OFF => bytes(options.peek_off),
            SO_TXTIME => options.txtime.map(i32::to_ne_bytes).concat(),
            SO_BUF_LOCK => {
                let locked = |on: bool, bit: i32| if on { bit } else { 0 };
                bytes(
                    locked(options.sndbuf.is_some(), SNDBUF_LOCK)
                        | locked(options.rcvbuf.is_some(), RCVBUF_LOCK),
                )
            }
            SO_COOKIE if room < size_of::<u64>() => return Err(Errno::EINVAL),
            SO_COOKIE => self.cookie(fd)?.to_ne_bytes().to_vec(),
            SO_NETNS_COOKIE => exactly(size_of::<u64>()).map(|()| NETNS_COOKIE.to_ne_bytes().to_vec())?,
            libc::SO_PEERNAME => self.peer_name_bytes(fd, room)?,
            // Of a peer in this host.
            SO_PEERGROUPS | SO_PEERPIDFD => return Err(Errno::ENODATA),
            libc::SO_LOCK_FILTER => {
                bytes(self.remembered(fd, libc::SOL_SOCKET, libc::SO_LOCK_FILTER)?.unwrap_or(0))
            }
            kept::SO_BUSY_POLL_BUDGET => return Err(Errno::ENOPROTOOPT),
            libc::SO_PEERCRED => [bytes(0), bytes(-1), bytes(-1)].concat(),
            libc::SO_PASSCRED | libc::SO_PASSSEC | SO_PASSPIDFD | SO_PASSRIGHTS => {
                return Err(Errno::EOPNOTSUPP);
            }
            SO_MEMINFO => self.meminfo(fd)?,
            _ => {
                let kept = kept::of_socket(name).ok_or(Errno::ENOPROTOOPT)?;
                bytes(self.remembered(fd, libc::SOL_SOCKET, name)?.unwrap_or(kept.default))
            }
        })
    }

    /// `SO_PEERNAME`: even of a connection that is not open yet, or no more; never more room than there is name.
    fn peer_name_bytes(&self, fd: i32, room: usize) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        let peer = socket.connection().and_then(|id| self.stack.names(id)).map(|(_, peer)| peer);
        let name = name_bytes(socket.domain.to_user(peer.ok_or(Errno::ENOTCONN)?));
        if name.len() < room { Err(Errno::EINVAL) } else { Ok(name) }
    }

    /// `SO_ERROR`: what waits to be told, or else what ICMP has said since the last progress (`sk_err_soft`).
    fn take_any_error(&mut self, fd: i32) -> Result<Option<Errno>, Errno> {
        let socket = self.files.socket_mut(fd)?;
        if let Some(error) = socket.take_error() {
            return Ok(Some(error));
        }
        let Some(id) = socket.connection().filter(|_| !socket.ended) else { return Ok(None) };
        let Some((errno, una)) = socket.unreachable.take() else { return Ok(None) };
        Ok(Some(errno).filter(|_| self.stack.send_span(id).map(|(una, _)| una) == una))
    }

    /// Sizes of the send and the receive buffer, as Linux would tell them.
    fn buffers(&self, fd: i32) -> Result<(i32, i32), Errno> {
        let socket = self.files.socket(fd)?;
        let queues = socket.connection().and_then(|id| self.stack.queues(id));
        let config = self.stack.config();
        let send = queues.map_or(config.tcp_wmem[1], |queues| queues.send_buffer);
        let receive = queues.map_or(config.tcp_rmem[1], |queues| queues.recv_buffer);
        let told = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
        Ok((told(socket.options.sndbuf.unwrap_or(send)), told(socket.options.rcvbuf.unwrap_or(receive))))
    }

    fn meminfo(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        let (send, receive) = self.buffers(fd)?;
        let socket = self.files.socket(fd)?;
        let queues = socket.connection().and_then(|id| self.stack.queues(id));
        let queued = queues.map_or(0, |queues| queues.send_buffer_used);
        let told = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
        let mut fields = [0; MEMINFO_FIELDS];
        fields[MEMINFO_RMEM_ALLOC] = told(queues.map_or(0, |queues| queues.recv_memory));
        fields[MEMINFO_FWD_ALLOC] = told(queues.map_or(0, |queues| queues.recv_set_aside));
        fields[MEMINFO_SNDBUF] = send;
        fields[MEMINFO_RCVBUF] = receive;
        fields[MEMINFO_WMEM_QUEUED] = i32::try_from(queued).unwrap_or(i32::MAX);
        Ok(fields.into_iter().flat_map(i32::to_ne_bytes).collect())
    }
}

/// `SO_MEMINFO`, which libc does not name for every target.
const SO_MEMINFO: i32 = 55;
const SO_INCOMING_NAPI_ID: i32 = 56;
const SO_COOKIE: i32 = 57;
const SO_PEERGROUPS: i32 = 59;

/// `SO_TXTIME`: `CLOCK_MONOTONIC` or another, and two flags.
fn txtime(value: Given<'_>) -> Result<[i32; 2], Errno> {
    if value.len() != TXTIME_LEN {
        return Err(Errno::EINVAL);
    }
    let value = value.all()?;
    let [clock, flags] =
        [0, 4].map(|at| value[at..].first_chunk().map_or(0, |part| i32::from_ne_bytes(*part)));
    let known = [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC, libc::CLOCK_TAI].contains(&clock);
    if !known || flags & !0b11 != 0 { Err(Errno::EINVAL) } else { Ok([clock, flags]) }
}

/// A `timeval`: none of it is for ever, a negative one is not at all (`sock_set_timeout`).
fn timeout(value: Given<'_>) -> Result<Option<Duration>, Errno> {
    let value = value.first(2 * size_of::<i64>())?;
    let secs = value.first_chunk().map(|bytes| i64::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)?;
    let micros = value.get(8..).and_then(|rest| rest.first_chunk()).ok_or(Errno::EINVAL)?;
    let micros = u32::try_from(i64::from_ne_bytes(*micros)).ok().filter(|micros| *micros < 1_000_000);
    let micros = micros.ok_or(Errno::EDOM)?;
    Ok(match u64::try_from(secs) {
        Ok(secs) => Some(Duration::new(secs, micros * 1000)).filter(|time| !time.is_zero()),
        Err(_) => Some(Duration::ZERO),
    })
}

fn timeval(time: Option<Duration>) -> Vec<u8> {
    let time = time.unwrap_or_default();
    let secs = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    [secs.to_ne_bytes(), i64::from(time.subsec_micros()).to_ne_bytes()].concat()
}
