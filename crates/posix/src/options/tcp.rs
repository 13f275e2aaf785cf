//! Options of `IPPROTO_TCP` (Linux's `do_tcp_setsockopt` and `do_tcp_getsockopt`).

use super::md5::TCP_MD5SIG_EXT;
use super::{Asked, Given, Setting, Untold, bytes, flag, seconds, switch, whole_seconds};
use crate::errno::Errno;
use crate::socket::{Opening, Role};
use crate::sockets::Sockets;
use crate::tcp_info;
use core::time::Duration;
use proto::fast_open::KeyRing;
use proto::{CongestionControl, CongestionInfo, ConnectionInfo, Instant, SocketOption, State, fastopen};

/// Linux's numbers that libc does not name.
const TCP_INQ: i32 = 36;
const TCP_IS_MPTCP: i32 = 43;
const TCP_RTO_MAX_MS: i32 = 44;
const TCP_RTO_MIN_US: i32 = 45;
const TCP_DELACK_MAX_US: i32 = 46;
const TCP_TX_DELAY: i32 = 37;
const TCP_AO_REPAIR: i32 = 42;
/// Linux's `TCP_FASTOPEN_KEY_LENGTH`.
const KEY_LEN: usize = 16;
/// Bytes that timestamps take of every segment.
const TIMESTAMPS_LEN: i32 = 12;
/// Linux's `TCP_CA_NAME_MAX`.
const CONGESTION_NAME_MAX: usize = 16;
/// MSS of a socket that is not connected (Linux's `TCP_MSS_DEFAULT`).
const MSS_DEFAULT: i32 = 536;

impl Sockets {
    pub(super) fn set_tcp_option(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { fd, name, value, .. } = *setting;
        match name {
            libc::TCP_CONGESTION => {
                let wanted = name_in(value)?;
                return self.set_congestion(setting, wanted);
            }
            // There are no upper-layer protocols here. That of Multipath TCP's own is none for sockets (Linux's `subflow_ulp_init`).
            libc::TCP_ULP if name_in(value)? == b"mptcp" => return Err(Errno::EOPNOTSUPP),
            libc::TCP_ULP => return Err(Errno::ENOENT),
            libc::TCP_FASTOPEN_KEY => {
                if value.len() != KEY_LEN && value.len() != 2 * KEY_LEN {
                    return Err(Errno::EINVAL);
                }
                let key = KeyRing::from_bytes(value.all()?).map_err(|_| Errno::EINVAL)?;
                self.files.socket_mut(fd)?.options.fast_open_key = Some(key);
                return Ok(());
            }
            _ => {}
        }
        let number = value.int()?;
        if let Some(result) = self.set_repair_option(setting, number) {
            return result;
        }
        match name {
            libc::TCP_MD5SIG | TCP_MD5SIG_EXT => self.set_md5_key(setting),
            TCP_AO_REPAIR if matches!(self.files.socket(fd)?.role, Role::Listener(_)) => Err(Errno::EPERM),
            libc::TCP_SAVE_SYN => {
                if !(0..=2).contains(&number) {
                    return Err(Errno::EINVAL);
                }
                self.files.socket_mut(fd)?.options.save_syn = number;
                self.set_engine(setting, SocketOption::SaveSyn(number != 0))
            }
            TCP_TX_DELAY => {
                let delay = u64::try_from(number).map_err(|_| Errno::EINVAL)?;
                self.set_engine(setting, SocketOption::TxDelay(Duration::from_micros(delay)))
            }
            libc::TCP_FASTOPEN | libc::TCP_FASTOPEN_CONNECT | libc::TCP_FASTOPEN_NO_COOKIE => {
                self.set_fast_open(fd, name, number)
            }
            libc::TCP_DEFER_ACCEPT => {
                let wait = deferral(seconds(number.max(0))?);
                self.files.socket_mut(fd)?.options.defer_accept = wait;
                Ok(())
            }
            libc::TCP_MAXSEG => self.set_max_segment(setting, number),
            TCP_INQ => {
                self.files.socket_mut(fd)?.options.inq = switch(number)?;
                Ok(())
            }
            libc::TCP_WINDOW_CLAMP if number == 0 => self.unclamp_window(fd),
            libc::TCP_WINDOW_CLAMP => {
                self.set_engine(setting, SocketOption::WindowClamp(number.max(0).cast_unsigned()))
            }
            libc::TCP_THIN_DUPACK => switch(number).map(|_| ()),
            _ => self.set_engine(setting, engine_option(name, number)?),
        }
    }

