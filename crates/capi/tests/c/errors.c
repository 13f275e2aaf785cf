/* The errno of every failing call, as on Linux. Needs no root: the stack reaches only itself. */
#define _GNU_SOURCE
#include "check.h"

enum { RTO_MAX_MS = 44 }; /* TCP_RTO_MAX_MS, which older system headers lack */

static void without_a_stack(void) {
  char byte;
  struct pollfd entry = {512, POLLIN, 0};
  fails(fb_socket(AF_INET, SOCK_STREAM, 0), ENETDOWN);
  fails(fb_epoll_create1(0), ENETDOWN);
  fails(fb_poll(&entry, 1, 0), ENETDOWN);
  fails(fb_read(512, &byte, 1), EBADF);
  fails(fb_close(512), EBADF);
  fails(fb_stop(0), ENETDOWN);
  fails(fb_set("net.ipv4.tcp_fastopen", "3"), ENETDOWN);
  check(fb_is_open(512) == 0);
}

static void descriptions(void) {
  fails(fb_start(""), EINVAL);
  check(strstr(fb_error(), "address") != NULL);
  fails(fb_start("address 10.0.0.2/24; colour blue"), EINVAL);
  check(strncmp(fb_error(), "colour: no such word", 20) == 0);
  fails(fb_start("address 10.0.0.2/24; set net.ipv4.no_such 1"), ENOENT);
  unsetenv("FIRSTBYTE");
  fails(fb_start(NULL), EINVAL);
  setenv("FIRSTBYTE", "device loopback; address 10.0.0.2/24; address fd00::2/64; profile linux; set net.core.rmem_default 1", 1);
  check(fb_start(NULL) == 0);
  check(strstr(fb_error(), "net.core.rmem_default has no effect") != NULL);
  fails(fb_start(NULL), EALREADY);
}

static void settings_and_counters(void) {
  char text[16];
  uint64_t count = 1;
  check(fb_set("net.ipv4.tcp_fastopen", "3") == 0);
  check(fb_get("net.ipv4.tcp_fastopen", text, sizeof text) == 1 && strcmp(text, "3") == 0);
  check(fb_get("net.ipv4.tcp_congestion_control", text, 3) == 5 && strcmp(text, "cu") == 0);
  check(fb_get("net.ipv4.tcp_congestion_control", NULL, 0) == 5);
  check(fb_get("net.ipv4.ip_local_port_range", text, sizeof text) == 11 && strcmp(text, "32768 60999") == 0);
  check(fb_get("net.ipv4.tcp_fastopen_key", NULL, 0) == 35);
  check(fb_get("net.ipv4.conf.lo.rp_filter", text, sizeof text) == 1 && strcmp(text, "0") == 0);
  check(fb_set("net.ipv4.tcp_adv_win_scale", "1") == 0);
  check(strstr(fb_error(), "net.ipv4.tcp_adv_win_scale has no effect") != NULL);
  fails(fb_set("net.ipv4.no_such", "1"), ENOENT);
  fails(fb_set("net.ipv4.tcp_syncookies", "lots"), EINVAL);
  fails(fb_set(NULL, "1"), EFAULT);
  fails(fb_get("net.ipv4.no_such", text, sizeof text), ENOENT);
  fails(fb_get("net.ipv4.tcp_fastopen", NULL, 4), EFAULT);
  check(fb_counter("TcpActiveOpens", &count) == 0 && count == 0);
  fails(fb_counter("NoSuch", &count), ENOENT);
  fails(fb_counter("TcpActiveOpens", NULL), EFAULT);
}

