/* Waiting for readiness: signals that only the mask of the call admits, and descriptors of the
   kernel among those of the library. The checks of signals also run with libc's calls. Needs no
   root. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#include "check.h"

struct calls {
  const char *whose;
  int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
  int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
  int (*epoll_create1)(int);
  int (*epoll_ctl)(int, int, int, struct epoll_event *);
  int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
  int (*epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
  int (*close)(int);
};

static const struct calls kernels = {"the kernel", ppoll,       pselect,      epoll_create1,
                                     epoll_ctl,    epoll_pwait, epoll_pwait2, close};
static const struct calls ours = {"the library", fb_ppoll,       fb_pselect,      fb_epoll_create1,
                                  fb_epoll_ctl,  fb_epoll_pwait, fb_epoll_pwait2, fb_close};

static sigset_t without_usr1;

static int listener_on(int port) {
  struct sockaddr_in own = ipv4("10.0.0.2", port);
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fb_bind(fd, (struct sockaddr *)&own, sizeof own) == 0 && fb_listen(fd, 16) == 0);
  return fd;
}

struct ends {
  int client, server;
};

static struct ends connection(int port) {
  struct sockaddr_in own = ipv4("10.0.0.2", port);
  struct ends ends;
  int listener = listener_on(port);
  ends.client = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fb_connect(ends.client, (struct sockaddr *)&own, sizeof own) == 0);
  ends.server = fb_accept(listener, NULL, NULL);
  check(ends.server >= 0 && fb_close(listener) == 0);
  return ends;
}

/* The four ways to wait with a mask until one descriptor is readable. */
enum way { POLL, SELECT, EPOLL, EPOLL2, WAYS };

static int wait_by(const struct calls *calls, enum way way, int fd, int epoll, const struct timespec *most) {
  struct pollfd entry = {fd, POLLIN, 0};
  struct epoll_event event;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  switch (way) {
  case POLL:
    return calls->ppoll(&entry, 1, most, &without_usr1);
  case SELECT:
    return calls->pselect(fd + 1, &set, NULL, NULL, most, &without_usr1);
  case EPOLL:
    return calls->epoll_pwait(epoll, &event, 1, most == NULL ? -1 : (int)(most->tv_sec * 1000 + most->tv_nsec / 1000000),
                              &without_usr1);
  default:
    return calls->epoll_pwait2(epoll, &event, 1, most, &without_usr1);
  }
}

static int is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal);
}

/* A signal came before the call: only the mask admits it. */
static void pending_before(const struct calls *calls, int silent, int readable) {
  static const struct timespec at_once = {0, 0}, long_time = {10, 0};
  const struct timespec *times[] = {&at_once, &long_time, NULL};
  struct epoll_event event = {.events = EPOLLIN};
  int way, time, of_silent = calls->epoll_create1(0), of_readable = calls->epoll_create1(0);
  check(calls->epoll_ctl(of_silent, EPOLL_CTL_ADD, silent, &event) == 0);
  check(calls->epoll_ctl(of_readable, EPOLL_CTL_ADD, readable, &event) == 0);
  for (way = POLL; way < WAYS; way++)
    for (time = 0; time < 3; time++) {
      long before = signals;
      raise(SIGUSR1);
      check(signals == before && is_pending(SIGUSR1));
      /* A ready descriptor is reported, and the signal stays pending. */
      check(wait_by(calls, way, readable, of_readable, times[time]) == 1);
      check(signals == before && is_pending(SIGUSR1));
      if (times[time] == &at_once && (way == EPOLL || way == EPOLL2)) {
        /* epoll looks at signals only if it waits */
        check(wait_by(calls, way, silent, of_silent, times[time]) == 0);
        check(signals == before && is_pending(SIGUSR1));
        sigsuspend(&without_usr1);
      } else
        fails(wait_by(calls, way, silent, of_silent, times[time]), EINTR);
      check(signals == before + 1 && !is_pending(SIGUSR1));
    }
  check(calls->close(of_silent) == 0 && calls->close(of_readable) == 0);
}

