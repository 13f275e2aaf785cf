/*
 * libfirstbyte: a TCP/IP stack in your own process, with the socket calls of libc.
 *
 * Each socket call of libc has a twin here: the same name with fb_ in front, the same arguments
 * and the same result. A call that fails returns -1 and sets errno to Linux's value. The comment
 * at each call lists its errors and where it differs from libc's call; for everything else, read
 * the manual page of libc's call.
 *
 *   cc $(pkg-config --cflags firstbyte) echo_server.c $(pkg-config --libs firstbyte) -o echo_server
 *
 * Without pkg-config, from a build folder with the shared or the static library:
 *
 *   cc -IDIR echo_server.c -LDIR -lfirstbyte -o echo_server
 *   cc -IDIR echo_server.c libfirstbyte.a -lpthread -ldl -lm -lgcc_s -o echo_server
 *
 * THE STACK.   A process has one. fb_start() gives it a TUN device, which is a wire: the kernel is
 * the host at one end, the stack is the host at the other. Starting a stack needs the right to
 * open /dev/net/tun. `device loopback` needs no rights: the stack reaches only this program
 * itself, which is enough for tests.
 *
 * DESCRIPTORS.   fb_ calls accept only descriptors that fb_ calls returned, and no other call
 * accepts those. Only fb_poll(), fb_select() and fb_epoll_ctl() also accept the kernel's
 * descriptors. The library's descriptors begin at 512 (`first-descriptor`), so that the first 512
 * of them fit into an fd_set. Children do not inherit them: see FORK AND EXEC.
 *
 * BAD POINTERS.   A null pointer where the kernel would read or write fails with EFAULT. The
 * library does not check other pointers, as libc's own functions do not: a wild pointer ends the
 * program with SIGSEGV where the kernel would have returned EFAULT.
 *
 * THREADS.   Every call may be made from every thread. A call that waits does not delay calls of
 * other threads. A thread of the library moves packets and runs timers; it handles no signals. A
 * waiting call is a cancellation point (pthreads(7)): pthread_cancel() ends it.
 *
 * SIGNALS.   A handler interrupts a waiting call as in Linux (signal(7)). poll, select and
 * epoll_wait always fail with EINTR, and so do calls with SO_RCVTIMEO or SO_SNDTIMEO. Other calls
 * continue if the handler was installed with SA_RESTART. A call that has already moved bytes
 * returns their number. EPIPE comes with SIGPIPE in the calling thread, unless MSG_NOSIGNAL is
 * set. No handler runs while its thread holds the library's lock. Unlike read() and write(), the
 * calls allocate memory: in a handler that has interrupted malloc() they may wait forever.
 *
 * FORK AND EXEC.   A child of fork() has no stack: calls with the parent's descriptors fail with
 * EBADF and fb_socket() with ENETDOWN. The parent's stack is not affected. The child may
 * fb_start() a stack of its own on another device. Its copy of the device's descriptor is closed
 * before fork() returns, so that the parent can stop its stack and start another on the same
 * device. A program started by exec inherits nothing.
 *
 * END OF THE PROCESS.   exit() and the return of main close every connection as the kernel would:
 * written data is delivered and followed by a FIN, and unread data causes a reset. The kernel
 * would do this in the background; here the process waits until the peers have acknowledged
 * everything, for at most `linger` (5 s). What is left then is reset. A process that ends by
 * _exit(), abort() or a signal sends nothing more; its peers notice it by their own time-outs.
 */
#ifndef FIRSTBYTE_H
#define FIRSTBYTE_H

#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mmsghdr; /* <sys/socket.h> defines it with _GNU_SOURCE. */

/* ---- the stack ------------------------------------------------------------------------------- */

