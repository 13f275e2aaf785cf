/*
 * libfirstbyte: a TCP/IP stack in your own process, by the calls you know.
 *
 * Every socket call of libc has a twin here with fb_ in front, the same arguments and the same result: -1 and errno when it fails, with
 * Linux's errno values. What is said at each call below is what it does not share with libc's, and the errors programs ask about; for
 * everything else the manual page of libc's call holds.
 *
 *   cc -I<this directory> echo_server.c -L<directory of libfirstbyte.so> -lfirstbyte -o echo_server
 *   cc -I<this directory> echo_server.c libfirstbyte.a -lpthread -ldl -lm -lgcc_s -o echo_server            (the static library)
 *
 * THE STACK.  One per process. fb_start() gives it a TUN device: a wire with the kernel at one end and this stack at the other, two
 * hosts of one small network. Whoever may open /dev/net/tun may start one; `device loopback` needs no rights and reaches nobody but
 * this program itself, which is enough for tests.
 *
 * DESCRIPTORS.  They are the library's, not the kernel's: fb_ calls take only what fb_ calls gave, and no other call takes them. Only
 * fb_poll(), fb_select() and fb_epoll_ctl() take the kernel's too. They begin at 512 (`first-descriptor`), so that the first 512 fit into
 * an fd_set. They are not inherited: see FORK AND EXEC.
 *
 * BAD POINTERS.  A null pointer where the kernel would read or write is EFAULT. Any other pointer is believed, as by libc's own
 * functions: one that leads nowhere ends the program by SIGSEGV where the kernel would have answered EFAULT.
 *
 * THREADS.  Any call may be made from any thread. A call that waits sleeps, whatever the others do. A thread of the library's own moves
 * packets and timers; it takes no signals. A call sleeps in a cancellation point (pthreads(7)): pthread_cancel() ends it.
 *
 * SIGNALS.  A handler interrupts a waiting call as in Linux (signal(7)): poll, select and epoll_wait, and calls with SO_RCVTIMEO or
 * SO_SNDTIMEO, always fail with EINTR; others go on if the handler was installed with SA_RESTART. A call that has moved some bytes
 * returns their number instead. EPIPE comes with SIGPIPE in the calling thread, unless MSG_NOSIGNAL. No handler runs while its thread
 * has the library's lock, but unlike read() and write() the calls allocate memory: made in a handler that has interrupted malloc() they
 * may wait for ever.
 *
 * FORK AND EXEC.  A child of fork() has no stack: its calls fail with EBADF and fb_socket() with ENETDOWN, the parent's go on, and it
 * may fb_start() one of its own on another device, and is safe as long as it uses none of the parent's descriptors. Its copy of the
 * device's descriptor is closed before fork() returns in it, so that the parent may stop its stack and start one on the same device,
 * whatever becomes of the child. Programs started by exec inherit nothing.
 *
 * END OF THE PROCESS.  exit() and the return of main close everything as the kernel would: what was written is delivered and a FIN
 * follows, unread data resets. That takes until the peers have acknowledged it, at most `linger` (5 s); what is left then is reset.
 * The kernel would do this in the background: here the process waits. A process that dies by _exit(), abort() or a signal sends nothing
 * more; its peers find out by their own time-outs.
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

struct mmsghdr; /* whole in <sys/socket.h> with _GNU_SOURCE */

/* ---- the stack ------------------------------------------------------------------------------------------------------------------- */

