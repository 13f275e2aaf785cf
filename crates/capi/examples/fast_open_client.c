/*
 * A Fast Open client on its own TCP/IP stack: sends the request on the SYN, and reports whether the
 * server accepted it.
 *
 *   fast_open_client ADDRESS PORT REQUEST TIMES 'STACK'
 *
 * fb_start() in firstbyte.h has the syntax of STACK. For example, as root, with a server on this
 * machine's kernel (sysctl net.ipv4.tcp_fastopen=3, and TCP_FASTOPEN on its socket):
 *
 *   STACK='device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24'
 *   ./fast_open_client 10.0.0.1 7 hello 2 "$STACK"
 *   1: not on the SYN, 5 bytes of reply
 *   2: accepted on the SYN, 5 bytes of reply
 *
 * The first visit requests a cookie. With `cache FILE` in STACK, the next run still has the cookie.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firstbyte.h"

static void fail(const char *what) {
  perror(what);
  exit(1);
}

/* Accepts IPv4 and IPv6. */
static socklen_t address_of(const char *text, const char *port, struct sockaddr_storage *address) {
  struct sockaddr_in *v4 = (struct sockaddr_in *)address;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
  memset(address, 0, sizeof *address);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)atoi(port));
    return sizeof *v4;
  }
  if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)atoi(port));
    return sizeof *v6;
  }
  fprintf(stderr, "%s is no address\n", text);
  exit(2);
}

static void visit(int number, const struct sockaddr_storage *to, socklen_t to_len, const char *request) {
  int fd = fb_socket(to->ss_family, SOCK_STREAM, 0);
  struct tcp_info info;
  socklen_t info_len = sizeof info;
  size_t received = 0;
  char reply[4096];

  if (fd < 0)
    fail("socket");
  /* Connects and sends in one call: on the SYN with a cookie, else after the handshake. */
  if (fb_sendto(fd, request, strlen(request), MSG_FASTOPEN, (const struct sockaddr *)to, to_len) < 0)
    fail("sendto");
  if (fb_shutdown(fd, SHUT_WR) != 0)
    fail("shutdown");
  for (;;) {
    ssize_t count = fb_read(fd, reply, sizeof reply);
    if (count < 0)
      fail("read");
    if (count == 0)
      break;
    received += (size_t)count;
  }
  if (fb_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) != 0)
    fail("TCP_INFO");
  printf("%d: %s on the SYN, %zu bytes of reply\n", number, info.tcpi_options & TCPI_OPT_SYN_DATA ? "accepted" : "not",
         received);
  fflush(stdout);
  fb_close(fd);
}

int main(int argc, char **argv) {
  struct sockaddr_storage to;
  socklen_t to_len;
  int number;

  if (argc != 6) {
    fprintf(stderr, "usage: %s ADDRESS PORT REQUEST TIMES 'device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24'\n",
            argv[0]);
    return 2;
  }
  to_len = address_of(argv[1], argv[2], &to);
  if (fb_start(argv[5]) != 0) {
    fprintf(stderr, "%s: %s\n", argv[0], fb_error());
    return 1;
  }
  for (number = 1; number <= atoi(argv[4]); number++)
    visit(number, &to, to_len, argv[3]);
  /* The return of main closes the connections, and waits for the peers. */
  return 0;
}
