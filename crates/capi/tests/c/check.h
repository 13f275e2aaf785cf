/* Shared by the programs of these tests. A failed check prints its place and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "firstbyte.h"

#define check(condition) check_at(condition, #condition, __LINE__)
#define fails(call, expected) fails_at((errno = 0, (long)(call)), #call, expected, __LINE__)

static volatile sig_atomic_t signals;

static inline void count_signal(int signal) {
  (void)signal;
  signals++;
}

static inline void handle(int signal, int flags) {
  struct sigaction action = {0};
  action.sa_handler = count_signal;
  action.sa_flags = flags;
  sigaction(signal, &action, NULL);
}

static inline void check_at(int holds, const char *what, int line) {
  if (!holds) {
    fprintf(stderr, "line %d: %s does not hold (errno %d, %s)\n", line, what, errno, strerror(errno));
    _exit(1);
  }
}

static inline void fails_at(long result, const char *call, int expected, int line) {
  int seen = errno;
  if (result != -1 || seen != expected) {
    fprintf(stderr, "line %d: %s gave %ld, errno %d (%s); expected -1, errno %d (%s)\n", line, call, result, seen,
            strerror(seen), expected, strerror(expected));
    _exit(1);
  }
}

static inline struct sockaddr_in ipv4(const char *address, int port) {
  struct sockaddr_in name = {0};
  name.sin_family = AF_INET;
  name.sin_port = htons((uint16_t)port);
  inet_pton(AF_INET, address, &name.sin_addr);
  return name;
}

#endif
