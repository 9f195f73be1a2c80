// The floor of any launcher: start N copies of a program and wait for them. Statically linked, no
// logs, no store, no supervision.   floor N PROGRAM [ARG ...]
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char** environ;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int n = atoi(argv[1]);
  for (int i = 0; i < n; ++i) {
    pid_t pid;
    if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0) return 1;
  }
  int status = 0;
  int worst = 0;
  while (wait(&status) > 0) worst |= status;
  return worst != 0;
}