/*
 * Starts the stack. `description` is a list of statements, separated by line ends or semicolons; a
 * `#` begins a comment. Defaults are in brackets.
 *
 *   address ADDR/LEN          an address of the stack, IPv4 or IPv6, with its prefix length;
 *                             at least one, repeatable
 *   device NAME               the TUN device to attach to; if it is missing, it is created and
 *                             removed at the end [firstbyte0]
 *   device loopback           no device: the stack reaches only itself
 *   device-address ADDR/LEN   gives the kernel's end of the device an address; needs CAP_NET_ADMIN;
 *                             repeatable [left as it is]
 *   mtu BYTES                 68 to 65535 [the device's]
 *   offload on|off            segmentation and checksums are left to the kernel [on]
 *   profile default|linux     the settings to start from: this project's, or those of Linux 6.18
 *                             [default]
 *   set NAME VALUE            changes a setting by its sysctl name, e.g. net.ipv4.tcp_fastopen 3;
 *                             net.ipv4.tcp_fastopen_key is one of them
 *   sysctl DIRECTORY          reads settings from files laid out as in /proc/sys/net, again every
 *                             second while the stack runs
 *   route PREFIX METRIC...    values that connections to and from PREFIX begin with, in the syntax
 *                             of `ip route`, e.g. default initcwnd 20
 *   cache FILE                remembers paths: reads FILE now if it exists, replaces it at the end.
 *                             fb_start() fails if FILE cannot be written
 *   first-descriptor NUMBER   numbers below it are the kernel's [512]
 *   linger SECONDS            how long the end of the process may wait for peers, 0 to 3600 [5]
 *
 * NULL takes the description from the environment variable FIRSTBYTE. Returns 0. If a setting was
 * accepted only in part or has no effect, fb_error() returns a warning.
 *
 * EINVAL: a statement is wrong. EALREADY: a stack runs already. ENOENT: no such setting. EPERM,
 * EACCES: no right to the device. EBUSY: another process has the device. The system may return
 * other errors. fb_error() returns a sentence that says what failed and what to do.
 */
int fb_start(const char *description);

/*
 * Stops the stack: closes every descriptor, waits at most `timeout_ms` (negative: `linger`) until
 * the peers have acknowledged written data, and resets the remaining connections. Calls that wait
 * in other threads fail with ENETDOWN. Returns 0.
 *
 * ETIMEDOUT: a connection was reset. ENETDOWN: no stack runs. Other errors: the device had failed,
 * or the file of `cache` could not be written. The stack has stopped in each case.
 */
int fb_stop(int timeout_ms);

/*
 * Returns the last failure or warning of the calls of this section in this thread, as a sentence;
 * "" if there was none. Valid until the next of these calls.
 */
const char *fb_error(void);

/* Returns the version of the library, e.g. "0.1.0". */
const char *fb_version(void);

/*
 * Changes a setting of the running stack. Returns 0. If the value was accepted only in part or has
 * no effect, fb_error() returns a warning. ENOENT: no such setting. EINVAL: the setting does not
 * accept this value. EFAULT: a null pointer. ENETDOWN: no stack runs.
 */
int fb_set(const char *name, const char *value);

/*
 * Writes the value of a setting into `room` bytes, as snprintf() would, and returns its length.
 * Accepts every name that fb_set() accepts, and fails with the same errors.
 */
ssize_t fb_get(const char *name, char *value, size_t room);

/*
 * Reads a counter by its name in `nstat -z`, e.g. "TcpExtTCPFastOpenPassive". ENOENT: no such
 * counter. EFAULT, ENETDOWN.
 */
int fb_counter(const char *name, uint64_t *value);

/* Returns 1 if `fd` is an open descriptor of the library, else 0. Never fails. */
int fb_is_open(int fd);

/* ---- sockets --------------------------------------------------------------------------------- */

/*
 * The domain is AF_INET or AF_INET6, the type SOCK_STREAM. AF_INET6 also carries IPv4, by mapped
 * addresses. SOCK_NONBLOCK has its effect; SOCK_CLOEXEC is only remembered, since no descriptor
 * survives exec. EAFNOSUPPORT, ESOCKTNOSUPPORT (datagrams), EPROTONOSUPPORT, EINVAL (unknown
 * flags), EMFILE. ENETDOWN: call fb_start() first.
 */
int fb_socket(int domain, int type, int protocol);

/*
 * EBADF, ENOTSOCK, EFAULT, EINVAL (bound or connected already; length), EAFNOSUPPORT,
 * EADDRNOTAVAIL (not an address of the stack), EADDRINUSE.
 */
int fb_bind(int fd, const struct sockaddr *addr, socklen_t len);

/* EBADF, ENOTSOCK, EINVAL (connected), EADDRINUSE. */
int fb_listen(int fd, int backlog);

/* EBADF, ENOTSOCK, EINVAL (does not listen), EAGAIN, EINTR, EMFILE, EFAULT. */
int fb_accept(int fd, struct sockaddr *addr, socklen_t *len);
int fb_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

/*
 * With TCP_FASTOPEN_CONNECT and a cookie for the peer, it returns at once, and the first write is
 * sent with the SYN. EBADF, ENOTSOCK, EFAULT, EINVAL, EAFNOSUPPORT, EINPROGRESS, EALREADY,
 * EISCONN, ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL, EINTR.
 */
int fb_connect(int fd, const struct sockaddr *addr, socklen_t len);

/* EBADF, ENOTSOCK, EFAULT, EINVAL (negative length); fb_getpeername(): ENOTCONN. */
int fb_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int fb_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

