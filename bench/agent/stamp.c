// A worker that says when it was exec'ed (one line, "attempt rank monotonic_ns pid"), then waits.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (argc < 2) return 2;
  char line[128];
  const int size = snprintf(line, sizeof line, "%s %s %lld %d\n", getenv("TORCHELASTIC_RESTART_COUNT"), getenv("RANK"),
                            (long long)now.tv_sec * 1000000000LL + now.tv_nsec, (int)getpid());
  const int fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (fd < 0 || write(fd, line, (size_t)size) != size) return 1;
  for (;;) pause();
}
