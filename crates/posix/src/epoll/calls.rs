//! Calls about epoll instances, and what is noted in them when something happens.

use super::*;
use crate::files::File;
use crate::sockets::Sockets;

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
    /// Returns `EBADF`, `EINVAL` if `epoll` is not an instance or watches itself, `EEXIST`,
    /// `ENOENT`, or `ELOOP` if instances would watch each other.
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
        let ready = self.asked(key.0)?;
        let found = self.epoll_mut(epoll)?;
        if found.watched.get(&key).is_some_and(|watch| watch.interest.events & ready.bits() != 0) {
            found.list(key);
            // Who watches this instance, too.
            self.wake_epolls(own, SOMETHING);
        }
        Ok(())
    }

    /// Returns the events that an instance watches for a descriptor, if it watches it.
    pub fn epoll_interest(&self, epoll: i32, fd: i32) -> Option<Interest> {
        let key = (self.files.open(fd).ok()?, fd);
        match self.files.get(epoll).ok()? {
            File::Epoll(found) => found.watched.get(&key).map(|watch| watch.interest),
            _ => None,
        }
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
        let found = self.epoll_found(epoll, most)?;
        match deadline {
            _ if !found.is_empty() => Ok(found),
            Some(deadline) if now >= deadline => Ok(found),
            deadline => Err(Stop::Wait(deadline)),
        }
    }

    /// At most `most` entries that have something now.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`.
    pub(crate) fn epoll_found(&mut self, epoll: i32, most: usize) -> Result<Vec<Interest>, Errno> {
        let mut found = Vec::new();
        let listed = self.epoll_mut(epoll)?.ready.len();
        for _ in 0..listed {
            if found.len() == most {
                break;
            }
            let Some(key) = self.epoll_mut(epoll)?.ready.pop_front() else { break };
            let ready = self.asked(key.0).unwrap_or(Ready::empty()).bits();
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
        Ok(found)
    }

    /// The kernel's instance beside this one.
    ///
    /// # Errors
    /// `EBADF`, `EINVAL`.
    pub(crate) fn kernel_part(&mut self, epoll: i32) -> Result<Option<Arc<OwnedFd>>, Errno> {
        Ok(self.epoll_mut(epoll)?.kernel.clone())
    }

    /// Puts one beside it, unless another thread has.
    ///
    /// # Errors
    /// As [`kernel_part`](Self::kernel_part).
    pub(crate) fn give_kernel_part(&mut self, epoll: i32, part: OwnedFd) -> Result<Arc<OwnedFd>, Errno> {
        let part = Arc::clone(self.epoll_mut(epoll)?.kernel.get_or_insert_with(|| Arc::new(part)));
        // Who waits is to sleep on it, too.
        self.wake_epolls(self.files.open(epoll)?, SOMETHING);
        Ok(part)
    }

    /// Is it the kernel's turn to come first? Where there is no room for both, neither is always left out.
    ///
    /// # Errors
    /// As [`kernel_part`](Self::kernel_part).
    pub(crate) fn turn_to_kernel(&mut self, epoll: i32) -> Result<bool, Errno> {
        let instance = self.epoll_mut(epoll)?;
        instance.turned = !instance.turned;
        Ok(instance.turned)
    }

    /// The kernel's instances beside these, and beside those that they watch and that could make them ready.
    pub(crate) fn kernel_parts(&self, fds: &[i32]) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.epolls.is_empty() {
            let files = fds.iter().filter_map(|fd| self.files.open(*fd).ok());
            files.for_each(|open| self.add_parts(open, &mut parts));
        }
        parts
    }

    fn add_parts(&self, open: Open, parts: &mut Vec<Part>) {
        let Ok(File::Epoll(instance)) = self.files.at(open) else { return };
        if let Some(part) = &instance.kernel
            && !parts.iter().any(|(known, _)| *known == open)
        {
            parts.push((open, Arc::clone(part)));
        }
        let counts = |watch: &Watch| !watch.disarmed && watch.interest.events & SOMETHING.bits() != 0;
        let counting = instance.watched.iter().filter(|(_, watch)| counts(watch));
        counting.for_each(|((watched, _), _)| self.add_parts(*watched, parts));
    }

    /// What the kernel's instance beside one has come to. While it has something, who watches the instance is told each time: whether
    /// that is the same as before is not known here.
    pub(crate) fn note_kernel_part(&mut self, open: Open, ready: bool) {
        if let Some(File::Epoll(instance)) = self.files.file_at(open) {
            instance.kernel_ready = ready;
            if ready {
                self.list_upwards(open);
            }
        }
    }

    fn list_upwards(&mut self, open: Open) {
        for epoll in self.list_in_epolls(open, SOMETHING) {
            self.list_upwards(epoll);
        }
    }

    /// Something happened to a file: who watches it for that, or waits for it, looks again.
    pub(crate) fn wake_epolls(&mut self, open: Open, ready: Ready) {
        self.note_stirred(open);
        for epoll in self.list_in_epolls(open, ready) {
            self.wake_epolls(epoll, SOMETHING);
        }
    }

    /// Puts a file on the ready lists of those that watch it for that.
    fn list_in_epolls(&mut self, open: Open, ready: Ready) -> Vec<Open> {
        let mut watching = Vec::new();
        for epoll in &self.epolls {
            let Some(File::Epoll(instance)) = self.files.file_at(*epoll) else { continue };
            let wanted = |(_, watch): &(&Key, &Watch)| watch.interest.events & ready.bits() != 0;
            let entries = instance.watched.range((open, i32::MIN)..=(open, i32::MAX));
            let keys: Vec<Key> = entries.filter(wanted).map(|(key, _)| *key).collect();
            if !keys.is_empty() {
                watching.push(*epoll);
            }
            keys.into_iter().for_each(|key| instance.list(key));
        }
        watching
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
