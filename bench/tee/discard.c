// Reads stdin to its end, drops it, and prints the number of bytes on stderr.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  static char bytes[1 << 20];
  long long total = 0;
  ssize_t got;
  while ((got = read(STDIN_FILENO, bytes, sizeof bytes)) > 0)
    total += got;
  fprintf(stderr, "%lld\n", total);
  return 0;
}
