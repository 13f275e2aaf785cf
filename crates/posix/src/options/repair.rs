//! `TCP_REPAIR` and what it opens: a connection is read out of one socket and put together in another, without its peer (Linux's
//! `do_tcp_setsockopt`, `tcp_repair_set_window`, `tcp_repair_options_est`).
//!
//! Linux asks for `CAP_NET_ADMIN`. Who has a stack of its own is its administrator.

use super::{Asked, Setting, Untold, bytes};
use crate::errno::Errno;
use crate::socket::{Queue, Role};
use crate::sockets::Sockets;
use core::time::Duration;
use proto::{ConnId, Instant, Repair, SeqNum, State, Windows};

pub(super) const TCP_REPAIR_WINDOW: i32 = 29;
/// Values of `TCP_REPAIR`: on, off, and off without a window probe.
const ON: i32 = 1;
const OFF: i32 = 0;
const OFF_NO_WP: i32 = -1;
/// Size of `struct tcp_repair_window`, and of `struct tcp_repair_opt`.
const WINDOW_LEN: usize = 20;
const OPTION_LEN: usize = 8;
/// Kinds of options on the wire.
const MSS: u32 = 2;
const WINDOW_SCALE: u32 = 3;
const SACK_PERMITTED: u32 = 4;
const TIMESTAMPS: u32 = 8;
/// RFC 7323 §2.3.
const SHIFT_MAX: u32 = 14;

impl Sockets {
    /// Those of them that are an `int`; `None`: it is another option.
    pub(super) fn set_repair_option(
        &mut self,
        setting: &Setting<'_>,
        number: i32,
    ) -> Option<Result<(), Errno>> {
        Some(match setting.name {
            libc::TCP_REPAIR => self.switch_repair(setting, number),
            libc::TCP_REPAIR_QUEUE => self.choose_queue(setting.fd, number),
            libc::TCP_QUEUE_SEQ => self.set_queue_seq(setting.fd, SeqNum(number.cast_unsigned())),
            libc::TCP_REPAIR_OPTIONS => self.repair_options(setting),
            libc::TCP_TIMESTAMP => self.set_tsval(setting, number.cast_unsigned()),
            TCP_REPAIR_WINDOW => self.set_repair_window(setting),
            _ => return None,
        })
    }

    fn switch_repair(&mut self, setting: &Setting<'_>, number: i32) -> Result<(), Errno> {
        let Setting { now, fd, .. } = *setting;
        let socket = self.files.socket_mut(fd)?;
        if matches!(socket.role, Role::Listener(_)) {
            return Err(Errno::EPERM);
        }
        if !matches!(number, ON | OFF | OFF_NO_WP) {
            return Err(Errno::EINVAL);
        }
        let connection = socket.connection().filter(|_| !socket.ended);
        // While it is repaired nobody's name is in its way; then nobody shares its own.
        socket.options.reuse_addr = false;
        socket.repair.on = number == ON;
        socket.repair.forces_reuse = number == ON;
        if number == ON {
            socket.repair.queue = Queue::None;
        }
        if let (OFF, Some(id)) = (number, connection) {
            self.stack.probe_window(now, id);
        }
        Ok(())
    }

    fn choose_queue(&mut self, fd: i32, number: i32) -> Result<(), Errno> {
        let repair = &mut self.files.socket_mut(fd)?.repair;
        if !repair.on {
            return Err(Errno::EPERM);
        }
        repair.queue = match number {
            0 => Queue::None,
            1 => Queue::Receive,
            2 => Queue::Send,
            _ => return Err(Errno::EINVAL),
        };
        Ok(())
    }

    fn set_queue_seq(&mut self, fd: i32, seq: SeqNum) -> Result<(), Errno> {
        let socket = self.files.socket(fd)?;
        if !socket.is_closed() {
            return Err(Errno::EPERM);
        }
        let unread = socket.connection().and_then(|id| self.stack.queues(id)).map_or(0, |q| q.received);
        let repair = &mut self.files.socket_mut(fd)?.repair;
        match repair.queue {
            Queue::None => return Err(Errno::EINVAL),
            Queue::Receive if unread > 0 => return Err(Errno::EPERM),
            Queue::Receive => repair.rcv_nxt = seq,
            Queue::Send => repair.write_seq = seq,
        }
        Ok(())
    }

