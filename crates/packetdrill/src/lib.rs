//! The engine for google/packetdrill: the interface of its `--so_filename`, in virtual time.
//!
//! packetdrill loads `libfirstbyte_packetdrill.so` and asks [`packetdrill_interface_init`] for its
//! table of functions ([`Interface`]). Scripts then run against [`proto::Stack`] with Linux's
//! profile instead of the kernel, without root and as fast as the machine can: packetdrill takes
//! all time from the table, and the clock behind it jumps.
//!
//! What packetdrill does not tell comes by `--so_flags`, e.g. `local=192.168.0.1,mtu=1500` (see
//! [`flags`]), and by the environment: `PD_SYSCTL_DIR`, a tree of files in the form of
//! /proc/sys/net, read live; `PROC_NET_NETSTAT` and `PROC_NET_SNMP`, files for nstat, which are
//! rewritten when a counter changes.
//!
//! `plugin` is the process the scripts see, `interface` the table, `calls` the functions in it,
//! `shim` what packetdrill sends to libc itself and a preloaded library hands back, `commands` what
//! scripts ask of the system's tools.
#![expect(unsafe_code, reason = "packetdrill calls through C pointers")]

mod calls;
mod commands;
pub mod flags;
mod interface;
mod plugin;
mod shim;

pub use interface::Interface;

use libc::c_char;
use plugin::Plugin;
use std::ffi::CStr;

/// Fills packetdrill's table.
///
/// # Safety
/// `flags` is null or a C string, `interface` a table that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    // SAFETY: the caller says so.
    let text = if flags.is_null() { Ok("") } else { unsafe { CStr::from_ptr(flags) }.to_str() };
    let flags = text.map_err(|_| "the flags are not UTF-8".to_owned()).and_then(flags::Flags::parse);
    let plugin = Plugin::new(&flags.unwrap_or_else(|problem| give_up(&problem)));
    let plugin = Box::into_raw(Box::new(plugin));
    shim::register(plugin);
    // SAFETY: the caller says so.
    unsafe { interface.write(Interface::of(plugin)) };
}

/// packetdrill cannot be told of an error that is none of a call's: the run ends.
pub(crate) fn give_up(problem: &str) -> ! {
    eprintln!("libfirstbyte_packetdrill: {problem}");
    std::process::exit(1);
}
