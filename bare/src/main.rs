//! Two stacks exchange a request and its answer over two links, in a program that has only `core`
//! and `alloc`.
//!
//! It is built for a target that has no standard library, so that nothing can ask for one. Its
//! memory is a static array; its status, which is all that an operating system is asked for, says
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
