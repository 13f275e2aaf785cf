/* Signed connections (TCP_MD5SIG, RFC 2385) between the library and the kernel, each as client and
   as server. Needs root and a network namespace of its own. */
#define _GNU_SOURCE
#include <linux/tcp.h>
#define _NETINET_TCP_H /* both headers have the same structures */
#include "check.h"
#include <sys/epoll.h>

static const char *stack = "device tun0; device-address 10.0.0.1/24; device-address fd00::1/64; address 10.0.0.2/24; address fd00::2/64";

typedef int set_option(int, int, int, const void *, socklen_t);

static void name_of(struct sockaddr_storage *name, const char *address, int port) {
  struct sockaddr_in *v4 = (struct sockaddr_in *)name;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)name;
  memset(name, 0, sizeof *name);
  if (strchr(address, ':') == NULL) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    check(inet_pton(AF_INET, address, &v4->sin_addr) == 1);
  } else {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    check(inet_pton(AF_INET6, address, &v6->sin6_addr) == 1);
  }
}

/* A negative prefix means the address alone. */
static int add_key(set_option *set, int fd, const char *peer, int prefix, const char *key) {
  struct tcp_md5sig option;
  struct sockaddr_storage name;
  memset(&option, 0, sizeof option);
  name_of(&name, peer, 0);
  memcpy(&option.tcpm_addr, &name, sizeof option.tcpm_addr);
  option.tcpm_keylen = (uint16_t)strlen(key);
  memcpy(option.tcpm_key, key, strlen(key));
  if (prefix < 0)
    return set(fd, IPPROTO_TCP, TCP_MD5SIG, &option, sizeof option);
  option.tcpm_flags = TCP_MD5SIG_FLAG_PREFIX;
  option.tcpm_prefixlen = (uint8_t)prefix;
  return set(fd, IPPROTO_TCP, TCP_MD5SIG_EXT, &option, sizeof option);
}

static long kernel_counter(const char *name) {
  char names[8192], values[8192], *name_at, *value_at, *save_name, *save_value;
  FILE *file = fopen("/proc/thread-self/net/netstat", "r");
  long found = -1;
  check(file != NULL);
  while (found < 0 && fgets(names, sizeof names, file) != NULL && fgets(values, sizeof values, file) != NULL) {
    name_at = strtok_r(names, " \n", &save_name);
    value_at = strtok_r(values, " \n", &save_value);
    for (; name_at != NULL && value_at != NULL && found < 0;
         name_at = strtok_r(NULL, " \n", &save_name), value_at = strtok_r(NULL, " \n", &save_value))
      if (strcmp(name_at, name) == 0)
        found = atol(value_at);
  }
  fclose(file);
  return found;
}

static long counter(const char *name) {
  uint64_t value = 0;
  check(fb_counter(name, &value) == 0);
  return (long)value;
}

static char sent[300000], got[300000];

/* Data in one direction, then in the other: both sides sign every segment. */
static void exchange(int kernels, int own) {
  size_t at, done;
  ssize_t count;
  for (at = 0; at < sizeof sent; at++)
    sent[at] = (char)(at * 7 % 251);
  for (at = 0; at < sizeof sent; at += 30000) {
    check(send(kernels, sent + at, 30000, 0) == 30000);
    check(fb_recv(own, got + at, 30000, MSG_WAITALL) == 30000);
    check(fb_send(own, sent + at, 30000, 0) == 30000);
    for (done = 0; done < 30000; done += (size_t)count)
      check((count = recv(kernels, got + at + done, 30000 - done, 0)) > 0);
  }
  check(memcmp(sent, got, sizeof sent) == 0);
}

static void kernel_serves(const char *kernels, const char *own, int port, int prefix) {
  struct sockaddr_storage name;
  int family, listener, fd, peer;
  name_of(&name, kernels, port);
  family = name.ss_family;
  listener = socket(family, SOCK_STREAM, 0);
  check(bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 5) == 0);
  check(add_key(setsockopt, listener, own, prefix, "secret") == 0);
  fd = fb_socket(family, SOCK_STREAM, 0);
  check(add_key(fb_setsockopt, fd, kernels, -1, "secret") == 0);
  check(fb_connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
  peer = accept(listener, NULL, NULL);
  exchange(peer, fd);
  /* The library closes first, and answers from TIME-WAIT. */
  check(fb_close(fd) == 0 && recv(peer, got, 1, 0) == 0 && close(peer) == 0 && close(listener) == 0);
}