    /// Only before there is a window to be clamped.
    fn unclamp_window(&mut self, fd: i32) -> Result<(), Errno> {
        let socket = self.files.socket_mut(fd)?;
        if !socket.is_closed() {
            return Err(Errno::EINVAL);
        }
        socket.options.engine.window_clamp = None;
        Ok(())
    }

    /// A connection's segments stay as they were agreed: it is for those to come (Linux's `tcp_sock_set_maxseg`).
    fn set_max_segment(&mut self, setting: &Setting<'_>, number: i32) -> Result<(), Errno> {
        let option = engine_option(libc::TCP_MAXSEG, number)?;
        if self.files.socket(setting.fd)?.connection().is_none() {
            return self.set_engine(setting, option);
        }
        self.files.socket_mut(setting.fd)?.options.engine.set(option).map_err(|_| Errno::EINVAL)
    }

    fn set_fast_open(&mut self, fd: i32, name: i32, number: i32) -> Result<(), Errno> {
        let client = self.stack.config().tcp_fastopen & fastopen::CLIENT != 0;
        let most = self.stack.config().somaxconn;
        let socket = self.files.socket_mut(fd)?;
        let fresh = socket.is_closed();
        let listens = matches!(socket.role, Role::Listener(_));
        match name {
            libc::TCP_FASTOPEN if fresh || listens => {
                let qlen = u32::try_from(number).map_err(|_| Errno::EINVAL)?;
                socket.options.fast_open_qlen = Some(qlen.min(most));
            }
            libc::TCP_FASTOPEN_CONNECT => {
                let on = switch(number)?;
                if !client {
                    return Err(Errno::EOPNOTSUPP);
                }
                if !fresh {
                    return Err(Errno::EINVAL);
                }
                socket.options.fast_open_connect = on;
            }
            libc::TCP_FASTOPEN_NO_COOKIE if fresh || listens => {
                socket.options.fast_open_no_cookie = switch(number)?;
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    fn set_congestion(&mut self, setting: &Setting<'_>, name: &[u8]) -> Result<(), Errno> {
        let known = CongestionControl::ALL.iter().find(|known| congestion_name(**known).as_bytes() == name);
        self.set_engine(setting, SocketOption::Congestion(*known.ok_or(Errno::ENOENT)?))
    }

    pub(super) fn tcp_option(
        &mut self,
        now: Instant,
        fd: i32,
        name: i32,
        asked: Asked,
    ) -> Result<Vec<u8>, Untold> {
        if let Some(told) = self.repair_option(fd, name, asked) {
            return told;
        }
        let socket = self.files.socket(fd)?;
        let options = &socket.options;
        let engine = &options.engine;
        let config = self.stack.config();
        let micros = |time: Option<Duration>, default: Duration| {
            bytes(i32::try_from(time.unwrap_or(default).as_micros()).unwrap_or(i32::MAX))
        };
        Ok(match name {
            libc::TCP_NODELAY => flag(engine.nodelay),
            libc::TCP_CORK => flag(engine.cork),
            libc::TCP_MAXSEG => bytes(self.mss(fd)?),
            libc::TCP_KEEPIDLE => {
                bytes(whole_seconds(engine.keepalive_time.unwrap_or(config.tcp_keepalive_time)))
            }
            libc::TCP_KEEPINTVL => {
                bytes(whole_seconds(engine.keepalive_intvl.unwrap_or(config.tcp_keepalive_intvl)))
            }
            libc::TCP_KEEPCNT => {
                bytes(engine.keepalive_probes.map_or(config.tcp_keepalive_probes as i32, i32::from))
            }
            libc::TCP_SYNCNT => bytes(engine.syn_retries.map_or(config.tcp_syn_retries as i32, i32::from)),
            libc::TCP_LINGER2 if engine.linger2 == Some(Duration::ZERO) => bytes(-1),
            libc::TCP_LINGER2 => bytes(whole_seconds(engine.linger2.unwrap_or(config.tcp_fin_timeout))),
            libc::TCP_DEFER_ACCEPT => bytes(whole_seconds(options.defer_accept)),
            libc::TCP_WINDOW_CLAMP => bytes(engine.window_clamp.unwrap_or(0) as i32),
            libc::TCP_QUICKACK => flag(self.acknowledges_quickly(fd)?),
            libc::TCP_USER_TIMEOUT => {
                let wait = engine.user_timeout.unwrap_or_default();
                bytes(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX))
            }
            libc::TCP_NOTSENT_LOWAT => bytes(engine.notsent_lowat.unwrap_or(0) as i32),
            libc::TCP_FASTOPEN => bytes(options.fast_open_qlen.unwrap_or(0) as i32),
            libc::TCP_FASTOPEN_CONNECT => flag(options.fast_open_connect),
            libc::TCP_FASTOPEN_NO_COOKIE => flag(options.fast_open_no_cookie),
            libc::TCP_FASTOPEN_KEY => {
                options.fast_open_key.as_ref().unwrap_or(self.stack.fast_open_key()).to_bytes()
            }
            TCP_INQ => flag(options.inq),
            TCP_RTO_MAX_MS => {
                let most = engine.rto_max.map_or(config.tcp_rto_max_ms.into(), |most| most.as_millis());
                bytes(i32::try_from(most).unwrap_or(i32::MAX))
            }
            TCP_RTO_MIN_US => micros(engine.rto_min, config.rto_min()),
            TCP_DELACK_MAX_US => micros(engine.delack_max, config.delayed_ack_max),
            libc::TCP_CONGESTION => self.congestion(fd)?,
            libc::TCP_INFO => tcp_info::bytes(self, now, fd)?,
            libc::TCP_CC_INFO => self.congestion_info(fd)?,
            libc::TCP_ULP => Vec::new(),
            libc::TCP_SAVE_SYN => bytes(options.save_syn),
            libc::TCP_SAVED_SYN => self.saved_syn(fd, asked)?,
            TCP_TX_DELAY => bytes(i32::try_from(engine.tx_delay.as_micros()).unwrap_or(i32::MAX)),
            libc::TCP_TIMESTAMP => {
                let connected = socket.connection().and_then(|id| self.stack.timestamp(now, id));
                let own = (now + self.ts_offset(fd)?).as_millis() as u32;
                // The lowest bit would tell of a clock of microseconds.
                bytes((connected.unwrap_or(own) & !1).cast_signed())
            }
            TCP_AO_REPAIR if matches!(socket.role, Role::Listener(_)) => return Err(Errno::EPERM.into()),
            libc::TCP_THIN_LINEAR_TIMEOUTS => flag(engine.thin_linear_timeouts),
            libc::TCP_THIN_DUPACK | TCP_IS_MPTCP => flag(false),
            _ => return Err(Errno::ENOPROTOOPT.into()),
        })
    }

    /// `TCP_SAVED_SYN`: told once, and whole or not at all.
    fn saved_syn(&mut self, fd: i32, asked: Asked) -> Result<Vec<u8>, Untold> {
        let Some(id) = self.files.socket(fd)?.connection() else { return Ok(Vec::new()) };
        let Some(syn) = self.stack.saved_syn(id).map(<[u8]>::to_vec) else { return Ok(Vec::new()) };
        if usize::try_from(asked.room).unwrap_or(0) < syn.len() {
            return Err(Untold { errno: Errno::EINVAL, needed: Some(syn.len()) });
        }
        if !asked.faulty {
            self.stack.forget_saved_syn(id);
        }
        Ok(syn)
    }

    fn mss(&self, fd: i32) -> Result<i32, Errno> {
        let socket = self.files.socket(fd)?;
        if socket.opening == Opening::Deferred {
            // `tcp_connect_init` comes with the SYN.
            return Ok(MSS_DEFAULT);
        }
        let info = socket.connection().and_then(|id| self.stack.info(id));
        let listens = matches!(socket.role, Role::Listener(_));
        let asked = socket.options.engine.max_segment.map(i32::from);
        let asked = asked.filter(|_| socket.is_closed() || listens);
        let repaired =
            socket.connection().filter(|_| socket.repair.on).and_then(|id| self.stack.peer_mss(id));
        let found = repaired.map(i32::from).or(info.map(|info| self.segment_of(&info)));
        Ok(asked.or(found).or(socket.former.as_deref().map(|former| former.mss)).unwrap_or(MSS_DEFAULT))
    }

    /// What a SYN-ACK may still allow is not known: no more than the default, less what timestamps take.
    pub(crate) fn segment_of(&self, info: &ConnectionInfo) -> i32 {
        let timestamps = unanswered(info) && self.stack.config().timestamps();
        i32::from(info.snd_mss) - if timestamps { TIMESTAMPS_LEN } else { 0 }
    }

    fn acknowledges_quickly(&self, fd: i32) -> Result<bool, Errno> {
        let socket = self.files.socket(fd)?;
        let info = socket.connection().and_then(|id| self.stack.info(id));
        let asked = socket.options.engine.quickack.unwrap_or(true);
        Ok(info.map_or(asked, |info| !info.tcp_info.pingpong))
    }

    fn congestion(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        let info = socket.connection().and_then(|id| self.stack.info(id));
        let default = self.stack.config().tcp_congestion_control;
        let options = &socket.options;
        let chosen = options.engine.congestion.or(options.first_congestion).unwrap_or(default);
        let mut name = congestion_name(info.map_or(chosen, |info| info.congestion)).as_bytes().to_vec();
        name.resize(CONGESTION_NAME_MAX, 0);
        Ok(name)
    }

    /// `tcpvegas_info` or `tcp_bbr_info`; until the handshake is complete an algorithm has not begun (`tcp_init_transfer`).
    fn congestion_info(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        let default = self.stack.config().tcp_congestion_control;
        let chosen = socket.options.engine.congestion.unwrap_or(default);
        let info = socket.connection().and_then(|id| self.stack.info(id));
        let words = match info.filter(|info| info.established_at.is_some()) {
            Some(info) => congestion_words(info.congestion_info),
            None if chosen == CongestionControl::Vegas => vec![0; 4],
            None if chosen == CongestionControl::Bbr => vec![0; 5],
            None => Vec::new(),
        };
        Ok(words.into_iter().flat_map(u32::to_ne_bytes).collect())
    }
}

fn congestion_words(info: CongestionInfo) -> Vec<u32> {
    let micros = |rtt: Option<Duration>| rtt.map_or(u32::MAX, |rtt| rtt.as_micros() as u32);
    match info {
        CongestionInfo::Nothing => Vec::new(),
        CongestionInfo::Vegas { enabled, samples, base_rtt, min_rtt } => {
            // Linux's `INFINITE_RTT`.
            let least = |rtt: Option<Duration>| micros(rtt).min(0x7fff_ffff);
            vec![enabled.into(), samples.into(), least(base_rtt), least(min_rtt)]
        }
        CongestionInfo::Bbr { bandwidth, min_rtt, pacing_gain, cwnd_gain } => {
            let gain = |percent: u32| percent * 256 / 100;
            let (low, high) = (bandwidth as u32, (bandwidth >> 32) as u32);
            vec![low, high, micros(min_rtt), gain(pacing_gain), gain(cwnd_gain)]
        }
    }
}

/// No SYN-ACK has come.
pub(crate) fn unanswered(info: &ConnectionInfo) -> bool {
    let heard = info.established_at.is_some() || info.tcp_info.crossed;
    info.state == State::SynSent || info.state == State::Closed && !heard
}

/// A name, which ends at a zero or where its length or its room do.
///
/// # Errors
/// `EINVAL` for no length, `EFAULT`.
fn name_in(value: Given<'_>) -> Result<&[u8], Errno> {
    if value.len() == 0 {
        return Err(Errno::EINVAL);
    }
    let bytes = value.first(value.len().min(CONGESTION_NAME_MAX - 1))?;
    Ok(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// As the time-outs of a SYN-ACK make it: 1, 3, 7 … seconds (Linux's `secs_to_retrans`, `retrans_to_secs`).
fn deferral(asked: Duration) -> Duration {
    let (mut period, mut timeout) = (Duration::ZERO, Duration::from_secs(1));
    while period < asked && period < DEFER_MAX {
        period += timeout;
        timeout = (timeout * 2).min(TIMEOUT_MAX);
    }
    period
}

/// Linux's `TCP_RTO_MAX`, and 255 time-outs.
const TIMEOUT_MAX: Duration = Duration::from_secs(120);
const DEFER_MAX: Duration = Duration::from_secs(127 + 248 * 120);

fn congestion_name(algorithm: CongestionControl) -> &'static str {
    match algorithm {
        CongestionControl::Reno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::Vegas => "vegas",
        CongestionControl::Tahoe => "tahoe",
        CongestionControl::Bbr => "bbr",
        _ => "unknown",
    }
}

/// Options that are the engine's, from Linux's units; ranges are checked there.
fn engine_option(name: i32, number: i32) -> Result<SocketOption, Errno> {
    let positive = |number: i32| u64::try_from(number).map_err(|_| Errno::EINVAL);
    let byte = |number: i32| u8::try_from(number).map_err(|_| Errno::EINVAL);
    let on = number != 0;
    Ok(match name {
        libc::TCP_NODELAY => SocketOption::NoDelay(on),
        libc::TCP_CORK => SocketOption::Cork(on),
        libc::TCP_QUICKACK => SocketOption::QuickAck(on),
        libc::TCP_THIN_LINEAR_TIMEOUTS => SocketOption::ThinLinearTimeouts(switch(number)?),
        libc::TCP_MAXSEG => {
            let bytes = u16::try_from(number).map_err(|_| Errno::EINVAL)?;
            SocketOption::MaxSegment(Some(bytes).filter(|bytes| *bytes > 0))
        }
        libc::TCP_KEEPIDLE => SocketOption::KeepAliveTime(Some(seconds(number)?)),
        libc::TCP_KEEPINTVL => SocketOption::KeepAliveInterval(Some(seconds(number)?)),
        libc::TCP_KEEPCNT if number == 0 => return Err(Errno::EINVAL),
        libc::TCP_KEEPCNT => SocketOption::KeepAliveProbes(Some(byte(number)?)),
        libc::TCP_SYNCNT => SocketOption::SynRetries(Some(byte(number)?)),
        libc::TCP_LINGER2 if number < 0 => SocketOption::Linger2(Some(Duration::ZERO)),
        libc::TCP_LINGER2 => SocketOption::Linger2(Some(seconds(number)?).filter(|wait| !wait.is_zero())),
        libc::TCP_USER_TIMEOUT => SocketOption::UserTimeout(Some(Duration::from_millis(positive(number)?))),
        libc::TCP_NOTSENT_LOWAT => SocketOption::NotsentLowat(Some(number as u32).filter(|lowat| *lowat > 0)),
        TCP_RTO_MAX_MS => SocketOption::RtoMax(Some(Duration::from_millis(positive(number)?))),
        TCP_RTO_MIN_US => SocketOption::RtoMin(Some(Duration::from_micros(positive(number)?))),
        TCP_DELACK_MAX_US => SocketOption::DelackMax(Some(Duration::from_micros(positive(number)?))),
        _ => return Err(Errno::ENOPROTOOPT),
    })
}
