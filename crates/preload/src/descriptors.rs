//! Numbers that come and go: `close`, `dup` and their relatives. The kernel decides which number; what it stands for follows.

use crate::numbers::{self, ours, publish_again, withdraw};
use crate::stack::with;
use crate::{instances, real, table, unattended};
use libc::{c_int, c_long, c_uint};
use posix::c::life::{entered, is_borrowed};
use posix::c::{self, returned_int};

/// What the stack has behind a number is closed; the number stays. A child that only borrows its parent's memory has numbers of its own.
pub(crate) fn forget(number: c_int) {
    if numbers::is_followed(number) && is_borrowed() {
        return;
    }
    unattended::forget(number);
    let part = withdraw(number).or_else(|| instances::forget(number));
    if let Some(fd) = part {
        // In a child of fork there is nothing to close; else it is open.
        let _ = entered(|process| process.map(|process| c::close(process, fd)));
    }
}

/// `close`: the number goes back to the kernel last, so that nobody gets it before ours is closed.
#[unsafe(no_mangle)]
pub extern "C" fn close(number: c_int) -> c_int {
    forget(number);
    // SAFETY: nothing is passed but a number.
    unsafe { real::close(number) }
}

/// The kernel has made `new` a duplicate of `number`: so does the stack.
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
        // SAFETY: nobody else knows this number.
        unsafe { real::close(new) };
    }))
}

/// `dup`.
#[unsafe(no_mangle)]
pub extern "C" fn dup(number: c_int) -> c_int {
    // SAFETY: nothing is passed but a number.
    follow(number, unsafe { real::dup(number) })
}

/// `dup2`.
#[unsafe(no_mangle)]
pub extern "C" fn dup2(number: c_int, new: c_int) -> c_int {
    replace(number, new, || {
        // SAFETY: nothing is passed but numbers.
        unsafe { real::dup2(number, new) }
    })
}

/// `dup3`.
#[unsafe(no_mangle)]
pub extern "C" fn dup3(number: c_int, new: c_int, flags: c_int) -> c_int {
    replace(number, new, || {
        // SAFETY: nothing is passed but numbers.
        unsafe { real::dup3(number, new, flags) }
    })
}

/// What `new` stood for is closed if the kernel lets it stand for something else.
fn replace(number: c_int, new: c_int, kernel: impl FnOnce() -> c_int) -> c_int {
    let before = numbers::is_followed(new);
    let result = kernel();
    if before && result == new && number != new {
        forget(new);
    }
    follow(number, result)
}

/// `fcntl`: variadic in C; its third argument lies where a fixed one would, and means nothing to commands without.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(number: c_int, command: c_int, argument: usize) -> c_int {
    let duplicates = matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
    match ours(number) {
        Some(fd) if !duplicates => {
            // SAFETY: as the caller says.
            returned_int(with(|p| unsafe { c::fcntl(p, fd, command, argument as c_long) }))
        }
        _ => {
            // SAFETY: as the caller says.
            let result = unsafe { real::fcntl(number, command, argument) };
            if duplicates { follow(number, result) } else { result }
        }
    }
}

/// `fcntl` as programs built for large files call it.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(number: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: as the caller says; where a word has 64 bits both are one.
    unsafe { fcntl(number, command, argument) }
}

/// `close_range`: what the stack has behind those numbers is closed, too.
#[unsafe(no_mangle)]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if first <= last && flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        forget_all(first, last);
    }
    // SAFETY: nothing is passed but numbers.
    unsafe { real::close_range(first, last, flags) }
}

/// `closefrom`: likewise.
#[unsafe(no_mangle)]
pub extern "C" fn closefrom(first: c_int) {
    forget_all(first.max(0).cast_unsigned(), c_uint::MAX);
    // SAFETY: nothing is passed but a number.
    unsafe { real::closefrom(first) };
}

fn forget_all(first: c_uint, last: c_uint) {
    let numbers = first as usize..table::end().min((last as usize).saturating_add(1));
    numbers.for_each(|number| forget(number as c_int));
}
