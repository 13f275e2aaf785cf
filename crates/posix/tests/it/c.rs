//! C's types: null pointers, bad lengths, wrong descriptors.
#![expect(unsafe_code, reason = "it is C that is tested")]

use posix::c::{self, returned};
use posix::{Errno, Sockets, VirtualProcess};
use proto::{Capabilities, Config, Instant, Stack};
use std::ptr;

fn process() -> VirtualProcess {
    let ethernet = Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    let mut stack = Stack::new(Config::linux(), ethernet, [3; 32]);
    stack.add_address("10.0.0.1".parse().unwrap(), 24);
    VirtualProcess::new(Sockets::new(stack, 3), Instant::ZERO)
}

#[test]
fn null_pointers_and_bad_lengths_are_errors() {
    let process = &process();
    let fd = c::socket(process, libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0).unwrap();
    let option = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
    let mut len = 4;
    // SAFETY: null is allowed everywhere; lengths are of what is there.
    unsafe {
        assert_eq!(c::bind(process, fd, ptr::null(), 16), Err(Errno::EFAULT));
        assert_eq!(c::connect(process, fd, ptr::null(), 16), Err(Errno::EFAULT));
        assert_eq!(c::setsockopt(process, fd, option, ptr::null(), 4), Err(Errno::EFAULT));
        assert_eq!(c::setsockopt(process, fd, option, ptr::null(), u32::MAX), Err(Errno::EINVAL));
        assert_eq!(c::getsockopt(process, fd, option, ptr::null_mut(), &raw mut len), Err(Errno::EFAULT));
        assert_eq!(c::getsockopt(process, fd, option, ptr::null_mut(), ptr::null_mut()), Err(Errno::EFAULT));
        assert_eq!(c::sendmsg(process, fd, ptr::null(), 0), Err(Errno::EFAULT));
        assert_eq!(c::recvmsg(process, fd, ptr::null_mut(), 0), Err(Errno::EFAULT));
        assert_eq!(c::readv(process, fd, ptr::null(), 1), Err(Errno::EFAULT));
        assert_eq!(c::readv(process, fd, ptr::null(), -1), Err(Errno::EINVAL));
        assert_eq!(c::poll(process, ptr::null_mut(), 1, 0), Err(Errno::EFAULT));
        assert_eq!(c::epoll_wait(process, fd, ptr::null_mut(), 1, 0), Err(Errno::EINVAL));
        assert_eq!(c::pipe(process, ptr::null_mut()), Err(Errno::EFAULT));
        assert_eq!(c::write(process, 99, ptr::null(), 0), Err(Errno::EBADF));
        assert_eq!(c::write(process, fd, ptr::null(), 9), Err(Errno::EPIPE), "not connected comes first");
    }
    assert_eq!(c::close(process, fd), Ok(0));
    assert_eq!(returned(Err(Errno::EPIPE)), -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EPIPE));
}

#[test]
fn an_address_must_be_whole_and_of_the_family() {
    let process = &process();
    let fd = c::socket(process, libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
    let family = |family: i32| libc::sockaddr { sa_family: family as u16, sa_data: [0; 14] };
    // SAFETY: the lengths are those of what is there.
    unsafe {
        assert_eq!(c::bind(process, fd, &family(libc::AF_INET), 15), Err(Errno::EINVAL));
        assert_eq!(c::bind(process, fd, &family(libc::AF_INET), 1), Err(Errno::EINVAL));
        assert_eq!(c::bind(process, fd, &family(libc::AF_INET6), 16), Err(Errno::EAFNOSUPPORT));
        assert_eq!(c::bind(process, fd, &family(libc::AF_INET), 16), Ok(0));
        let mut name = family(0);
        let mut len = 4;
        assert_eq!(c::name(process, fd, false, &raw mut name, &raw mut len), Ok(0));
        assert_eq!((i32::from(name.sa_family), len), (libc::AF_INET, 16), "cut, and how long it is");
    }
}
