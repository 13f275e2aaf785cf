//! Attempts at what a busy machine disturbs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const ATTEMPTS: u32 = 3;

/// Runs a test that counts the packets of a real kernel, up to three times until one attempt holds;
/// what each attempt that fails found is printed.
///
/// The kernel's retransmission and delayed-ACK timers run in real time. A process that is not
/// scheduled for some 20 ms lets one of them expire, and more packets cross than on an idle
/// machine. Each attempt makes its own hosts. The exact packets of our stack are tested in virtual
/// time, in the crates `proto` and `script`.
///
/// # Panics
///
/// As `test` does in the last attempt.
pub fn undisturbed(test: impl Fn()) {
    for attempt in 1..=ATTEMPTS {
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(panic) if attempt == ATTEMPTS => resume_unwind(panic),
            Err(_) => eprintln!("attempt {attempt} of {ATTEMPTS} failed, once more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_attempt_of_three_is_enough() {
        let calls = Cell::new(0);
        undisturbed(|| {
            calls.set(calls.get() + 1);
            assert_eq!(calls.get(), 3);
        });
        assert_eq!(calls.get(), 3);
    }

    #[test]
    #[should_panic(expected = "never holds")]
    fn the_last_failure_is_the_failure() {
        undisturbed(|| panic!("never holds"));
    }
}
