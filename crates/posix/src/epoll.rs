//! `epoll`: level-triggered, edge-triggered and one-shot.
//!
//! As in Linux, a wake-up puts an entry on the ready list, and `epoll_wait` asks the file itself what it is ready for. A level-triggered
//! entry that had something goes to the end of the list again; the others wait for the next wake-up.

use crate::errno::{Errno, Stop};
use crate::files::{File, Open};
use crate::readiness::Ready;
use crate::sockets::Sockets;
use proto::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Report changes only (`EPOLLET`).
pub const EDGE: u32 = 1 << 31;
/// Report once, until it is armed again (`EPOLLONESHOT`).
pub const ONE_SHOT: u32 = 1 << 30;

/// What `epoll_ctl` says of one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// `EPOLLIN` …, [`EDGE`], [`ONE_SHOT`].
    pub events: u32,
    /// Given back as it is.
    pub data: u64,
}

/// What `epoll_ctl` is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `EPOLL_CTL_ADD`.
    Add(Interest),
    /// `EPOLL_CTL_MOD`.
    Modify(Interest),
    /// `EPOLL_CTL_DEL`.
    Delete,
}

/// Given to one of several instances that watch the same file: here it is given to all (`EPOLLEXCLUSIVE`).
const EXCLUSIVE: u32 = 1 << 28;
/// What may stand beside it (Linux's `EPOLLEXCLUSIVE_OK_BITS`).
const EXCLUSIVE_OK: u32 =
    EXCLUSIVE | EDGE | 1 << 29 | (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) as u32;
/// How deep instances may watch each other (Linux's `EP_MAX_NESTS`).
const NESTED_MAX: usize = 4;

/// A file, and the number it was added by: another number of it is another entry.
type Key = (Open, i32);

/// One epoll instance.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: BTreeMap<Key, Watch>,
    ready: VecDeque<Key>,
}

#[derive(Debug)]
struct Watch {
    interest: Interest,
    /// One-shot, and has been reported.
    disarmed: bool,
    listed: bool,
}

impl Epoll {
    fn list(&mut self, key: Key) {
        if let Some(watch) = self.watched.get_mut(&key)
            && !watch.disarmed
            && !std::mem::replace(&mut watch.listed, true)
        {
            self.ready.push_back(key);
        }
    }

    fn forget(&mut self, key: Key) -> bool {
        self.ready.retain(|listed| *listed != key);
        self.watched.remove(&key).is_some()
    }

    pub(crate) fn may_be_ready(&self, readiness: impl Fn(Open) -> Ready) -> bool {
        let wanted = |key: &Key| self.watched.get(key).map_or(0, |watch| watch.interest.events);
        self.ready.iter().any(|key| readiness(key.0).bits() & wanted(key) != 0)
    }
}

