//! The task that runs a stack: it waits for packets, timeouts and method calls, and steps the pump.
//!
//! It never spins: an idle driver sleeps until the device has a packet, the deadline passes, or a
//! method sets the signal. Application tasks that a step woke run before the driver drains the
//! stack, so a reply and the FIN behind it are sent together.
mod ending;

use crate::SHUTDOWN_TIMEOUT;
use crate::timer::Timer;
use crate::watched::watch_fd;
use device::Device;
use ending::Ending;
use host::{Clock, Host, Phase, Pump, RealClock, Signal, Step};
use proto::Instant;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, watch};

/// State that the driver and the handles share besides the host.
#[derive(Debug)]
pub(crate) struct Control {
    /// Time at which the rest is reset: the earliest one that a shutdown requested.
    give_up_at: Mutex<Option<Instant>>,
    /// Signals that no connection can be opened any more.
    closing: Arc<Notify>,
    /// The error of the device, if it failed. Set before any socket fails.
    failure: OnceLock<Arc<io::Error>>,
    ended: watch::Sender<Option<Ended>>,
}

/// Result of a driver.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// Everything written was delivered.
    Delivered,
    /// The time limit expired; the rest was reset.
    TimedOut,
    /// The device failed.
    Failed(Arc<io::Error>),
    /// The runtime dropped the task.
    Dropped,
}

impl Control {
    pub(crate) fn new() -> Control {
        Control {
            give_up_at: Mutex::default(),
            closing: Arc::default(),
            failure: OnceLock::new(),
            ended: watch::channel(None).0,
        }
    }

    /// Returns the error of the device, if the device ended the stack.
    pub(crate) fn failure(&self) -> Option<Arc<io::Error>> {
        self.failure.get().cloned()
    }

    /// Gives up the shutdown at this time, or earlier if another call requested that.
    pub(crate) fn give_up_at(&self, at: Instant) {
        let mut earliest = self.give_up_at.lock().unwrap_or_else(PoisonError::into_inner);
        *earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
    }

    /// Signals that the host is not running any more.
    pub(crate) fn closes(&self) {
        self.closing.notify_waiters();
    }

    /// Waits for the next [`closes`](Self::closes) from now on.
    pub(crate) fn closing(&self) -> OwnedNotified {
        Arc::clone(&self.closing).notified_owned()
    }

    /// Waits for the end of the driver.
    pub(crate) async fn ended(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(ended)) => ended.clone(),
            _ => Ended::Dropped,
        }
    }
}

/// The task's state. Dropping it ends the stack.
pub(crate) struct Driver<D: Device> {
    pump: Pump<D>,
    signal: Arc<Signal>,
    timer: Timer,
    /// A duplicate of the device's descriptor: readiness belongs to the open file, not to the
    /// descriptor.
    fd: Option<AsyncFd<OwnedFd>>,
    /// The last field, dropped last: after its notification, the application may open the device
    /// again.
    farewell: Farewell,
}

/// Reports the result of the driver when it is dropped.
struct Farewell {
    control: Arc<Control>,
    outcome: Ended,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.control.ended.send_replace(Some(self.outcome.clone()));
    }
}

/// Reasons why the driver woke. A guard clears its readiness.
struct Woken<'a> {
    readable: Option<AsyncFdReadyGuard<'a, OwnedFd>>,
    writable: Option<AsyncFdReadyGuard<'a, OwnedFd>>,
    /// True if the device has ended: receiving returns the reason.
    is_gone: bool,
}

impl<D: Device> Driver<D> {
    /// Creates the driver. Needs a runtime with I/O enabled.
    pub(crate) fn new(
        host: Arc<Host<RealClock>>,
        mut device: D,
        signal: Arc<Signal>,
        control: Arc<Control>,
    ) -> io::Result<Driver<D>> {
        let wake = signal.clone();
        device.set_notify(Arc::new(move || wake.set()));
        let fd = device.as_fd().map(|fd| fd.try_clone_to_owned()).transpose()?.map(watch_fd).transpose()?;
        let pump = Pump::new(host, device);
        let timer = Timer::new()?;
        let farewell = Farewell { control, outcome: Ended::Dropped };
        Ok(Driver { pump, signal, timer, fd, farewell })
    }

    pub(crate) fn pump_mut(&mut self) -> &mut Pump<D> {
        &mut self.pump
    }

    pub(crate) async fn run(mut self) {
        self.farewell.outcome = match self.drive().await {
            Ok(outcome) => outcome,
            Err(error) => {
                let error = self.farewell.control.failure.get_or_init(|| Arc::new(error));
                Ended::Failed(Arc::clone(error))
            }
        };
    }

