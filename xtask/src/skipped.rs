//! Steps and tests that cannot run on this machine: printed where they occur, and again beside the
//! result.

use std::sync::{Mutex, PoisonError};

static STEPS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LINES_OF_TESTS: Mutex<usize> = Mutex::new(0);

/// Prints that a step, or a part of one, is skipped, and why.
pub(crate) fn say(what: &str) {
    println!("SKIPPED {what}");
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
}

/// Counts the lines in which tests say that they are skipped.
pub(crate) fn count(said: &str) {
    *LINES_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner) += lines(said);
}

/// Returns a line for each skipped step and one for the tests.
pub(crate) fn told() -> Vec<String> {
    let mut told = STEPS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lines = *LINES_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
    if lines > 0 {
        told.push(format!("tests, or parts of them: {lines} lines above contain `SKIPPED`"));
    }
    told
}

/// Counts lines that contain the word: the test harness may have begun the line already.
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
