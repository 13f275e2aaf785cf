//! What calls return for good and for bad arguments: the same calls are made of the kernel's sockets and of ours, on loopback, and what
//! they give is compared line by line. `cases` are the calls, this is who makes them.
#![expect(unsafe_code, reason = "it is C that is tested")]

mod cases;
mod descriptors;
mod info;
mod messages;
mod options;
mod ports;
mod readiness;
mod repair;
mod stage;
mod states;
mod sweep;

use libc::{
    c_int, c_uint, c_ulong, c_void, epoll_event, iovec, mmsghdr, msghdr, pollfd, sockaddr, socklen_t,
    ssize_t, timespec, timeval,
};
use posix::{Errno, Sockets, VirtualProcess, c};
use proto::{Capabilities, Config, CongestionControl, Instant, Stack};
use std::ptr;
use std::time::Duration;

/// A value, or an errno.
type Given = Result<i64, i32>;

/// A call's value, as C returns it or as the library does.
trait Returned {
    fn given(self) -> Given;
}

impl Returned for c_int {
    fn given(self) -> Given {
        (self as ssize_t).given()
    }
}

impl Returned for ssize_t {
    fn given(self) -> Given {
        match self {
            -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap()),
            value => Ok(value as i64),
        }
    }
}

impl Returned for Result<i32, Errno> {
    fn given(self) -> Given {
        self.map(i64::from).map_err(|errno| errno.0)
    }
}

impl Returned for Result<usize, Errno> {
    fn given(self) -> Given {
        self.map(|count| count as i64).map_err(|errno| errno.0)
    }
}

/// The kernel.
struct Kernel;

/// The library, over a stack whose packets come back to it.
struct Ours(VirtualProcess);

macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*), $theirs:expr, |$process:ident| $ours:expr;)+) => {
        /// Who makes calls.
        trait Calls {
            /// Lets arrive what was sent.
            fn deliver(&self);
            /// Lets arrive what was sent, before a call that waits for it anyway.
            fn deliver_at_once(&self);
            $(fn $name(&self $(, $argument: $type)*) -> Given;)+
        }

        impl Calls for Kernel {
            /// Loopback delivers within the call, all but what a softirq still has to do.
            fn deliver(&self) {
                std::thread::sleep(Duration::from_millis(2));
            }

            fn deliver_at_once(&self) {}
            $(fn $name(&self $(, $argument: $type)*) -> Given {
                // SAFETY: the cases pass null or what is as long as they say.
                unsafe { $theirs }.given()
            })+
        }

        impl Calls for Ours {
            fn deliver(&self) {
                while let Some((_, packet)) = self.0.next_packet(Duration::ZERO) {
                    self.0.inject(packet);
                }
            }

            fn deliver_at_once(&self) {
                self.deliver();
            }
            $(fn $name(&self $(, $argument: $type)*) -> Given {
                let $process = &self.0;
                // SAFETY: the cases pass null or what is as long as they say.
                #[allow(unused_unsafe, reason = "some calls take no pointers")]
                unsafe { $ours }.given()
            })+
        }
    };
}

type Pair<T, L> = (T, L);

