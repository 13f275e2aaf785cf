/* Waiting calls in many threads, signals, fork, and the end of the stack. Needs no root. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

enum { CLIENTS = 24, ROUNDS = 20, LARGEST = 100000, PORT = 7 };

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int listener_on(int port) {
  struct sockaddr_in own = ipv4("10.0.0.2", port);
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fb_bind(fd, (struct sockaddr *)&own, sizeof own) == 0 && fb_listen(fd, 128) == 0);
  return fd;
}

static int connected_to(int port) {
  struct sockaddr_in own = ipv4("10.0.0.2", port);
  int fd = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fb_connect(fd, (struct sockaddr *)&own, sizeof own) == 0);
  return fd;
}

static pthread_t run(void *(*body)(void *), long argument) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, body, (void *)argument) == 0);
  return thread;
}

static void *echo(void *argument) {
  int fd = (int)(long)argument;
  char buffer[8192];
  ssize_t count;
  while ((count = fb_read(fd, buffer, sizeof buffer)) > 0)
    check(fb_write(fd, buffer, (size_t)count) == count);
  check(count == 0 && fb_close(fd) == 0);
  return NULL;
}

static void *serve(void *argument) {
  pthread_t threads[CLIENTS];
  int at;
  for (at = 0; at < CLIENTS; at++) {
    int fd = fb_accept((int)(long)argument, NULL, NULL);
    check(fd >= 0);
    threads[at] = run(echo, fd);
  }
  for (at = 0; at < CLIENTS; at++)
    pthread_join(threads[at], NULL);
  return NULL;
}

static void *write_all(void *argument) {
  long *task = argument;
  char *bytes = malloc(LARGEST);
  memset(bytes, (int)task[0], LARGEST);
  check(bytes != NULL && fb_write((int)task[0], bytes, (size_t)task[1]) == task[1]);
  free(bytes);
  return NULL;
}

/* Each client writes in one thread while it reads in another: neither waits for the other. */
static void *client(void *argument) {
  unsigned int seed = (unsigned int)(long)argument;
  int fd = connected_to(PORT), round;
  char *bytes = malloc(LARGEST);
  check(bytes != NULL);
  for (round = 0; round < ROUNDS; round++) {
    long task[2] = {fd, 1 + rand_r(&seed) % LARGEST}, at;
    pthread_t writer;
    check(pthread_create(&writer, NULL, write_all, task) == 0);
    check(fb_recv(fd, bytes, (size_t)task[1], MSG_WAITALL) == task[1]);
    for (at = 0; at < task[1]; at++)
      check(bytes[at] == (char)fd);
    pthread_join(writer, NULL);
  }
  free(bytes);
  check(fb_shutdown(fd, SHUT_WR) == 0 && fb_read(fd, &round, 1) == 0 && fb_close(fd) == 0);
  return NULL;
}

static void many_threads(void) {
  int listener = listener_on(PORT), at;
  pthread_t server = run(serve, listener), clients[CLIENTS];
  for (at = 0; at < CLIENTS; at++)
    clients[at] = run(client, at);
  for (at = 0; at < CLIENTS; at++)
    pthread_join(clients[at], NULL);
  pthread_join(server, NULL);
  check(fb_close(listener) == 0);
}

static void time_outs(void) {
  struct timeval most = {0, 30000};
  int listener = listener_on(8), epoll = fb_epoll_create1(0), client = connected_to(8);
  struct epoll_event event = {.events = EPOLLIN};
  struct pollfd entry = {client, POLLIN, 0};
  long begun = now_ms();
  char byte;
  check(fb_poll(&entry, 1, 30) == 0 && now_ms() - begun >= 30);
  check(fb_epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event) == 0);
  begun = now_ms();
  check(fb_epoll_wait(epoll, &event, 1, 30) == 0 && now_ms() - begun >= 30);
  check(fb_setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) == 0);
  begun = now_ms();
  fails(fb_read(client, &byte, 1), EAGAIN);
  check(now_ms() - begun >= 29);
  check(fb_close(client) == 0 && fb_close(epoll) == 0 && fb_close(listener) == 0);
}

/* Repeated, because the first may come before the call that it should interrupt. 0 ends it. */
static void alarm_every(int ms) {
  struct itimerval timer = {{0, ms * 1000}, {0, ms * 1000}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static volatile pid_t sleeper;

/* Marks the calling thread as the one that `await_sleeper` waits for. */
static void about_to_sleep(void) {
  sleeper = (pid_t)syscall(SYS_gettid);
}

/* Waits until that thread has been asleep for a while. */
static void await_sleeper(void) {
  struct timespec pause = {0, 1000000};
  int seen = 0;
  while (seen < 20) {
    char path[64], text[256] = "";
    const char *state;
    FILE *file;
    nanosleep(&pause, NULL);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)sleeper);
    file = sleeper == 0 ? NULL : fopen(path, "r");
    if (file == NULL)
      continue;
    state = fgets(text, sizeof text, file) == NULL ? NULL : strrchr(text, ')');
    seen = state != NULL && state[2] == 'S' ? seen + 1 : 0;
    fclose(file);
  }
  sleeper = 0;
}

/* Waits until the handler has run twice more. */
static void *connect_later(void *argument) {
  sigset_t all;
  long enough = signals + 2;
  struct timespec pause = {0, 1000000};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  while (signals < enough)
    nanosleep(&pause, NULL);
  check(fb_close(connected_to((int)(long)argument)) == 0);
  return NULL;
}

