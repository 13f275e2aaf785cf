//! What the system does, as far as it takes part in the order of events.
//!
//! - [`Mutex`]: beside whose use a signal handler may run, as anywhere in a thread;
//! - [`Token`]: what a thread sleeps on (a semaphore, an event descriptor);
//! - [`time`]: passes when a sleeper's time-out comes, which may be whenever it sleeps;
//! - [`signals`]: a thread's handler, which may run wherever the thread has not masked it;
//! - [`cancel`]: a thread that another one has cancelled, which ends where it sleeps.
//!
//! Each choice is shuttle's, so that a failing order of events can be repeated.

pub mod cancel;
mod mutex;
pub mod signals;
pub mod time;
mod token;

pub use mutex::Mutex;
pub use token::{Token, Waited};

use shuttle::rand::{Rng, thread_rng};
use std::sync::Arc;

/// Once in so many.
fn by_chance(one_in: u32) -> bool {
    thread_rng().gen_ratio(1, one_in)
}

/// Plays `body` in `orders` random orders of events, and again in as many that prefer one thread to the others for long; `FIRSTBYTE_ORDERS`
/// times as many where the environment says so. Each time other ones, unless it has a seed (`SHUTTLE_RANDOM_SEED`).
///
/// # Panics
/// If one of them fails, deadlocks, or does not end. The message has what repeats it.
pub fn check(orders: usize, body: impl Fn() + Send + Sync + 'static) {
    let times = std::env::var("FIRSTBYTE_ORDERS").ok().and_then(|times| times.parse().ok());
    let orders = orders * times.unwrap_or(1);
    let body = Arc::new(body);
    let played = || {
        let body = Arc::clone(&body);
        move || {
            time::begin();
            body();
        }
    };
    let mut config = shuttle::Config::new();
    // Whoever reads them needs no warning that weaker orderings are played as the strongest.
    config.silence_warnings = true;
    // The engine's frames are deep without optimisation.
    config.stack_size = 1 << 20;
    let random = shuttle::scheduler::RandomScheduler::new(orders);
    shuttle::Runner::new(random, config.clone()).run(played());
    let preferring = shuttle::scheduler::PctScheduler::new(PRIORITY_CHANGES, orders);
    shuttle::Runner::new(preferring, config).run(played());
}

/// Of the threads that are preferred, in one order of events: most faults need one or two.
const PRIORITY_CHANGES: usize = 3;
