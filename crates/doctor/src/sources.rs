//! Reads a host's netlink and procfs into a [`Sample`].
//!
//! - `sources/sockets.rs`: inet_diag; `sources/processes.rs`: processes that hold sockets;
//! - `sources/devices.rs`, `queues.rs`, `routes.rs`: rtnetlink;
//! - `sources/paths.rs`, `ethtool.rs`: generic netlink (`generic.rs`);
//! - `sources/files.rs`, `interrupts.rs`, `sysfs.rs`, `configured.rs`, `kinds.rs`: procfs, sysfs
//!   and files, of the running kernel or of a saved tree;
//! - `sources/netlink.rs`: a request and its answers.
mod configured;
mod devices;
mod ethtool;
mod files;
mod generic;
mod interrupts;
mod kinds;
mod netlink;
mod paths;
mod processes;
mod queues;
mod routes;
mod sockets;
mod sysfs;

pub use processes::{Holder, holders};

use crate::sample::{Device, Info, PathMetrics, Route, Sample, Socket, Source, Unread, state};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;

/// Reads only sockets and procfs, in the network namespace of the calling thread.
pub fn sockets() -> Sample {
    let mut sample = procfs();
    if let Some(sockets) = noted(&mut sample, Source::Sockets, "inet_diag", sockets::read()) {
        sample.sockets = sockets;
    }
    sample
}

/// Parses the bytes that `getsockopt` returned for `TCP_INFO`. Returns `None` if there are too few.
pub fn tcp_info(bytes: &[u8]) -> Option<Info> {
    sockets::info(bytes)
}

/// Reads only procfs: counters and settings.
pub fn procfs() -> Sample {
    let mut sample = Sample::default();
    files::read(Path::new("/"), &mut sample);
    sample
}

/// Reads only devices and their queueing disciplines.
///
/// # Errors
/// Returns the error of netlink.
pub fn queues() -> io::Result<Sample> {
    let devices = devices::read()?;
    Ok(Sample { queues: queues::read(&devices)?, devices, ..procfs() })
}

/// Reads the state below TCP: devices with their rings, queues and offloads, queueing disciplines,
/// the CPUs' backlogs, bonds.
///
/// # Errors
/// Netlink cannot list the devices.
pub fn nics() -> io::Result<Sample> {
    let mut sample = procfs();
    sample.devices = devices::read()?;
    of_devices(Path::new("/"), &mut sample);
    Ok(sample)
}

/// Reads every route of every table.
///
/// # Errors
/// Returns the error of netlink.
pub fn routes() -> io::Result<Vec<Route>> {
    routes::all(&devices::read()?)
}

/// Returns whether the route to this address has `fastopen_no_cookie`: data goes on the SYN without
/// a cookie.
///
/// # Errors
/// Returns an error if there is no route, or the error of netlink.
pub fn is_route_without_cookie(to: IpAddr) -> io::Result<bool> {
    routes::is_without_cookie(to)
}

/// Reads the paths that the kernel remembers.
///
/// # Errors
/// Returns the error of netlink.
pub fn paths() -> io::Result<Vec<PathMetrics>> {
    paths::read()
}

/// Reads the running host, in the network namespace of the calling thread.
pub fn here() -> Sample {
    let root = Path::new("/");
    let mut sample = Sample::default();
    files(root, &mut sample);
    if let Some(sockets) = noted(&mut sample, Source::Sockets, "inet_diag", sockets::read()) {
        sample.sockets = sockets;
    }
    let inodes = sample.sockets.iter().filter(|socket| is_suspect(socket)).map(|socket| socket.inode);
    let inodes = inodes.filter(|inode| *inode != 0).collect();
    sample.owners = processes::read(root, &inodes);
    if let Some(devices) = noted(&mut sample, Source::Devices, "rtnetlink: devices", devices::read()) {
        sample.devices = devices;
    }
    of_devices(root, &mut sample);
    if let Some(paths) = noted(&mut sample, Source::Paths, "tcp_metrics", paths::read()) {
        sample.paths = paths;
    }
    sample
}

/// Returns whether a rule may name the socket's process: the peer has closed, the receive queue is
/// full, or the accept queue fills.
fn is_suspect(socket: &Socket) -> bool {
    match socket.state {
        state::CLOSE_WAIT => true,
        state::LISTEN => socket.recv_queue > socket.send_queue / 2,
        _ => socket.is_half_full(),
    }
}

fn files(root: &Path, sample: &mut Sample) {
    files::read(root, sample);
    sample.queue_kinds = kinds::read(root, &sample.kernel);
    // The files apply only to the first namespace.
    if sample.is_first_namespace() {
        sample.configured = configured::read(root);
        if !configured::is_there(root) {
            let error = io::Error::from(io::ErrorKind::NotFound);
            note(sample, Source::Files, "sysctl.d and sysctl.conf", &error);
        }
    }
}

fn of_devices(root: &Path, sample: &mut Sample) {
    let mut devices: Vec<Device> = std::mem::take(&mut sample.devices);
    if let Some(queues) = noted(sample, Source::Queues, "rtnetlink: queues", queues::read(&devices)) {
        sample.queues = queues;
    }
    if let Some((routes, from)) = noted(sample, Source::Routes, "rtnetlink: routes", routes::read(&devices)) {
        (sample.routes, sample.source_rules) = (routes, from);
    }
    noted(sample, Source::Ethtool, "ethtool", ethtool::read(&mut devices));
    noted(sample, Source::Sysfs, "/sys/class/net", sysfs::read(root, &mut devices));
    let net_rx = interrupts::read(root, &mut devices);
    if let Some(net_rx) = noted(sample, Source::Interrupts, "/proc/interrupts", net_rx) {
        sample.net_rx = net_rx;
    }
    sample.devices = devices;
}

/// Reads a copy of /proc, and of /etc if there is one, below `root`. Sources that need netlink are
/// marked unread.
pub fn tree(root: &Path) -> Sample {
    let mut sample = Sample::default();
    files(root, &mut sample);
    let netlink = [
        Source::Sockets,
        Source::Devices,
        Source::Queues,
        Source::Routes,
        Source::Paths,
        Source::Ethtool,
        Source::Sysfs,
        Source::Interrupts,
    ];
    for source in netlink {
        let reason = format!("{}: not in a tree of files", source.name());
        sample.unread.push(Unread { source, reason, root_would_read: false });
    }
    sample
}

/// Runs `read` in a network namespace created by `ip netns`.
///
/// # Errors
/// Returns an error if the namespace does not exist, or the user must not enter it.
pub fn in_namespace<T: Send>(name: &str, read: impl FnOnce() -> T + Send) -> io::Result<T> {
    if name.is_empty() || name.contains('/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name"));
    }
    let namespace = std::fs::File::open(Path::new("/run/netns").join(name))?;
    // A thread of its own enters the namespace and ends, so the caller stays in its own.
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)?;
            Ok(read())
        });
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn noted<T>(sample: &mut Sample, source: Source, what: &str, read: io::Result<T>) -> Option<T> {
    read.map_err(|error| note(sample, source, what, &error)).ok()
}

fn note(sample: &mut Sample, source: Source, what: &str, error: &io::Error) {
    let root_would_read = error.kind() == io::ErrorKind::PermissionDenied;
    sample.unread.push(Unread { source, reason: format!("{what}: {error}"), root_would_read });
}
