/* What C programs do with sockets beside calling them one after another. The stack hears only itself. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define check(what)                                                                                                     \
  do {                                                                                                                  \
    if (!(what)) {                                                                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno));                                   \
      _exit(1);                                                                                                         \
    }                                                                                                                   \
  } while (0)

/* Nothing of this takes a minute: it hangs. */
static void *watchdog(void *argument) {
  sigset_t all;
  (void)argument;
  /* The handlers run in the other thread. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  sleep(60);
  fprintf(stderr, "it hangs\n");
  _exit(3);
}

static void pair(int port, int ends[2]) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr("10.0.0.2")};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  check(listener >= 0 && bind(listener, (struct sockaddr *)&own, sizeof own) == 0 && listen(listener, 8) == 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(ends[0], (struct sockaddr *)&own, sizeof own) == 0);
  check(setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
  ends[1] = accept(listener, NULL, NULL);
  check(ends[1] >= 0 && close(listener) == 0);
}

static int waited_for;
static atomic_int cleaned;

static void clean(void *argument) {
  (void)argument;
  atomic_fetch_add(&cleaned, 1);
}

static void *receives(void *argument) {
  char byte;
  (void)argument;
  pthread_cleanup_push(clean, NULL);
  recv(waited_for, &byte, 1, 0);
  pthread_cleanup_pop(1);
  return NULL;
}

static void *polls(void *argument) {
  struct pollfd entry = {.fd = waited_for, .events = POLLIN};
  (void)argument;
  pthread_cleanup_push(clean, NULL);
  poll(&entry, 1, -1);
  pthread_cleanup_pop(1);
  return NULL;
}

static void cancelled(void *(*body)(void *), int port) {
  int ends[2], before = atomic_load(&cleaned);
  pthread_t thread;
  void *result;
  char byte;
  pair(port, ends);
  waited_for = ends[1];
  check(pthread_create(&thread, NULL, body, NULL) == 0);
  /* Most often it is asleep in its call by then; it must end as well if it is not there yet. */
  usleep(20000);
  check(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
  check(result == PTHREAD_CANCELED && atomic_load(&cleaned) == before + 1);
  /* The socket is as it was. */
  check(send(ends[0], "a", 1, 0) == 1 && recv(ends[1], &byte, 1, 0) == 1 && byte == 'a');
  check(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static int told;
static volatile sig_atomic_t sent_by_handler;

static void tell(int number) {
  int before = errno;
  (void)number;
  if (send(told, "t", 1, MSG_DONTWAIT) == 1)
    sent_by_handler++;
  errno = before;
}

static void handlers_send(void) {
  struct sigaction action = {.sa_handler = tell, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  int own[2], of_handler[2], at;
  char bytes[4096];
  long got = 0;
  pair(31, own);
  pair(32, of_handler);
  told = of_handler[0];
  check(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  for (at = 0; at < 3000 || sent_by_handler < 100; at++) {
    /* A handler may interrupt this, too, and the calls below. */
    void *memory[64];
    for (int i = 0; i < 64; i++)
      memory[i] = malloc(100 * i);
    for (int i = 0; i < 64; i++)
      free(memory[i]);
    check(send(own[0], "m", 1, 0) == 1);
    check(recv(own[1], bytes, sizeof bytes, 0) == 1);
    while (recv(of_handler[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
      ;
  }
  check(setitimer(ITIMER_REAL, &never, NULL) == 0);
  check(shutdown(told, SHUT_WR) == 0);
  while ((got = recv(of_handler[1], bytes, sizeof bytes, 0)) > 0)
    ;
  check(got == 0);
  check(close(own[0]) == 0 && close(own[1]) == 0 && close(of_handler[0]) == 0 && close(of_handler[1]) == 0);
}

static long peak_kib(void) {
  struct rusage usage;
  check(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_maxrss;
}

/* Of what is written only what there is room for is copied. Pages that are only read take no memory. */
static void large_writes_are_cheap(void) {
  size_t len = (size_t)1 << 30;
  char *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  long before = peak_kib();
  ssize_t sent;
  int ends[2];
  check(bytes != MAP_FAILED);
  pair(33, ends);
  check(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  sent = write(ends[0], bytes, len);
  check(sent > 0 && (size_t)sent < len);
  check(peak_kib() - before < 64 * 1024);
  check(close(ends[0]) == 0 && close(ends[1]) == 0 && munmap(bytes, len) == 0);
}

int main(void) {
  pthread_t dog;
  check(pthread_create(&dog, NULL, watchdog, NULL) == 0);
  large_writes_are_cheap();
  cancelled(receives, 21);
  cancelled(polls, 22);
  handlers_send();
  return 0;
}
