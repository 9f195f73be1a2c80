// The worker of the black-box tests: a tiny program that does what its arguments say, in order.
//
//   @R, @*        the actions that follow are for rank R only, for all ranks
//   %A, %*        ... for attempt A only (TORCHELASTIC_RESTART_COUNT), for all attempts
//   show=A,B      one line to stdout: "show A=... B=...", variables of the environment
//   touch=DIR     create DIR/<rank> with "<pid>\n" in it (readiness: it appears complete)
//   mark=FILE     create FILE
//   wait=FILE     until FILE exists (3 minutes at most: longer than a test waits)
//   env=DIR       DIR/<rank>.env: the environment, NUL separated
//   argv=DIR      DIR/<rank>.argv: all arguments, NUL separated
//   state=DIR     DIR/<rank>.state: pids, fds, cwd, umask, terminal, and /proc/self/status
//   parent=DIR    DIR/<attempt>.parent: RSS and number of fds of the parent process
//   stdin=DIR     DIR/<rank>.stdin: all of standard input
//   out=T, err=T  write T (escapes \n \r \t \\ \xHH) to stdout or stderr
//   lines=N       N numbered lines to stdout; bytes=N: N bytes 'x' in one line; both in big writes
//   errlines=N    N numbered lines to stderr
//   error=TEXT    write TEXT (escapes) to the file named by TORCHELASTIC_ERROR_FILE
//   ignore=SIG    ignore a signal (name without SIG)
//   record=DIR    catch TERM INT HUP QUIT USR1 USR2 CONT; each appends its name to DIR/<rank>.signals
//   await         until one signal other than CONT was recorded
//   sleep=MS      do something for MS milliseconds (a slow save)
//   loaders=K     fork K children that wait for ever; children=K: ... that end when told by TERM
//   daemon        double-forked, own session, waits for ever; it keeps stdout and stderr open
//   core          allow core files;  stop: SIGSTOP itself;  spin, pause: for ever
//   alloc=MB      touch so much memory
//   exit=N abort segv raise=SIG
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct {
  const char* name;
  int number;
} kSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},   {"QUIT", SIGQUIT},
                {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"CONT", SIGCONT}, {"KILL", SIGKILL},
                {"SEGV", SIGSEGV}, {"ABRT", SIGABRT}, {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}};
enum { kSignalCount = sizeof kSignals / sizeof kSignals[0], kCaught = 7 };

static const char* rank_text = "0";
static const char* attempt_text = "0";
static int record_fd = -1;
static volatile sig_atomic_t recorded = 0;

static void die(const char* what) {
  perror(what);
  _exit(99);
}

static int signal_number(const char* name) {
  for (int i = 0; i < kSignalCount; i++)
    if (strcmp(kSignals[i].name, name) == 0) return kSignals[i].number;
  return atoi(name);
}

static void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) die("write");
    data += n;
    size -= (size_t)n;
  }
}

static size_t unescape(char* out, const char* text) {
  char* o = out;
  for (const char* p = text; *p; p++) {
    if (*p != '\\' || !p[1]) {
      *o++ = *p;
      continue;
    }
    p++;
    if (*p == 'x' && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2])) {
      char hex[3] = {p[1], p[2], 0};
      *o++ = (char)strtol(hex, NULL, 16);
      p += 2;
    } else {
      *o++ = (char)(*p == 'n' ? '\n' : *p == 'r' ? '\r' : *p == 't' ? '\t' : *p);
    }
  }
  return (size_t)(o - out);
}

static void put(int fd, const char* text) {
  char* buffer = malloc(strlen(text) + 1);
  write_all(fd, buffer, unescape(buffer, text));
  free(buffer);
}

static void show(const char* names) {
  char line[4096];
  size_t used = (size_t)snprintf(line, sizeof line, "show");
  char* list = strdup(names);
  for (char* name = strtok(list, ","); name && used < sizeof line; name = strtok(NULL, ",")) {
    const char* value = getenv(name);
    used += (size_t)snprintf(line + used, sizeof line - used, " %s=%s", name, value ? value : "-");
  }
  free(list);
  if (used >= sizeof line - 1) _exit(94);
  line[used++] = '\n';
  write_all(1, line, used);
}

// A file appears complete or not at all.
static void put_file(const char* path, const char* data, size_t size) {
  char temporary[4096];
  snprintf(temporary, sizeof temporary, "%s.tmp%d", path, (int)getpid());
  int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) die(temporary);
  write_all(fd, data, size);
  close(fd);
  if (rename(temporary, path) != 0) die(path);
}

static char* path_in(const char* dir, const char* name, const char* suffix) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", dir, name, suffix);
  return path;
}

