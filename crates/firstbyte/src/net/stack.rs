//! The handle of a stack of our own: its settings, counters, paths and engine.
use super::ENDED_PAUSE;
use crate::driver::{Control, Ended};
use crate::error;
use crate::timer::Timer;
use host::{Clock, Host, RealClock};
use proto::{
    Counters, Instant, Paths, RouteMetrics, SettingError, Stack, TableSizes, TraceEvent, TraceMask, fast_open,
};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;

/// A running stack of our own. Made by [`NetBuilder::start`](crate::NetBuilder::start) and reached
/// by [`Net::stack`](crate::Net::stack).
#[derive(Clone, Debug)]
pub struct StackHandle {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    host: Arc<Host<RealClock>>,
    control: Arc<Control>,
    /// MTU of the device, bytes.
    mtu: usize,
    /// True once a call has reported the end of the stack.
    has_told_end: AtomicBool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.host.begin_shutdown();
    }
}

impl StackHandle {
    pub(super) fn new(host: Arc<Host<RealClock>>, control: Arc<Control>, mtu: usize) -> StackHandle {
        StackHandle { handle: Arc::new(Handle { host, control, mtu, has_told_end: AtomicBool::new(false) }) }
    }

    pub(super) async fn shutdown_timeout(&self, timeout: Duration) -> io::Result<()> {
        let host = &self.handle.host;
        self.handle.control.give_up_at(host.clock().now() + timeout);
        host.begin_shutdown();
        self.handle.control.closes();
        self.closed().await
    }

