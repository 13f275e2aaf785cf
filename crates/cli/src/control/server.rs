//! The server: bounded in the number of clients, and in length and time for each.
use super::{REQUEST_MAX, place};
use crate::failure::Failure;
use control::Request;
use firstbyte::{Instant, StackHandle};
use rustix::fs::Mode;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// A control socket of a stack. Dropping it removes the socket's file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    answers: JoinHandle<()>,
}

/// Time limit for a client to send its request and read the answer.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Most clients served at once; others wait in the socket's backlog.
pub(super) const PEERS_MAX: usize = 64;

impl ControlSocket {
    /// Opens a socket at `path`, or at the default path for the stack on `device`.
    pub(crate) fn open(
        path: Option<&Path>,
        device: &str,
        net: &StackHandle,
    ) -> Result<ControlSocket, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => place::of_this_process(device).map_err(|error| {
                let folder = place::folder();
                Failure::failed(format!(
                    "cannot create the folder {} for the control socket: {error}; choose another \
                    path with --control PATH",
                    folder.display()
                ))
            })?,
        };
        let listener = bind(&path)?;
        // The stack's clock does not start at zero, so times are relative to this instant.
        let begun = net.inspect_at(|_, now| now);
        let answers = tokio::spawn(serve(listener, net.clone(), begun));
        Ok(ControlSocket { path, answers })
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.answers.abort();
        // The file may already be gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Binds the socket with mode 0600 from the start. Replaces a socket without a listener, but no
/// other file.
fn bind(path: &Path) -> Result<UnixListener, Failure> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let refused = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused) {
        // A file that cannot be removed makes `bind` fail below.
        let _ = std::fs::remove_file(path);
    }
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::failed(format!(
            "{} already exists: another stack uses it, or it is not a socket; choose another path \
            with --control PATH",
            path.display()
        )),
        _ => Failure::file("open the control socket", path, &error),
    })
}

async fn serve(listener: UnixListener, net: StackHandle, begun: Instant) {
    // Dropping the set aborts all peers.
    let mut peers = JoinSet::new();
    loop {
        while peers.try_join_next().is_some() {}
        if peers.len() >= PEERS_MAX {
            peers.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let net = net.clone();
                peers.spawn(async move {
                    drop(tokio::time::timeout(EXCHANGE_TIMEOUT, answer(stream, &net, begun)).await)
                });
            }
            // Out of descriptors: wait until some are closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(stream: UnixStream, net: &StackHandle, begun: Instant) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    (&mut stream).take(REQUEST_MAX).read_line(&mut line).await?;
    let outcome = match line.strip_suffix('\n') {
        Some(line) => Request::read(line).and_then(|request| super::answer(&request, net, begun)),
        None => Err(format!("expected a request of one line, at most {REQUEST_MAX} bytes")),
    };
    let (word, body) = match &outcome {
        Ok(body) => ("ok\n", body),
        Err(why) => ("error\n", why),
    };
    stream.write_all(word.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
