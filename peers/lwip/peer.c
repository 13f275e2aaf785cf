/* lwIP as Debian packages it, a client and a server in its only instance: `exchange COUNT AT_ONCE
 * REQUEST RESPONSE`, or `bulk SECONDS`. Prints the CPU time as JSON. `cargo xtask peers` starts it.
 *
 * Every callback runs in lwIP's own thread. Its loopback copies each packet once. */
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORT 7000
#define MTU 1500
#define WARM_UP (4u << 20)

static struct netif link_to_itself;
static sem_t finished;
static char bytes[65536];

static long at_once, request, response;
static long to_start, running;
static unsigned long received;
static double seconds, started_at, spent;

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void require(int is_true, const char *what) {
  if (!is_true) {
    fprintf(stderr, "peer-lwip: failed: %s\n", what);
    exit(1);
  }
}

static void on_error(void *unused, err_t error) {
  (void)unused;
  fprintf(stderr, "peer-lwip: a connection ended with error %d\n", error);
  exit(1);
}

/* The exchange. The argument of a connection counts the bytes that it received. */

static void write_all(struct tcp_pcb *pcb, long len) {
  require(tcp_write(pcb, bytes, (u16_t)len, TCP_WRITE_FLAG_COPY) == ERR_OK, "write");
  require(tcp_output(pcb) == ERR_OK, "output");
}

static long take(void *argument, struct tcp_pcb *pcb, struct pbuf *data) {
  long count = (long)argument + data->tot_len;
  pbuf_copy_partial(data, bytes, data->tot_len, 0);
  tcp_recved(pcb, data->tot_len);
  pbuf_free(data);
  tcp_arg(pcb, (void *)count);
  return count;
}

static err_t server_receives(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t error) {
  (void)error;
  if (data == NULL)
    require(tcp_close(pcb) == ERR_OK, "close");
  else if (take(argument, pcb, data) == request)
    write_all(pcb, response);
  return ERR_OK;
}

static err_t server_accepts(void *unused, struct tcp_pcb *pcb, err_t error) {
  (void)unused;
  require(error == ERR_OK, "accept");
  tcp_nagle_disable(pcb);
  tcp_arg(pcb, NULL);
  tcp_recv(pcb, server_receives);
  return ERR_OK;
}

static void open_connection(void);

static err_t client_receives(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t error) {
  (void)error;
  if (data != NULL) {
    if (take(argument, pcb, data) == response)
      require(tcp_shutdown(pcb, 0, 1) == ERR_OK, "shutdown");
    return ERR_OK;
  }
  require((long)argument == response, "a whole response");
  tcp_err(pcb, NULL);
  require(tcp_close(pcb) == ERR_OK, "close");
  if (to_start > 0)
    open_connection();
  else if (--running == 0)
    sem_post(&finished);
  return ERR_OK;
}

static err_t client_connected(void *unused, struct tcp_pcb *pcb, err_t error) {
  (void)unused;
  require(error == ERR_OK, "connect");
  write_all(pcb, request);
  return ERR_OK;
}

static void connect_to_server(struct tcp_pcb *pcb, tcp_connected_fn connected) {
  require(pcb != NULL, "a new connection");
  tcp_nagle_disable(pcb);
  tcp_err(pcb, on_error);
  require(tcp_connect(pcb, &link_to_itself.ip_addr, PORT, connected) == ERR_OK, "connect");
}

static void open_connection(void) {
  struct tcp_pcb *pcb = tcp_new();
  /* lwIP searches connections in TIME-WAIT one by one, and keeps each for two minutes. */
  while (tcp_tw_pcbs != NULL && tcp_tw_pcbs->next != NULL)
    tcp_abort(tcp_tw_pcbs->next);
  to_start--;
  tcp_arg(pcb, NULL);
  tcp_recv(pcb, client_receives);
  connect_to_server(pcb, client_connected);
}

static void begin_exchanges(void *count) {
  to_start = *(long *)count;
  running = to_start < at_once ? to_start : at_once;
  for (long i = running; i > 0; i--)
    open_connection();
}

static void run_exchanges(long count) {
  tcpip_callback(begin_exchanges, &count);
  sem_wait(&finished);
}

/* The stream. */

