//! An end that is the kernel's: a network namespace with a device, and a thread that runs the
//! program on its sockets.

use crate::failure::Failure;
use crate::link::end;
use ::lab::apps::{Step, Told};
use ::lab::experiment::{KernelEnd, KernelTold};
use doctor::sources;
use firstbyte::Instant;
use firstbyte::device::tun::Tun;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::thread::UnshareFlags;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Linux's flag, which `rustix` does not name.
const MSG_FASTOPEN: SendFlags = SendFlags::from_bits_retain(0x2000_0000);
/// Interval at which a listener checks whether it should end.
const GLANCE: Duration = Duration::from_millis(20);
/// Length of the IPv4 and TCP headers, with timestamps.
const HEADERS: usize = 52;
/// Most bytes of one read.
const READ: usize = 256 * 1024;

/// The time of a run, and its deadline.
#[derive(Clone)]
pub(super) struct Clock {
    begun: std::time::Instant,
    most: Duration,
}

impl Clock {
    /// Starts the clock.
    pub(super) fn start(most: Duration) -> Clock {
        Clock { begun: std::time::Instant::now(), most }
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.begun.elapsed()
    }

    /// Returns the time left.
    pub(super) fn left(&self) -> Duration {
        self.most.saturating_sub(self.begun.elapsed())
    }
}

/// A kernel end with its program, which waits for its start.
pub(super) struct Kernel {
    program: JoinHandle<io::Result<KernelTold>>,
    start: Option<Sender<()>>,
    /// Dropped when no packet is in flight any more.
    network: Sender<()>,
    ending: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
}

impl Kernel {
    /// Creates the namespace. A server listens when this returns.
    pub(super) fn prepare(end: KernelEnd, mtu: usize, clock: &Clock) -> Result<(Kernel, Tun), Failure> {
        let (clock, ending) = (clock.clone(), Arc::new(AtomicBool::new(false)));
        let (ready, is_ready) = channel();
        let (start, started) = channel();
        let (network, silent) = channel::<()>();
        let done = Arc::new(AtomicBool::new(false));
        let (is_over, is_done) = (Arc::clone(&ending), Arc::clone(&done));
        let program = std::thread::spawn(move || {
            let tun = match enter(&end, mtu).and_then(|tun| Ok((tun, Side::of(&end)?))) {
                Ok((tun, side)) => {
                    // The receiver is gone only if the main thread has failed.
                    let _ = ready.send(Ok(tun));
                    let told = side.act(&end, &clock, &started, &is_over, mtu - HEADERS);
                    is_done.store(true, Ordering::Release);
                    // Waits until the sender is dropped: the counters are those of the whole run.
                    let _ = silent.recv();
                    return Ok(KernelTold { told: told?, counters: sources::procfs().counters });
                }
                Err(error) => error,
            };
            let _ = ready.send(Err(tun));
            Ok(KernelTold::default())
        });
        let failed = |error: &dyn core::fmt::Display| {
            Failure::failed(format!("cannot set up a network namespace: {error} (it needs root)"))
        };
        let tun = is_ready.recv().map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        Ok((Kernel { program, start: Some(start), network, ending, done }, tun))
    }

    /// Starts a client.
    pub(super) fn start(&mut self) {
        self.start = None;
    }

    /// Tells a server that no more clients will come.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// True if its program has ended.
    pub(super) fn is_over(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Returns the observations of its program, and its counters.
    pub(super) fn told(self) -> io::Result<KernelTold> {
        drop(self.network);
        self.program.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Enters a new network namespace with a device and the settings.
#[expect(
    deprecated,
    reason = "deprecated because CLONE_FILES would be unsound; CLONE_NEWNET shares no descriptor table"
)]
fn enter(end: &KernelEnd, mtu: usize) -> io::Result<Tun> {
    rustix::thread::unshare(UnshareFlags::NEWNET)?;
    let (local, peer) = (end.local.ip(), end.peer.ip());
    let tun = end::open(mtu, |builder| builder.address(local, 32).route(peer, 32))?;
    for (name, value) in &end.settings {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{name} = {value}: {error}")))?;
    }
    Ok(tun)
}

/// The parts of a thread before it starts.
enum Side {
    Client,
    Server(OwnedFd),
}

impl Side {
    fn of(end: &KernelEnd) -> io::Result<Side> {
        if end.local.port() == 0 {
            return Ok(Side::Client);
        }
        let listener = socket(end)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        rustix::net::bind(&listener, &end.local)?;
        rustix::net::listen(&listener, i32::try_from(end.backlog).unwrap_or(i32::MAX))?;
        sockopt::set_socket_timeout(&listener, Timeout::Recv, Some(GLANCE))?;
        Ok(Side::Server(listener))
    }

