//! The table of functions packetdrill calls: 33 pointers in the order of its `struct
//! packetdrill_interface`.

use crate::calls;
use crate::plugin::Plugin;
use libc::{
    c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, nfds_t, pollfd, sockaddr,
    socklen_t, ssize_t, timeval,
};

type Ud = *mut c_void;

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident ( $($argument:ty),* ) -> $result:ty;)+) => {
        /// packetdrill's table. Every function gets the userdata first.
        #[repr(C)]
        #[expect(missing_debug_implementations, reason = "a table of C functions")]
        pub struct Interface {
            userdata: Ud,
            free: unsafe extern "C" fn(Ud),
            $($(#[$doc])* $name: unsafe extern "C" fn(Ud $(, $argument)*) -> $result,)+
        }

        impl Interface {
            pub(crate) fn of(plugin: *mut Plugin) -> Interface {
                Interface { userdata: plugin.cast(), free: calls::free, $($name: calls::$name,)+ }
            }
        }
    };
}

table! {
    socket(c_int, c_int, c_int) -> c_int;
    bind(c_int, *const sockaddr, socklen_t) -> c_int;
    listen(c_int, c_int) -> c_int;
    accept(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    connect(c_int, *const sockaddr, socklen_t) -> c_int;
    read(c_int, *mut c_void, usize) -> ssize_t;
    readv(c_int, *const iovec, c_int) -> ssize_t;
    recv(c_int, *mut c_void, usize, c_int) -> ssize_t;
    recvfrom(c_int, *mut c_void, usize, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    recvmsg(c_int, *mut msghdr, c_int) -> ssize_t;
    write(c_int, *const c_void, usize) -> ssize_t;
    writev(c_int, *const iovec, c_int) -> ssize_t;
    send(c_int, *const c_void, usize, c_int) -> ssize_t;
    sendto(c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> ssize_t;
    sendmsg(c_int, *const msghdr, c_int) -> ssize_t;
    /// Variadic in C; its third argument lies where a fixed one would, and means nothing to
    /// commands without.
    fcntl(c_int, c_int, usize) -> c_int;
    /// Variadic in C, as `fcntl`.
    ioctl(c_int, c_ulong, usize) -> c_int;
    close(c_int) -> c_int;
    shutdown(c_int, c_int) -> c_int;
    getsockopt(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    setsockopt(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;
    poll(*mut pollfd, nfds_t, c_int) -> c_int;
    netdev_send(*const c_void, usize) -> c_int;
    netdev_receive(*mut c_void, *mut usize, *mut c_longlong) -> c_int;
    usleep(c_uint) -> c_int;
    gettimeofday(*mut timeval, *mut c_void) -> c_int;
    epoll_create(c_int) -> c_int;
    epoll_ctl(c_int, c_int, c_int, *const epoll_event) -> c_int;
    epoll_wait(c_int, *mut epoll_event, c_int, c_int) -> c_int;
    pipe(*mut c_int) -> c_int;
    splice(c_int, *mut i64, c_int, *mut i64, usize, c_uint) -> ssize_t;
}

const _: () = assert!(size_of::<Interface>() == 33 * size_of::<usize>());
