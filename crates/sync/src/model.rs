//! Models of the system calls that affect the order of events.
//!
//! - [`Mutex`]: a signal handler may run at each use, as anywhere in a thread;
//! - [`Token`]: the object that a thread sleeps on (a semaphore, an event descriptor);
//! - [`time`]: advances when a sleeper's timeout expires, which may be at any time while it sleeps;
//! - [`signals`]: a thread's handler, which may run wherever the thread has not masked it;
//! - [`cancel`]: a thread that another one has cancelled, which ends at its next sleep.
//!
//! Shuttle makes each choice, so that a failing order of events can be repeated.

pub mod cancel;
mod mutex;
pub mod signals;
pub mod time;
mod token;

pub use mutex::Mutex;
pub use token::{Token, Waited};

use shuttle::rand::{Rng, thread_rng};
use std::sync::Arc;

/// True with a probability of 1 in `one_in`.
fn by_chance(one_in: u32) -> bool {
    thread_rng().gen_ratio(1, one_in)
}

/// Runs `body` in `orders` random orders of events, and in as many that prefer one thread for long
/// periods. Multiplies both by `FIRSTBYTE_ORDERS` if it is set. The orders differ in each run,
/// unless there is a seed (`SHUTTLE_RANDOM_SEED`).
///
/// # Panics
/// If one of them fails, deadlocks, or does not end. The message says how to repeat it.
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
    // Weaker orderings are treated as the strongest; the documentation says so.
    config.silence_warnings = true;
    // The engine's stack frames are large without optimisation.
    config.stack_size = 1 << 20;
    let random = shuttle::scheduler::RandomScheduler::new(orders);
    shuttle::Runner::new(random, config.clone()).run(played());
    let preferring = shuttle::scheduler::PctScheduler::new(PRIORITY_CHANGES, orders);
    shuttle::Runner::new(preferring, config).run(played());
}

/// Changes of the preferred thread in one order of events: most bugs need one or two.
const PRIORITY_CHANGES: usize = 3;
