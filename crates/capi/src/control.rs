//! The calls libc has none of: the life of the stack, its settings and its counters.

use crate::current::{self, Started, current};
use crate::description::{Description, Refused, refused_setting};
use host::paths;
use libc::{c_char, c_int, size_t, ssize_t};
use posix::c::{returned, returned_int};
use posix::{Ended, Errno};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::time::Duration;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Where `fb_start` looks when it is told nothing.
const ENVIRONMENT: &str = "FIRSTBYTE";

/// Starts the stack that `description` describes.
///
/// # Safety
/// `description` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_start(description: *const c_char) -> c_int {
    // SAFETY: as the caller says.
    let text = match unsafe { text(description) } {
        Some(text) => text.map(str::to_owned),
        None => std::env::var(ENVIRONMENT).map_err(|_| Refused {
            errno: libc::EINVAL,
            why: format!("no description, and none in the environment ({ENVIRONMENT})"),
        }),
    };
    answer(text.and_then(|text| start(&text)))
}

fn start(text: &str) -> Result<c_int, Refused> {
    let runs =
        || Refused { errno: libc::EALREADY, why: "this process has a stack already: fb_stop first".into() };
    let description: Description = text.parse()?;
    if current().is_some() {
        return Err(runs());
    }
    let running = description.start()?;
    let started = Started { running, linger: description.linger, cache: description.cache };
    current::install(started).map(|()| 0).map_err(|other| {
        // Two threads at once: the device is given back before the second one is told.
        other.running.stop(Duration::ZERO);
        runs()
    })
}

/// Ends the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fb_stop(patience_ms: c_int) -> c_int {
    let ended = current::remove().ok_or(Refused { errno: libc::ENETDOWN, why: "no stack runs".into() });
    answer(ended.and_then(|started| {
        let patience = u64::try_from(patience_ms).map_or(started.linger, Duration::from_millis);
        match end(started, patience) {
            Ended::Delivered => Ok(0),
            Ended::TimedOut => Err(Refused {
                errno: libc::ETIMEDOUT,
                why: "not everything was delivered in time; what was left has been reset".into(),
            }),
            Ended::Failed(error) => Err(Refused {
                errno: error.raw_os_error().unwrap_or(libc::EIO),
                why: format!("the device under the stack failed: {error}"),
            }),
        }
    }))
}

/// Ends it, and keeps what it has learnt.
pub(crate) fn end(started: &'static Started, patience: Duration) -> Ended {
    let ended = started.running.stop(patience).unwrap_or(Ended::Delivered);
    if let Some(file) = &started.cache {
        let paths = started.running.process().call(|sockets, now| sockets.stack().export_paths(now));
        if let Err(error) = paths::save(file, &paths) {
            eprintln!("libfirstbyte: {}: {error}", file.display());
        }
    }
    ended
}

/// What the last of these calls to fail in this thread has to say; never null.
#[unsafe(no_mangle)]
pub extern "C" fn fb_error() -> *const c_char {
    LAST_ERROR.with_borrow(|error| error.as_ptr())
}

/// Changes a setting.
///
/// # Safety
/// Both are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_set(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: as the caller says.
    let (name, value) = unsafe { (given(name), given(value)) };
    answer(name.and_then(|name| {
        let value = value?;
        on_stack(|stack, now| stack.set(now, name, value))?
            .map(|_| 0)
            .map_err(|error| refused_setting(name, error))
    }))
}

/// Tells a setting, as `snprintf` would write it.
///
/// # Safety
/// `name` is null or a C string; `room` bytes at `value` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_get(name: *const c_char, value: *mut c_char, room: size_t) -> ssize_t {
    // SAFETY: as the caller says.
    let found = unsafe { given(name) }.and_then(|name| {
        let all = on_stack(|stack, _| stack.config().all())?;
        let found = all.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value).ok_or(refused_setting(name, proto::SettingError::Unknown))
    });
    let text = found.and_then(|text| if value.is_null() && room > 0 { Err(no_string()) } else { Ok(text) });
    match text {
        Ok(text) => {
            let told = text.len().min(room.saturating_sub(1));
            if room > 0 {
                // SAFETY: `told` bytes and the zero behind them are room.
                unsafe {
                    std::ptr::copy_nonoverlapping(text.as_ptr(), value.cast::<u8>(), told);
                    value.add(told).write(0);
                }
            }
            returned(Ok(text.len()))
        }
        Err(refused) => returned(Err(tell(&refused))),
    }
}

/// Tells a counter by the name `nstat` shows.
///
/// # Safety
/// `name` is null or a C string, `value` null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fb_counter(name: *const c_char, value: *mut u64) -> c_int {
    // SAFETY: as the caller says.
    let found = unsafe { given(name) }.and_then(|name| {
        let all = on_stack(|stack, _| stack.nstat())?;
        let found = all.into_iter().find(|(known, _)| known == name);
        found
            .map(|(_, count)| count)
            .ok_or_else(|| Refused { errno: libc::ENOENT, why: format!("there is no counter called {name}") })
    });
    answer(found.and_then(|count| {
        // SAFETY: as the caller says.
        *unsafe { value.as_mut() }.ok_or_else(no_string)? = count;
        Ok(0)
    }))
}

/// Is this descriptor one of the stack's?
#[unsafe(no_mangle)]
pub extern "C" fn fb_is_open(fd: c_int) -> c_int {
    let open = current().map(|started| started.running.process().call(|sockets, _| sockets.is_open(fd)));
    c_int::from(open.unwrap_or(false))
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn fb_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

fn on_stack<R>(call: impl FnOnce(&mut proto::Stack, proto::Instant) -> R) -> Result<R, Refused> {
    let started = current().ok_or(Refused { errno: libc::ENETDOWN, why: "no stack runs".into() })?;
    Ok(started.running.process().call(|sockets, now| call(sockets.stack_mut(), now)))
}

/// A string that may be left out.
///
/// # Safety
/// It is null or a C string, and stays.
unsafe fn text<'a>(pointer: *const c_char) -> Option<Result<&'a str, Refused>> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    Some(text.map_err(|_| Refused { errno: libc::EINVAL, why: "it is not UTF-8".into() }))
}

/// A string that may not.
///
/// # Safety
/// It is null or a C string, and stays.
unsafe fn given<'a>(pointer: *const c_char) -> Result<&'a str, Refused> {
    // SAFETY: as the caller says.
    unsafe { text(pointer) }.unwrap_or_else(|| Err(no_string()))
}

fn no_string() -> Refused {
    Refused { errno: libc::EFAULT, why: "a null pointer".into() }
}

/// What C is told.
fn answer(result: Result<c_int, Refused>) -> c_int {
    returned_int(result.map_err(|refused| tell(&refused)))
}

/// Keeps the sentence for `fb_error`.
fn tell(refused: &Refused) -> Errno {
    let text = CString::new(refused.why.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with_borrow_mut(|last| *last = text);
    Errno(refused.errno)
}