/*
 * Starts the stack. `description` is a text of statements, one a line or between semicolons, `#` begins a comment:
 *
 *   address ADDR/LEN          an address of the stack with its network's prefix, IPv4 or IPv6; at least one, more by repeating
 *   device NAME               the TUN device, attached to, or created and then gone at the end [firstbyte0]
 *   device loopback           no device: the stack hears itself
 *   device-address ADDR/LEN   gives the kernel's side of the device an address (needs CAP_NET_ADMIN); repeatable [left as it is]
 *   mtu BYTES                 68 to 65535 [the device's]
 *   offload on|off            segmentation and checksums left to the kernel [on]
 *   profile default|linux     settings to start from: this project's, or what Linux 6.18 does [default]
 *   set NAME VALUE            one setting by the name `sysctl` has for it, e.g. net.ipv4.tcp_fastopen 3; net.ipv4.tcp_fastopen_key too
 *   sysctl DIRECTORY          a tree of files in the form of /proc/sys/net, read again every second while the stack runs
 *   route PREFIX METRIC...    what connections to and from PREFIX begin with, in the words of `ip route`, e.g. default initcwnd 20
 *   cache FILE                remember paths (Fast Open cookies and failures, round trips): read now if it is there, replaced at the end,
 *                             which must be possible already now
 *   first-descriptor NUMBER   numbers below are the kernel's [512]
 *   linger SECONDS            how long the end of the process may wait for peers, 0 to 3600 [5]
 *
 * NULL takes the text from the environment variable FIRSTBYTE. Returns 0; where a setting was taken only in part, or has no effect, fb_error()
 * says so.
 *
 * EINVAL: not understood. EALREADY: there is a stack. ENOENT: no such setting. EPERM, EACCES: no right to the device. EBUSY: another
 * process has it. Others as the system gives them. fb_error() says in words what and what to do.
 */
int fb_start(const char *description);

/*
 * Ends the stack: closes every descriptor, waits at most `timeout_ms` (negative: `linger`) until what was written has been
 * acknowledged, and resets what is left. Calls that wait in other threads fail with ENETDOWN. Returns 0.
 *
 * ETIMEDOUT: something was reset. ENETDOWN: no stack runs. Others: the device had failed, or the file of `cache` could
 * not be written. The stack has ended in each case.
 */
int fb_stop(int timeout_ms);

/* The last failure or warning of the calls of this section in this thread, in words; "" if there was none. Holds until the next. */
const char *fb_error(void);

/* The version of the library, e.g. "0.1.0". */
const char *fb_version(void);

/*
 * Changes a setting while the stack runs. Returns 0, also where the value was taken only in part or has no effect: fb_error() says so then.
 * ENOENT: no such setting. EINVAL: not a value of it. EFAULT: null. ENETDOWN: no stack.
 */
int fb_set(const char *name, const char *value);

/* Writes the value of a setting, of each that fb_set takes, into `room` bytes as snprintf would, and returns its length. Errors as fb_set. */
ssize_t fb_get(const char *name, char *value, size_t room);

/* A counter by the name `nstat -z` shows, e.g. "TcpExtTCPFastOpenPassive". ENOENT: no such counter. EFAULT, ENETDOWN. */
int fb_counter(const char *name, uint64_t *value);

/* 1 if `fd` is an open descriptor of the library, else 0. Never fails. */
int fb_is_open(int fd);

/* ---- sockets --------------------------------------------------------------------------------------------------------------------- */

/*
 * AF_INET or AF_INET6 (which speaks IPv4 too, by mapped addresses) with SOCK_STREAM. SOCK_NONBLOCK is heeded, SOCK_CLOEXEC remembered: no descriptor survives exec.
 * EAFNOSUPPORT, ESOCKTNOSUPPORT (no datagrams here), EPROTONOSUPPORT, EINVAL (unknown flags), EMFILE; ENETDOWN: fb_start() comes first.
 */
int fb_socket(int domain, int type, int protocol);

/* EBADF, ENOTSOCK, EFAULT, EINVAL (bound or connected; length), EAFNOSUPPORT, EADDRNOTAVAIL (not the stack's), EADDRINUSE. */
int fb_bind(int fd, const struct sockaddr *addr, socklen_t len);

/* EBADF, ENOTSOCK, EINVAL (connected), EADDRINUSE. */
int fb_listen(int fd, int backlog);

/* EBADF, ENOTSOCK, EINVAL (does not listen), EAGAIN, EINTR, EMFILE, EFAULT. */
int fb_accept(int fd, struct sockaddr *addr, socklen_t *len);
int fb_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

/*
 * EBADF, ENOTSOCK, EFAULT, EINVAL, EAFNOSUPPORT, EINPROGRESS, EALREADY, EISCONN, ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
 * EADDRNOTAVAIL, EINTR. With TCP_FASTOPEN_CONNECT and a cookie it returns at once, and the first write goes out with the SYN.
 */
