//! Options of `SOL_SOCKET`.

use super::{Setting, bytes, flag, int};
use crate::errno::Errno;
use crate::error_queue::{Clock, stamping};
use crate::socket::{Domain, Role};
use crate::sockets::Sockets;
use core::time::Duration;
use proto::SocketOption;

/// Linux's `SOCK_MIN_SNDBUF`.
const SNDBUF_MIN: u32 = 4608;
/// Linux's `SOCK_MIN_RCVBUF`.
const RCVBUF_MIN: u32 = 2304;
/// What Linux can double.
const BUFFER_MAX: u32 = i32::MAX as u32 / 2;
/// Fields of `SO_MEMINFO`, and the place of some.
const MEMINFO_FIELDS: usize = 9;
const MEMINFO_RCVBUF: usize = 1;
const MEMINFO_SNDBUF: usize = 3;
const MEMINFO_WMEM_QUEUED: usize = 5;

/// Linux's numbers that libc does not name for every target: options with 64-bit seconds, and some that mean nothing here.
const SO_TIMESTAMP_NEW: i32 = 63;
const SO_TIMESTAMPNS_NEW: i32 = 64;
const SO_TIMESTAMPING_NEW: i32 = 65;
const SO_RCVTIMEO_NEW: i32 = 66;
const SO_SNDTIMEO_NEW: i32 = 67;
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_RCVMARK: i32 = 75;
const SO_RCVPRIORITY: i32 = 82;
const SO_PASSPIDFD: i32 = 76;
const SO_PASSRIGHTS: i32 = 83;

/// A stream over one device has nothing that these could change: no broadcasts, routes, queues by priority, driver to poll, marks of
/// packets, datagrams to be lost. They can be set and read back, those of the second sort as 0 or 1.
fn means_nothing_here(name: i32) -> Option<Sort> {
    Some(match name {
        libc::SO_PRIORITY | libc::SO_MARK | libc::SO_INCOMING_CPU | libc::SO_BUSY_POLL => Sort::Number,
        libc::SO_BROADCAST
        | libc::SO_DONTROUTE
        | libc::SO_NO_CHECK
        | libc::SO_RXQ_OVFL
        | libc::SO_WIFI_STATUS
        | libc::SO_NOFCS
        | libc::SO_SELECT_ERR_QUEUE
        | SO_PREFER_BUSY_POLL
        | SO_RCVMARK
        | SO_RCVPRIORITY => Sort::Flag,
        _ => return None,
    })
}

enum Sort {
    Number,
    Flag,
}

impl Sockets {
    pub(super) fn set_socket_option(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { fd, name, value, .. } = *setting;
        if name == libc::SO_BINDTODEVICE {
            // The only device has no name.
            let named = value.first().is_some_and(|first| *first != 0);
            return if named { Err(Errno::ENODEV) } else { Ok(()) };
        }
        let number = int(value)?;
        let on = number != 0;
        let options = &mut self.files.socket_mut(fd)?.options;
        match name {
            libc::SO_REUSEADDR => options.reuse_addr = on,
            libc::SO_REUSEPORT => options.reuse_port = on,
            libc::SO_ZEROCOPY => options.zerocopy = super::switch(number)?,
            libc::SO_BSDCOMPAT => {}
            libc::SO_DEBUG if on => return Err(Errno::EACCES),
            libc::SO_DEBUG => {}
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
            libc::SO_RCVLOWAT => return self.set_receive_lowat(fd, number),
            libc::SO_MAX_PACING_RATE => {
                let wide = value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
                let unlimited = wide.map_or(number == -1, |wide| wide == u64::MAX);
                let rate = wide.map_or(number.cast_unsigned(), |wide| wide.min(u32::MAX.into()) as u32);
                let rate = Some(rate).filter(|_| !unlimited);
                return self.set_engine(setting, SocketOption::MaxPacingRate(rate));
            }
            libc::SO_PASSCRED | libc::SO_PASSSEC | SO_PASSPIDFD | SO_PASSRIGHTS => {
                return Err(Errno::EOPNOTSUPP);
            }
            libc::SO_BUSY_POLL if number < 0 => return Err(Errno::EINVAL),
            _ => {
                return match means_nothing_here(name) {
                    Some(Sort::Number) => self.remember(setting, number),
                    Some(Sort::Flag) => self.remember(setting, on.into()),
                    None => Err(Errno::ENOPROTOOPT),
                };
            }
        }
        Ok(())
    }

