//! `epoll`: level-triggered, edge-triggered and one-shot.
//!
//! As in Linux, a wake-up puts an entry on the ready list, and `epoll_wait` asks the file itself what it is ready for. A level-triggered
//! entry that had something goes to the end of the list again; the others wait for the next wake-up.

use crate::errno::{Errno, Stop};
use crate::files::File;
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

/// One epoll instance.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: BTreeMap<i32, Watch>,
    ready: VecDeque<i32>,
}

#[derive(Debug)]
struct Watch {
    interest: Interest,
    /// One-shot, and has been reported.
    disarmed: bool,
    listed: bool,
}

impl Epoll {
    fn list(&mut self, fd: i32) {
        if let Some(watch) = self.watched.get_mut(&fd)
            && !watch.disarmed
            && !std::mem::replace(&mut watch.listed, true)
        {
            self.ready.push_back(fd);
        }
    }

    fn forget(&mut self, fd: i32) -> bool {
        self.ready.retain(|listed| *listed != fd);
        self.watched.remove(&fd).is_some()
    }

    pub(crate) fn may_be_ready(&self, readiness: impl Fn(i32) -> Ready) -> bool {
        let wanted = |fd: &i32| self.watched.get(fd).map_or(0, |watch| watch.interest.events);
        self.ready.iter().any(|fd| readiness(*fd).bits() & wanted(fd) != 0)
    }
}

impl Sockets {
    /// `epoll_create`.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn epoll_create(&mut self) -> Result<i32, Errno> {
        self.files.insert(File::Epoll(Epoll::default()))
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
    /// `EBADF`, `EINVAL` if `epoll` is none or watches itself, `EEXIST`, `ENOENT`.
    pub fn epoll_ctl(&mut self, epoll: i32, fd: i32, control: Control) -> Result<(), Errno> {
        self.files.get(fd)?;
        let always = (Ready::ERR | Ready::HUP).bits();
        let found = self.epoll_mut(epoll)?;
        if epoll == fd {
            return Err(Errno::EINVAL);
        }
        match control {
            Control::Delete if found.forget(fd) => return Ok(()),
            Control::Delete => return Err(Errno::ENOENT),
            Control::Add(_) if found.watched.contains_key(&fd) => return Err(Errno::EEXIST),
            Control::Modify(_) if !found.watched.contains_key(&fd) => return Err(Errno::ENOENT),
            Control::Add(interest) | Control::Modify(interest) => {
                let interest = Interest { events: interest.events | always, ..interest };
                let listed = found.watched.get(&fd).is_some_and(|watch| watch.listed);
                found.watched.insert(fd, Watch { interest, disarmed: false, listed });
            }
        }
        let ready = self.readiness(fd)?;
        let found = self.epoll_mut(epoll)?;
        if found.watched.get(&fd).is_some_and(|watch| watch.interest.events & ready.bits() != 0) {
            found.list(fd);
            self.note_stirred(epoll);
        }
        Ok(())
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
            let Some(fd) = self.epoll_mut(epoll)?.ready.pop_front() else { break };
            let ready = self.readiness(fd).unwrap_or(Ready::empty()).bits();
            let instance = self.epoll_mut(epoll)?;
            let Some(watch) = instance.watched.get_mut(&fd) else { continue };
            watch.listed = false;
            let events = ready & watch.interest.events;
            if events == 0 {
                continue;
            }
            found.push(Interest { events, data: watch.interest.data });
            watch.disarmed = watch.interest.events & ONE_SHOT != 0;
            if watch.interest.events & (EDGE | ONE_SHOT) == 0 {
                instance.list(fd);
            }
        }
        match deadline {
            _ if !found.is_empty() => Ok(found),
            Some(deadline) if now >= deadline => Ok(found),
            deadline => Err(Stop::Wait(deadline)),
        }
    }

    /// Something happened to a descriptor: who watches it for that, or waits for it, looks again.
    pub(crate) fn wake_epolls(&mut self, fd: i32, ready: Ready) {
        self.note_stirred(fd);
        let mut listing = Vec::new();
        for (number, file) in self.files.iter_mut() {
            if let File::Epoll(epoll) = file
                && epoll.watched.get(&fd).is_some_and(|watch| watch.interest.events & ready.bits() != 0)
            {
                epoll.list(fd);
                listing.push(number);
            }
        }
        listing.into_iter().for_each(|epoll| self.note_stirred(epoll));
    }

    pub(crate) fn forget_in_epolls(&mut self, fd: i32) {
        for (_, file) in self.files.iter_mut() {
            if let File::Epoll(epoll) = file {
                epoll.forget(fd);
            }
        }
    }
}