static void library_serves(const char *own, const char *kernels, int port, int prefix) {
  struct sockaddr_storage name;
  int family, listener, fd, peer;
  char byte;
  name_of(&name, own, port);
  family = name.ss_family;
  listener = fb_socket(family, SOCK_STREAM, 0);
  check(fb_bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && fb_listen(listener, 5) == 0);
  check(add_key(fb_setsockopt, listener, kernels, prefix, "another secret") == 0);
  fd = socket(family, SOCK_STREAM, 0);
  check(add_key(setsockopt, fd, own, -1, "another secret") == 0);
  check(connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
  peer = fb_accept(listener, NULL, NULL);
  exchange(fd, peer);
  /* The accepted socket has the key of its peer alone. */
  check(add_key(fb_setsockopt, peer, kernels, -1, "another secret") == 0);
  check(close(fd) == 0 && fb_recv(peer, &byte, 1, 0) == 0 && fb_close(peer) == 0 && fb_close(listener) == 0);
}

/* Segments without a signature, or with a wrong one, are ignored until the key matches. */
static void wrong_keys(void) {
  struct sockaddr_storage name;
  struct timeval most = {0, 300000};
  int listener = fb_socket(AF_INET, SOCK_STREAM, 0), fd, peer;
  long unexpected = kernel_counter("TCPMD5Unexpected");
  name_of(&name, "10.0.0.2", 99);
  check(fb_bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && fb_listen(listener, 5) == 0);
  check(add_key(fb_setsockopt, listener, "10.0.0.1", -1, "right") == 0);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  check(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0);
  fails(connect(fd, (struct sockaddr *)&name, sizeof name), EINPROGRESS);
  check(counter("TcpExtTCPMD5NotFound") == 1 && close(fd) == 0);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  check(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0);
  check(add_key(setsockopt, fd, "10.0.0.2", -1, "wrong") == 0);
  fails(connect(fd, (struct sockaddr *)&name, sizeof name), EINPROGRESS);
  check(counter("TcpExtTCPMD5Failure") == 1);
  /* The retransmitted SYN is signed with the right key. */
  check(add_key(setsockopt, fd, "10.0.0.2", -1, "right") == 0);
  most.tv_sec = 10;
  check(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) == 0);
  while (connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
    check(errno == EALREADY);
  peer = fb_accept(listener, NULL, NULL);
  exchange(fd, peer);
  check(fb_close(peer) == 0 && close(fd) == 0 && fb_close(listener) == 0);
  check(kernel_counter("TCPMD5Unexpected") == unexpected);
}

static void options(void) {
  char key[TCP_MD5SIG_MAXKEYLEN + 1] = "";
  struct tcp_md5sig option;
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0), six = fb_socket(AF_INET6, SOCK_STREAM, 0);
  memset(&option, 0, sizeof option);
  memset(key, 'k', TCP_MD5SIG_MAXKEYLEN);
  fails(add_key(fb_setsockopt, fd, "10.0.0.1", -1, ""), ENOENT);
  check(add_key(fb_setsockopt, fd, "10.0.0.1", -1, key) == 0);
  fails(add_key(fb_setsockopt, fd, "10.0.0.1", 31, ""), ENOENT);
  check(add_key(fb_setsockopt, fd, "10.0.0.1", 32, "") == 0);
  fails(add_key(fb_setsockopt, fd, "10.0.0.1", -1, ""), ENOENT);
  fails(add_key(fb_setsockopt, fd, "10.0.0.1", 33, "k"), EINVAL);
  fails(add_key(fb_setsockopt, fd, "fd00::1", -1, "k"), EINVAL);
  fails(add_key(fb_setsockopt, six, "10.0.0.1", -1, "k"), EINVAL);
  check(add_key(fb_setsockopt, six, "::ffff:10.0.0.1", -1, "k") == 0);
  fails(add_key(fb_setsockopt, six, "fd00::1", 129, "k"), EINVAL);
  fails(fb_setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &option, sizeof option - 1), EINVAL);
  fails(fb_setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, NULL, sizeof option), EFAULT);
  check(fb_close(fd) == 0 && fb_close(six) == 0);
}

int main(void) {
  check(fb_start(stack) == 0);
  options();
  kernel_serves("10.0.0.1", "10.0.0.2", 7, -1);
  kernel_serves("fd00::1", "fd00::2", 7, 16);
  library_serves("10.0.0.2", "10.0.0.1", 8, 24);
  library_serves("fd00::2", "fd00::1", 8, -1);
  check(kernel_counter("TCPMD5NotFound") == 0 && kernel_counter("TCPMD5Unexpected") == 0);
  check(kernel_counter("TCPMD5Failure") == 0);
  check(counter("TcpExtTCPMD5NotFound") == 0 && counter("TcpExtTCPMD5Unexpected") == 0);
  check(counter("TcpExtTCPMD5Failure") == 0);
  wrong_keys();
  return 0;
}