static err_t reader_receives(void *unused, struct tcp_pcb *pcb, struct pbuf *data, err_t error) {
  static int is_warm;
  (void)unused, (void)error;
  require(data != NULL, "the stream goes on");
  received += data->tot_len;
  take(NULL, pcb, data);
  if (!is_warm && received >= WARM_UP) {
    is_warm = 1;
    received = 0;
    started_at = now(CLOCK_MONOTONIC);
    spent = now(CLOCK_PROCESS_CPUTIME_ID);
  } else if (is_warm && now(CLOCK_MONOTONIC) - started_at > seconds) {
    spent = now(CLOCK_PROCESS_CPUTIME_ID) - spent;
    printf("{\"cpu_s_per_gb\":%g}\n", spent * 1e9 / (double)received);
    exit(0);
  }
  return ERR_OK;
}

static err_t reader_accepts(void *unused, struct tcp_pcb *pcb, err_t error) {
  (void)unused;
  require(error == ERR_OK, "accept");
  tcp_recv(pcb, reader_receives);
  return ERR_OK;
}

static err_t fill(void *unused, struct tcp_pcb *pcb, u16_t acknowledged) {
  u16_t room;
  (void)unused, (void)acknowledged;
  while ((room = LWIP_MIN(tcp_sndbuf(pcb), 32768)) > 0)
    if (tcp_write(pcb, bytes, room, TCP_WRITE_FLAG_COPY) != ERR_OK)
      break;
  return tcp_output(pcb);
}

static err_t writer_connected(void *unused, struct tcp_pcb *pcb, err_t error) {
  require(error == ERR_OK, "connect");
  return fill(unused, pcb, 0);
}

static void begin_stream(void *unused) {
  struct tcp_pcb *pcb = tcp_new();
  (void)unused;
  tcp_sent(pcb, fill);
  connect_to_server(pcb, writer_connected);
}

/* The host. */

/* lwIP itself loops packets to its own address back. */
static err_t send_packet(struct netif *netif, struct pbuf *packet, const ip4_addr_t *to) {
  (void)netif, (void)packet, (void)to;
  return ERR_RTE;
}

static err_t set_up_link(struct netif *netif) {
  netif->mtu = MTU;
  netif->output = send_packet;
  netif->flags = NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
  return ERR_OK;
}

static void listen_with(void *accepts) {
  ip4_addr_t address, mask, gateway;
  struct tcp_pcb *listener = tcp_new();
  IP4_ADDR(&address, 10, 80, 0, 2);
  IP4_ADDR(&mask, 255, 255, 255, 0);
  ip4_addr_set_zero(&gateway);
  require(netif_add(&link_to_itself, &address, &mask, &gateway, NULL, set_up_link, tcpip_input) != NULL, "link");
  netif_set_default(&link_to_itself);
  netif_set_up(&link_to_itself);
  require(tcp_bind(listener, IP4_ADDR_ANY, PORT) == ERR_OK, "bind");
  tcp_accept(tcp_listen_with_backlog(listener, 255), *(tcp_accept_fn *)accepts);
  sem_post(&finished);
}

int main(int count, char **words) {
  tcp_accept_fn accepts;
  int is_bulk = count == 3 && strcmp(words[1], "bulk") == 0;
  if (!is_bulk && !(count == 6 && strcmp(words[1], "exchange") == 0)) {
    fprintf(stderr, "usage: exchange COUNT AT_ONCE REQUEST RESPONSE | bulk SECONDS\n");
    return 2;
  }
  accepts = is_bulk ? reader_accepts : server_accepts;
  sem_init(&finished, 0, 0);
  tcpip_init(NULL, NULL);
  tcpip_callback(listen_with, &accepts);
  sem_wait(&finished);
  if (is_bulk) {
    seconds = atof(words[2]);
    tcpip_callback(begin_stream, NULL);
    sem_wait(&finished);
  }
  long exchanges = atol(words[2]);
  at_once = atol(words[3]), request = atol(words[4]), response = atol(words[5]);
  run_exchanges(exchanges / 10 + 1);
  spent = now(CLOCK_PROCESS_CPUTIME_ID);
  run_exchanges(exchanges);
  spent = now(CLOCK_PROCESS_CPUTIME_ID) - spent;
  printf("{\"cpu_us_per_xchg\":%g}\n", spent * 1e6 / (double)exchanges);
  fflush(stdout);
  _Exit(0);
}
