//! The running side: a bounded number of peers at once, each bounded in length and in time.
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

/// A socket that answers for a stack. Dropped, it is gone with its file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    answers: JoinHandle<()>,
}

/// How long a client may take to send its request and to take the answer.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many clients are answered at once; others wait in the socket's backlog.
pub(super) const PEERS_MAX: usize = 64;

impl ControlSocket {
    /// Opens a socket at `path`, or where `ss` and `route` look for the stack on `device`.
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
                    "cannot make {} for the control socket: {error}; say where with --control PATH",
                    folder.display()
                ))
            })?,
        };
        let listener = bind(&path)?;
        // The stack's clock has run for days when the stack begins, so that its zero tells nothing of that.
        let begun = net.inspect_at(|_, now| now);
        let answers = tokio::spawn(serve(listener, net.clone(), begun));
        Ok(ControlSocket { path, answers })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.answers.abort();
        // Somebody may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Mode 0600 from the first moment on. A socket that nobody answers any more is replaced; nothing else is.
fn bind(path: &Path) -> Result<UnixListener, Failure> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let refused = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused) {
        // What cannot be removed is in use, which bind says.
        let _ = std::fs::remove_file(path);
    }
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    bound.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::failed(format!(
            "{} is there already: another stack answers there, or it is no socket; choose another --control PATH",
            path.display()
        )),
        _ => Failure::file("open the control socket", path, &error),
    })
}

async fn serve(listener: UnixListener, net: StackHandle, begun: Instant) {
    // Gone with this task.
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
            // No descriptors left, for the moment.
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
        None => Err(format!("a request is one line of at most {REQUEST_MAX} bytes")),
    };
    let (word, body) = match &outcome {
        Ok(body) => ("ok\n", body),
        Err(why) => ("error\n", why),
    };
    stream.write_all(word.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
