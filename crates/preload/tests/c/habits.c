/* Uses of sockets in C programs, beyond plain calls. The stack reaches only itself. */
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
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define check(what)                                                                                                     \
  do {                                                                                                                  \
    if (!(what)) {                                                                                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno));                                   \
      _exit(1);                                                                                                         \
    }                                                                                                                   \
  } while (0)

/* Nothing here takes a minute unless it hangs. */
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

/* A write copies only the bytes that fit. Pages that are only read take no memory. */
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

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the peer has everything, and no longer. */
static void a_close_lingers_until_all_is_acknowledged(void) {
  struct linger patience = {1, 20};
  long begun = now_ms();
  int ends[2];
  pair(40, ends);
  check(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &patience, sizeof patience) == 0);
  check(send(ends[0], "a", 1, 0) == 1 && close(ends[0]) == 0 && now_ms() - begun < 5000);
  check(close(ends[1]) == 0);
}

/* As tokio and mio do: sockets are added by one number, and waited for by another. */
static void an_instance_has_several_numbers(void) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7}, got;
  int ends[2], epoll = epoll_create1(EPOLL_CLOEXEC), other = fcntl(epoll, F_DUPFD_CLOEXEC, 0);
  pair(34, ends);
  check(epoll >= 0 && other >= 0 && epoll_ctl(other, EPOLL_CTL_ADD, ends[1], &event) == 0);
  check(epoll_wait(epoll, &got, 1, 0) == 0);
  check(send(ends[0], "a", 1, 0) == 1);
  check(epoll_wait(epoll, &got, 1, 5000) == 1 && got.data.u64 == 7);
  check(close(other) == 0);
  check(epoll_wait(epoll, &got, 1, 5000) == 1 && got.data.u64 == 7);
  check(close(epoll) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void *waits_in_epoll(void *argument) {
  struct epoll_event got;
  check(epoll_wait(*(int *)argument, &got, 1, -1) == 1);
  return (void *)(long)got.data.u64;
}

/* A waiting thread notices sockets that are added later, of the stack and of the kernel. */
static void a_socket_is_added_while_others_wait(void) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 8}, got;
  int ends[2], kernels[2], epoll = epoll_create1(0);
  pthread_t thread;
  void *result;
  check(epoll_wait(epoll, &got, 1, 20) == 0);
  pair(35, ends);
  check(send(ends[0], "a", 1, 0) == 1);
  check(pthread_create(&thread, NULL, waits_in_epoll, &epoll) == 0);
  usleep(20000);
  check(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event) == 0);
  check(pthread_join(thread, &result) == 0 && (long)result == 8);
  check(close(epoll) == 0);
  epoll = epoll_create1(0);
  event.data.u64 = 9;
  check(pipe(kernels) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, kernels[0], &event) == 0);
  check(pthread_create(&thread, NULL, waits_in_epoll, &epoll) == 0);
  usleep(20000);
  check(write(kernels[1], "a", 1) == 1);
  check(pthread_join(thread, &result) == 0 && (long)result == 9);
  check(close(epoll) == 0 && close(kernels[0]) == 0 && close(kernels[1]) == 0);
  check(close(ends[0]) == 0 && close(ends[1]) == 0);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);

/* The call that a compiler emits for ppoll with _FORTIFY_SOURCE. */
static void checked_calls_are_ours_too(void) {
  struct pollfd entry = {.events = POLLIN};
  struct timespec never = {0, 0};
  int ends[2];
  pair(36, ends);
  entry.fd = ends[1];
  check(__ppoll_chk(&entry, 1, &never, NULL, sizeof entry) == 0 && entry.revents == 0);
  check(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* A connection without a free number stays in the queue. */
static void who_finds_no_number_is_accepted_later(void) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(37), .sin_addr.s_addr = inet_addr("10.0.0.2")};
  int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), accepted;
  struct rlimit before, full;
  struct timeval patience = {5, 0};
  struct sockaddr_in peer;
  char byte;
  check(bind(listener, (struct sockaddr *)&own, sizeof own) == 0 && listen(listener, 8) == 0);
  check(connect(client, (struct sockaddr *)&own, sizeof own) == 0 && send(client, "a", 1, 0) == 1);
  check(getrlimit(RLIMIT_NOFILE, &before) == 0);
  full = before;
  accepted = dup(0);
  check(accepted >= 0 && close(accepted) == 0);
  full.rlim_cur = (rlim_t)accepted;
  check(setrlimit(RLIMIT_NOFILE, &full) == 0);
  check(accept(listener, NULL, NULL) == -1 && errno == EMFILE);
  check(setrlimit(RLIMIT_NOFILE, &before) == 0);
  accepted = accept(listener, NULL, NULL);
  check(accepted >= 0 && recv(accepted, &byte, 1, 0) == 1 && byte == 'a');
  check(close(accepted) == 0 && close(client) == 0);
  /* One whose address cannot be told is closed, as nobody knows its number. */
  client = socket(AF_INET, SOCK_STREAM, 0);
  check(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  check(connect(client, (struct sockaddr *)&own, sizeof own) == 0);
  check(accept(listener, (struct sockaddr *)&peer, NULL) == -1 && errno == EFAULT);
  check(recv(client, &byte, 1, 0) == 0);
  check(close(client) == 0 && close(listener) == 0);
}

