/* A child of fork does not keep the TUN device, and the stack survives the end of its device.
   Needs the right to create a device. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/wait.h>

#define STACK "device tun0; device-address 10.0.0.1/24; address 10.0.0.2/24"

/* A child that keeps running does not keep the device. */
static void a_child_keeps_no_device(void) {
  int begun[2], ends[2];
  char byte;
  pid_t child;
  check(fb_start(STACK) == 0 && pipe(begun) == 0 && pipe(ends) == 0);
  child = fork();
  check(child >= 0);
  if (child == 0) {
    close(ends[1]);
    check(write(begun[1], "", 1) == 1 && read(ends[0], &byte, 1) == 0);
    _exit(0);
  }
  check(read(begun[0], &byte, 1) == 1);
  check(fb_stop(1000) == 0);
  check(fb_start(STACK) == 0);
  check(fb_stop(1000) == 0);
  check(close(ends[1]) == 0 && waitpid(child, NULL, 0) == child);
}

/* The device is removed: its descriptors are closed, new ones fail, and fb_error() says why. */
static void a_device_that_is_deleted(void) {
  struct sockaddr_in own = ipv4("10.0.0.2", 7);
  int listener;
  check(fb_start(STACK) == 0);
  listener = fb_socket(AF_INET, SOCK_STREAM, 0);
  check(fb_bind(listener, (struct sockaddr *)&own, sizeof own) == 0 && fb_listen(listener, 1) == 0);
  check(system("ip link delete tun0") == 0);
  fails(fb_accept(listener, NULL, NULL), ENETDOWN);
  fails(fb_socket(AF_INET, SOCK_STREAM, 0), ENETDOWN);
  fails(fb_stop(1000), EBADFD);
  check(strstr(fb_error(), "the interface was deleted") != NULL);
}

int main(void) {
  a_child_keeps_no_device();
  a_device_that_is_deleted();
  return 0;
}