impl Sockets {
    /// `epoll_create1`.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn epoll_create(&mut self, close_on_exec: bool) -> Result<i32, Errno> {
        let fd = self.files.insert(File::Epoll(Epoll::default()), close_on_exec)?;
        self.epolls.push(self.files.open(fd)?);
        Ok(fd)
    }

    fn epoll_mut(&mut self, epoll: i32) -> Result<&mut Epoll, Errno> {
        match self.files.get_mut(epoll)? {
            File::Epoll(found) => Ok(found),
            _ => Err(Errno::EINVAL),
        }
    }

    /// `epoll_ctl`.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL` if `epoll` is none or watches itself, `EEXIST`, `ENOENT`, `ELOOP` where instances would watch each other.
    pub fn epoll_ctl(&mut self, epoll: i32, fd: i32, control: Control) -> Result<(), Errno> {
        let own = self.files.open(epoll)?;
        let key = (self.files.open(fd)?, fd);
        self.epoll_mut(epoll)?;
        if key.0 == own {
            return Err(Errno::EINVAL);
        }
        let nested = matches!(self.files.at(key.0)?, File::Epoll(_));
        self.check_exclusive(epoll, key, control, nested)?;
        if nested && matches!(control, Control::Add(_)) && self.watches(key.0, own, NESTED_MAX)? {
            return Err(Errno::ELOOP);
        }
        let always = (Ready::ERR | Ready::HUP).bits();
        let found = self.epoll_mut(epoll)?;
        match control {
            Control::Delete if found.forget(key) => return Ok(()),
            Control::Delete => return Err(Errno::ENOENT),
            Control::Add(_) if found.watched.contains_key(&key) => return Err(Errno::EEXIST),
            Control::Modify(_) if !found.watched.contains_key(&key) => return Err(Errno::ENOENT),
            Control::Add(interest) | Control::Modify(interest) => {
                let interest = Interest { events: interest.events | always, ..interest };
                let listed = found.watched.get(&key).is_some_and(|watch| watch.listed);
                found.watched.insert(key, Watch { interest, disarmed: false, listed });
            }
        }
        let ready = self.readiness_at(key.0)?;
        let found = self.epoll_mut(epoll)?;
        if found.watched.get(&key).is_some_and(|watch| watch.interest.events & ready.bits() != 0) {
            found.list(key);
            self.note_stirred(own);
        }
        Ok(())
    }

    /// `EPOLLEXCLUSIVE` is said when an entry is made, of a file that is no instance, and is not taken back.
    fn check_exclusive(&mut self, epoll: i32, key: Key, control: Control, nested: bool) -> Result<(), Errno> {
        let known = self.epoll_mut(epoll)?.watched.get(&key).map_or(0, |watch| watch.interest.events);
        let wrong = match control {
            Control::Add(interest) if interest.events & EXCLUSIVE != 0 => {
                nested || interest.events & !EXCLUSIVE_OK != 0
            }
            Control::Modify(interest) => (interest.events | known) & EXCLUSIVE != 0,
            _ => false,
        };
        if wrong { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// Does this instance watch that one, or would the row of instances become too long?
    fn watches(&self, epoll: Open, other: Open, depth: usize) -> Result<bool, Errno> {
        let File::Epoll(found) = self.files.at(epoll)? else { return Ok(false) };
        if epoll == other || depth == 0 {
            return Ok(true);
        }
        for (open, _) in found.watched.keys() {
            if self.watches(*open, other, depth - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// `epoll_wait`: at most `most` entries that have something.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`; [`Stop::Wait`].
    pub fn epoll_wait(
        &mut self,
        now: Instant,
        epoll: i32,
        most: usize,
        deadline: Option<Instant>,
    ) -> Result<Vec<Interest>, Stop> {
        if most == 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut found = Vec::new();
        let listed = self.epoll_mut(epoll)?.ready.len();
        for _ in 0..listed {
            if found.len() == most {
                break;
            }
            let Some(key) = self.epoll_mut(epoll)?.ready.pop_front() else { break };
            let ready = self.readiness_at(key.0).unwrap_or(Ready::empty()).bits();
            let instance = self.epoll_mut(epoll)?;
            let Some(watch) = instance.watched.get_mut(&key) else { continue };
            watch.listed = false;
            let events = ready & watch.interest.events;
            if events == 0 {
                continue;
            }
            found.push(Interest { events, data: watch.interest.data });
            watch.disarmed = watch.interest.events & ONE_SHOT != 0;
            if watch.interest.events & (EDGE | ONE_SHOT) == 0 {
                instance.list(key);
            }
        }
        match deadline {
            _ if !found.is_empty() => Ok(found),
            Some(deadline) if now >= deadline => Ok(found),
            deadline => Err(Stop::Wait(deadline)),
        }
    }

    /// Something happened to a file: who watches it for that, or waits for it, looks again.
    pub(crate) fn wake_epolls(&mut self, open: Open, ready: Ready) {
        self.note_stirred(open);
        for at in 0..self.epolls.len() {
            let epoll = self.epolls[at];
            let Some(File::Epoll(instance)) = self.files.file_at(epoll) else { continue };
            let wanted = |(_, watch): &(&Key, &Watch)| watch.interest.events & ready.bits() != 0;
            let entries = instance.watched.range((open, i32::MIN)..=(open, i32::MAX));
            let keys: Vec<Key> = entries.filter(wanted).map(|(key, _)| *key).collect();
            let any = !keys.is_empty();
            keys.into_iter().for_each(|key| instance.list(key));
            if any {
                self.wake_epolls(epoll, Ready::IN | Ready::RDNORM);
            }
        }
    }

    pub(crate) fn forget_in_epolls(&mut self, open: Open) {
        for file in self.files.iter_mut() {
            if let File::Epoll(epoll) = file {
                epoll.ready.retain(|key| key.0 != open);
                epoll.watched.retain(|key, _| key.0 != open);
            }
        }
    }
}