    pub(super) async fn closed(&self) -> io::Result<()> {
        match self.handle.control.ended().await {
            Ended::Delivered => Ok(()),
            Ended::TimedOut => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "not everything was delivered in time; what was left has been reset",
            )),
            Ended::Failed(error) => {
                Err(io::Error::new(error.kind(), format!("the device under the stack failed: {error}")))
            }
            Ended::Dropped => Err(error::stopped()),
        }
    }

    /// Changes a setting by Linux's name, for example `("net.ipv4.tcp_fastopen", "0x403")`. Returns
    /// `Ok(Some(warning))` if a part was rejected.
    ///
    /// # Errors
    /// There is no such setting, or the value is invalid.
    pub fn set(&self, name: &str, value: &str) -> Result<Option<String>, SettingError> {
        self.handle.host.configure(|stack, now| stack.set(now, name, value))
    }

    /// Replaces the cookie keys of listeners without their own. Cookies of the ring's backup key
    /// stay valid, so a rotation rejects no client.
    pub fn set_fast_open_key(&self, ring: fast_open::KeyRing) {
        self.handle.host.configure(|stack, _| stack.set_fast_open_key(ring));
    }

    /// Adds a local address in a network of `prefix_len` bits.
    pub fn add_address(&self, addr: IpAddr, prefix_len: u8) {
        self.handle.host.configure(|stack, _| stack.add_address(addr, prefix_len));
    }

    /// Removes a local address: the stack ignores packets to it. Connections from it time out.
    pub fn remove_address(&self, addr: IpAddr) {
        self.handle.host.configure(|stack, _| stack.remove_address(addr));
    }

    /// Sets the metrics of new connections to `destination`: initial windows, MTU, congestion
    /// control and so on. The longest prefix wins. Returns false if the table is full (65 536).
    ///
    /// ```
    /// # fn example(net: &firstbyte::StackHandle) -> Result<(), firstbyte::RouteError> {
    /// net.set_route("10.0.0.0/8".parse()?, "initcwnd 20 rto_min 50ms".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_route(&self, destination: fast_open::Network, metrics: RouteMetrics) -> bool {
        self.handle.host.configure(|stack, now| stack.set_route(now, destination, metrics))
    }

    /// Removes the route of exactly this prefix, and returns it.
    pub fn remove_route(&self, destination: fast_open::Network) -> Option<RouteMetrics> {
        self.handle.host.configure(|stack, now| stack.remove_route(now, destination))
    }

    /// Returns a copy of the counters, with Linux's names.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.inspect(|stack| stack.counters().clone())
    }

    /// Returns the number of connections, half-open requests and TIME-WAIT entries.
    #[must_use]
    pub fn table_sizes(&self) -> TableSizes {
        self.inspect(Stack::table_sizes)
    }

    /// Returns the number of sockets that tasks wait on.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.handle.host.waiting_count()
    }

    /// Reads or edits the path cache: cookies, MSS, RTT, verdicts.
    pub fn with_path_cache<R>(&self, edit: impl FnOnce(&mut fast_open::PathCache) -> R) -> R {
        self.handle.host.configure(|stack, _| edit(stack.path_cache_mut()))
    }

    /// Returns all cached paths, to list them or for [`paths::save`](crate::paths::save).
    #[must_use]
    pub fn paths(&self) -> Paths {
        self.handle.host.configure(|stack, now| stack.export_paths(now))
    }

    /// Adds the cached paths of an earlier stack, `elapsed` after they were saved. Newer entries of
    /// this stack stay.
    ///
    /// ```no_run
    /// # fn example(net: &firstbyte::StackHandle) -> Result<(), Box<dyn std::error::Error>> {
    /// use firstbyte::paths;
    /// let file = std::path::Path::new("/var/lib/myapp/paths");
    /// let (known, elapsed) = paths::load(file)?;
    /// net.add_paths(&known, elapsed);
    /// // …
    /// paths::save(file, &net.paths())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_paths(&self, known: &Paths, elapsed: Duration) {
        self.handle.host.configure(|stack, now| stack.import_paths(now, known, elapsed));
    }

    /// Forgets everything about one peer: cookies, round trips, verdicts. Returns false if there
    /// was nothing.
    pub fn forget_paths_to(&self, peer: IpAddr) -> bool {
        self.with_path_cache(|cache| cache.forget_peer(peer.into()))
    }

    /// Traces every connection: states, windows, round trips, the sender's limits, retransmissions,
    /// drops with their reasons, segments. An empty mask turns tracing off, which then costs one
    /// test per packet.
    pub fn set_trace(&self, mask: TraceMask) {
        self.handle.host.configure(|stack, _| stack.set_trace(mask));
    }

    /// Returns the events since the last call, and the number of dropped events (the buffer holds
    /// 65 536).
    #[must_use]
    pub fn take_trace(&self) -> (Vec<TraceEvent>, u64) {
        self.handle.host.configure(|stack, _| {
            let lost = stack.take_trace_lost();
            (std::iter::from_fn(|| stack.poll_trace()).collect(), lost)
        })
    }

    /// Reads the engine. The stack is locked during the call, so keep it short.
    pub fn inspect<R>(&self, look: impl FnOnce(&Stack) -> R) -> R {
        self.handle.host.inspect(look)
    }

    /// Fails like [`inspect`](StackHandle::inspect), and tells the time, by which a
    /// [`ConnectionInfo`](crate::ConnectionInfo) is to be read.
    pub fn inspect_at<R>(&self, look: impl FnOnce(&Stack, Instant) -> R) -> R {
        let clock = self.handle.host.clock();
        self.inspect(|stack| look(stack, clock.now()))
    }

    /// Returns the metrics of new connections, by destination prefix.
    #[must_use]
    pub fn routes(&self) -> Vec<(fast_open::Network, RouteMetrics)> {
        self.inspect(|stack| stack.routes().collect())
    }

    pub(crate) fn host(&self) -> &Host<RealClock> {
        &self.handle.host
    }

    /// Waits until no connection can be opened any more.
    pub(crate) fn closing(&self) -> OwnedNotified {
        self.handle.control.closing()
    }

    /// Adds the error of the device, if `error` reports the end of the stack and the device ended
    /// it.
    pub(crate) fn explain_end(&self, error: io::Error) -> io::Error {
        match self.handle.control.failure() {
            Some(failure) if error::is_stopped(&error) => error::device_failed(failure),
            _ => error,
        }
    }

    /// Explains an error like [`explain_end`](Self::explain_end), and slows down a loop that
    /// retries. On an ended stack, the first call fails at once, and each later call fails after
    /// [`ENDED_PAUSE`].
    pub(crate) async fn pause_at_end(&self, error: io::Error) -> io::Error {
        if error::is_stopped(&error) && self.handle.has_told_end.swap(true, Ordering::Relaxed) {
            let clock = self.handle.host.clock();
            let until = clock.now() + ENDED_PAUSE;
            if let Ok(mut timer) = Timer::new() {
                while clock.now() < until && poll_fn(|cx| timer.poll(cx, clock, Some(until))).await.is_ok() {}
            }
        }
        self.explain_end(error)
    }

    /// Returns the MTU of the device, bytes.
    pub(crate) fn mtu(&self) -> usize {
        self.handle.mtu
    }
}
