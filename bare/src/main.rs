//! Two stacks exchange a request and its answer over two links, in a program that has only `core`
//! and `alloc`.
//!
//! The target has no standard library, so a dependency on one fails to build. Its memory is a
//! static array; its status, the only use of an operating system, says
//! whether the exchange came off.
#![no_std]
#![no_main]

extern crate alloc;

mod exchange;
mod runtime;

/// The exchange came off.
const SUCCESS: i32 = 0;
/// An end did not get what the other sent.
const FAILURE: i32 = 1;
/// Something panicked.
const PANIC: i32 = 2;

/// Where the program begins.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    runtime::exit(if exchange::run().is_some() { SUCCESS } else { FAILURE })
}
