//! Figures that compare our stack with the kernel in the same run. Each test has the machine to
//! itself.
mod first_byte;
mod goodput;
mod middlebox;

use interop::programs::{PYTHON, ready};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Each way of the path; a round trip is 40 ms.
const ONE_WAY: Duration = Duration::from_millis(20);

/// May this test run? Says why if not; if so, holds off the other tests of this program.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ready(&[PYTHON]).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes the measurement again, five times in all, when it does not come out as it should: a busy
/// machine adds time.
fn measure(mut once: impl FnMut() -> Result<(), String>) {
    let failures: Vec<String> = (0..5).map_while(|_| once().err()).collect();
    assert!(failures.len() < 5, "{failures:#?}");
}
