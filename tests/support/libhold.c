// Functions that wait in a known way, for native_waits.py.
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

__attribute__((noinline)) int hold_in_poll(int fd) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, -1) + 1;
}

void hold_in_loop(void) {
  for (volatile int forever = 1; forever;) {
  }
}

static int fd_of_thread;

static void* in_thread(void* nothing) {
  char byte;
  return read(fd_of_thread, &byte, 1) < 0 ? NULL : nothing;
}

void start_thread(int fd) {
  pthread_t thread;
  fd_of_thread = fd;
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_setname_np(thread, "outsider");
}