/* Numbers that are reused afterwards are not sockets of the stack. */
static void many_are_closed_at_once(void) {
  int low = socket(AF_INET, SOCK_STREAM, 0), high = socket(AF_INET, SOCK_STREAM, 0), file;
  char byte;
  check(low >= 0 && high == low + 1 && close_range((unsigned)low, (unsigned)high, 0) == 0);
  file = open("/dev/null", O_RDONLY);
  check(file == low && read(file, &byte, 1) == 0 && close(file) == 0);
}

enum { MUCH = 4 << 20 };
static unsigned numbers[MUCH / sizeof(unsigned)];

static void *sends_much(void *argument) {
  size_t sent = 0;
  while (sent < MUCH) {
    ssize_t now = send(*(int *)argument, (char *)numbers + sent, MUCH - sent, 0);
    check(now > 0);
    sent += (size_t)now;
  }
  return NULL;
}

/* More bytes than the receive buffer holds. */
static void a_call_waits_for_all_of_it(void) {
  static unsigned got[MUCH / sizeof(unsigned)];
  int ends[2];
  pthread_t thread;
  pair(38, ends);
  for (size_t at = 0; at < MUCH / sizeof(unsigned); at++)
    numbers[at] = (unsigned)at;
  check(pthread_create(&thread, NULL, sends_much, &ends[0]) == 0);
  check(recv(ends[1], got, MUCH, MSG_WAITALL) == MUCH && memcmp(got, numbers, MUCH) == 0);
  check(pthread_join(thread, NULL) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void interrupts(int number) { (void)number; }

static void *reads_slowly(void *argument) {
  unsigned expected = 0, part[2000];
  size_t have = 0;
  ssize_t now;
  while ((now = recv(*(int *)argument, (char *)part + have, sizeof part - have, 0)) > 0) {
    size_t whole = (have + (size_t)now) / sizeof(unsigned);
    for (size_t at = 0; at < whole; at++)
      check(part[at] == expected++);
    have = (have + (size_t)now) % sizeof(unsigned);
    memmove(part, part + whole, have);
    usleep(200);
  }
  check(now == 0 && have == 0 && expected == MUCH / sizeof(unsigned));
  return NULL;
}

/* Bytes that were accepted before a signal are not sent twice. */
static void an_interrupted_sendfile_knows_where_it_was(void) {
  struct sigaction action = {.sa_handler = interrupts};
  struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
  FILE *file = tmpfile();
  int ends[2], small = 8192, interrupted = 0;
  sigset_t alarm;
  off_t offset = 0;
  pthread_t thread;
  pair(39, ends);
  check(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  check(file && fwrite(numbers, 1, MUCH, file) == MUCH && fflush(file) == 0);
  check(sigemptyset(&alarm) == 0 && sigaddset(&alarm, SIGALRM) == 0);
  check(pthread_sigmask(SIG_BLOCK, &alarm, NULL) == 0);
  check(pthread_create(&thread, NULL, reads_slowly, &ends[1]) == 0);
  check(pthread_sigmask(SIG_UNBLOCK, &alarm, NULL) == 0);
  check(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (offset < MUCH) {
    off_t before = offset;
    ssize_t sent = sendfile(ends[0], fileno(file), &offset, (size_t)(MUCH - offset));
    check(sent >= 0 ? offset == before + sent : errno == EINTR && offset == before);
    interrupted += offset < MUCH;
  }
  check(setitimer(ITIMER_REAL, &never, NULL) == 0 && interrupted > 0);
  check(close(ends[0]) == 0 && pthread_join(thread, NULL) == 0 && close(ends[1]) == 0 && fclose(file) == 0);
}

int main(void) {
  pthread_t dog;
  check(pthread_create(&dog, NULL, watchdog, NULL) == 0);
  large_writes_are_cheap();
  cancelled(receives, 21);
  cancelled(polls, 22);
  handlers_send();
  a_close_lingers_until_all_is_acknowledged();
  an_instance_has_several_numbers();
  a_socket_is_added_while_others_wait();
  checked_calls_are_ours_too();
  who_finds_no_number_is_accepted_later();
  many_are_closed_at_once();
  a_call_waits_for_all_of_it();
  an_interrupted_sendfile_knows_where_it_was();
  return 0;
}