/* EBADF, ENOTSOCK, EINVAL (how), ENOTCONN. */
int fb_shutdown(int fd, int how);

/* TCP has no pairs: EOPNOTSUPP, EFAULT, or the errors of fb_socket(). */
int fb_socketpair(int domain, int type, int protocol, int fds[2]);

/*
 * As in Linux, a call of another thread that waits for this descriptor keeps waiting. Its socket
 * is closed when that call returns; fb_shutdown() ends the wait. With SO_LINGER the call waits for
 * the peer. EINTR ends that wait, and the descriptor is closed all the same. EBADF.
 */
int fb_close(int fd);

/*
 * The new number of fb_dup2() and fb_dup3() must be in the library's range. EBADF, EMFILE;
 * fb_dup3(): EINVAL (same number, flags).
 */
int fb_dup(int fd);
int fb_dup2(int fd, int new_fd);
int fb_dup3(int fd, int new_fd, int flags);

/* ---- data ------------------------------------------------------------------------------------ */

/*
 * Flags: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_TRUNC, MSG_OOB, MSG_ERRQUEUE. fb_recvfrom()
 * writes no address. fb_recvmsg() reports TCP_INQ, time stamps and the error queue. EBADF, EFAULT,
 * EINVAL (number of buffers), EAGAIN, ENOTCONN, EINTR. The error that ended a connection
 * (ECONNRESET, ETIMEDOUT, ...) is reported once.
 */
ssize_t fb_read(int fd, void *buf, size_t len);
ssize_t fb_readv(int fd, const struct iovec *iov, int count);
ssize_t fb_recv(int fd, void *buf, size_t len, int flags);
ssize_t fb_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
                    socklen_t *addr_len);
ssize_t fb_recvmsg(int fd, struct msghdr *message, int flags);
int fb_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
                struct timespec *timeout);

/*
 * Flags: MSG_DONTWAIT, MSG_MORE, MSG_EOR, MSG_OOB, MSG_NOSIGNAL, MSG_FASTOPEN. EBADF, EFAULT,
 * EINVAL (number of buffers), EAGAIN, EPIPE (with SIGPIPE), EINTR. The error that ended a
 * connection (ECONNRESET, ETIMEDOUT, ...) is reported once.
 *
 * With MSG_FASTOPEN, fb_sendto() and fb_sendmsg() connect, and send the data on the SYN if there
 * is a cookie for the peer; otherwise the data follows the handshake. Data on a SYN may arrive
 * twice (RFC 7413 section 6.1): send only requests that may be repeated. EOPNOTSUPP:
 * net.ipv4.tcp_fastopen lacks bit 0. EISCONN, EINVAL (no address), EINPROGRESS, and the errors of
 * fb_connect().
 */
ssize_t fb_write(int fd, const void *buf, size_t len);
ssize_t fb_writev(int fd, const struct iovec *iov, int count);
ssize_t fb_send(int fd, const void *buf, size_t len, int flags);
ssize_t fb_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
                  socklen_t addr_len);
ssize_t fb_sendmsg(int fd, const struct msghdr *message, int flags);
int fb_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);

/*
 * Moves bytes from a socket or a pipe into a pipe of fb_pipe(), or from a pipe into a socket.
 * Offsets must be null. EBADF, EINVAL (no pipe, the same pipe twice, unknown flags, an offset of a
 * socket), ESPIPE (an offset of a pipe), and the errors of reading and writing.
 */
ssize_t fb_splice(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t len,
                  unsigned int flags);

/*
 * Sends from `file`, a file of the kernel's, into a socket. EBADF (either). If `file` is the
 * library's: EINVAL, or ESPIPE with an offset. EINVAL (negative offset), EFAULT, and the errors of
 * reading a file and of fb_write().
 */
ssize_t fb_sendfile(int to, int file, off_t *offset, size_t len);

/*
 * Creates a pipe inside the library, for fb_splice(). EFAULT, EMFILE, EINVAL (flags); ENETDOWN: no
 * stack runs.
 */
int fb_pipe(int fds[2]);
int fb_pipe2(int fds[2], int flags);

/* ---- readiness ------------------------------------------------------------------------------- */

/*
 * All of these calls also accept the kernel's descriptors: numbers below `first-descriptor`. A
 * thread that waits needs one descriptor of the kernel's (an eventfd), and so does an epoll
 * instance that watches the kernel's descriptors: EMFILE or ENFILE if there are none left.
 * fb_ppoll(), fb_pselect() and fb_epoll_pwait() set the signal mask and begin to wait in one step,
 * as the kernel does: no signal that only this mask admits is missed.
 */