    async fn drive(&mut self) -> io::Result<Ended> {
        let Self { pump, signal, timer, fd, farewell } = self;
        let host = pump.host().clone();
        let mut step = pump.step(fd.is_none())?;
        let mut closing_since = None;
        let mut ending = Ending::Unheard;
        loop {
            let mut give_up_at = None;
            if step.phase != Phase::Running {
                let now = host.clock().now();
                let since = *closing_since.get_or_insert(now);
                let asked = *farewell.control.give_up_at.lock().unwrap_or_else(PoisonError::into_inner);
                let at = *give_up_at.insert(asked.unwrap_or(since + SHUTDOWN_TIMEOUT));
                if host.is_delivered() && !step.has_more && !step.is_blocked {
                    return Ok(Ended::Delivered);
                }
                if now >= at {
                    return Ok(Ended::TimedOut);
                }
            }
            if step.woken > 0 {
                let_others_run().await;
            }
            let deadline = [step.deadline, give_up_at, ending.next_look()].into_iter().flatten().min();
            let watched = fd.as_ref().map(|fd| (fd, matches!(ending, Ending::Unheard)));
            let woken = poll_fn(|cx| poll_woken(cx, &step, deadline, host.clock(), watched, signal, timer));
            let mut woken = woken.await?;
            woken.is_gone = ending.looks(woken.is_gone, host.clock().now());
            step = step_once(pump, woken)?;
            tokio::task::consume_budget().await;
        }
    }
}

/// Moves to the end of the runtime's queue, behind the tasks that were just woken. Unlike
/// `yield_now`, does not wait for the runtime to poll I/O.
async fn let_others_run() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn poll_woken<'a>(
    cx: &mut Context<'_>,
    step: &Step,
    deadline: Option<Instant>,
    clock: &RealClock,
    watched: Option<(&'a AsyncFd<OwnedFd>, bool)>,
    signal: &Signal,
    timer: &mut Timer,
) -> Poll<io::Result<Woken<'a>>> {
    let mut is_woken = signal.poll_take(cx).is_ready() || step.has_more;
    let mut woken = Woken { readable: None, writable: None, is_gone: false };
    match watched {
        Some((fd, watches_end)) => {
            if let Poll::Ready(guard) = fd.poll_read_ready(cx) {
                woken.readable = Some(guard?);
            }
            if step.is_blocked {
                if let Poll::Ready(guard) = fd.poll_write_ready(cx) {
                    woken.writable = Some(guard?);
                }
            } else if watches_end && let Poll::Ready(gone) = poll_gone(cx, fd) {
                gone?;
                woken.is_gone = true;
            }
            is_woken |= woken.readable.is_some() || woken.writable.is_some() || woken.is_gone;
        }
        None => is_woken |= !step.is_drained,
    }
    if !is_woken {
        is_woken = match timer.poll(cx, clock, deadline) {
            Poll::Ready(fired) => fired.map(|()| true)?,
            Poll::Pending => false,
        };
    }
    if is_woken { Poll::Ready(Ok(woken)) } else { Poll::Pending }
}

/// Ready when the device has ended. A deleted TUN interface reports an error and nothing to read,
/// which the runtime takes for the end of writing.
fn poll_gone(cx: &mut Context<'_>, fd: &AsyncFd<OwnedFd>) -> Poll<io::Result<()>> {
    loop {
        let mut guard = ready!(fd.poll_write_ready(cx))?;
        if guard.ready().is_write_closed() {
            return Poll::Ready(Ok(()));
        }
        guard.clear_ready();
    }
}

fn step_once<D: Device>(pump: &mut Pump<D>, woken: Woken<'_>) -> io::Result<Step> {
    let has_fd = pump.device().as_fd().is_some();
    let step = pump.step(!has_fd || woken.is_gone || woken.readable.is_some())?;
    if let Some(mut guard) = woken.readable
        && step.is_drained
    {
        guard.clear_ready();
    }
    if let Some(mut guard) = woken.writable
        && step.is_blocked
    {
        guard.clear_ready();
    }
    Ok(step)
}

impl<D: Device> Drop for Driver<D> {
    fn drop(&mut self) {
        self.pump.host().stop();
        self.farewell.control.closes();
        // The last resets; an error of the device cannot be reported any more.
        if !std::thread::panicking() {
            while self.pump.step(false).is_ok_and(|step| step.has_more) {}
        }
    }
}