struct sender {
  pthread_t to;
  volatile int done;
};

/* Sends the next signal after the handler has run, at varying intervals. */
static void *keep_sending(void *argument) {
  struct sender *sender = argument;
  unsigned int seed = 7;
  while (!sender->done) {
    struct timespec pause = {0, rand_r(&seed) % 100000};
    long before = signals;
    nanosleep(&pause, NULL);
    pthread_kill(sender->to, SIGUSR1);
    while (signals == before && !sender->done)
      nanosleep(&pause, NULL);
  }
  return NULL;
}

/* Signals come at any time, and each ends one wait: no handler runs while the wait continues. */
static void at_any_time(const struct calls *calls, int silent) {
  static const struct timespec long_time = {10, 0};
  struct epoll_event event = {.events = EPOLLIN};
  struct sender sender = {pthread_self(), 0};
  pthread_t thread;
  int round, epoll = calls->epoll_create1(0);
  check(calls->epoll_ctl(epoll, EPOLL_CTL_ADD, silent, &event) == 0);
  check(pthread_create(&thread, NULL, keep_sending, &sender) == 0);
  for (round = 0; round < 2000; round++) {
    long before = signals;
    fails(wait_by(calls, (enum way)(round % WAYS), silent, epoll, round % 2 ? &long_time : NULL), EINTR);
    check(signals == before + 1);
  }
  sender.done = 1;
  pthread_join(thread, NULL);
  while (is_pending(SIGUSR1))
    sigsuspend(&without_usr1);
  check(calls->close(epoll) == 0);
}

static void signals_and_masks(void) {
  struct ends ends = connection(10);
  struct pollfd arrives = {ends.server, POLLIN, 0};
  sigset_t blocked;
  int pipes[2], ready[2];
  check(pipe(pipes) == 0 && pipe(ready) == 0 && write(ready[1], "x", 1) == 1);
  check(fb_write(ends.client, "x", 1) == 1 && fb_poll(&arrives, 1, 10000) == 1);
  handle(SIGUSR1, SA_RESTART);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  check(pthread_sigmask(SIG_BLOCK, &blocked, &without_usr1) == 0);

  pending_before(&kernels, pipes[0], ready[0]);
  pending_before(&ours, ends.client, ends.server);
  pending_before(&ours, ends.client, ready[0]);
  pending_before(&ours, pipes[0], ends.server);
  at_any_time(&kernels, pipes[0]);
  at_any_time(&ours, ends.client);
  at_any_time(&ours, pipes[0]);

  check(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL) == 0);
  check(fb_close(ends.client) == 0 && fb_close(ends.server) == 0);
  close(pipes[0]), close(pipes[1]), close(ready[0]), close(ready[1]);
}

/* Which of a socket (1) and a pipe (2) are readable. */
static int by_poll(int socket, int pipe, int most_ms) {
  struct pollfd entries[3] = {{socket, POLLIN, -1}, {-1, POLLIN, -1}, {pipe, POLLIN, -1}};
  int found = fb_poll(entries, 3, most_ms);
  check(found == (entries[0].revents != 0) + (entries[2].revents != 0) && entries[1].revents == 0);
  return (entries[0].revents == POLLIN) + 2 * (entries[2].revents == POLLIN);
}

static int by_select(int socket, int pipe, int most_ms) {
  struct timeval most = {most_ms / 1000, most_ms % 1000 * 1000};
  fd_set read;
  int found;
  FD_ZERO(&read);
  FD_SET(socket, &read);
  FD_SET(pipe, &read);
  found = fb_select(socket + 1, &read, NULL, NULL, most_ms < 0 ? NULL : &most);
  check(found == !!FD_ISSET(socket, &read) + !!FD_ISSET(pipe, &read));
  return !!FD_ISSET(socket, &read) + 2 * !!FD_ISSET(pipe, &read);
}

