//! Calls of packetdrill to libc for sockets that are ours: a preloaded library hands them back,
//! if there is one.

use crate::plugin::Plugin;
use libc::{c_int, c_void, off_t, socklen_t, ssize_t};
use posix::{Errno, c};
use std::sync::atomic::{AtomicPtr, Ordering};

type Owns = extern "C" fn(c_int) -> c_int;
type GetSockOpt = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
type Close = extern "C" fn(c_int) -> c_int;
type SendFile = unsafe extern "C" fn(c_int, c_int, *mut off_t, usize) -> ssize_t;
type Register = extern "C" fn(Owns, GetSockOpt, Close, SendFile);

/// The plug-in in use; these functions are not told.
static CURRENT: AtomicPtr<Plugin> = AtomicPtr::new(core::ptr::null_mut());

/// Tells the preloaded library about us.
pub(crate) fn register(plugin: *mut Plugin) {
    CURRENT.store(plugin, Ordering::SeqCst);
    // SAFETY: the name is a C string; the default handle is always valid.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"pd_shim_register".as_ptr()) };
    if found.is_null() {
        return;
    }
    // SAFETY: the only library that exports this name gives it this type.
    let register: Register = unsafe { core::mem::transmute(found) };
    register(owns, getsockopt, close, sendfile);
}

/// The plug-in is about to go.
pub(crate) fn forget() {
    CURRENT.store(core::ptr::null_mut(), Ordering::SeqCst);
}

fn current() -> Option<&'static Plugin> {
    // SAFETY: the pointer is null or what `register` was given, which lives until `forget`.
    unsafe { CURRENT.load(Ordering::SeqCst).as_ref() }
}

extern "C" fn owns(fd: c_int) -> c_int {
    current().is_some_and(|plugin| plugin.process.call(|sockets, _| sockets.is_open(fd))).into()
}

unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let Some(plugin) = current() else { return c::returned_int(Err(Errno::EBADF)) };
    // SAFETY: as the caller says.
    c::returned_int(unsafe { c::getsockopt(plugin, fd, (level, name), value, len) })
}

extern "C" fn close(fd: c_int) -> c_int {
    c::returned_int(current().ok_or(Errno::EBADF).and_then(|plugin| c::close(plugin, fd)))
}

/// From a file of the system into a socket of ours.
unsafe extern "C" fn sendfile(out: c_int, file: c_int, offset: *mut off_t, len: usize) -> ssize_t {
    let Some(plugin) = current() else { return c::returned(Err(Errno::EBADF)) };
    // SAFETY: as the caller says.
    c::returned(unsafe { c::sendfile(plugin, out, file, offset, len) })
}
