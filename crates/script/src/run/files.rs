//! The files that `open` finds: those that the script's commands made, /dev/zero and /dev/null. Nothing of the system is read, and
//! whatever there is in a file is zeros, which is what packets of a script hold.

use crate::run::Runner;
use core::ops::ControlFlow;
use posix::Errno;

/// A file that was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenFile {
    /// How long it is; /dev/zero never ends.
    len: u64,
    /// What is read next.
    position: u64,
}

impl OpenFile {
    /// How many of `most` bytes there are from `at` on.
    pub(super) fn has(&self, at: u64, most: usize) -> usize {
        usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX).min(most)
    }

    /// As [`has`](Self::has), from where it was read to last.
    pub(super) fn ahead(&self, most: usize) -> usize {
        self.has(self.position, most)
    }

    /// Passes over what is [`ahead`](Self::ahead).
    pub(super) fn read(&mut self, most: usize) -> usize {
        let got = self.ahead(most);
        if self.len != u64::MAX {
            self.position += got as u64;
        }
        got
    }
}

impl Runner<'_> {
    /// `open`: what `flags` ask for is done with what commands made.
    pub(super) fn open(&mut self, name: &str, flags: i32) -> Result<OpenFile, Errno> {
        let len = match name {
            "/dev/zero" => ControlFlow::Break(u64::MAX),
            "/dev/null" => ControlFlow::Break(0),
            name => ControlFlow::Continue(self.files.get(name).copied()),
        };
        let len = match len {
            ControlFlow::Break(len) => len,
            ControlFlow::Continue(Some(_)) if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 => {
                return Err(Errno::EEXIST);
            }
            ControlFlow::Continue(None) if flags & libc::O_CREAT == 0 => return Err(Errno::ENOENT),
            ControlFlow::Continue(old) => {
                let len = old.filter(|_| flags & libc::O_TRUNC == 0).unwrap_or(0);
                self.files.insert(name.to_owned(), len);
                len
            }
        };
        Ok(OpenFile { len, position: 0 })
    }
}
