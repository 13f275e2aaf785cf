//! A flag that wakes the task that runs the pump: set from anywhere, any number of times, seen
//! once.
use std::task::{Context, Poll, Waker};
use sync::atomic::{AtomicBool, Ordering};
use sync::{Mutex, MutexGuard, PoisonError};

/// A flag for one waiting task, usually set by the notify hook of a [`Host`](crate::Host).
#[derive(Debug, Default)]
pub struct Signal {
    is_set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    /// Sets the flag and wakes the waiting task.
    pub fn set(&self) {
        if self.is_set.swap(true, Ordering::AcqRel) {
            return;
        }
        let waker = self.slot().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns ready, and clears the flag, if it was set.
    pub fn poll_take(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_set.swap(false, Ordering::AcqRel) {
            return Poll::Ready(());
        }
        {
            let mut slot = self.slot();
            match &mut *slot {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *slot = Some(cx.waker().clone()),
            }
        }
        // Set between the first check and the registration, when there was no waker yet.
        if self.is_set.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn many_sets_are_one_wake_and_one_take() {
        let (signal, count) = (Signal::default(), Arc::new(Count::default()));
        let waker = Waker::from(count.clone());
        let cx = Context::from_waker(&waker);
        assert!(signal.poll_take(&cx).is_pending());
        signal.set();
        signal.set();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(signal.poll_take(&cx).is_ready());
        assert!(signal.poll_take(&cx).is_pending());
    }

    #[test]
    fn a_set_before_anyone_waits_is_not_lost() {
        let signal = Signal::default();
        signal.set();
        assert!(signal.poll_take(&Context::from_waker(Waker::noop())).is_ready());
    }
}