    fn repair_options(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { now, fd, value, .. } = *setting;
        let socket = self.files.socket(fd)?;
        if !socket.repair.on {
            return Err(Errno::EINVAL);
        }
        let id =
            socket.connection().filter(|id| self.state(*id) == State::Established).ok_or(Errno::EPERM)?;
        let sent = self.stack.info(id).map_or(0, |info| info.tcp_info.bytes_sent);
        if sent > socket.repair.put {
            return Err(Errno::EPERM);
        }
        for at in (OPTION_LEN..=value.len()).step_by(OPTION_LEN) {
            let option = &value.first(at)?[at - OPTION_LEN..];
            if let Some(piece) = piece_of(word(option, 0), word(option, 4))? {
                self.put(now, id, piece)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, now: Instant, id: ConnId, piece: Repair<'_>) -> Result<(), Errno> {
        self.stack.repair(now, id, piece).map_err(|_| Errno::EPERM)
    }

    fn set_tsval(&mut self, setting: &Setting<'_>, tsval: u32) -> Result<(), Errno> {
        let Setting { now, fd, .. } = *setting;
        let socket = self.files.socket_mut(fd)?;
        if !socket.repair.on {
            return Err(Errno::EPERM);
        }
        socket.repair.ts_offset = tsval.wrapping_sub(now.as_millis() as u32);
        match socket.connection() {
            Some(id) if !socket.ended => self.put(now, id, Repair::TsVal(tsval)),
            _ => Ok(()),
        }
    }

    fn set_repair_window(&mut self, setting: &Setting<'_>) -> Result<(), Errno> {
        let Setting { now, fd, value, .. } = *setting;
        let socket = self.files.socket(fd)?;
        if !socket.repair.on {
            return Err(Errno::EPERM);
        }
        if value.len() != WINDOW_LEN {
            return Err(Errno::EINVAL);
        }
        let given = value.all()?;
        let windows = Windows {
            snd_wl1: SeqNum(word(given, 0)),
            snd_wnd: word(given, 4),
            max_window: word(given, 8),
            rcv_wnd: word(given, 12),
            rcv_wup: SeqNum(word(given, 16)),
        };
        let rcv_nxt = self.rcv_nxt(fd)?;
        if windows.max_window < windows.snd_wnd
            || windows.snd_wl1.after(rcv_nxt + windows.rcv_wnd)
            || windows.rcv_wup.after(rcv_nxt)
        {
            return Err(Errno::EINVAL);
        }
        let socket = self.files.socket_mut(fd)?;
        socket.repair.windows = windows;
        if let Some(id) = socket.connection() {
            // Of one that is not there yet, or no more, nothing follows.
            let _ = self.put(now, id, Repair::Windows(windows));
        }
        Ok(())
    }

    /// Those of them that can be asked; `None`: it is another option.
    pub(super) fn repair_option(&self, fd: i32, name: i32, asked: Asked) -> Option<Result<Vec<u8>, Untold>> {
        Some(match name {
            libc::TCP_REPAIR => {
                self.files.socket(fd).map(|socket| bytes(socket.repair.on.into())).map_err(Untold::from)
            }
            libc::TCP_REPAIR_QUEUE => self.queue_number(fd).map_err(Untold::from),
            libc::TCP_QUEUE_SEQ => self.queue_seq(fd).map_err(Untold::from),
            TCP_REPAIR_WINDOW => self.repair_window(fd, asked).map_err(Untold::from),
            _ => return None,
        })
    }

    fn queue_number(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        let repair = &self.files.socket(fd)?.repair;
        if repair.on { Ok(bytes(repair.queue as i32)) } else { Err(Errno::EINVAL) }
    }

    fn queue_seq(&self, fd: i32) -> Result<Vec<u8>, Errno> {
        let seq = match self.files.socket(fd)?.repair.queue {
            Queue::None => return Err(Errno::EINVAL),
            Queue::Receive => self.rcv_nxt(fd)?,
            Queue::Send => {
                let socket = self.files.socket(fd)?;
                let open = socket.connection().filter(|_| !socket.ended);
                open.and_then(|id| self.stack.send_span(id)).map_or(socket.repair.write_seq, |(_, end)| end)
            }
        };
        Ok(bytes(seq.0.cast_signed()))
    }

    fn rcv_nxt(&self, fd: i32) -> Result<SeqNum, Errno> {
        let socket = self.files.socket(fd)?;
        let open = socket.connection().filter(|_| !socket.ended);
        Ok(open.and_then(|id| self.stack.rcv_nxt(id)).unwrap_or(socket.repair.rcv_nxt))
    }

    fn repair_window(&self, fd: i32, asked: Asked) -> Result<Vec<u8>, Errno> {
        let socket = self.files.socket(fd)?;
        if usize::try_from(asked.room) != Ok(WINDOW_LEN) {
            return Err(Errno::EINVAL);
        }
        if !socket.repair.on {
            return Err(Errno::EPERM);
        }
        let open = socket.connection().filter(|_| !socket.ended);
        let Windows { snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup } =
            open.and_then(|id| self.stack.windows(id)).unwrap_or(socket.repair.windows);
        Ok([snd_wl1.0, snd_wnd, max_window, rcv_wnd, rcv_wup.0].map(u32::to_ne_bytes).concat())
    }

    /// How much later than the stack's clock, in milliseconds, the time stamps of a socket without a connection are.
    pub(super) fn ts_offset(&self, fd: i32) -> Result<Duration, Errno> {
        Ok(Duration::from_millis(self.files.socket(fd)?.repair.ts_offset.into()))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word))
}

/// What a `struct tcp_repair_opt` says; a kind that is not known says nothing.
fn piece_of(kind: u32, value: u32) -> Result<Option<Repair<'static>>, Errno> {
    Ok(Some(match kind {
        MSS => Repair::Mss(value as u16),
        WINDOW_SCALE => {
            let (peers, ours) = (value & 0xffff, value >> 16);
            if peers > SHIFT_MAX || ours > SHIFT_MAX {
                return Err(Errno::EFBIG);
            }
            Repair::WindowScale(peers as u8, ours as u8)
        }
        SACK_PERMITTED | TIMESTAMPS if value != 0 => return Err(Errno::EINVAL),
        SACK_PERMITTED => Repair::Sack,
        TIMESTAMPS => Repair::Timestamps,
        _ => return Ok(None),
    }))
}
