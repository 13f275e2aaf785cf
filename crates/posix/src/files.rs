//! The table of file descriptors: numbers, lowest free first, and what they stand for.

use crate::Errno;
use crate::epoll::Epoll;
use crate::pipe::PipeEnd;
use crate::socket::Socket;

/// What a descriptor stands for.
#[derive(Debug)]
pub(crate) enum File {
    Socket(Box<Socket>),
    Epoll(Epoll),
    Pipe(PipeEnd),
}

/// Descriptors of one process.
#[derive(Debug)]
pub(crate) struct Files {
    /// The lowest number.
    base: i32,
    open: Vec<Option<File>>,
}

/// `RLIMIT_NOFILE`'s usual hard limit.
const FILES_MAX: usize = 1 << 20;

impl Files {
    pub(crate) fn new(base: i32) -> Files {
        Files { base, open: Vec::new() }
    }

    /// Gives `file` the lowest free number.
    pub(crate) fn insert(&mut self, file: File) -> Result<i32, Errno> {
        let free = self.open.iter().position(Option::is_none);
        let at = free.unwrap_or(self.open.len());
        if at >= FILES_MAX {
            return Err(Errno::EMFILE);
        }
        match self.open.get_mut(at) {
            Some(slot) => *slot = Some(file),
            None => self.open.push(Some(file)),
        }
        Ok(self.base + at as i32)
    }

    fn slot(&self, fd: i32) -> Option<usize> {
        usize::try_from(fd.checked_sub(self.base)?).ok()
    }

    pub(crate) fn get(&self, fd: i32) -> Result<&File, Errno> {
        let slot = self.slot(fd).and_then(|at| self.open.get(at));
        slot.and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    pub(crate) fn get_mut(&mut self, fd: i32) -> Result<&mut File, Errno> {
        let at = self.slot(fd).ok_or(Errno::EBADF)?;
        self.open.get_mut(at).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    pub(crate) fn remove(&mut self, fd: i32) -> Result<File, Errno> {
        let at = self.slot(fd).ok_or(Errno::EBADF)?;
        self.open.get_mut(at).and_then(Option::take).ok_or(Errno::EBADF)
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

    /// Every open descriptor in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &File)> {
        let numbered = self.open.iter().enumerate();
        numbered.filter_map(|(at, file)| Some((self.base + at as i32, file.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (i32, &mut File)> {
        let base = self.base;
        let numbered = self.open.iter_mut().enumerate();
        numbered.filter_map(move |(at, file)| Some((base + at as i32, file.as_mut()?)))
    }
}