calls! {
    socket(domain: c_int, kind: c_int, protocol: c_int), libc::socket(domain, kind, protocol), |p| c::socket(p, domain, kind, protocol);
    socketpair(domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int), libc::socketpair(domain, kind, protocol, fds),
        |p| c::socketpair(p, (domain, kind, protocol), fds);
    bind(fd: c_int, addr: *const sockaddr, len: socklen_t), libc::bind(fd, addr, len), |p| c::bind(p, fd, addr, len);
    listen(fd: c_int, backlog: c_int), libc::listen(fd, backlog), |p| c::listen(p, fd, backlog);
    accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int), libc::accept4(fd, addr, len, flags),
        |p| c::accept(p, fd, addr, len, flags);
    connect(fd: c_int, addr: *const sockaddr, len: socklen_t), libc::connect(fd, addr, len), |p| c::connect(p, fd, addr, len);
    getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t), libc::getsockname(fd, addr, len),
        |p| c::name(p, fd, false, addr, len);
    getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t), libc::getpeername(fd, addr, len),
        |p| c::name(p, fd, true, addr, len);
    shutdown(fd: c_int, how: c_int), libc::shutdown(fd, how), |p| c::shutdown(p, fd, how);
    close(fd: c_int), libc::close(fd), |p| c::close(p, fd);
    dup(fd: c_int), libc::dup(fd), |p| c::dup(p, fd);
    dup2(fd: c_int, new: c_int), libc::dup2(fd, new), |p| c::dup2(p, fd, new);
    dup3(fd: c_int, new: c_int, flags: c_int), libc::dup3(fd, new, flags), |p| c::dup3(p, fd, new, flags);
    fcntl(fd: c_int, command: c_int, argument: c_int), libc::fcntl(fd, command, argument), |p| c::fcntl(p, fd, command, argument.into());
    owner_ex(fd: c_int, command: c_int, place: *mut [c_int; 2]), libc::fcntl(fd, command, place), |p| c::fcntl(p, fd, command, place as libc::c_long);
    ioctl(fd: c_int, request: u64, argument: *mut c_int), libc::ioctl(fd, request as _, argument),
        |p| c::ioctl(p, fd, request, argument);
    send(fd: c_int, buf: *const c_void, len: usize, flags: c_int), libc::send(fd, buf, len, flags | libc::MSG_NOSIGNAL),
        |p| c::sendto(p, fd, (buf, len), flags, (ptr::null(), 0));
    sendto(fd: c_int, buf: Pair<*const c_void, usize>, flags: c_int, to: Pair<*const sockaddr, socklen_t>),
        libc::sendto(fd, buf.0, buf.1, flags | libc::MSG_NOSIGNAL, to.0, to.1), |p| c::sendto(p, fd, buf, flags, to);
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int), libc::sendmsg(fd, message, flags | libc::MSG_NOSIGNAL),
        |p| c::sendmsg(p, fd, message, flags);
    writev(fd: c_int, iov: *const iovec, count: c_int), libc::writev(fd, iov, count), |p| c::writev(p, fd, iov, count);
    recv(fd: c_int, buf: *mut c_void, len: usize, flags: c_int), libc::recv(fd, buf, len, flags),
        |p| c::recvfrom(p, fd, (buf, len), flags, ptr::null_mut());
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int), libc::recvmsg(fd, message, flags), |p| c::recvmsg(p, fd, message, flags);
    sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int),
        libc::sendmmsg(fd, messages, count, flags | libc::MSG_NOSIGNAL), |p| c::sendmmsg(p, fd, messages, count, flags);
    recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec),
        libc::recvmmsg(fd, messages, count, flags, timeout), |p| c::recvmmsg(p, fd, messages, count, flags, timeout);
    read(fd: c_int, buf: *mut c_void, len: usize), libc::read(fd, buf, len), |p| c::read(p, fd, buf, len);
    write(fd: c_int, buf: *const c_void, len: usize), libc::write(fd, buf, len), |p| c::write(p, fd, buf, len);
    readv(fd: c_int, iov: *const iovec, count: c_int), libc::readv(fd, iov, count), |p| c::readv(p, fd, iov, count);
    setsockopt(fd: c_int, option: Pair<c_int, c_int>, value: *const c_void, len: socklen_t),
        libc::setsockopt(fd, option.0, option.1, value, len), |p| c::setsockopt(p, fd, option, value, len);
    getsockopt(fd: c_int, option: Pair<c_int, c_int>, value: *mut c_void, len: *mut socklen_t),
        libc::getsockopt(fd, option.0, option.1, value, len), |p| c::getsockopt(p, fd, option, value, len);
    poll(fds: *mut pollfd, count: u64, timeout: c_int), libc::poll(fds, count as _, timeout), |p| c::poll(p, fds, count as _, timeout);
    select(count: c_int, sets: [*mut c_ulong; 3], timeout: *mut timeval),
        libc::select(count, sets[0].cast(), sets[1].cast(), sets[2].cast(), timeout), |p| c::select(p, count, sets, timeout);
    epoll_create1(flags: c_int), libc::epoll_create1(flags), |p| c::epoll_create1(p, flags);
    epoll_create(size: c_int), libc::epoll_create(size), |p| c::epoll_create(p, size);
    epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event), libc::epoll_ctl(epoll, operation, fd, event),
        |p| c::epoll_ctl(p, epoll, operation, fd, event);
    epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int), libc::epoll_wait(epoll, events, most, timeout),
        |p| c::epoll_wait(p, epoll, events, most, timeout);
    pipe2(fds: *mut c_int, flags: c_int), libc::pipe2(fds, flags), |p| c::pipe2(p, fds, flags);
    splice(from: Pair<c_int, *mut i64>, to: Pair<c_int, *mut i64>, len: usize, flags: u32),
        libc::splice(from.0, from.1, to.0, to.1, len, flags), |p| c::splice(p, (from.0, from.1), (to.0, to.1), len, flags);
}

