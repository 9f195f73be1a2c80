// Times whole commands in turn, A B A B ..., so that a drifting machine treats them alike.
//   pairs RUNS -- COMMAND_A ... -- COMMAND_B ...
// Prints one line: median milliseconds of each and the median of the ratios A/B pair by pair.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static double run(char** argv) {
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  struct timespec start;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  pid_t pid;
  int status = 1;
  if (posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) != pid || status != 0) {
    fprintf(stderr, "pairs: %s failed\n", argv[0]);
    exit(1);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  posix_spawn_file_actions_destroy(&quiet);
  return (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) / 1e6;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int n) {
  qsort(values, (size_t)n, sizeof *values, by_value);
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int main(int argc, char** argv) {
  const int runs = argc > 1 ? atoi(argv[1]) : 0;
  char** commands[2] = {NULL, NULL};
  int found = 0;
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "--") != 0) continue;
    argv[i] = NULL;
    if (found < 2) commands[found++] = argv + i + 1;
  }
  if (runs < 1 || found != 2) {
    fprintf(stderr, "usage: pairs RUNS -- COMMAND_A ... -- COMMAND_B ...\n");
    return 2;
  }
  double* a = calloc((size_t)runs, sizeof *a);
  double* b = calloc((size_t)runs, sizeof *b);
  double* ratio = calloc((size_t)runs, sizeof *ratio);
  run(commands[0]);
  run(commands[1]);
  for (int i = 0; i < runs; ++i) {
    a[i] = run(commands[0]);
    b[i] = run(commands[1]);
    ratio[i] = a[i] / b[i];
  }
  const double mid = median(ratio, runs);
  printf("%.3f %.3f %.2f %.2f %.2f\n", median(a, runs), median(b, runs), mid, ratio[0], ratio[runs - 1]);
  return 0;
}
