//! Calls of one thread that sleep in the same place: more than one where a signal handler makes another.

use std::sync::Arc;
use sync::atomic::{AtomicU32, Ordering};

/// Where one thread sleeps.
pub(super) trait Place {
    /// Its calls that are under way.
    fn calls(&self) -> &AtomicU32;

    fn wake(&self);
}

/// A call that may sleep. When one that a handler has made ends, the interrupted one looks again: what woke the handler's may have been
/// meant for it.
pub(super) struct Stay<P: Place>(Arc<P>);

impl<P: Place> Stay<P> {
    pub(super) fn begin(place: Arc<P>) -> Stay<P> {
        place.calls().fetch_add(1, Ordering::Relaxed);
        Stay(place)
    }

    pub(super) fn place(&self) -> &Arc<P> {
        &self.0
    }
}

impl<P: Place> Drop for Stay<P> {
    fn drop(&mut self) {
        if self.0.calls().fetch_sub(1, Ordering::Relaxed) > 1 {
            self.0.wake();
        }
    }
}
