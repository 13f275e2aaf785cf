/* Moves a live connection from the library to the kernel and back, with TCP_REPAIR. The peer, a
   socket of the kernel in the same network namespace, notices nothing. Needs CAP_NET_ADMIN and a
   namespace of its own, because it moves an address. */
#define _GNU_SOURCE
#include <poll.h>
#include <stddef.h>

#include "check.h"

#define OWN "10.0.0.2"
#define PEER "10.0.0.1"

static const char *stack = "device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24; profile linux";

struct calls {
  int (*socket)(int, int, int);
  int (*bind)(int, const struct sockaddr *, socklen_t);
  int (*connect)(int, const struct sockaddr *, socklen_t);
  int (*getsockname)(int, struct sockaddr *, socklen_t *);
  int (*getpeername)(int, struct sockaddr *, socklen_t *);
  int (*getsockopt)(int, int, int, void *, socklen_t *);
  int (*setsockopt)(int, int, int, const void *, socklen_t);
  ssize_t (*send)(int, const void *, size_t, int);
  ssize_t (*recv)(int, void *, size_t, int);
  int (*close)(int);
};

/* libc declares addresses as a union of pointers. */
static int kernel_bind(int fd, const struct sockaddr *name, socklen_t len) { return bind(fd, name, len); }
static int kernel_connect(int fd, const struct sockaddr *name, socklen_t len) { return connect(fd, name, len); }
static int kernel_sockname(int fd, struct sockaddr *name, socklen_t *len) { return getsockname(fd, name, len); }
static int kernel_peername(int fd, struct sockaddr *name, socklen_t *len) { return getpeername(fd, name, len); }

static const struct calls kernels = {socket,          kernel_bind, kernel_connect, kernel_sockname,
                                     kernel_peername, getsockopt,  setsockopt,     send,
                                     recv,            close};
static const struct calls ours = {fb_socket,     fb_bind,       fb_connect, fb_getsockname, fb_getpeername,
                                  fb_getsockopt, fb_setsockopt, fb_send,    fb_recv,        fb_close};

/* The state that moves from one socket to the other. */
struct dump {
  struct sockaddr_in own, peer;
  unsigned int seq[2];
  ssize_t len[2];
  char queue[2][65536];
  struct tcp_info info;
  unsigned char windows[20];
  int mss, timestamp;
};

enum { RECEIVE = 1, SEND = 2 };

static void set(const struct calls *calls, int fd, int option, int value) {
  check(calls->setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value) == 0);
}

static int get(const struct calls *calls, int fd, int option) {
  int value;
  socklen_t len = sizeof value;
  check(calls->getsockopt(fd, IPPROTO_TCP, option, &value, &len) == 0);
  return value;
}

/* Reads the state of a connection, and closes its socket without sending a packet. */
static void take(const struct calls *calls, int fd, struct dump *dump) {
  socklen_t len = sizeof dump->own;
  int at;
  check(calls->getsockname(fd, (struct sockaddr *)&dump->own, &len) == 0);
  check(calls->getpeername(fd, (struct sockaddr *)&dump->peer, &len) == 0);
  set(calls, fd, TCP_REPAIR, 1);
  for (at = 0; at < 2; at++) {
    set(calls, fd, TCP_REPAIR_QUEUE, at == 0 ? RECEIVE : SEND);
    dump->seq[at] = (unsigned int)get(calls, fd, TCP_QUEUE_SEQ);
    dump->len[at] = calls->recv(fd, dump->queue[at], sizeof dump->queue[at], MSG_PEEK | MSG_DONTWAIT);
    if (dump->len[at] < 0)
      dump->len[at] = 0;
  }
  len = sizeof dump->info;
  check(calls->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &dump->info, &len) == 0);
  len = sizeof dump->windows;
  check(calls->getsockopt(fd, IPPROTO_TCP, 29, dump->windows, &len) == 0);
  dump->mss = get(calls, fd, TCP_MAXSEG);
  dump->timestamp = get(calls, fd, TCP_TIMESTAMP);
  check(calls->close(fd) == 0);
}