static void interruptions(void) {
  struct pollfd entry;
  int listener = listener_on(9), fd;
  pthread_t later;
  handle(SIGALRM, 0);
  alarm_every(20);
  fails(fb_accept(listener, NULL, NULL), EINTR);

  handle(SIGALRM, SA_RESTART);
  later = run(connect_later, 9);
  fd = fb_accept(listener, NULL, NULL); /* continues after the handler */
  check(fd >= 0);
  pthread_join(later, NULL);

  entry.fd = listener;
  entry.events = POLLIN;
  fails(fb_poll(&entry, 1, -1), EINTR);
  alarm_every(0);
  check(fb_close(fd) == 0 && fb_close(listener) == 0);
}

/* The call returns the bytes that it moved before the handler ran. */
static void interrupted_half_way(void) {
  int listener = listener_on(10), client = connected_to(10), server = fb_accept(listener, NULL, NULL);
  char bytes[10];
  ssize_t count;
  handle(SIGALRM, 0);
  check(fb_write(client, "abc", 3) == 3);
  alarm_every(20);
  do {
    count = fb_recv(server, bytes, sizeof bytes, MSG_WAITALL);
  } while (count < 0 && errno == EINTR); /* no byte had arrived yet */
  alarm_every(0);
  check(count == 3 && memcmp(bytes, "abc", 3) == 0);
  check(fb_close(client) == 0 && fb_close(server) == 0 && fb_close(listener) == 0);
}

static void *read_until_the_end(void *argument) {
  char bytes[10];
  int fd = (int)(long)argument;
  about_to_sleep();
  check(fb_recv(fd, bytes, 2, MSG_WAITALL) == 2 && memcmp(bytes, "ab", 2) == 0);
  return NULL;
}

static void *accept_one(void *argument) {
  int fd;
  about_to_sleep();
  fd = fb_accept((int)(long)argument, NULL, NULL);
  check(fd >= 0 && fb_close(fd) == 0);
  return NULL;
}

/* A waiting call keeps its socket, even if the number is closed and reused. */
static void closed_under_a_call(void) {
  int listener = listener_on(13), client = connected_to(13), server = fb_accept(listener, NULL, NULL), other;
  char byte;
  pthread_t reading = run(read_until_the_end, server), accepting;
  await_sleeper();
  check(fb_close(server) == 0);
  other = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(other == server);
  check(fb_write(client, "a", 1) == 1);
  fails(fb_recv(client, &byte, 1, MSG_DONTWAIT), EAGAIN); /* not closed yet */
  check(fb_write(client, "b", 1) == 1);
  pthread_join(reading, NULL);
  check(fb_read(client, &byte, 1) == 0); /* now it is */
  fails(fb_read(other, &byte, 1), ENOTCONN);
  check(fb_close(client) == 0);

  accepting = run(accept_one, listener);
  await_sleeper();
  check(fb_close(listener) == 0);
  check(fb_close(connected_to(13)) == 0);
  pthread_join(accepting, NULL);
  {
    struct sockaddr_in own = ipv4("10.0.0.2", 13);
    fails(fb_connect(other, (struct sockaddr *)&own, sizeof own), ECONNREFUSED);
  }
  check(fb_close(other) == 0);
}

/* fb_shutdown() ends a call of another thread. */
static void *read_the_end(void *argument) {
  char byte;
  about_to_sleep();
  check(fb_read((int)(long)argument, &byte, 1) == 0);
  return NULL;
}

static void shut_under_a_call(void) {
  int listener = listener_on(14), client = connected_to(14);
  pthread_t reading = run(read_the_end, client);
  await_sleeper();
  check(fb_shutdown(client, SHUT_RD) == 0);
  pthread_join(reading, NULL);
  check(fb_close(client) == 0 && fb_close(listener) == 0);
}

static void children(void) {
  int fd = listener_on(11), status = -1;
  pid_t child = fork();
  if (child == 0) {
    char byte;
    fails(fb_read(fd, &byte, 1), EBADF);
    fails(fb_socket(AF_INET, SOCK_STREAM, 0), ENETDOWN);
    check(fb_start("device loopback; address 10.0.0.9/24") == 0);
    check(fb_socket(AF_INET, SOCK_STREAM, 0) >= 0 && fb_stop(100) == 0);
    exit(0);
  }
  check(waitpid(child, &status, 0) == child && status == 0);
  check(fb_close(connected_to(11)) == 0 && fb_close(fd) == 0);
}

static void *accept_until_the_end(void *argument) {
  about_to_sleep();
  fails(fb_accept((int)(long)argument, NULL, NULL), ENETDOWN);
  return NULL;
}

static void the_end(void) {
  pthread_t waiting = run(accept_until_the_end, listener_on(12));
  await_sleeper();
  check(fb_stop(1000) == 0);
  pthread_join(waiting, NULL);
}

int main(void) {
  const char *stack = "device loopback; address 10.0.0.2/24; mtu 1500";
  check(fb_start(stack) == 0);
  many_threads();
  time_outs();
  interruptions();
  interrupted_half_way();
  closed_under_a_call();
  shut_under_a_call();
  children();
  the_end();
  /* Once more, from the beginning. */
  check(fb_start(stack) == 0);
  time_outs();
  return 0;
}