int fb_connect(int fd, const struct sockaddr *addr, socklen_t len);

/* EBADF, ENOTSOCK, EFAULT, EINVAL (negative length); fb_getpeername: ENOTCONN. */
int fb_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int fb_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

/* EBADF, ENOTSOCK, EINVAL (how), ENOTCONN. */
int fb_shutdown(int fd, int how);

/* There is none of TCP: EOPNOTSUPP, and what fb_socket() fails with. EFAULT. */
int fb_socketpair(int domain, int type, int protocol, int fds[2]);

/*
 * EBADF. As in Linux, a call that waits for this descriptor in another thread goes on waiting with what it stood for, which is closed when
 * that call returns; fb_shutdown() ends it. With SO_LINGER it waits for the peer; EINTR ends that wait, and the descriptor is gone.
 */
int fb_close(int fd);

/* EBADF, EMFILE; fb_dup3(): EINVAL (same number, flags). The new number of fb_dup2() and fb_dup3() must be one the library could give. */
int fb_dup(int fd);
int fb_dup2(int fd, int new_fd);
int fb_dup3(int fd, int new_fd, int flags);

/* ---- data ------------------------------------------------------------------------------------------------------------------------ */

/*
 * EBADF, EFAULT, EINVAL (number of buffers), EAGAIN, ENOTCONN, ECONNRESET, ETIMEDOUT, ..., each once; EINTR. fb_recvfrom() tells no
 * address. Flags: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_TRUNC, MSG_OOB, MSG_ERRQUEUE. fb_recvmsg() tells TCP_INQ, time stamps and the
 * error queue.
 */
ssize_t fb_read(int fd, void *buf, size_t len);
ssize_t fb_readv(int fd, const struct iovec *iov, int count);
ssize_t fb_recv(int fd, void *buf, size_t len, int flags);
ssize_t fb_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addr_len);
ssize_t fb_recvmsg(int fd, struct msghdr *message, int flags);
int fb_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout);

/*
 * EBADF, EFAULT, EINVAL (number of buffers), EAGAIN, EPIPE (with SIGPIPE), ECONNRESET, ETIMEDOUT, ..., each once; EINTR. Flags:
 * MSG_DONTWAIT, MSG_MORE, MSG_EOR, MSG_OOB, MSG_NOSIGNAL, and MSG_FASTOPEN, with which fb_sendto() and fb_sendmsg() connect and put the
 * data on the SYN if there is a cookie for the peer (else it follows the handshake): EOPNOTSUPP if net.ipv4.tcp_fastopen has no bit 0,
 * EISCONN, EINVAL (no address), EINPROGRESS, and the errors of fb_connect(). Data on a SYN may arrive twice (RFC 7413 section 6.1): send
 * what may be repeated.
 */
ssize_t fb_write(int fd, const void *buf, size_t len);
ssize_t fb_writev(int fd, const struct iovec *iov, int count);
ssize_t fb_send(int fd, const void *buf, size_t len, int flags);
ssize_t fb_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr, socklen_t addr_len);
ssize_t fb_sendmsg(int fd, const struct msghdr *message, int flags);
int fb_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);

/*
 * Bytes from a socket or a pipe into a pipe of fb_pipe(), or from a pipe into a socket; offsets must be null. EBADF, EINVAL (neither is a
 * pipe, both are one, unknown flags, an offset of a socket), ESPIPE (an offset of a pipe), and the errors of reading and writing.
 */
ssize_t fb_splice(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t len, unsigned int flags);

/*
 * From a file of the kernel's, `file`, into a socket. EBADF (either), EINVAL or, with an offset, ESPIPE (`file` is the library's), EINVAL
 * (negative offset), EFAULT, and the errors of reading a file and of fb_write().
 */
ssize_t fb_sendfile(int to, int file, off_t *offset, size_t len);

/* A pipe inside the library, for fb_splice(). EFAULT, EMFILE, EINVAL (flags); ENETDOWN: no stack. */
int fb_pipe(int fds[2]);
int fb_pipe2(int fds[2], int flags);

