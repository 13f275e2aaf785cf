//! Calls that libc lacks: starting and stopping the stack, its settings and its counters.

use libc::{c_char, c_int, size_t, ssize_t};
use posix::c::life::{self, current};
use posix::c::{returned, returned_int};
use posix::{Errno, Refused, Sockets};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::time::Duration;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Starts the stack that `description` defines; see `firstbyte.h`.
///
/// # Safety
/// `description` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_start(description: *const c_char) -> c_int {
    // SAFETY: the caller guarantees it.
    let text = unsafe { text(description) }.transpose();
    answer(text.and_then(life::start).map(|warnings| {
        if !warnings.is_empty() {
            keep(&warnings.join("; "));
        }
        0
    }))
}

/// Stops the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fb_stop(timeout_ms: c_int) -> c_int {
    answer(life::stop(u64::try_from(timeout_ms).map(Duration::from_millis).ok()).map(|()| 0))
}

/// Returns the last failure or warning of these calls in this thread. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn fb_error() -> *const c_char {
    LAST_ERROR.with_borrow(|error| error.as_ptr())
}

/// Changes a setting.
///
/// # Safety
/// Both pointers are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_set(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller guarantees it.
    let (name, value) = unsafe { (given(name), given(value)) };
    answer(name.and_then(|name| {
        let value = value?;
        let set = on_stack(|sockets, now| sockets.set(now, name, value))?;
        let warning = set.map_err(|error| Refused::setting(name, error))?;
        if let Some(warning) = warning {
            keep(&warning);
        }
        Ok(0)
    }))
}

/// Writes the value of a setting, as `snprintf` would.
///
/// # Safety
/// `name` is null or a C string. `value` is valid for writing `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_get(name: *const c_char, value: *mut c_char, room: size_t) -> ssize_t {
    // SAFETY: the caller guarantees it.
    let found = unsafe { given(name) }.and_then(|name| {
        let found = on_stack(|sockets, _| sockets.setting(name))?;
        found.ok_or(Refused::setting(name, proto::SettingError::Unknown))
    });
    let text = found.and_then(|text| if value.is_null() && room > 0 { Err(no_string()) } else { Ok(text) });
    match text {
        Ok(text) => {
            let written = text.len().min(room.saturating_sub(1));
            if room > 0 {
                // SAFETY: `written` bytes and the zero behind them fit into `room`.
                unsafe {
                    std::ptr::copy_nonoverlapping(text.as_ptr(), value.cast::<u8>(), written);
                    value.add(written).write(0);
                }
            }
            returned(Ok(text.len()))
        }
        Err(refused) => returned(Err(tell(&refused))),
    }
}

/// Reads a counter by its name in `nstat`.
///
/// # Safety
/// `name` is null or a C string. `value` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_counter(name: *const c_char, value: *mut u64) -> c_int {
    // SAFETY: the caller guarantees it.
    let found = unsafe { given(name) }.and_then(|name| {
        let all = on_stack(|sockets, _| sockets.stack().nstat())?;
        let found = all.into_iter().find(|(known, _)| known == name);
        found.map(|(_, count)| count).ok_or_else(|| Refused {
            errno: Errno::ENOENT,
            why: format!("there is no counter called {name}"),
        })
    });
    answer(found.and_then(|count| {
        // SAFETY: the caller guarantees it.
        *unsafe { value.as_mut() }.ok_or_else(no_string)? = count;
        Ok(0)
    }))
}

/// Returns 1 if `fd` is an open descriptor of the stack, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn fb_is_open(fd: c_int) -> c_int {
    let open = current().map(|process| process.call(|sockets, _| sockets.is_open(fd)));
    c_int::from(open.unwrap_or(false))
}

/// Returns the version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn fb_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

fn on_stack<R>(call: impl FnOnce(&mut Sockets, proto::Instant) -> R) -> Result<R, Refused> {
    let process = current().ok_or(Refused { errno: Errno::ENETDOWN, why: "no stack runs".into() })?;
    Ok(process.call(call))
}

/// Returns an optional string.
///
/// # Safety
/// `pointer` is null or a C string that outlives `'a`.
unsafe fn text<'a>(pointer: *const c_char) -> Option<Result<&'a str, Refused>> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees it.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    Some(text.map_err(|_| Refused { errno: Errno::EINVAL, why: "it is not UTF-8".into() }))
}

/// Returns a required string.
///
/// # Safety
/// `pointer` is null or a C string that outlives `'a`.
unsafe fn given<'a>(pointer: *const c_char) -> Result<&'a str, Refused> {
    // SAFETY: the caller guarantees it.
    unsafe { text(pointer) }.unwrap_or_else(|| Err(no_string()))
}

fn no_string() -> Refused {
    Refused { errno: Errno::EFAULT, why: "a null pointer".into() }
}

/// Returns the result in the form that C expects, and keeps the sentence of a failure.
fn answer(result: Result<c_int, Refused>) -> c_int {
    returned_int(result.map_err(|refused| tell(&refused)))
}

fn tell(refused: &Refused) -> Errno {
    keep(&refused.why);
    refused.errno
}

/// Keeps a sentence for `fb_error`.
fn keep(sentence: &str) {
    let text = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with_borrow_mut(|last| *last = text);
}
