//! Tells a handler whether its request may be a replay.
use tokio::sync::watch;

/// The state of a handshake, for code that has no access to the stream: a handler that is given one
/// request.
///
/// Until the handshake is complete, what was read of the stream is early data, which somebody may
/// have recorded and replayed (RFC 8446 §8). A complete handshake proves that it was not
/// (RFC 8470 §3). A handler has three choices for a request that must not be executed twice: wait
/// for [`completed`](Handshake::completed), answer 425 Too Early, or pass the request on with
/// `Early-Data: 1`.
#[derive(Clone, Debug)]
pub struct Handshake {
    complete: watch::Receiver<bool>,
}

impl Handshake {
    pub(super) fn begin() -> (Finish, Handshake) {
        let (sender, complete) = watch::channel(false);
        (Finish { sender }, Handshake { complete })
    }

    /// Returns true once the peer has proved that it is there: nothing of the stream is a replay.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self.complete.borrow()
    }

    /// Waits until the handshake is complete. Returns false if the connection ended before.
    ///
    /// Something must read the stream in the meantime, as an HTTP server does.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn completed(&mut self) -> bool {
        self.complete.wait_for(|&complete| complete).await.is_ok()
    }
}

/// The other end of a [`Handshake`].
#[derive(Debug)]
pub(super) struct Finish {
    sender: watch::Sender<bool>,
}

impl Finish {
    pub(super) fn complete(&self) {
        self.sender.send_if_modified(|complete| !std::mem::replace(complete, true));
    }
}
