// Starts COUNT copies of a command at once and waits for all of them: together COUNT COMMAND ...
// "@" in an argument is the copy's number, from 0; "%" that plus 2 (for addresses 127.0.0.2 ...).
// Exit code 0 when all ended with 0.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char** environ;

static char* numbered(const char* text, int copy) {
  const size_t room = strlen(text) + 64;
  char* out = malloc(room);
  size_t used = 0;
  for (; *text != '\0' && used + 16 < room; ++text) {
    if (*text == '@' || *text == '%') {
      used += (size_t)sprintf(out + used, "%d", *text == '@' ? copy : copy + 2);
    } else {
      out[used++] = *text;
    }
  }
  out[used] = '\0';
  return out;
}

int main(int argc, char** argv) {
  const int count = argc > 2 ? atoi(argv[1]) : 0;
  if (count < 1) {
    fprintf(stderr, "usage: together COUNT COMMAND ...\n");
    return 2;
  }
  for (int copy = 0; copy < count; ++copy) {
    char** args = calloc((size_t)argc, sizeof *args);
    for (int i = 2; i < argc; ++i)
      args[i - 2] = numbered(argv[i], copy);
    pid_t pid;
    if (posix_spawnp(&pid, args[0], NULL, NULL, args, environ) != 0) return 1;
  }
  int bad = 0;
  int status;
  while (wait(&status) > 0)
    bad |= status != 0;
  return bad;
}
