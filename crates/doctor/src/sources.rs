//! Reading a host: netlink and procfs into a [`Sample`].
//!
//! - `sources/sockets.rs`: inet_diag;
//! - `sources/queues.rs`: queueing disciplines, by rtnetlink;
//! - `sources/files.rs`: counters, settings and softnet_stat, of the running kernel or of a saved tree;
//! - `sources/netlink.rs`: a request and its answers.
mod files;
mod netlink;
mod queues;
mod sockets;

use crate::sample::{Sample, Source, Unread};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Reads the running host, in the network namespace of the calling thread.
pub fn here() -> Sample {
    let mut sample = Sample::default();
    files::read(Path::new("/"), &mut sample);
    match sockets::read() {
        Ok(sockets) => sample.sockets = sockets,
        Err(error) => note(&mut sample, Source::Sockets, "inet_diag", &error),
    }
    match queues::read() {
        Ok(queues) => sample.queues = queues,
        Err(error) => note(&mut sample, Source::Queues, "rtnetlink", &error),
    }
    sample
}

/// Reads a copy of /proc below `root`. What only netlink tells is noted as unread.
pub fn tree(root: &Path) -> Sample {
    let mut sample = Sample::default();
    files::read(root, &mut sample);
    for source in [Source::Sockets, Source::Queues] {
        let reason = "a tree of files does not have it".to_owned();
        sample.unread.push(Unread { source, reason, root_would_read: false });
    }
    sample
}

/// Runs `read` in a network namespace that `ip netns` has made.
///
/// # Errors
/// There is none of that name, or entering it is not allowed.
pub fn in_namespace<T: Send>(name: &str, read: impl FnOnce() -> T + Send) -> io::Result<T> {
    if name.is_empty() || name.contains('/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name"));
    }
    let namespace = std::fs::File::open(Path::new("/run/netns").join(name))?;
    // In a thread of its own, which then ends: the caller stays where it is.
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)?;
            Ok(read())
        });
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn note(sample: &mut Sample, source: Source, what: &str, error: &io::Error) {
    let root_would_read = error.kind() == io::ErrorKind::PermissionDenied;
    sample.unread.push(Unread { source, reason: format!("{what}: {error}"), root_would_read });
}
