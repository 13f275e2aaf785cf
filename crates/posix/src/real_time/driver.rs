//! The thread that moves packets and time between the stack and its device.
//!
//! It sleeps in `poll` until the device has packets (or takes some again), a call has left work, or the next deadline comes.

use super::{Event, RealProcess};
use crate::errno::Errno;
use crate::sockets::Sockets;
use crate::sysctl::SysctlTree;
use crate::system::inherited::Remembered;
use device::Device;
use host::{Clock, Phase, Pump, RealClock, Step};
use libc::pollfd;
use proto::Instant;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use sync::thread::{self, JoinHandle};
use sync::{Mutex, PoisonError};

/// How often a tree of settings is looked at.
const TREE_PERIOD: Duration = Duration::from_secs(1);

/// A process and the thread that drives it.
#[derive(Debug)]
pub struct Running {
    process: Arc<RealProcess>,
    /// How long the end may take.
    timeout: Arc<Mutex<Duration>>,
    thread: Mutex<Option<JoinHandle<Ended>>>,
}

/// The outcome of stopping a stack.
#[derive(Debug)]
pub enum Ended {
    /// Everything written was delivered.
    Delivered,
    /// Time was up; the rest was reset.
    TimedOut,
    /// The device failed.
    Failed(io::Error),
}

impl Running {
    /// Starts the thread. `tree`: settings that are read again every second.
    ///
    /// # Errors
    /// What the system says when there are no descriptors or threads left.
    pub fn start<D: Device + Send + 'static>(
        mut sockets: Sockets,
        mut device: D,
        tree: Option<SysctlTree>,
    ) -> io::Result<Running> {
        let bell = Arc::new(Event::new().map_err(|errno| io::Error::from_raw_os_error(errno.0))?);
        let ring = {
            let bell = Arc::clone(&bell);
            move || bell.set()
        };
        device.set_notify(Arc::new(ring.clone()));
        let clock = RealClock::new();
        // Time stamps are told by the wall clock, as it is now.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        sockets.set_epoch(wall.saturating_sub(clock.now().since(Instant::ZERO)));
        let process = Arc::new(RealProcess::new(sockets, clock, ring));
        let timeout = Arc::new(Mutex::new(Duration::ZERO));
        let driver = Driver {
            _remembered: device.as_fd().map(Remembered::new),
            pump: Pump::new(Arc::clone(&process), device),
            process: Arc::clone(&process),
            bell,
            tree,
            timeout: Arc::clone(&timeout),
        };
        let builder = thread::Builder::new().name("firstbyte".to_owned());
        let thread = crate::system::without_signals(|| builder.spawn(move || driver.run()))?;
        Ok(Running { process, timeout, thread: Mutex::new(Some(thread)) })
    }

    /// The process.
    pub fn process(&self) -> &RealProcess {
        &self.process
    }

    /// Closes every descriptor like the end of a process. Waits at most `timeout` for the delivery
    /// of written data, and resets the rest. Returns `None` if the stack was stopped before.
    pub fn stop(&self, timeout: Duration) -> Option<Ended> {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
        self.process.begin_shutdown();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let broken = || Ended::Failed(io::Error::other("the thread under the stack panicked"));
        Some(thread.join().unwrap_or_else(|_| broken()))
    }
}

struct Driver<D> {
    /// Before the pump, which has the device.
    _remembered: Option<Remembered>,
    pump: Pump<D, RealProcess>,
    process: Arc<RealProcess>,
    bell: Arc<Event>,
    tree: Option<SysctlTree>,
    timeout: Arc<Mutex<Duration>>,
}

impl<D: Device> Driver<D> {
    fn run(mut self) -> Ended {
        // Dropped even if the engine panics: whoever waits is released.
        let _last = StopAtEnd(Arc::clone(&self.process));
        let ended = self.drive().unwrap_or_else(Ended::Failed);
        self.process.stop();
        // The last resets; a device that fails here has nobody left to tell.
        while self.pump.step(false).is_ok_and(|step| step.has_more) {}
        ended
    }

    fn drive(&mut self) -> io::Result<Ended> {
        let mut step = self.pump.step(true)?;
        let mut give_up_at = None;
        let mut look_at = self.tree.is_some().then_some(Instant::ZERO);
        loop {
            let now = self.process.clock().now();
            if step.phase != Phase::Running {
                let timeout = *self.timeout.lock().unwrap_or_else(PoisonError::into_inner);
                let give_up_at = *give_up_at.get_or_insert(now + timeout);
                if self.process.is_delivered() && !step.has_more && !step.is_blocked {
                    return Ok(Ended::Delivered);
                }
                if now >= give_up_at {
                    return Ok(Ended::TimedOut);
                }
            }
            if look_at.is_some_and(|at| at <= now) {
                self.read_tree();
                look_at = Some(now + TREE_PERIOD);
            }
            let is_readable = if step.has_more || !step.is_drained {
                !step.is_drained
            } else {
                let deadline = [step.deadline, give_up_at, look_at].into_iter().flatten().min();
                self.sleep(&step, deadline)?
            };
            step = self.pump.step(is_readable)?;
        }
    }

    fn read_tree(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        let changes = tree.changes();
        if !changes.is_empty() {
            self.process.call(|sockets, now| changes.apply(now, sockets));
        }
    }

    /// Until something is to be done. True: the device may have packets.
    fn sleep(&self, step: &Step, deadline: Option<Instant>) -> io::Result<bool> {
        #[cfg(feature = "shuttle")]
        self.process.assert_nothing_is_untold(deadline);
        let left = deadline.map(|deadline| deadline.since(self.process.clock().now()));
        let wanted = if step.is_blocked { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        let entry = |fd: BorrowedFd<'_>| pollfd { fd: fd.as_raw_fd(), events: wanted, revents: 0 };
        let mut device: Vec<pollfd> = self.pump.device().as_fd().into_iter().map(entry).collect();
        match self.bell.sleep(&mut device, left, None) {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(io::Error::from_raw_os_error(errno.0)),
        }
        // Without a descriptor the device rings the bell; an error is told by reading.
        Ok(device.first().is_none_or(|device| device.revents & !libc::POLLOUT != 0))
    }
}

struct StopAtEnd(Arc<RealProcess>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}
