//! The table of file descriptors: numbers, lowest free first, and their open files. Several numbers
//! may refer to one open file (`dup`), which is closed with the last of them.

pub(crate) mod open;

use crate::Errno;
use crate::epoll::Epoll;
use crate::pipe::end::PipeEnd;
use crate::socket::Socket;
use open::Open;
use std::collections::BTreeSet;

/// What a descriptor stands for.
#[derive(Debug)]
pub(crate) enum File {
    Socket(Box<Socket>),
    Epoll(Epoll),
    Pipe(PipeEnd),
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    open: Open,
    /// `FD_CLOEXEC`.
    close_on_exec: bool,
}

#[derive(Debug)]
struct Shared {
    file: File,
    tells: Tells,
    /// Descriptors that stand for it, and calls that hold it.
    numbers: usize,
}

/// Whom a file would tell of what happens to it by which signal (Linux's `fown_struct`): it is remembered, no signal is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tells {
    pub(crate) owner: Owner,
    /// 0: the usual one (`F_SETSIG`).
    pub(crate) signal: i32,
}

/// Linux's `struct f_owner_ex`, as C has it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Owner {
    /// What `id` is of: 0 a thread, 1 a process, 2 a group of processes.
    pub(crate) kind: i32,
    /// 0: nobody.
    pub(crate) id: i32,
}

/// Descriptors of one process.
#[derive(Debug)]
pub(crate) struct Files {
    /// The lowest number.
    base: i32,
    numbers: Vec<Option<Descriptor>>,
    /// Places among them that are free.
    free_numbers: BTreeSet<usize>,
    open: Vec<Option<Shared>>,
    /// Places among those that are free.
    free_open: Vec<usize>,
    /// For one attempt of a call that waited: what its numbers stood for when it began. They may be closed by now, or be others'.
    standing: Vec<(i32, Open)>,
    /// No more can be made.
    has_ended: bool,
}

/// `RLIMIT_NOFILE`'s usual hard limit.
const FILES_MAX: usize = 1 << 20;

impl Files {
    pub(crate) fn new(base: i32) -> Files {
        Files {
            base,
            numbers: Vec::new(),
            free_numbers: BTreeSet::new(),
            open: Vec::new(),
            free_open: Vec::new(),
            standing: Vec::new(),
            has_ended: false,
        }
    }

    /// Gives `file` the lowest free number.
    pub(crate) fn insert(&mut self, file: File, close_on_exec: bool) -> Result<i32, Errno> {
        if self.has_ended {
            return Err(Errno::ENETDOWN);
        }
        let at = self.free_from(0).ok_or(Errno::EMFILE)?;
        let free = self.free_open.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[free] = Some(Shared { file, tells: Tells::default(), numbers: 1 });
        Ok(self.number(at, Descriptor { open: Open(free), close_on_exec }))
    }

    /// From now on none can be made.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Is there no number left?
    pub(crate) fn is_full(&self) -> bool {
        self.free_from(0).is_none()
    }

    fn free_from(&self, least: usize) -> Option<usize> {
        let is_spoken_for = |at: usize| self.standing.iter().any(|(fd, _)| self.slot(*fd) == Some(at));
        let free = self.free_numbers.range(least..).copied().find(|at| !is_spoken_for(*at));
        Some(free.unwrap_or(self.numbers.len().max(least))).filter(|at| *at < FILES_MAX)
    }

    fn number(&mut self, at: usize, descriptor: Descriptor) -> i32 {
        if at >= self.numbers.len() {
            self.free_numbers.extend(self.numbers.len()..at);
            self.numbers.resize(at + 1, None);
        }
        self.free_numbers.remove(&at);
        self.numbers[at] = Some(descriptor);
        self.base + at as i32
    }

    /// Another number for the same file: the lowest free one that is not below `least`.
    pub(crate) fn duplicate(&mut self, fd: i32, least: i32, close_on_exec: bool) -> Result<i32, Errno> {
        let open = self.descriptor(fd)?.open;
        let least = usize::try_from(least.saturating_sub(self.base)).unwrap_or(0);
        let at = self.free_from(least).ok_or(Errno::EMFILE)?;
        self.shared_mut(open)?.numbers += 1;
        Ok(self.number(at, Descriptor { open, close_on_exec }))
    }

    /// This very number, which must be free, for the same file.
    pub(crate) fn duplicate_as(&mut self, fd: i32, new: i32, close_on_exec: bool) -> Result<(), Errno> {
        let open = self.descriptor(fd)?.open;
        let at = self.slot(new).filter(|at| *at < FILES_MAX).ok_or(Errno::EBADF)?;
        self.shared_mut(open)?.numbers += 1;
        self.number(at, Descriptor { open, close_on_exec });
        Ok(())
    }

    /// The lowest number a descriptor may have.
    pub(crate) fn lowest(&self) -> i32 {
        self.base
    }

