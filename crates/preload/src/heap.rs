//! The library's memory, apart from the program's `malloc`.
//!
//! In the kernel `send` and its relatives are async-signal-safe (signal-safety(7)), `malloc` is not: a handler that interrupts it and then
//! sends must not ask it for memory. No handler runs while the library uses a heap of its own (`posix::c::life::entered`).

use dlmalloc::GlobalDlmalloc;

#[global_allocator]
static HEAP: GlobalDlmalloc = GlobalDlmalloc;

/// Once, before the program begins. A fork waits until no other thread is in the heap, so that the child can use it.
pub(crate) fn survive_forks() {
    // SAFETY: called once, by the thread that loads the library.
    unsafe { dlmalloc::enable_alloc_after_fork() };
}
