//! Numbers that are opened and closed: `close`, `dup` and their relatives. The kernel chooses the
//! number; its entry follows.

use crate::numbers::{self, ours, publish_again, withdraw};
use crate::stack::with;
use crate::{instances, real, table, unattended};
use libc::{c_int, c_long, c_uint};
use posix::c::life::{entered, is_borrowed};
use posix::c::{self, returned_int};

/// Closes the stack's descriptor behind a number. The number stays. Does nothing in a child that
/// borrows its parent's memory (`vfork`): its numbers are its own.
pub(crate) fn forget(number: c_int) {
    if numbers::is_followed(number) && is_borrowed() {
        return;
    }
    unattended::forget(number);
    let part = withdraw(number).or_else(|| instances::forget(number));
    if let Some(fd) = part {
        // A child of fork has nothing to close.
        let _ = entered(|process| process.map(|process| c::close(process, fd)));
    }
}

/// `close`. The kernel gets the number back last, so that it is not reused too early.
#[unsafe(no_mangle)]
pub extern "C" fn close(number: c_int) -> c_int {
    forget(number);
    // SAFETY: only a number is passed.
    unsafe { real::close(number) }
}

/// Duplicates the entry after the kernel has made `new` a duplicate of `number`.
fn follow(number: c_int, new: c_int) -> c_int {
    if new < 0 || new == number || numbers::is_followed(number) && is_borrowed() {
        return new;
    }
    let followed = match ours(number) {
        Some(fd) => with(|p| c::dup(p, fd))
            .and_then(|fd| publish_again(new, number, fd))
            .inspect(|new| unattended::duplicate(number, *new)),
        None => instances::duplicate(number, new).map(|()| new),
    };
    returned_int(followed.inspect_err(|_| {
        // SAFETY: no one else knows this number.
        unsafe { real::close(new) };
    }))
}

/// `dup`.
#[unsafe(no_mangle)]
pub extern "C" fn dup(number: c_int) -> c_int {
    // SAFETY: only a number is passed.
    follow(number, unsafe { real::dup(number) })
}

/// `dup2`.
#[unsafe(no_mangle)]
pub extern "C" fn dup2(number: c_int, new: c_int) -> c_int {
    replace(number, new, || {
        // SAFETY: only numbers are passed.
        unsafe { real::dup2(number, new) }
    })
}

/// `dup3`.
#[unsafe(no_mangle)]
pub extern "C" fn dup3(number: c_int, new: c_int, flags: c_int) -> c_int {
    replace(number, new, || {
        // SAFETY: only numbers are passed.
        unsafe { real::dup3(number, new, flags) }
    })
}

/// Duplicates to a given number, and closes the former entry of that number.
fn replace(number: c_int, new: c_int, kernel: impl FnOnce() -> c_int) -> c_int {
    let before = numbers::is_followed(new);
    let result = kernel();
    if before && result == new && number != new {
        forget(new);
    }
    follow(number, result)
}

/// `fcntl`. It is variadic in C; the third argument is passed where a fixed one would be. Commands
/// without a third argument ignore it.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(number: c_int, command: c_int, argument: usize) -> c_int {
    let duplicates = matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
    match ours(number) {
        Some(fd) if !duplicates => {
            // SAFETY: the caller guarantees it.
            returned_int(with(|p| unsafe { c::fcntl(p, fd, command, argument as c_long) }))
        }
        _ => {
            // SAFETY: the caller guarantees it.
            let result = unsafe { real::fcntl(number, command, argument) };
            if duplicates { follow(number, result) } else { result }
        }
    }
}

/// `fcntl` of a program that was built for large files.
///
/// # Safety
/// The rules of libc's function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(number: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller guarantees it; with words of 64 bits both are the same.
    unsafe { fcntl(number, command, argument) }
}

/// `close_range`. Closes the stack's descriptors behind these numbers.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if first <= last && flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        forget_all(first, last);
    }
    // SAFETY: only numbers are passed.
    unsafe { real::close_range(first, last, flags) }
}

/// `closefrom`. Closes the stack's descriptors behind these numbers.
#[unsafe(no_mangle)]
pub extern "C" fn closefrom(first: c_int) {
    forget_all(first.max(0).cast_unsigned(), c_uint::MAX);
    // SAFETY: only a number is passed.
    unsafe { real::closefrom(first) };
}

fn forget_all(first: c_uint, last: c_uint) {
    let numbers = first as usize..table::end().min((last as usize).saturating_add(1));
    numbers.for_each(|number| forget(number as c_int));
}
