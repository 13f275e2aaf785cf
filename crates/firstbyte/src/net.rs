//! A network that sockets are made on: our own stack, or this host's kernel.
mod builder;
mod stack;
use crate::TcpSocket;
use std::io;
use std::time::Duration;

pub use builder::NetBuilder;
pub use stack::StackHandle;

/// Default time that a shutdown waits for peers.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before a call on an ended stack fails. The first failing call does not wait.
const ENDED_PAUSE: Duration = Duration::from_millis(100);

/// The TCP behind a [`Net`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Our own stack, in this process.
    Stack,
    /// The sockets of this host's kernel.
    Kernel,
}

impl Backend {
    /// The variable that [`from_env`](Backend::from_env) reads.
    pub const VARIABLE: &str = "FIRSTBYTE_BACKEND";

    /// Reads the user's choice from the environment: `FIRSTBYTE_BACKEND` is `kernel` or `stack`.
    /// `None` if it is not set.
    ///
    /// ```
    /// use firstbyte::{Backend, Net, device};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// # let wire = device::Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    /// # let (tun, _other) = device::memory::pair(wire);
    /// let net = match Backend::from_env()?.unwrap_or(Backend::Kernel) {
    ///     Backend::Kernel => Net::kernel(),
    ///     Backend::Stack => Net::builder().device(tun).address("10.0.0.2/24").start()?,
    /// };
    /// # assert_eq!(net.backend(), Backend::Kernel);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the variable has another value.
    pub fn from_env() -> io::Result<Option<Backend>> {
        match std::env::var_os(Backend::VARIABLE) {
            None => Ok(None),
            Some(value) => Backend::parse(&value.to_string_lossy()).map(Some),
        }
    }

    fn parse(value: &str) -> io::Result<Backend> {
        match value {
            "kernel" => Ok(Backend::Kernel),
            "stack" => Ok(Backend::Stack),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("cannot use `{value}` in {}: write `kernel` or `stack`", Backend::VARIABLE),
            )),
        }
    }
}

/// A network that sockets are made on: a stack of our own, with its own addresses and device
/// ([`builder`](Net::builder)), or this host's kernel ([`kernel`](Net::kernel)).
///
/// Handles are cheap to clone. Streams and listeners hold one too. When the last handle of a stack
/// is dropped, the stack shuts down by itself in the background, as [`shutdown`](Net::shutdown)
/// does.
///
/// # Examples
/// On the kernel's sockets, which need no rights:
///
/// ```
/// use firstbyte::{Net, TcpListener};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let listener = TcpListener::builder(&Net::kernel()).fast_open(256).bind("127.0.0.1:0").await?;
/// # drop(listener);
/// # Ok(())
/// # }
/// ```
///
/// A host of its own behind a TUN interface of this machine, which needs `CAP_NET_ADMIN`. (Two
/// hosts joined in memory need no rights: see the [crate's example](crate).)
///
/// ```no_run
/// use firstbyte::{Net, TcpListener, device::tun::Tun};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let tun = Tun::builder().name("tun0").address("10.0.0.1".parse().unwrap(), 24).open()?;
/// let net = Net::builder().device(tun).address("10.0.0.2/24").start()?;
/// let listener = TcpListener::builder(&net).fast_open(256).bind("10.0.0.2:80").await?;
/// # drop(listener);
/// net.shutdown().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Net {
    inner: Inner,
}

#[derive(Clone, Debug)]
pub(crate) enum Inner {
    Stack(StackHandle),
    Kernel,
}

impl Net {
    /// Returns a builder for a stack.
    #[must_use]
    pub fn builder() -> NetBuilder<()> {
        NetBuilder::new()
    }

    /// Returns the sockets of this host's kernel. No rights are needed.
    ///
    /// Fast Open follows `net.ipv4.tcp_fastopen` of the host: bit 1 for clients, which is set by
    /// default, and bit 2 for listeners, which is not. The [module page](crate::kernel) lists what
    /// the kernel cannot do or report.
    #[must_use]
    pub fn kernel() -> Net {
        Net { inner: Inner::Kernel }
    }

    /// Returns which TCP is behind this network.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.inner {
            Inner::Stack(_) => Backend::Stack,
            Inner::Kernel => Backend::Kernel,
        }
    }

    /// Returns the parts that only a stack of our own has: settings, counters, paths, routes, the
    /// engine.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) on the kernel's sockets.
    pub fn stack(&self) -> io::Result<&StackHandle> {
        match &self.inner {
            Inner::Stack(stack) => Ok(stack),
            Inner::Kernel => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel's sockets have no stack in this process: read its state with `ss` and `nstat`",
            )),
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn of_stack(stack: StackHandle) -> Net {
        Net { inner: Inner::Stack(stack) }
    }

    /// Returns a socket, to open a connection with options.
    #[must_use]
    pub fn socket(&self) -> TcpSocket {
        TcpSocket::new(self)
    }

    /// Ends the stack: listeners close, open connections close like at the end of a process, and
    /// written data is delivered for up to [`SHUTDOWN_TIMEOUT`]. See
    /// [`shutdown_timeout`](Net::shutdown_timeout).
    ///
    /// Does nothing to the kernel's sockets: they stay open until they are dropped.
    ///
    /// # Errors
    /// Fails like [`shutdown_timeout`](Net::shutdown_timeout).
    pub async fn shutdown(&self) -> io::Result<()> {
        self.shutdown_timeout(SHUTDOWN_TIMEOUT).await
    }

    /// Ends the stack, and waits at most `timeout` until written data is delivered. Then the rest
    /// is reset and the device is released. From the call on, every socket fails with
    /// [`ConnectionAborted`]. Of several calls, the earliest deadline counts.
    ///
    /// # Cancel safety
    /// If the future is dropped, the shutdown continues in the background.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) if something was reset; the device's error if the
    /// device ended the stack before.
    ///
    /// [`ConnectionAborted`]: io::ErrorKind::ConnectionAborted
    pub async fn shutdown_timeout(&self, timeout: Duration) -> io::Result<()> {
        match &self.inner {
            Inner::Stack(stack) => stack.shutdown_timeout(timeout).await,
            Inner::Kernel => Ok(()),
        }
    }

    /// Waits until the stack has ended: by a [`shutdown`](Net::shutdown) through another handle, or
    /// because its device failed. Waits forever on the kernel's sockets.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// Fails like [`shutdown_timeout`](Net::shutdown_timeout).
    pub async fn closed(&self) -> io::Result<()> {
        match &self.inner {
            Inner::Stack(stack) => stack.closed().await,
            Inner::Kernel => std::future::pending().await,
        }
    }

    /// Slows down a loop that retries on an ended stack, and adds the cause of the end to the
    /// error.
    pub(crate) async fn pause_at_end(&self, error: io::Error) -> io::Error {
        match &self.inner {
            Inner::Stack(stack) => stack.pause_at_end(error).await,
            Inner::Kernel => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_a_backend_is_read_or_refused() {
        assert_eq!(Backend::parse("kernel").unwrap(), Backend::Kernel);
        assert_eq!(Backend::parse("stack").unwrap(), Backend::Stack);
        let error = Backend::parse("linux").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "cannot use `linux` in FIRSTBYTE_BACKEND: write `kernel` or `stack`");
    }
}