static void copy_file(const char* from, FILE* to) {
  char line[65536];
  FILE* in = fopen(from, "r");
  if (!in) die(from);
  size_t n;
  while ((n = fread(line, 1, sizeof line, in)) > 0) fwrite(line, 1, n, to);
  fclose(in);
}

static int count_fds(const char* dir_path, FILE* names) {
  DIR* dir = opendir(dir_path);
  if (!dir) die(dir_path);
  int count = 0;
  for (struct dirent* e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.' || (names && atoi(e->d_name) == dirfd(dir))) continue;
    if (names) fprintf(names, " %s", e->d_name);
    count++;
  }
  closedir(dir);
  return count;
}

static void put_state(const char* dir) {
  char* data;
  size_t size;
  FILE* out = open_memstream(&data, &size);
  char cwd[4096], input[4096];
  ssize_t n = readlink("/proc/self/fd/0", input, sizeof input - 1);
  input[n < 0 ? 0 : n] = 0;
  mode_t mask = umask(0);
  umask(mask);
  fprintf(out, "pid: %d\nppid: %d\npgid: %d\nsid: %d\n", getpid(), getppid(), getpgrp(), getsid(0));
  fprintf(out, "cwd: %s\numask: %03o\nstdin: %s\n", getcwd(cwd, sizeof cwd), mask, input);
  fprintf(out, "tty: %d %d %d\nfds:", isatty(0), isatty(1), isatty(2));
  count_fds("/proc/self/fd", out);
  fprintf(out, "\n");
  copy_file("/proc/self/status", out);
  fclose(out);
  put_file(path_in(dir, rank_text, ".state"), data, size);
  free(data);
}

static void put_parent(const char* dir) {
  char path[64], line[256], text[256];
  long rss = -1;
  snprintf(path, sizeof path, "/proc/%d/status", getppid());
  FILE* in = fopen(path, "r");
  if (!in) die(path);
  while (fgets(line, sizeof line, in)) sscanf(line, "VmRSS: %ld", &rss);
  fclose(in);
  snprintf(path, sizeof path, "/proc/%d/fd", getppid());
  int n = snprintf(text, sizeof text, "pid: %d\nrss_kb: %ld\nfds: %d\n", getppid(), rss,
                   count_fds(path, NULL));
  put_file(path_in(dir, attempt_text, ".parent"), text, (size_t)n);
}

static void put_copy(const char* from, const char* path) {
  char* data;
  size_t size;
  FILE* out = open_memstream(&data, &size);
  copy_file(from, out);
  fclose(out);
  put_file(path, data, size);
  free(data);
}

static void on_signal(int number) {
  int saved = errno;
  for (int i = 0; i < kCaught; i++) {
    if (kSignals[i].number != number) continue;
    char line[16];
    int n = 0;
    for (const char* p = kSignals[i].name; *p; p++) line[n++] = *p;
    line[n++] = '\n';
    if (write(record_fd, line, (size_t)n) != n) _exit(98);
  }
  if (number != SIGCONT) recorded = 1;
  errno = saved;
}

static void record(const char* dir) {
  record_fd = open(path_in(dir, rank_text, ".signals"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (record_fd < 0) die("record");
  struct sigaction action = {.sa_handler = on_signal};
  for (int i = 0; i < kCaught; i++) sigaction(kSignals[i].number, &action, NULL);
}

static void await_signal(void) {
  sigset_t block, old;
  sigfillset(&block);
  sigprocmask(SIG_BLOCK, &block, &old);
  while (!recorded) sigsuspend(&old);
  recorded = 0;
  sigprocmask(SIG_SETMASK, &old, NULL);
}

static void pause_for_ever(void) {
  for (;;) pause();
}

static void fork_children(int count, int with_default_signals) {
  for (int i = 0; i < count; i++) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid > 0) continue;
    if (with_default_signals) signal(SIGTERM, SIG_DFL);
    pause_for_ever();
  }
}

static void start_daemon(void) {
  pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    setsid();
    pid_t second = fork();
    if (second < 0) die("fork");
    if (second > 0) _exit(0);
    pause_for_ever();
  }
  waitpid(pid, NULL, 0);
}

static void wait_file(const char* path) {
  struct timespec tick = {0, 2000000};
  for (int i = 0; i < 90000; i++) {
    if (access(path, F_OK) == 0) return;
    nanosleep(&tick, NULL);
  }
  fprintf(stderr, "%s never came\n", path);
  _exit(97);
}

static void put_lines(int fd, long count) {
  char buffer[1 << 16];
  size_t used = 0;
  for (long i = 0; i < count; i++) {
    used += (size_t)snprintf(buffer + used, 64, "line %ld\n", i);
    if (used > sizeof buffer - 64) {
      write_all(fd, buffer, used);
      used = 0;
    }
  }
  write_all(fd, buffer, used);
}