/* EFAULT, EINVAL (too many, time-out), EINTR; ENETDOWN: no stack runs. */
int fb_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int fb_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
             const sigset_t *mask);

/*
 * Numbers below FD_SETSIZE only; the upper half of them is the library's. EBADF, EINVAL, EINTR;
 * ENETDOWN: no stack runs.
 */
int fb_select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout);
int fb_pselect(int count, fd_set *read, fd_set *write, fd_set *except,
               const struct timespec *timeout, const sigset_t *mask);

/* EINVAL (size, flags), EMFILE; ENETDOWN: no stack runs. */
int fb_epoll_create(int size);
int fb_epoll_create1(int flags);

/*
 * Level-triggered, EPOLLET, EPOLLONESHOT. An instance that another one watches with EPOLLET is
 * reported again while one of the kernel's descriptors in it is ready. EBADF, EINVAL (not an epoll
 * instance, or itself; operation), EEXIST, ENOENT, ELOOP, EFAULT; EPERM (a file of the kernel's
 * that is always ready).
 */
int fb_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

/* EBADF, EINVAL (not an epoll instance; max not positive; time-out), EFAULT, EINTR. */
int fb_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms);
int fb_epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout_ms,
                   const sigset_t *mask);
int fb_epoll_pwait2(int epoll, struct epoll_event *events, int max,
                    const struct timespec *timeout, const sigset_t *mask);

/* ---- options --------------------------------------------------------------------------------- */

/*
 * SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP and IPPROTO_IPV6 with Linux's ranges and read-back values,
 * and struct tcp_info in Linux's layout. EBADF, ENOTSOCK, EFAULT, EINVAL (value or length),
 * ENOPROTOOPT (no such option, or one that would have no effect here).
 *
 * Options that need CAP_NET_ADMIN with the kernel's sockets are allowed: the process administers
 * its own stack. TCP_REPAIR moves a live connection to another socket, the kernel's included
 * (tests/c/moving.c). EPERM: the socket listens, or its state does not allow the operation.
 */
int fb_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int fb_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

/*
 * The third argument of fcntl() and ioctl() depends on the second. fb_fcntl() and fb_ioctl() below
 * pass it to these two functions, which the library exports.
 *
 * fcntl: F_GETFL, F_SETFL (O_NONBLOCK), F_GETFD, F_SETFD, F_DUPFD, F_DUPFD_CLOEXEC, F_GETLEASE
 * (F_UNLCK). F_SETOWN, F_GETOWN, F_SETOWN_EX, F_GETOWN_EX, F_SETSIG and F_GETSIG are remembered
 * and read back, but the library sends no signal; O_ASYNC fails with EOPNOTSUPP. EBADF, EINVAL
 * (another command), ESRCH (F_SETOWN: no such process), EFAULT.
 *
 * ioctl: FIONBIO, FIOCLEX, FIONCLEX, FIONREAD (SIOCINQ; pipes too), SIOCOUTQ, SIOCOUTQNSD,
 * SIOCATMARK. FIOSETOWN, SIOCSPGRP, FIOGETOWN and SIOCGPGRP are remembered and read back. EBADF,
 * ENOTTY (another request), EINVAL (listens), EFAULT.
 */
int fb_fcntl_arg(int fd, int command, long argument);
int fb_ioctl_arg(int fd, unsigned long request, void *argument);

static inline int fb_fcntl(int fd, int command, ...) {
  va_list arguments;
  long argument = 0;
  /*
   * F_DUPFD, F_SETFD, F_SETFL, F_SETOWN, F_SETSIG and F_DUPFD_CLOEXEC by their numbers, because
   * <fcntl.h> may be included before, after or not at all.
   */
  if (command == 0 || command == 2 || command == 4 || command == 8 || command == 10 ||
      command == 1030) {
    va_start(arguments, command);
    argument = va_arg(arguments, int);
    va_end(arguments);
  }
  /* F_SETOWN_EX and F_GETOWN_EX: the address of a struct f_owner_ex. */
  if (command == 15 || command == 16) {
    va_start(arguments, command);
    argument = (long)va_arg(arguments, void *);
    va_end(arguments);
  }
  return fb_fcntl_arg(fd, command, argument);
}

static inline int fb_ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  void *argument = NULL;
  /*
   * Every known request takes a pointer, except FIOCLEX and FIONCLEX. These are compared by number,
   * because <sys/ioctl.h> need not be included.
   */
  if (request != 0x5451 && request != 0x5450) {
    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
  }
  return fb_ioctl_arg(fd, request, argument);
}

#ifdef __cplusplus
}
#endif

#endif