static int watching(int socket, int pipe) {
  struct epoll_event first = {.events = EPOLLIN, .data.u64 = 1}, second = {.events = EPOLLIN, .data.u64 = 2};
  int epoll = fb_epoll_create1(0);
  check(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &first) == 0);
  check(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, pipe, &second) == 0);
  return epoll;
}

static int by_epoll(int socket, int pipe, int most_ms) {
  struct epoll_event events[4];
  int epoll = watching(socket, pipe), found = fb_epoll_wait(epoll, events, 4, most_ms), at, seen = 0;
  for (at = 0; at < found; at++) {
    check(events[at].events == EPOLLIN);
    seen += (int)events[at].data.u64;
  }
  check(found >= 0 && fb_close(epoll) == 0);
  return seen;
}

/* poll waits for an instance that watches another one: it is readable if that has an event. */
static int by_nested_epoll(int socket, int pipe, int most_ms) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7}, found;
  int inner = watching(socket, pipe), outer = fb_epoll_create1(0), seen = 0, ready;
  struct pollfd entry = {outer, POLLIN, 0};
  check(fb_epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) == 0);
  ready = fb_poll(&entry, 1, most_ms);
  check(fb_epoll_wait(outer, &found, 1, 0) == ready);
  if (ready == 1) {
    struct epoll_event events[2];
    int at, count = fb_epoll_wait(inner, events, 2, 0);
    check(found.data.u64 == 7 && count >= 1 && entry.revents == POLLIN);
    for (at = 0; at < count; at++)
      seen += (int)events[at].data.u64;
  }
  check(fb_close(outer) == 0 && fb_close(inner) == 0);
  return seen;
}

struct later {
  struct ends ends;
  int pipe;
};

static void *write_later(void *argument) {
  struct later *later = argument;
  struct timespec pause = {0, 30000000};
  nanosleep(&pause, NULL);
  if (later->pipe >= 0)
    check(write(later->pipe, "3", 1) == 1);
  else
    check(fb_write(later->ends.client, "3", 1) == 1);
  return NULL;
}

static void both_kinds(int port, int (*look)(int, int, int)) {
  struct ends ends = connection(port);
  int pipes[2], kind;
  char byte;
  check(pipe(pipes) == 0);
  check(look(ends.server, pipes[0], 0) == 0 && look(ends.server, pipes[0], 20) == 0);
  check(write(pipes[1], "1", 1) == 1);
  check(look(ends.server, pipes[0], 5000) == 2 && look(ends.server, pipes[0], -1) == 2);
  check(fb_write(ends.client, "2", 1) == 1);
  while (look(ends.server, pipes[0], 5000) != 3)
    ;
  check(read(pipes[0], &byte, 1) == 1 && look(ends.server, pipes[0], 5000) == 1);
  check(fb_read(ends.server, &byte, 1) == 1 && look(ends.server, pipes[0], 0) == 0);
  /* Asleep, and woken by a descriptor of either kind. */
  for (kind = 1; kind <= 2; kind++) {
    struct later later = {ends, kind == 2 ? pipes[1] : -1};
    pthread_t thread;
    check(pthread_create(&thread, NULL, write_later, &later) == 0);
    check(look(ends.server, pipes[0], 10000) == kind);
    check((kind == 1 ? fb_read(ends.server, &byte, 1) : read(pipes[0], &byte, 1)) == 1 && byte == '3');
    pthread_join(thread, NULL);
  }
  check(fb_close(ends.client) == 0 && fb_close(ends.server) == 0);
  close(pipes[0]), close(pipes[1]);
}

/* With room for one event, both kinds get their turn. */
static void one_at_a_time(void) {
  struct ends ends = connection(11);
  struct epoll_event event;
  int counter = eventfd(1, 0), epoll = watching(ends.server, counter), seen[3] = {0, 0, 0}, at;
  check(fb_write(ends.client, "x", 1) == 1);
  check(by_poll(ends.server, counter, 5000) >= 2);
  while (by_poll(ends.server, counter, 5000) != 3)
    ;
  for (at = 0; at < 10; at++) {
    check(fb_epoll_wait(epoll, &event, 1, 5000) == 1);
    seen[event.data.u64]++;
  }
  check(seen[1] == 5 && seen[2] == 5);
  check(fb_close(epoll) == 0 && fb_close(ends.client) == 0 && fb_close(ends.server) == 0);
  close(counter);
}

