//! Two namespaces with a path between them.
use crate::{has, judged};
use doctor::{Finding, sources};
use interop::kernel_end::KernelEnd;
use interop::netns::{Addresses, Host};
use interop::path::Wire;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A client, a server, and the path between them.
pub(crate) struct Bed {
    pub(crate) client: KernelEnd,
    pub(crate) server: KernelEnd,
    pub(crate) wire: Wire,
}

/// Returns a path with this round trip, or `None` if the test is skipped, with a message.
pub(crate) fn bed(rtt: Duration) -> Option<Bed> {
    if let Err(reason) = testnet::can() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
        return None;
    }
    let (here, there) = (Addresses::nth(1), Addresses::nth(2));
    let ((client, client_side), (server, server_side)) = (Host::new(here), Host::new(there));
    for host in [&client, &server] {
        // Each test has its own namespace: no TIME-WAIT and no thresholds of other tests. The
        // congestion window grows as on every kernel.
        host.sysctl("net.ipv4.tcp_congestion_control", "reno");
    }
    let wire = Wire::new(client_side, server_side, rtt / 2);
    Some(Bed { client: KernelEnd::new(client, there), server: KernelEnd::new(server, here), wire })
}

impl Bed {
    /// Returns an address of the server.
    pub(crate) fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.server.host.addresses.v4.into(), port)
    }

    /// Connects client to server, and returns both ends.
    pub(crate) fn connection(&self, port: u16) -> (TcpStream, TcpStream) {
        let address = self.address(port);
        let listener = self.server.host.run(|| TcpListener::bind(address).unwrap());
        let client = self.client.host.run(|| TcpStream::connect(address).unwrap());
        (client, listener.accept().unwrap().0)
    }

    /// Returns the findings at the client.
    pub(crate) fn at_client(&self, meanwhile: impl FnOnce()) -> Vec<Finding> {
        found(&self.client.host, meanwhile)
    }

    /// Returns the findings at the server.
    pub(crate) fn at_server(&self, meanwhile: impl FnOnce()) -> Vec<Finding> {
        found(&self.server.host, meanwhile)
    }
}

/// Returns the findings in a namespace while `meanwhile` runs outside.
pub(crate) fn found(host: &Host, meanwhile: impl FnOnce()) -> Vec<Finding> {
    let before = host.run(sources::here);
    meanwhile();
    host.run(|| judged(&before, &sources::here()))
}

/// Runs the command of FIRSTBYTE_BESIDE in this namespace, if it is set, and calls `again` until
/// the command ends. Shows what other tools report.
pub(crate) fn beside(host: &Host, again: impl FnMut()) {
    if let Some(mut command) = others() {
        wait(host.run(|| command.spawn().unwrap()), again);
    }
}

/// Like [`beside`], in the namespace of this thread.
pub(crate) fn beside_here() {
    if let Some(mut command) = others() {
        wait(command.spawn().unwrap(), || {});
    }
}

fn others() -> Option<Command> {
    let wanted = std::env::var_os("FIRSTBYTE_BESIDE")?;
    let mut command = testnet::command("sh");
    command.arg("-c").arg(wanted).env("SITUATION", std::thread::current().name().unwrap_or_default());
    Some(command)
}

fn wait(mut child: Child, mut again: impl FnMut()) {
    while child.try_wait().unwrap().is_none() {
        again();
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the condition holds. For the kernel's own timers.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends from the first to the second end as fast as `send` can, while `meanwhile` runs.
pub(crate) fn transfer<T>(
    ends: (TcpStream, TcpStream),
    send: impl Fn(&TcpStream) -> bool + Send + Sync,
    meanwhile: impl FnOnce() -> T,
) -> T {
    let (from, to) = ends;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; 1 << 18];
            while (&to).read(&mut buffer).is_ok_and(|read| read > 0) {}
        });
        scope.spawn(|| {
            while send(&from) {
                if ended.load(Relaxed) {
                    break;
                }
            }
        });
        // The threads also end if `meanwhile` panics, because the connection ends.
        let _end = End(&from, &to, &ended);
        meanwhile()
    })
}

/// Ends a transfer when dropped.
struct End<'a>(&'a TcpStream, &'a TcpStream, &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.2.store(true, Relaxed);
        let _ = (self.0.shutdown(Shutdown::Both), self.1.shutdown(Shutdown::Both));
    }
}

/// A plain write.
pub(crate) fn write(mut to: &TcpStream) -> bool {
    to.write(&[0; 1 << 16]).is_ok()
}

/// Returns the findings at this end in the first of `windows` windows in which the rule fires, or
/// in the last one.
pub(crate) fn within(host: &Host, windows: usize, id: &str) -> Vec<Finding> {
    let mut last = Vec::new();
    let _fired = (0..windows).any(|_| {
        last = found(host, || std::thread::sleep(Duration::from_millis(150)));
        has(&last, id)
    });
    last
}

/// Returns the findings once these rules no longer fire. A closed socket may stay open for a moment
/// in a command that another test starts.
#[track_caller]
pub(crate) fn once_gone(rules: &[&str], mut found: impl FnMut() -> Vec<Finding>) -> Vec<Finding> {
    let mut last = Vec::new();
    until(&format!("the end of {rules:?}"), || {
        last = found();
        !rules.iter().any(|id| has(&last, id))
    });
    last
}

/// Returns the findings once the rule fires.
#[track_caller]
pub(crate) fn once_found(id: &str, mut found: impl FnMut() -> Vec<Finding>) -> Vec<Finding> {
    let mut last = Vec::new();
    until(id, || {
        last = found();
        has(&last, id)
    });
    last
}