    fn act(
        self,
        end: &KernelEnd,
        clock: &Clock,
        started: &Receiver<()>,
        is_over: &AtomicBool,
        segment: usize,
    ) -> io::Result<Vec<Told>> {
        let text = vec![b'x'; end.steps.iter().map(Step::text_len).max().unwrap_or_default()];
        let session = |conn, told| Session { conn, told, end, clock, text: &text, segment };
        let Side::Server(listener) = self else {
            // Waits until the sender is dropped, which is the start.
            let _ = started.recv();
            let mut told = Vec::new();
            for number in 0..end.connections {
                if number > 0 {
                    std::thread::sleep(end.pause);
                }
                told.push(session(None, Told::default()).play()?);
            }
            return Ok(told);
        };
        std::thread::scope(|scope| {
            let mut sessions = Vec::new();
            while !is_over.load(Ordering::Acquire) && !clock.left().is_zero() {
                match rustix::net::accept_with(&listener, SocketFlags::CLOEXEC) {
                    Ok(conn) => {
                        let told = Told { connected: true, ..Told::default() };
                        let session = session(Some(conn), told);
                        sessions.push(scope.spawn(move || session.play()));
                    }
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            let told = |session: std::thread::ScopedJoinHandle<'_, io::Result<Told>>| {
                session.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            sessions.into_iter().map(told).collect()
        })
    }
}

/// Opens a socket with the options of the end.
fn socket(end: &KernelEnd) -> io::Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_tcp_congestion(&socket, &end.congestion_control)?;
    if let Some(size) = end.send_buffer {
        sockopt::set_socket_send_buffer_size(&socket, size as usize)?;
    }
    if let Some(size) = end.receive_buffer {
        sockopt::set_socket_recv_buffer_size(&socket, size as usize)?;
    }
    if end.nodelay {
        sockopt::set_tcp_nodelay(&socket, true)?;
    }
    Ok(socket)
}

/// One connection.
struct Session<'a> {
    conn: Option<OwnedFd>,
    told: Told,
    end: &'a KernelEnd,
    clock: &'a Clock,
    text: &'a [u8],
    /// Payload of one segment, bytes.
    segment: usize,
}

impl Session<'_> {
    /// Runs all steps, or as many as succeed.
    fn play(mut self) -> io::Result<Told> {
        self.told.begun_at = Some(self.clock.now());
        for step in &self.end.steps {
            match self.take(step) {
                Ok(()) => {}
                // An error of the connection ends the program; any other error is a bug here.
                Err(
                    Errno::CONNREFUSED
                    | Errno::CONNRESET
                    | Errno::PIPE
                    | Errno::TIMEDOUT
                    | Errno::AGAIN
                    | Errno::HOSTUNREACH
                    | Errno::NETUNREACH,
                ) => {
                    self.told.failed_at = Some(self.clock.now());
                    return Ok(self.told);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        self.told.done_at = Some(self.clock.now());
        Ok(self.told)
    }

    fn take(&mut self, step: &Step) -> Result<(), Errno> {
        if let Step::Connect { first } = step {
            return self.connect(*first);
        }
        let Some(conn) = &self.conn else { return Err(Errno::CONNRESET) };
        // No call waits longer than the run. A zero timeout would wait indefinitely.
        let most = Some(self.clock.left().max(Duration::from_millis(1)));
        sockopt::set_socket_timeout(conn, Timeout::Recv, most)?;
        sockopt::set_socket_timeout(conn, Timeout::Send, most)?;
        match step {
            Step::Write(len) => self.write(conn, &self.text[..*len])?,
            Step::Read(len) => self.told.read += receive(conn, Some(*len))?,
            Step::ReadToEnd => self.told.read += receive(conn, None)?,
            Step::Sleep(span) => std::thread::sleep((*span).min(self.clock.left())),
            Step::Mark(name) => self.told.marks.push((name.clone(), self.clock.now())),
            Step::Shutdown => rustix::net::shutdown(conn, Shutdown::Write)?,
            Step::Abort => {
                sockopt::set_socket_linger(conn, Some(Duration::ZERO))?;
                self.conn = None;
            }
            Step::Close => self.conn = None,
            Step::Connect { .. } => {}
        }
        Ok(())
    }

    /// Writes one record (EOR) per segment. A buffer of a fixed size counts the memory of each
    /// segment, and the kernel would merge the bytes of one write into a few large segments, which
    /// hold more. Virtual time has one buffer per segment.
    fn write(&self, conn: &OwnedFd, text: &[u8]) -> Result<(), Errno> {
        match self.end.send_buffer {
            None => send_all(conn, text, SendFlags::empty()),
            Some(_) => {
                text.chunks(self.segment).try_for_each(|record| send_all(conn, record, SendFlags::EOR))
            }
        }
    }

    fn connect(&mut self, first: Option<usize>) -> Result<(), Errno> {
        let socket = socket(self.end).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        match first {
            None => rustix::net::connect(&socket, &self.end.peer)?,
            Some(len) => {
                let text = &self.text[..len];
                let sent = rustix::net::sendto(&socket, text, MSG_FASTOPEN, &self.end.peer)?;
                send_all(&socket, &text[sent..], SendFlags::empty())?;
            }
        }
        self.told.connected = true;
        self.conn = Some(socket);
        Ok(())
    }
}

fn send_all(conn: &OwnedFd, mut text: &[u8], flags: SendFlags) -> Result<(), Errno> {
    while !text.is_empty() {
        let sent = rustix::net::send(conn, text, SendFlags::NOSIGNAL | flags)?;
        text = &text[sent..];
    }
    Ok(())
}

/// Receives `len` bytes, or everything until the end. An earlier end is an error.
fn receive(conn: &OwnedFd, len: Option<usize>) -> Result<usize, Errno> {
    let mut room = vec![0; len.unwrap_or(READ).min(READ)];
    let mut read = 0;
    while len.is_none_or(|len| read < len) {
        let most = len.map_or(READ, |len| (len - read).min(READ));
        let (count, _) = rustix::net::recv(conn, &mut room[..most], RecvFlags::empty())?;
        match (count, len) {
            (0, None) => break,
            (0, Some(_)) => return Err(Errno::CONNRESET),
            (count, _) => read += count,
        }
    }
    Ok(read)
}
