//! A thread's signal handler.

use super::by_chance;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

shuttle::thread_local! {
    static HANDLER: RefCell<Option<Rc<dyn Fn()>>> = RefCell::new(None);
    /// Signals still to arrive.
    static COMING: Cell<u32> = Cell::new(0);
    static RESTARTS: Cell<bool> = Cell::new(false);
    /// Number of nested masks.
    static MASKS: Cell<u32> = Cell::new(0);
    static IS_RUNNING: Cell<bool> = Cell::new(false);
}

/// Sends `times` signals to the calling thread, at points where it can be interrupted; `handler`
/// handles each. `restarts`: the handler was installed with `SA_RESTART`.
pub fn handle(times: u32, restarts: bool, handler: impl Fn() + 'static) {
    HANDLER.with(|installed| *installed.borrow_mut() = Some(Rc::new(handler)));
    COMING.with(|coming| coming.set(times));
    RESTARTS.with(|flag| flag.set(restarts));
}

/// Stops sending signals.
pub fn end() {
    COMING.with(|coming| coming.set(0));
}

/// Blocks signals while it lives.
#[derive(Debug)]
pub struct Masked(());

impl Masked {
    /// Blocks signals from now on.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it acts")]
    pub fn new() -> Masked {
        MASKS.with(|masks| masks.set(masks.get() + 1));
        Masked(())
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        MASKS.with(|masks| masks.set(masks.get() - 1));
        let _ = point();
    }
}

/// Allows handlers during a call that sleeps with signals blocked.
#[derive(Debug)]
pub struct Unmasked(u32);

impl Unmasked {
    /// Allows handlers from now on.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it acts")]
    pub fn new() -> Unmasked {
        let masks = MASKS.with(|masks| masks.replace(0));
        let _ = point();
        Unmasked(masks)
    }
}

impl Drop for Unmasked {
    fn drop(&mut self) {
        let _ = point();
        MASKS.with(|masks| masks.set(self.0));
    }
}

/// Marks a point where a handler may run. Returns true if one has run.
pub(super) fn point() -> bool {
    let runs = are_coming() && MASKS.with(Cell::get) == 0 && by_chance(3);
    if runs {
        COMING.with(|coming| coming.set(coming.get() - 1));
        let handler = HANDLER.with(|handler| handler.borrow().clone());
        IS_RUNNING.with(|running| running.set(true));
        handler.into_iter().for_each(|handler| handler());
        IS_RUNNING.with(|running| running.set(false));
    }
    runs
}

/// True if signals are still to arrive. A handler does not interrupt itself.
pub(super) fn are_coming() -> bool {
    COMING.with(Cell::get) > 0 && !IS_RUNNING.with(Cell::get)
}

pub(super) fn restart() -> bool {
    RESTARTS.with(Cell::get)
}
