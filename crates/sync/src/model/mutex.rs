//! A lock beside whose every use a handler may run.

use super::signals;
use shuttle::sync::{LockResult, MutexGuard};

/// As `std::sync::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Not locked.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    /// Waits for it.
    ///
    /// # Errors
    /// A thread panicked while it had it.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let _ = signals::point();
        let locked = self.0.lock();
        let _ = signals::point();
        locked
    }
}