    /// The highest number a descriptor may have.
    pub(crate) fn highest(&self) -> i32 {
        self.base.saturating_add(FILES_MAX as i32 - 1)
    }

    /// May a descriptor have this number?
    pub(crate) fn is_number(&self, fd: i32) -> bool {
        self.slot(fd).is_some_and(|at| at < FILES_MAX)
    }

    fn slot(&self, fd: i32) -> Option<usize> {
        usize::try_from(fd.checked_sub(self.base)?).ok()
    }

    fn descriptor(&self, fd: i32) -> Result<Descriptor, Errno> {
        if let Some((_, open)) = self.standing.iter().find(|(number, _)| *number == fd) {
            return Ok(Descriptor { open: *open, close_on_exec: false });
        }
        self.slot(fd).and_then(|at| *self.numbers.get(at)?).ok_or(Errno::EBADF)
    }

    fn shared_mut(&mut self, open: Open) -> Result<&mut Shared, Errno> {
        self.open.get_mut(open.0).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// The file behind a number.
    pub(crate) fn open(&self, fd: i32) -> Result<Open, Errno> {
        Ok(self.descriptor(fd)?.open)
    }

    pub(crate) fn closes_on_exec(&self, fd: i32) -> Result<bool, Errno> {
        Ok(self.descriptor(fd)?.close_on_exec)
    }

    pub(crate) fn set_close_on_exec(&mut self, fd: i32, on: bool) -> Result<(), Errno> {
        let at = self.slot(fd).ok_or(Errno::EBADF)?;
        self.numbers.get_mut(at).and_then(Option::as_mut).ok_or(Errno::EBADF)?.close_on_exec = on;
        Ok(())
    }

    /// Takes a number back; the file, if that was the last.
    pub(crate) fn remove(&mut self, fd: i32) -> Result<Option<(Open, File)>, Errno> {
        let open = self.descriptor(fd)?.open;
        if let Some(at) = self.slot(fd) {
            self.numbers[at] = None;
            self.free_numbers.insert(at);
        }
        Ok(self.let_go(open).map(|file| (open, file)))
    }

    /// One more that uses this file, without a number.
    pub(crate) fn hold(&mut self, open: Open) {
        if let Ok(shared) = self.shared_mut(open) {
            shared.numbers += 1;
        }
    }

    /// One less; the file, if that was the last.
    pub(crate) fn let_go(&mut self, open: Open) -> Option<File> {
        let shared = self.shared_mut(open).ok()?;
        shared.numbers -= 1;
        if shared.numbers > 0 {
            return None;
        }
        self.free_open.push(open.0);
        self.open[open.0].take().map(|shared| shared.file)
    }

    /// Until this is called with none, these numbers stand for these files.
    pub(crate) fn stand_in(&mut self, standing: &[(i32, Open)]) {
        self.standing.clear();
        self.standing.extend_from_slice(standing);
    }

    pub(crate) fn get(&self, fd: i32) -> Result<&File, Errno> {
        self.at(self.open(fd)?)
    }

    pub(crate) fn get_mut(&mut self, fd: i32) -> Result<&mut File, Errno> {
        let open = self.open(fd)?;
        Ok(&mut self.shared_mut(open)?.file)
    }

    pub(crate) fn tells(&mut self, fd: i32) -> Result<&mut Tells, Errno> {
        let open = self.open(fd)?;
        Ok(&mut self.shared_mut(open)?.tells)
    }

    pub(crate) fn at(&self, open: Open) -> Result<&File, Errno> {
        self.open.get(open.0).and_then(Option::as_ref).map(|shared| &shared.file).ok_or(Errno::EBADF)
    }

    pub(crate) fn socket(&self, fd: i32) -> Result<&Socket, Errno> {
        match self.get(fd)? {
            File::Socket(socket) => Ok(socket),
            _ => Err(Errno::ENOTSOCK),
        }
    }

    pub(crate) fn socket_mut(&mut self, fd: i32) -> Result<&mut Socket, Errno> {
        match self.get_mut(fd)? {
            File::Socket(socket) => Ok(socket),
            _ => Err(Errno::ENOTSOCK),
        }
    }

    pub(crate) fn file_at(&mut self, open: Open) -> Option<&mut File> {
        self.shared_mut(open).ok().map(|shared| &mut shared.file)
    }

    pub(crate) fn socket_at(&mut self, open: Open) -> Option<&mut Socket> {
        match &mut self.shared_mut(open).ok()?.file {
            File::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// Every descriptor.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i32> {
        let base = self.base;
        let numbered = self.numbers.iter().enumerate();
        numbered.filter(|(_, descriptor)| descriptor.is_some()).map(move |(at, _)| base + at as i32)
    }

    /// Every open file.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Open, &File)> {
        let all = self.open.iter().enumerate();
        all.filter_map(|(at, shared)| Some((Open(at), &shared.as_ref()?.file)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut File> {
        self.open.iter_mut().flatten().map(|shared| &mut shared.file)
    }
}