static void sockets(void) {
  struct sockaddr_in own = ipv4("10.0.0.2", 7), other = ipv4("10.9.9.9", 7);
  struct sockaddr_in6 six = {.sin6_family = AF_INET6};
  const struct sockaddr *name = (struct sockaddr *)&own;
  struct sockaddr_storage told;
  socklen_t len = sizeof told;
  int fd, listener, second;
  fails(fb_socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
  fails(fb_socket(AF_INET, SOCK_DGRAM, 0), ESOCKTNOSUPPORT);
  fails(fb_socket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
  fails(fb_socket(AF_INET, SOCK_STREAM | 0x100000, 0), EINVAL);
  fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fd >= 512 && fb_is_open(fd) == 1 && fb_is_open(fd + 1) == 0 && fb_is_open(0) == 0);

  fails(fb_bind(fd + 1, name, sizeof own), EBADF);
  fails(fb_bind(-1, name, sizeof own), EBADF);
  fails(fb_bind(0, name, sizeof own), EBADF); /* a descriptor of the kernel */
  fails(fb_bind(fd, NULL, sizeof own), EFAULT);
  fails(fb_bind(fd, name, sizeof own - 1), EINVAL);
  fails(fb_bind(fd, (struct sockaddr *)&six, sizeof six), EAFNOSUPPORT);
  fails(fb_bind(fd, (struct sockaddr *)&other, sizeof other), EADDRNOTAVAIL);
  check(fb_bind(fd, name, sizeof own) == 0);
  fails(fb_bind(fd, name, sizeof own), EINVAL);
  fails(fb_accept(fd, NULL, NULL), EINVAL);
  fails(fb_listen(fd + 1, 1), EBADF);
  fails(fb_shutdown(fd, SHUT_WR), ENOTCONN);
  fails(fb_shutdown(fd, 9), EINVAL);
  fails(fb_getpeername(fd, (struct sockaddr *)&told, &len), ENOTCONN);
  fails(fb_getsockname(fd, NULL, &len), EFAULT);
  fails(fb_getsockname(fd, (struct sockaddr *)&told, NULL), EFAULT);
  check(fb_getsockname(fd, (struct sockaddr *)&told, &len) == 0 && len == sizeof own);
  check(memcmp(&told, &own, sizeof own) == 0);
  listener = fd;
  check(fb_listen(listener, 1) == 0);
  second = fb_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  fails(fb_bind(second, name, sizeof own), EADDRINUSE);
  fails(fb_connect(listener, name, sizeof own), EISCONN);
  check(fb_fcntl(listener, F_SETFL, O_NONBLOCK) == 0 && (fb_fcntl(listener, F_GETFL) & O_NONBLOCK) != 0);
  fails(fb_accept(listener, NULL, NULL), EAGAIN);
  fails(fb_connect(second, name, sizeof own), EINPROGRESS);
  check(fb_close(second) == 0);
  fails(fb_close(second), EBADF);
  check(fb_close(listener) == 0);
}

static void connecting(void) {
  struct sockaddr_in closed = ipv4("10.0.0.2", 9);
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  fails(fb_connect(fd, NULL, sizeof closed), EFAULT);
  fails(fb_connect(fd, (struct sockaddr *)&closed, 1), EINVAL);
  fails(fb_connect(fd, (struct sockaddr *)&closed, sizeof closed), ECONNREFUSED);
  fails(fb_sendto(fd, "x", 1, MSG_FASTOPEN, NULL, 0), EINVAL);
  check(fb_set("net.ipv4.tcp_fastopen", "2") == 0);
  fails(fb_sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&closed, sizeof closed), EOPNOTSUPP);
  check(fb_set("net.ipv4.tcp_fastopen", "3") == 0);
  check(fb_close(fd) == 0);
}

