//! Opens files beneath a folder, and nothing outside. The kernel resolves the path (openat2(2),
//! `RESOLVE_BENEATH`), so replacing a folder by a link during the lookup leads nowhere.
use rustix::fs::{Mode, OFlags, ResolveFlags, fstatfs, openat2};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The descriptor of a folder.
pub(crate) struct Folder {
    descriptor: OwnedFd,
    file_system: FileSystem,
}

/// Tells whether a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Reads only what the kernel has in memory. Otherwise fails with
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    None,
    /// Waits, on a helper thread.
    Any,
}

/// The kind of the folder's file system. A file system mounted further below always counts as
/// [`Other`](Self::Other).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileSystem {
    /// In memory: no read waits.
    Memory,
    /// On a disk of this machine. Opening a path that was looked up before does not wait.
    Disk,
    /// Possibly served by a network or another program. Any call may wait.
    Other,
}

/// Magic numbers of tmpfs and ramfs (statfs(2)).
const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// Magic numbers of ext2 to ext4, XFS, Btrfs and F2FS.
const DISK: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// Attempts to open a path while folders are being moved.
const ATTEMPTS: usize = 16;

impl Folder {
    /// Opens the folder itself, through any links.
    ///
    /// # Errors
    /// The path is not a folder, it cannot be read, or the kernel has no openat2(2).
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        let file_system = match fstatfs(&descriptor)?.f_type as u64 {
            magic if MEMORY.contains(&magic) => FileSystem::Memory,
            magic if DISK.contains(&magic) => FileSystem::Disk,
            _ => FileSystem::Other,
        };
        let folder = Folder { descriptor, file_system };
        folder.open_beneath(Path::new("."), Patience::Any).map_err(|error| {
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOSYS | Errno::PERM) => io::Error::new(
                    error.kind(),
                    format!("cannot use openat2(2), which needs Linux 5.6 or later: {error}"),
                ),
                _ => error,
            }
        })?;
        Ok(folder)
    }

    /// Opens `path`, which may name any kind of file: a FIFO without a writer does not wait.
    /// Relative links may lead anywhere beneath the folder.
    pub(crate) fn open_beneath(&self, path: &Path, patience: Patience) -> io::Result<File> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if patience == Patience::None {
            if self.file_system == FileSystem::Other {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            resolve |= ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || openat2(&self.descriptor, path, flags, Mode::empty(), resolve);
        let opened = match patience {
            Patience::None => open().map_err(|error| match error {
                // Outside or beyond a mount point: finding out which may wait.
                Errno::XDEV => Errno::AGAIN,
                error => error,
            }),
            Patience::Any => {
                let mut attempts = (0..ATTEMPTS).map(|_| open());
                attempts.find(|opened| !matches!(opened, Err(Errno::AGAIN))).unwrap_or(Err(Errno::BUSY))
            }
        };
        Ok(opened?.into())
    }

    /// Reads all bytes of `part`. Without patience, reads them only if they are in memory.
    pub(crate) fn read(&self, file: &File, part: &Range<u64>, patience: Patience) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (part.end - part.start) as usize];
        if patience == Patience::Any || self.file_system == FileSystem::Memory {
            file.read_exact_at(&mut bytes, part.start)?;
            return Ok(bytes);
        }
        let mut len = 0;
        while len < bytes.len() {
            let mut rest = [IoSliceMut::new(&mut bytes[len..])];
            match preadv2(file, &mut rest, part.start + len as u64, ReadWriteFlags::NOWAIT) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => len += read,
                Err(Errno::INTR) => {}
                // Some file systems do not know what is in memory.
                Err(Errno::AGAIN | Errno::OPNOTSUPP) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes)
    }
}
