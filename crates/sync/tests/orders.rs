//! The checker finds a lost wake-up, a deadlock, and a handler between two steps.
#![cfg(feature = "shuttle")]

extern crate firstbyte_sync as sync;

use std::sync::Arc;
use std::time::Duration;
use sync::atomic::{AtomicBool, Ordering};
use sync::model::{Token, Waited, cancel, check, signals};
use sync::{Mutex, PoisonError, thread};

const ORDERS: usize = 500;

/// Checks the state before it registers for wake-ups: an event in between is lost.
#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_registers_after_its_look_is_found() {
    check(ORDERS, || {
        let is_there = Arc::new(AtomicBool::new(false));
        let registered: Arc<Mutex<Option<Arc<Token>>>> = Arc::default();
        let (sets, wakes) = (Arc::clone(&is_there), Arc::clone(&registered));
        let other = thread::spawn(move || {
            sets.store(true, Ordering::SeqCst);
            let sleeper = wakes.lock().unwrap_or_else(PoisonError::into_inner).take();
            sleeper.into_iter().for_each(|token| token.post());
        });
        if !is_there.load(Ordering::SeqCst) {
            let token = Arc::new(Token::default());
            *registered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&token));
            token.wait(None, true);
        }
        let _ = other.join();
    });
}

/// Takes the lock of its own thread.
#[test]
#[should_panic(expected = "deadlock")]
fn a_handler_that_runs_under_the_lock_is_found() {
    check(ORDERS, || {
        let lock = Arc::new(Mutex::new(0));
        let in_handler = Arc::clone(&lock);
        signals::handle(1, true, move || *in_handler.lock().unwrap_or_else(PoisonError::into_inner) += 1);
        let held = lock.lock();
        let _masked = signals::Masked::new();
        drop(held);
    });
}

#[test]
fn sleepers_are_interrupted_cancelled_and_timed_out() {
    check(ORDERS, || {
        let token = Arc::new(Token::default());
        let long = Duration::from_secs(60);
        let begun = sync::monotonic();
        assert_eq!(token.wait(Some(long), true), Waited::TimedOut);
        assert_eq!(sync::monotonic() - begun, long);
        assert_eq!(cancel::within(|| token.wait(None, true)), Err(cancel::Cancelled));
        signals::handle(1, false, || {});
        assert_eq!(token.wait(None, true), Waited::Interrupted);
        let posts = Arc::clone(&token);
        let other = thread::spawn(move || posts.post());
        assert_eq!(token.wait(None, true), Waited::Posted);
        assert!(other.join().is_ok());
    });
}