struct waiting {
  int epoll, seen;
};

static void *wait_once(void *argument) {
  struct waiting *waiting = argument;
  struct epoll_event event;
  check(fb_epoll_wait(waiting->epoll, &event, 1, 10000) == 1);
  waiting->seen = (int)event.data.u64;
  return NULL;
}

/* The first descriptor of the kernel is added while a thread waits. */
static void added_meanwhile(void) {
  struct waiting waiting = {fb_epoll_create1(0), 0};
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 5};
  struct timespec pause = {0, 30000000};
  int counter = eventfd(0, 0), again;
  pthread_t thread;
  check(pthread_create(&thread, NULL, wait_once, &waiting) == 0);
  nanosleep(&pause, NULL);
  check(fb_epoll_ctl(waiting.epoll, EPOLL_CTL_ADD, counter, &event) == 0);
  nanosleep(&pause, NULL);
  check(eventfd_write(counter, 1) == 0);
  pthread_join(thread, NULL);
  check(waiting.seen == 5);
  /* A duplicate is the same instance; closing the last number closes both parts. */
  again = fb_dup(waiting.epoll);
  check(again >= 0 && fb_close(waiting.epoll) == 0 && fb_epoll_wait(again, &event, 1, 0) == 1 && fb_close(again) == 0);
  check(close(counter) == 0);
}

static void wrong_ones(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int pipes[2], file = open("/proc/self/exe", O_RDONLY), epoll = fb_epoll_create1(0), fd = listener_on(12), closed = 400;
  struct pollfd entries[2];
  fd_set set;
  check(pipe(pipes) == 0 && close(pipes[1]) == 0 && file >= 0);
  entries[0] = (struct pollfd){closed, POLLIN, 0};
  entries[1] = (struct pollfd){fd + 1000, POLLIN, 0};
  check(fb_poll(entries, 2, -1) == 2 && entries[0].revents == POLLNVAL && entries[1].revents == POLLNVAL);
  entries[0].fd = pipes[0];
  check(fb_poll(entries, 1, 0) == 1 && entries[0].revents == POLLHUP);
  FD_ZERO(&set);
  FD_SET(closed, &set);
  FD_SET(fd, &set);
  fails(fb_select(fd + 1, &set, NULL, NULL, NULL), EBADF);
  check(FD_ISSET(closed, &set) && FD_ISSET(fd, &set));
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, closed, &event), EBADF);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event), EPERM); /* a file is always ready */
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_MOD, pipes[0], &event), ENOENT);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_DEL, pipes[0], NULL), ENOENT);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], NULL), EFAULT);
  fails(fb_epoll_ctl(epoll, 9, pipes[0], &event), EINVAL);
  fails(fb_epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &event), EINVAL);
  /* an instance of the kernel cannot watch the library's descriptors */
  fails(fb_epoll_ctl(pipes[0], EPOLL_CTL_ADD, fd, &event), EBADF);
  check(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event) == 0);
  fails(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event), EEXIST);
  fails(fb_epoll_wait(epoll, NULL, 1, 0), EFAULT);
  check(fb_epoll_ctl(epoll, EPOLL_CTL_DEL, pipes[0], NULL) == 0 && fb_epoll_wait(epoll, &event, 1, 0) == 0);
  check(fb_close(epoll) == 0 && fb_close(fd) == 0);
  close(file), close(pipes[0]);
}

int main(void) {
  check(fb_start("device loopback; address 10.0.0.2/24") == 0);
  signals_and_masks();
  both_kinds(20, by_poll);
  both_kinds(21, by_select);
  both_kinds(22, by_epoll);
  both_kinds(23, by_nested_epoll);
  one_at_a_time();
  added_meanwhile();
  wrong_ones();
  return 0;
}
