//! A lock with a signal handler that may run at each use.

use super::signals;
use shuttle::sync::{LockResult, MutexGuard};

/// The counterpart of `std::sync::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    /// Locks the mutex.
    ///
    /// # Errors
    /// A thread panicked while it held the lock.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let _ = signals::point();
        let locked = self.0.lock();
        let _ = signals::point();
        locked
    }
}