    /// No more than half of what the receive buffer may come to hold (Linux's `tcp_set_rcvlowat`).
    fn set_receive_lowat(&mut self, fd: i32, number: i32) -> Result<(), Errno> {
        let largest = self.stack.config().tcp_rmem[2];
        let options = &mut self.files.socket_mut(fd)?.options;
        let most = i32::try_from(options.rcvbuf.unwrap_or(largest) / 2).unwrap_or(i32::MAX);
        let lowat = if number < 0 { i32::MAX } else { number };
        options.rcvlowat = lowat.min(most).max(1);
        self.stir(fd);
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
        let refused = stamping::OPT_STATS | stamping::BIND_PHC;
        let lonely = flags & stamping::OPT_ID_TCP != 0 && flags & stamping::OPT_ID == 0;
        if flags & !stamping::ALL != 0 || flags & refused != 0 || lonely {
            return Err(Errno::EINVAL);
        }
        let socket = self.files.socket(setting.fd)?;
        let mut stamps = socket.options.stamping;
        if flags & stamping::OPT_ID != 0 && stamps.flags & stamping::OPT_ID == 0 {
            let span = socket.connection().filter(|_| !socket.ended).and_then(|id| self.stack.send_span(id));
            let (una, end) = span.ok_or(Errno::EINVAL)?;
            stamps.first = if flags & stamping::OPT_ID_TCP == 0 { una.0 } else { end.0 };
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
        let on = int(setting.value)? != 0;
        let secs = int(setting.value.get(4..).unwrap_or_default())?;
        let secs = u64::try_from(secs).unwrap_or(u64::from(u32::MAX));
        let linger = on.then(|| Duration::from_secs(secs));
        let options = &mut self.files.socket_mut(setting.fd)?.options;
        options.linger = linger;
        options.linger_time = linger.unwrap_or(options.linger_time);
        self.set_engine(setting, SocketOption::Linger(linger.filter(Duration::is_zero)))
    }

    pub(super) fn socket_option(&mut self, fd: i32, name: i32, room: usize) -> Result<Vec<u8>, Errno> {
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
            libc::SO_DEBUG | libc::SO_BSDCOMPAT | SO_INCOMING_NAPI_ID => flag(false),
            libc::SO_BINDTODEVICE => Vec::new(),
            libc::SO_PEERCRED => [bytes(0), bytes(-1), bytes(-1)].concat(),
            libc::SO_PASSCRED | libc::SO_PASSSEC | SO_PASSPIDFD | SO_PASSRIGHTS => {
                return Err(Errno::EOPNOTSUPP);
            }
            SO_MEMINFO => self.meminfo(fd)?,
            _ if means_nothing_here(name).is_some() => {
                let default = if name == libc::SO_INCOMING_CPU { -1 } else { 0 };
                bytes(self.remembered(fd, libc::SOL_SOCKET, name)?.unwrap_or(default))
            }
            _ => return Err(Errno::ENOPROTOOPT),
        })
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
        let mut fields = [0; MEMINFO_FIELDS];
        fields[MEMINFO_SNDBUF] = send;
        fields[MEMINFO_RCVBUF] = receive;
        fields[MEMINFO_WMEM_QUEUED] = i32::try_from(queued).unwrap_or(i32::MAX);
        Ok(fields.into_iter().flat_map(i32::to_ne_bytes).collect())
    }
}

/// `SO_MEMINFO`, which libc does not name for every target.
const SO_MEMINFO: i32 = 55;
const SO_INCOMING_NAPI_ID: i32 = 56;

/// A `timeval`: none of it is for ever, a negative one is not at all (`sock_set_timeout`).
fn timeout(value: &[u8]) -> Result<Option<Duration>, Errno> {
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