static void data(void) {
  char byte;
  struct iovec bad = {NULL, 1};
  struct msghdr message = {0};
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  fails(fb_read(fd, &byte, 1), ENOTCONN);
  fails(fb_recv(fd, &byte, 1, MSG_OOB), EINVAL);
  fails(fb_read(99, &byte, 1), EBADF);
  fails(fb_readv(fd, NULL, 1), EFAULT);
  fails(fb_readv(fd, &bad, -1), EINVAL);
  fails(fb_readv(fd, &bad, 1025), EINVAL);
  fails(fb_recvmsg(fd, NULL, 0), EFAULT);
  fails(fb_sendmsg(fd, NULL, MSG_NOSIGNAL), EFAULT);
  fails(fb_send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
  check(signals == 0);
  fails(fb_send(fd, "x", 1, 0), EPIPE);
  check(signals == 1);
  fails(fb_write(fd, "x", 1), EPIPE);
  fails(fb_sendmsg(fd, &message, 0), EPIPE);
  check(signals == 3);
  fails(fb_splice(fd, NULL, fd, NULL, 1, 0), EINVAL);
  fails(fb_pipe(NULL), EFAULT);
  check(fb_close(fd) == 0);
}

/* Null pointers with data to read or to write; both ends are in this program. */
static void null_buffers(void) {
  struct sockaddr_in own = ipv4("10.0.0.2", 11);
  int on = 1, listener = fb_socket(AF_INET, SOCK_STREAM, 0), client = fb_socket(AF_INET, SOCK_STREAM, 0), server;
  char byte;
  check(fb_setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  check(fb_bind(listener, (struct sockaddr *)&own, sizeof own) == 0 && fb_listen(listener, 1) == 0);
  check(fb_connect(client, (struct sockaddr *)&own, sizeof own) == 0);
  server = fb_accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  check(server >= 0);
  fails(fb_read(server, &byte, 1), EAGAIN);
  fails(fb_write(client, NULL, 5), EFAULT);
  check(fb_write(client, "abc", 3) == 3);
  check(fb_recv(server, &byte, 1, MSG_PEEK | MSG_WAITALL) == 1 || errno == EAGAIN);
  {
    struct pollfd entry = {server, POLLIN, 0};
    check(fb_poll(&entry, 1, 5000) == 1 && entry.revents == POLLIN);
  }
  fails(fb_read(server, NULL, 3), EFAULT);
  check(fb_recv(server, NULL, 2, MSG_TRUNC) == 2);
  check(fb_read(server, &byte, 1) == 1 && byte == 'c');
  check(fb_close(client) == 0 && fb_close(server) == 0 && fb_close(listener) == 0);
}

static void options(void) {
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0), value = 1;
  socklen_t len = sizeof value;
  fails(fb_setsockopt(99, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value), EBADF);
  fails(fb_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, sizeof value), EFAULT);
  fails(fb_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, 1), EINVAL);
  fails(fb_setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &value, sizeof value), EINVAL);
  fails(fb_setsockopt(fd, IPPROTO_TCP, 9999, &value, sizeof value), ENOPROTOOPT);
  fails(fb_setsockopt(fd, SOL_SOCKET, 9999, &value, sizeof value), ENOPROTOOPT);
  fails(fb_setsockopt(fd, 9999, 1, &value, sizeof value), ENOPROTOOPT);
  check(fb_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value) == 0);
  fails(fb_getsockopt(fd, IPPROTO_TCP, 9999, &value, &len), ENOPROTOOPT);
  fails(fb_getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, &len), EFAULT);
  fails(fb_getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, NULL), EFAULT);
  len = (socklen_t)-1;
  fails(fb_getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), EINVAL);
  len = sizeof value;
  value = 0;
  check(fb_getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len) == 0 && value == 1 && len == sizeof value);
  fails(fb_fcntl(fd, 9999), EINVAL);
  fails(fb_fcntl(99, F_GETFL), EBADF);
  check(fb_fcntl(fd, F_SETOWN, getpid()) == 0 && fb_fcntl(fd, F_GETOWN) == getpid());
  int owner[2] = {-7, -7}; /* struct f_owner_ex, which <fcntl.h> defines with _GNU_SOURCE */
  check(fb_fcntl(fd, 16, owner) == 0 && owner[0] == 1 && owner[1] == getpid());
  fails(fb_ioctl(fd, 0x1234, &value), ENOTTY);
  fails(fb_ioctl(fd, FIONREAD, (void *)NULL), EFAULT);
  fails(fb_ioctl(99, FIONREAD, &value), EBADF);
  check(fb_ioctl(fd, FIONBIO, &value) == 0 && (fb_fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  check(fb_close(fd) == 0);
}

static void duplicates(void) {
  struct sockaddr_in own = ipv4("10.0.0.2", 12);
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0), copy = fb_dup(fd), fds[2];
  check(copy > fd && fb_bind(copy, (struct sockaddr *)&own, sizeof own) == 0 && fb_close(fd) == 0);
  check(fb_listen(copy, 1) == 0);
  fails(fb_dup(fd), EBADF);
  check(fb_dup2(copy, copy) == copy && fb_dup2(copy, fd) == fd && fb_close(fd) == 0);
  fails(fb_dup2(copy, -1), EBADF);
  fails(fb_dup3(copy, copy, 0), EINVAL);
  fails(fb_dup3(copy, fd, 1), EINVAL);
  check(fb_fcntl(copy, F_DUPFD, 700) == 700 && fb_close(700) == 0);
  check(fb_close(copy) == 0);
  fails(fb_socketpair(AF_INET, SOCK_STREAM, 0, fds), EOPNOTSUPP);
  fails(fb_socketpair(AF_INET, SOCK_STREAM, 0, NULL), EFAULT);
  fails(fb_pipe2(fds, 1), EINVAL);
}