/// Below what `select` can name.
const BASE: i32 = 100;

impl Ours {
    fn new() -> Ours {
        let loopback = Capabilities { mtu: 65_535, gso_max_size: 0, tx_checksum: false };
        // The one algorithm that every kernel lets every namespace choose.
        let config = Config::linux().tcp_congestion_control(CongestionControl::Reno);
        let mut stack = Stack::new(config, loopback, [7; 32]);
        stack.set_device_name("lo");
        stack.add_address("127.0.0.1".parse().unwrap(), 8);
        stack.add_address("::1".parse().unwrap(), 128);
        Ours(VirtualProcess::new(Sockets::new(stack, BASE), Instant::ZERO + Duration::from_secs(1000)))
    }
}

/// No packet of ours is larger, and the kernel's loopback begins with one byte more.
fn set_loopback_mtu(mtu: c_int) {
    // SAFETY: a zeroed request is one; the name is shorter than its place, and the descriptor is closed.
    unsafe {
        let mut request: libc::ifreq = core::mem::zeroed();
        (request.ifr_name[0], request.ifr_name[1]) = (b'l' as _, b'o' as _);
        request.ifr_ifru.ifru_mtu = mtu;
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        assert_eq!(libc::ioctl(fd, libc::SIOCSIFMTU, &raw const request), 0);
        libc::close(fd);
    }
}

/// Gives the calling thread a table of descriptors of its own, with the first three in it. Calls of the kernel name descriptors
/// that are closed, on purpose: in the table that all tests share, another may just have opened one of that number.
fn leave_descriptors() {
    // SAFETY: memory is not touched; who calls is a thread that a test made for itself, and holds no descriptor yet.
    let left = unsafe { libc::close_range(3, c_uint::MAX, libc::CLOSE_RANGE_UNSHARE as c_int) };
    assert_eq!(left, 0, "{}", std::io::Error::last_os_error());
}

/// In a namespace where it may be: on the machine's own loopback a port that one family has free another test may hold in the other.
#[test]
fn our_sockets_answer_as_the_kernels_do() {
    let differing = if testnet::can().is_ok() {
        testnet::in_namespace(differences).unwrap_or_default()
    } else {
        let alone = || std::thread::scope(|scope| scope.spawn(differences).join());
        let mut tries = (0..3).map(|_| alone().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let first = tries.next().unwrap();
        if first.is_empty() || tries.any(|again| again.is_empty()) { Vec::new() } else { first }
    };
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

#[test]
fn a_thread_that_left_closes_no_other_threads_descriptors() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    let closed = std::thread::scope(|scope| {
        let alone = scope.spawn(|| {
            leave_descriptors();
            Kernel.close(fd)
        });
        alone.join().unwrap()
    });
    assert_eq!(closed, Err(libc::EBADF));
    assert!(file.metadata().is_ok());
}

fn differences() -> Vec<String> {
    leave_descriptors();
    let mut differing = Vec::new();
    for (topic, case) in cases::ALL {
        let [theirs, own] = [&Kernel as &dyn Calls, &Ours::new()].map(|calls| {
            let mut told = cases::Told::new(calls);
            case(&mut told);
            told.lines
        });
        assert_eq!(theirs.len(), own.len(), "{topic}");
        for (theirs, own) in theirs.iter().zip(&own).filter(|(theirs, own)| theirs != own) {
            differing.push(format!("{topic}: the kernel: {theirs}\n{topic}:       ours: {own}"));
        }
    }
    differing
}
