//! The library's memory, apart from the program's `malloc`.
//!
//! With the kernel's sockets, `send` and its relatives are async-signal-safe (signal-safety(7));
//! `malloc` is not. A handler that has interrupted `malloc` and then sends must not enter it again.
//! No handler runs while the library uses its own heap (`posix::c::life::entered`).

use dlmalloc::GlobalDlmalloc;

#[global_allocator]
static HEAP: GlobalDlmalloc = GlobalDlmalloc;

/// Lets a fork wait until no other thread is in the heap, so that the child can use it. Called
/// once, before the program begins.
pub(crate) fn survive_forks() {
    // SAFETY: called once, by the thread that loads the library.
    unsafe { dlmalloc::enable_alloc_after_fork() };
}