static void several_messages(void) {
  struct iovec none = {NULL, 0};
  struct mmsghdr message = {0};
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  message.msg_hdr.msg_iov = &none;
  message.msg_hdr.msg_iovlen = 1;
  fails(fb_recvmmsg(fd, NULL, 1, 0, NULL), EFAULT);
  fails(fb_sendmmsg(fd, NULL, 1, 0), EFAULT);
  fails(fb_sendmmsg(99, &message, 1, 0), EBADF);
  fails(fb_sendmmsg(fd, &message, 1, MSG_NOSIGNAL), EPIPE);
  check(fb_close(fd) == 0);
}

static void files(void) {
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  fails(fb_sendfile(99, 0, NULL, 1), EBADF);
  fails(fb_sendfile(fd, fd, NULL, 1), EINVAL);
  fails(fb_sendfile(fd, -1, NULL, 1), EBADF);
  check(fb_close(fd) == 0);
}

static void selecting(void) {
  struct timeval once = {0, 0};
  struct timespec never = {-1, 0};
  fd_set read, write;
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  FD_ZERO(&read);
  FD_ZERO(&write);
  FD_SET(fd, &read);
  FD_SET(fd, &write);
  check(fb_select(fd + 1, &read, &write, NULL, &once) == 2 && FD_ISSET(fd, &read) && FD_ISSET(fd, &write));
  fails(fb_select(-1, NULL, NULL, NULL, &once), EINVAL);
  fails(fb_pselect(fd + 1, &read, NULL, NULL, &never, NULL), EINVAL);
  fails(fb_ppoll(NULL, 0, &never, NULL), EINVAL);
  FD_SET(fd + 1, &read);
  fails(fb_select(fd + 2, &read, NULL, NULL, &once), EBADF);
  check(fb_close(fd) == 0);
}

static void readiness(void) {
  struct pollfd entries[2] = {{600, POLLIN, 0}, {-1, POLLIN, 0}};
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = fb_epoll_create1(EPOLL_CLOEXEC), fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  fails(fb_poll(NULL, 1, 0), EFAULT);
  check(fb_poll(entries, 2, 0) == 1 && entries[0].revents == POLLNVAL && entries[1].revents == 0);
  check(fb_poll(NULL, 0, 1) == 0);
  fails(fb_epoll_create(0), EINVAL);
  fails(fb_epoll_create1(1), EINVAL);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, 600, &event), EBADF);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, epoll, &event), EINVAL);
  fails(fb_epoll_ctl(fd, EPOLL_CTL_ADD, fd, &event), EINVAL);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, fd, NULL), EFAULT);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event), ENOENT);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL), ENOENT);
  check(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), EEXIST);
  fails(fb_epoll_wait(fd, &event, 1, 0), EINVAL);
  fails(fb_epoll_wait(epoll, &event, 0, 0), EINVAL);
  fails(fb_epoll_wait(epoll, NULL, 1, 0), EFAULT);
  check(fb_epoll_wait(epoll, &event, 1, 0) == 1 && event.events == EPOLLHUP);
  check(fb_close(fd) == 0 && fb_close(epoll) == 0);
}

/* A path cache that cannot be written is an error at the start, or at the end. */
static void cache(void) {
  char folder[] = "/tmp/firstbyte-errors-XXXXXX", paths[sizeof folder + sizeof "/paths"], description[200];
  check(mkdtemp(folder) != NULL);
  snprintf(paths, sizeof paths, "%s/paths", folder);
  snprintf(description, sizeof description, "device loopback; address 10.0.0.2/24; cache %s", paths);
  check(fb_start(description) == 0 && fb_stop(0) == 0);
  check(fb_start(description) == 0);
  check(unlink(paths) == 0);
  check(rmdir(folder) == 0);
  fails(fb_stop(0), ENOENT);
  check(strstr(fb_error(), folder) != NULL);
  fails(fb_start(description), ENOENT);
  check(strstr(fb_error(), "cache: ") != NULL);
}

/* A socket keeps the values that it was created with. */
static void bounds_of_older_sockets(void) {
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0), before, after;
  socklen_t len = sizeof before;
  check(fb_getsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &before, &len) == 0);
  check(fb_set("net.ipv4.tcp_rto_max_ms", "5000") == 0);
  check(fb_getsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &after, &len) == 0 && after == before);
  check(fb_close(fd) == 0);
}

int main(void) {
  handle(SIGPIPE, 0);
  without_a_stack();
  descriptions();
  settings_and_counters();
  bounds_of_older_sockets();
  sockets();
  connecting();
  data();
  null_buffers();
  options();
  duplicates();
  several_messages();
  files();
  selecting();
  readiness();
  check(fb_stop(1000) == 0);
  without_a_stack();
  cache();
  return 0;
}