/* ---- readiness ------------------------------------------------------------------------------------------------------------------- */

/*
 * The kernel's descriptors may stand among the library's in all of these: numbers below `first-descriptor` are the kernel's. A thread
 * that waits takes one descriptor of the kernel's for itself (an eventfd), an instance that watches the kernel's another one: EMFILE or
 * ENFILE where there are none left. The mask of fb_ppoll(), fb_pselect() and fb_epoll_pwait() is set and the wait begun in one step, as
 * in the kernel: a signal that only the mask lets through is never missed.
 */

/* EFAULT, EINVAL (too many, time-out), EINTR; ENETDOWN: no stack. */
int fb_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int fb_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask);

/* EBADF, EINVAL, EINTR; ENETDOWN: no stack. Numbers below FD_SETSIZE only, of which the library has the upper half. */
int fb_select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout);
int fb_pselect(int count, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout,
               const sigset_t *mask);

/* EINVAL (size, flags), EMFILE; ENETDOWN: no stack. */
int fb_epoll_create(int size);
int fb_epoll_create1(int flags);

/*
 * EBADF, EINVAL (no epoll, or itself; operation), EEXIST, ENOENT, ELOOP, EFAULT; EPERM (a file of the kernel's that is always ready).
 * Level, EPOLLET, EPOLLONESHOT. An instance that another one watches with EPOLLET is told again while a descriptor of the kernel's in it
 * is ready.
 */
int fb_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

/* EBADF, EINVAL (no epoll; max not positive; time-out), EFAULT, EINTR. */
int fb_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms);
int fb_epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask);
int fb_epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *timeout,
                    const sigset_t *mask);

/* ---- options --------------------------------------------------------------------------------------------------------------------- */

/*
 * SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP and IPPROTO_IPV6 with Linux's ranges and read-back, struct tcp_info in Linux's layout. EBADF,
 * ENOTSOCK, EFAULT, EINVAL (value or length), ENOPROTOOPT (no such option, or none that would have an effect here). What needs
 * CAP_NET_ADMIN of the kernel's sockets is allowed: the process is its stack's administrator. So TCP_REPAIR and what belongs to it, by
 * which a live connection goes to another socket, the kernel's too (tests/c/moving.c): EPERM (listens, or not in this state).
 */
int fb_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int fb_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

/*
 * fcntl and ioctl have a third argument that depends on the second; in C these two take it as it is, and hand it on to the two below,
 * which are what the library exports. F_GETFL, F_SETFL (O_NONBLOCK), F_GETFD, F_SETFD, F_DUPFD, F_DUPFD_CLOEXEC, F_GETLEASE (F_UNLCK);
 * F_SETOWN, F_GETOWN, F_SETOWN_EX, F_GETOWN_EX, F_SETSIG, F_GETSIG, FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP: remembered and read back,
 * but no signal is ever sent, and O_ASYNC is EOPNOTSUPP. FIONBIO, FIOCLEX, FIONCLEX, FIONREAD (SIOCINQ; of pipes, too), SIOCOUTQ,
 * SIOCOUTQNSD, SIOCATMARK. EBADF; fb_fcntl: EINVAL for other commands, ESRCH (F_SETOWN: nobody has this number), EFAULT; fb_ioctl: ENOTTY
 * for other requests, EINVAL (listens), EFAULT.
 */
int fb_fcntl_arg(int fd, int command, long argument);
int fb_ioctl_arg(int fd, unsigned long request, void *argument);

static inline int fb_fcntl(int fd, int command, ...) {
  va_list arguments;
  long argument = 0;
  /* F_DUPFD, F_SETFD, F_SETFL, F_SETOWN, F_SETSIG and F_DUPFD_CLOEXEC, by their numbers: <fcntl.h> may be included before or after. */
  if (command == 0 || command == 2 || command == 4 || command == 8 || command == 10 || command == 1030) {
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
  /* Every request that is known here has a pointer, but FIOCLEX and FIONCLEX, by their numbers: <sys/ioctl.h> need not be included. */
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
