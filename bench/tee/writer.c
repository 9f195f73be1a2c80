// Writes the given number of bytes to stdout, in lines of 100 bytes, as fast as it can.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLine = 100, kBlock = 64000 };

int main(int argc, char** argv) {
  static char block[kBlock];
  memset(block, 'x', sizeof block);
  for (int i = kLine - 1; i < kBlock; i += kLine)
    block[i] = '\n';
  long long left = argc > 1 ? atoll(argv[1]) : 0;
  while (left > 0) {
    size_t size = left < kBlock ? (size_t)left : kBlock;
    ssize_t put = write(STDOUT_FILENO, block + (kBlock - size) % kLine, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return 1;
    left -= put;
    // A write cut short would tear a line, but a blocking pipe takes all.
    if ((size_t)put != size) return 1;
  }
  return 0;
}
