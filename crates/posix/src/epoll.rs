//! `epoll`: level-triggered, edge-triggered and one-shot.
//!
//! As in Linux, a wake-up puts an entry on the ready list, and `epoll_wait` asks the file for its
//! readiness. A level-triggered entry that was ready goes to the end of the list again. Other
//! entries wait for the next wake-up.
//!
//! An instance watches the kernel's descriptors with an instance of the kernel. Nothing here asks
//! that one. The waiting thread does, and passes its result in.

mod calls;

use crate::errno::{Errno, Stop};
use crate::files::open::Open;
use crate::ready::Ready;
use proto::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Report changes only (`EPOLLET`).
pub const EDGE: u32 = 1 << 31;
/// Report once, until it is armed again (`EPOLLONESHOT`).
pub const ONE_SHOT: u32 = 1 << 30;

/// The request of an `epoll_ctl` for one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// `EPOLLIN` …, [`EDGE`], [`ONE_SHOT`].
    pub events: u32,
    /// Given back as it is.
    pub data: u64,
}

/// The operation of an `epoll_ctl`.
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
/// What an instance is ready for that has something.
const SOMETHING: Ready = Ready::IN.union(Ready::RDNORM);
/// How deep instances may watch each other (Linux's `EP_MAX_NESTS`).
const NESTED_MAX: usize = 4;

/// A file, and the number it was added by: another number of it is another entry.
type Key = (Open, i32);

/// An instance that has one of the kernel's beside it, and that one.
pub(crate) type Part = (Open, Arc<OwnedFd>);

/// One epoll instance.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: BTreeMap<Key, Watch>,
    ready: VecDeque<Key>,
    /// The kernel's instance beside it.
    kernel: Option<Arc<OwnedFd>>,
    /// That one had something when it was last asked.
    kernel_ready: bool,
    /// The kernel's came first the last time.
    turned: bool,
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

    /// The files on the ready list.
    pub(crate) fn listed(&self) -> impl Iterator<Item = Open> {
        self.ready.iter().map(|key| key.0)
    }

    pub(crate) fn may_be_ready(&self, readiness: impl Fn(Open) -> Ready) -> bool {
        let wanted = |key: &Key| self.watched.get(key).map_or(0, |watch| watch.interest.events);
        self.kernel_ready || self.ready.iter().any(|key| readiness(key.0).bits() & wanted(key) != 0)
    }
}