static void put_bytes(int fd, long count) {
  static char buffer[1 << 20];
  memset(buffer, 'x', sizeof buffer);
  for (long left = count; left > 0; left -= (long)sizeof buffer)
    write_all(fd, buffer, (size_t)(left < (long)sizeof buffer ? left : (long)sizeof buffer));
}

static void sleep_ms(long ms) {
  struct timespec left = {ms / 1000, (ms % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

static void put_error_file(const char* text) {
  const char* path = getenv("TORCHELASTIC_ERROR_FILE");
  if (!path || !*path) _exit(96);
  char* buffer = malloc(strlen(text) + 1);
  put_file(path, buffer, unescape(buffer, text));
  free(buffer);
}

static void act(const char* name, const char* value) {
  if (!strcmp(name, "show")) {
    show(value);
  } else if (!strcmp(name, "touch")) {
    char text[32];
    int n = snprintf(text, sizeof text, "%d\n", getpid());
    put_file(path_in(value, rank_text, ""), text, (size_t)n);
  } else if (!strcmp(name, "mark")) {
    put_file(value, "", 0);
  } else if (!strcmp(name, "wait")) {
    wait_file(value);
  } else if (!strcmp(name, "env")) {
    put_copy("/proc/self/environ", path_in(value, rank_text, ".env"));
  } else if (!strcmp(name, "argv")) {
    put_copy("/proc/self/cmdline", path_in(value, rank_text, ".argv"));
  } else if (!strcmp(name, "state")) {
    put_state(value);
  } else if (!strcmp(name, "parent")) {
    put_parent(value);
  } else if (!strcmp(name, "stdin")) {
    put_copy("/dev/stdin", path_in(value, rank_text, ".stdin"));
  } else if (!strcmp(name, "out")) {
    put(1, value);
  } else if (!strcmp(name, "err")) {
    put(2, value);
  } else if (!strcmp(name, "lines")) {
    put_lines(1, atol(value));
  } else if (!strcmp(name, "errlines")) {
    put_lines(2, atol(value));
  } else if (!strcmp(name, "bytes")) {
    put_bytes(1, atol(value));
  } else if (!strcmp(name, "error")) {
    put_error_file(value);
  } else if (!strcmp(name, "ignore")) {
    signal(signal_number(value), SIG_IGN);
  } else if (!strcmp(name, "record")) {
    record(value);
  } else if (!strcmp(name, "await")) {
    await_signal();
  } else if (!strcmp(name, "sleep")) {
    sleep_ms(atol(value));
  } else if (!strcmp(name, "loaders")) {
    fork_children(atoi(value), 0);
  } else if (!strcmp(name, "children")) {
    fork_children(atoi(value), 1);
  } else if (!strcmp(name, "daemon")) {
    start_daemon();
  } else if (!strcmp(name, "core")) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &limit) != 0) die("RLIMIT_CORE");
  } else if (!strcmp(name, "alloc")) {
    size_t size = (size_t)atol(value) << 20;
    char* memory = malloc(size);
    for (size_t i = 0; i < size; i += 4096) ((volatile char*)memory)[i] = 1;
  } else if (!strcmp(name, "stop")) {
    raise(SIGSTOP);
  } else if (!strcmp(name, "spin")) {
    for (volatile unsigned long i = 0;; i++) continue;
  } else if (!strcmp(name, "pause")) {
    pause_for_ever();
  } else if (!strcmp(name, "exit")) {
    _exit(atoi(value));
  } else if (!strcmp(name, "abort")) {
    abort();
  } else if (!strcmp(name, "segv") || !strcmp(name, "raise")) {
    int number = value[0] ? signal_number(value) : SIGSEGV;
    signal(number, SIG_DFL);
    raise(number);
  } else {
    fprintf(stderr, "test_worker: unknown action %s\n", name);
    _exit(95);
  }
}

int main(int argc, char** argv) {
  if (getenv("RANK")) rank_text = getenv("RANK");
  if (getenv("TORCHELASTIC_RESTART_COUNT")) attempt_text = getenv("TORCHELASTIC_RESTART_COUNT");
  int rank_matches = 1, attempt_matches = 1;
  for (int i = 1; i < argc; i++) {
    const char* word = argv[i];
    if (word[0] == '@') {
      rank_matches = word[1] == '*' || strcmp(word + 1, rank_text) == 0;
    } else if (word[0] == '%') {
      attempt_matches = word[1] == '*' || strcmp(word + 1, attempt_text) == 0;
    } else if (rank_matches && attempt_matches) {
      char name[32] = "";
      const char* equals = strchr(word, '=');
      size_t length = equals ? (size_t)(equals - word) : strlen(word);
      if (length >= sizeof name) length = sizeof name - 1;
      memcpy(name, word, length);
      act(name, equals ? equals + 1 : "");
    }
  }
  return 0;
}
