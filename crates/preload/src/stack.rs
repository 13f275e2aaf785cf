//! The stack of this program: started when it is first needed.

use libc::c_int;
use posix::c::life;
use posix::{Errno, RealProcess};
use std::sync::Once;

/// Is this socket the stack's business?
pub(crate) fn takes(domain: c_int, kind: c_int, protocol: c_int) -> bool {
    let inet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    let stream = kind & 0xf == libc::SOCK_STREAM;
    let tcp = matches!(protocol, 0 | libc::IPPROTO_TCP);
    inet && stream && tcp && std::env::var_os(life::ENVIRONMENT).is_some()
}

/// The stack, started if it has not been.
///
/// # Errors
/// `ENETDOWN`: it could not be, which was said on stderr; or this is a child of the process that has it.
pub(crate) fn started() -> Result<&'static RealProcess, Errno> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(refused) = life::start(None) {
            eprintln!("libfirstbyte_preload: {}", refused.why);
        }
    });
    life::current().ok_or(Errno::ENETDOWN)
}
