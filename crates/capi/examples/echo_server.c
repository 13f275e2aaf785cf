/*
 * An echo server on its own TCP/IP stack: epoll, many connections, Fast Open.
 *
 *   echo_server PORT 'STACK'          fb_start() in firstbyte.h has the syntax of STACK
 *
 * For example, as root, and then in another terminal of the same machine:
 *
 *   ./echo_server 7 'device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24'
 *   echo hello | nc -N 10.0.0.2 7
 *
 * SIGINT or SIGTERM ends it, after the echoed data is delivered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firstbyte.h"

enum { BUFFER = 65536, EVENTS = 64, FAST_OPEN_QUEUE = 256 };

struct connection {
  int fd;
  size_t begin, end; /* bytes that were read and not yet written back */
  char buffer[BUFFER];
};

static volatile sig_atomic_t ended;

static void end(int signal) {
  (void)signal;
  ended = 1;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

/* Waits for data, or for room while data waits to be written. */
static void watch(int epoll, int operation, struct connection *connection) {
  struct epoll_event event = {0};
  event.events = connection->begin < connection->end ? EPOLLOUT : EPOLLIN;
  event.data.ptr = connection;
  if (fb_epoll_ctl(epoll, operation, connection->fd, &event) != 0)
    fail("epoll_ctl");
}

static void take(int epoll, int listener) {
  int fd = fb_accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  struct connection *connection;
  if (fd < 0) {
    if (errno != EAGAIN && errno != ECONNABORTED)
      fail("accept");
    return;
  }
  connection = malloc(sizeof *connection);
  if (connection == NULL)
    fail("malloc");
  connection->fd = fd;
  connection->begin = connection->end = 0;
  watch(epoll, EPOLL_CTL_ADD, connection);
}

/* Echoes until a call would wait. Returns 0 at the end of the connection. */
static int echo(struct connection *c) {
  for (;;) {
    ssize_t count;
    if (c->begin == c->end) {
      count = fb_read(c->fd, c->buffer, BUFFER);
      if (count <= 0)
        return count < 0 && errno == EAGAIN;
      c->begin = 0;
      c->end = (size_t)count;
    }
    count = fb_send(c->fd, c->buffer + c->begin, c->end - c->begin, MSG_NOSIGNAL);
    if (count < 0)
      return errno == EAGAIN;
    c->begin += (size_t)count;
  }
}

static int listen_on(int port) {
  int listener = fb_socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
  int on = 1, queue = FAST_OPEN_QUEUE;
  struct sockaddr_in6 any = {0};
  any.sin6_family = AF_INET6; /* also IPv4, by mapped addresses */
  any.sin6_port = htons((uint16_t)port);
  if (listener < 0)
    fail("socket");
  if (fb_setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
    fail("SO_REUSEADDR");
  if (fb_setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof queue) != 0)
    fail("TCP_FASTOPEN");
  if (fb_bind(listener, (struct sockaddr *)&any, sizeof any) != 0)
    fail("bind");
  if (fb_listen(listener, 1024) != 0)
    fail("listen");
  return listener;
}

int main(int argc, char **argv) {
  struct sigaction action = {0};
  sigset_t ends, before;
  struct epoll_event event = {0}, events[EVENTS];
  int listener, epoll;

  if (argc != 3) {
    fprintf(stderr, "usage: %s PORT 'device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24'\n", argv[0]);
    return 2;
  }
  action.sa_handler = end;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  /* Signals arrive only during the wait: one just before the wait would not end it. */
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, &before);
  if (fb_start(argv[2]) != 0) {
    fprintf(stderr, "%s: %s\n", argv[0], fb_error());
    return 1;
  }
  listener = listen_on(atoi(argv[1]));
  epoll = fb_epoll_create1(0);
  event.events = EPOLLIN;
  if (epoll < 0 || fb_epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
    fail("epoll");
  printf("listening on port %s\n", argv[1]);
  fflush(stdout);

  while (!ended) {
    int at, count = fb_epoll_pwait(epoll, events, EVENTS, -1, &before);
    if (count < 0 && errno != EINTR)
      fail("epoll_wait");
    for (at = 0; at < count; at++) {
      struct connection *connection = events[at].data.ptr;
      if (connection == NULL) {
        take(epoll, listener);
      } else if (echo(connection)) {
        watch(epoll, EPOLL_CTL_MOD, connection);
      } else {
        fb_close(connection->fd);
        free(connection);
      }
    }
  }
  if (fb_stop(-1) != 0) {
    fprintf(stderr, "%s: %s\n", argv[0], fb_error());
    return 1;
  }
  return 0;
}