/* Restores the connection in a new socket. */
static int put(const struct calls *calls, const struct dump *dump) {
  unsigned int options[8] = {2, (unsigned int)dump->mss}, count = 2;
  int fd = calls->socket(AF_INET, SOCK_STREAM, 0), at;
  set(calls, fd, TCP_REPAIR, 1);
  check(calls->bind(fd, (const struct sockaddr *)&dump->own, sizeof dump->own) == 0);
  for (at = 0; at < 2; at++) {
    set(calls, fd, TCP_REPAIR_QUEUE, at == 0 ? RECEIVE : SEND);
    set(calls, fd, TCP_QUEUE_SEQ, (int)(dump->seq[at] - (unsigned int)dump->len[at]));
  }
  check(calls->connect(fd, (const struct sockaddr *)&dump->peer, sizeof dump->peer) == 0);
  if (dump->info.tcpi_options & TCPI_OPT_WSCALE) {
    options[count++] = 3;
    options[count++] = dump->info.tcpi_snd_wscale | (unsigned int)dump->info.tcpi_rcv_wscale << 16;
  }
  if (dump->info.tcpi_options & TCPI_OPT_SACK) {
    options[count++] = 4;
    options[count++] = 0;
  }
  if (dump->info.tcpi_options & TCPI_OPT_TIMESTAMPS) {
    options[count++] = 8;
    options[count++] = 0;
  }
  check(calls->setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, options, count * sizeof options[0]) == 0);
  set(calls, fd, TCP_TIMESTAMP, dump->timestamp);
  for (at = 0; at < 2; at++) {
    set(calls, fd, TCP_REPAIR_QUEUE, at == 0 ? RECEIVE : SEND);
    check(calls->send(fd, dump->queue[at], (size_t)dump->len[at], 0) == dump->len[at]);
  }
  check(calls->setsockopt(fd, IPPROTO_TCP, 29, dump->windows, sizeof dump->windows) == 0);
  set(calls, fd, TCP_REPAIR, 0);
  return fd;
}

static void run(const char *command) {
  check(system(command) == 0);
}

static void expect(ssize_t (*receive)(int, void *, size_t, int), int fd, const char *text) {
  char buffer[64];
  size_t len = strlen(text);
  check(receive(fd, buffer, len, MSG_WAITALL) == (ssize_t)len && memcmp(buffer, text, len) == 0);
}

/* Waits until the sent data is acknowledged or has arrived. */
static void arrives(int fd, const struct calls *calls) {
  char byte;
  check(calls->recv(fd, &byte, 1, MSG_PEEK) == 1);
}

int main(void) {
  static struct dump dump;
  struct sockaddr_in name = ipv4(PEER, 7);
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), peer, fd;
  check(fb_start(stack) == 0);
  check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  check(bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 1) == 0);
  fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fb_connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
  peer = accept(listener, NULL, NULL);
  check(peer >= 0 && fb_send(fd, "one", 3, 0) == 3);
  expect(recv, peer, "one");
  check(send(peer, "unread", 6, 0) == 6);
  arrives(fd, &ours);

  /* From the library to the kernel, with the address. Packets in flight find no host. */
  take(&ours, fd, &dump);
  check(fb_stop(0) == 0);
  run("ip address add " OWN "/32 dev lo && ip address add " PEER "/32 dev lo");
  fd = put(&kernels, &dump);
  expect(recv, fd, "unread");
  check(send(fd, "two", 3, 0) == 3 && send(peer, "too", 3, 0) == 3);
  expect(recv, peer, "two");
  expect(recv, fd, "too");
  check(send(peer, "again unread", 12, 0) == 12);
  arrives(fd, &kernels);

  /* And back. */
  take(&kernels, fd, &dump);
  run("ip address del " OWN "/32 dev lo && ip address del " PEER "/32 dev lo");
  check(fb_start(stack) == 0);
  fd = put(&ours, &dump);
  expect(fb_recv, fd, "again unread");
  check(fb_send(fd, "three", 5, 0) == 5 && send(peer, "end", 3, 0) == 3);
  expect(recv, peer, "three");
  expect(fb_recv, fd, "end");
  check(fb_close(fd) == 0 && recv(peer, &dump, 1, 0) == 0 && close(peer) == 0);
  return 0;
}
