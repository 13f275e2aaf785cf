//! What this machine lets nobody test: said where it comes up, and again beside the result, where it is read.

use std::sync::{Mutex, PoisonError};

static STEPS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LINES_OF_TESTS: Mutex<usize> = Mutex::new(0);

/// Of a whole step, or of a part of one: why it is skipped.
pub(crate) fn say(what: &str) {
    println!("SKIPPED {what}");
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
}

/// Finds the lines in which tests say that they are skipped.
pub(crate) fn count(said: &str) {
    *LINES_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner) += lines(said);
}

/// All of it, a line for each step and one for the tests.
pub(crate) fn told() -> Vec<String> {
    let mut told = STEPS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lines = *LINES_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
    if lines > 0 {
        told.push(format!("tests, or parts of them, in {lines} lines above: each begins with `SKIPPED`"));
    }
    told
}

/// The harness may have begun a line already, which goes on behind what a test writes.
fn lines(said: &str) -> usize {
    said.lines().filter(|line| line.contains("SKIPPED")).count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_that_say_so_are_counted() {
        let said = "test a ... SKIPPED: needs root\nok\nSKIPPED: needs ip\nSKIPPED for SIGHUP\ntest skipped_b ... ok\n";
        assert_eq!(super::lines(said), 3);
    }
}
