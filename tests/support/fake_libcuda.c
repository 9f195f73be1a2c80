// A stand-in for NVIDIA's libcuda.so.1, for tests of machines: /etc/fake-gpus says how many GPUs
// there are, and the error that opening them gives: "8 0", or "8 802".
#include <stddef.h>
#include <stdio.h>

static int read_file(int *count, int *error) {
  FILE *file = fopen("/etc/fake-gpus", "r");
  if (file == NULL) return 0;
  const int got = fscanf(file, "%d %d", count, error);
  fclose(file);
  return got == 2;
}

int cuInit(unsigned int flags) {
  int count = 0, error = 100;
  (void)flags;
  return read_file(&count, &error) ? error : 100;
}

int cuDeviceGetCount(int *count) {
  int error = 0;
  *count = 0;
  return read_file(count, &error) ? 0 : 100;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuCtxCreate_v2(void **context, unsigned int flags, int device) {
  (void)flags;
  (void)device;
  *context = context;
  return 0;
}

int cuCtxDestroy_v2(void *context) {
  (void)context;
  return 0;
}

int cuGetErrorString(int error, const char **text) {
  *text = error == 802 ? "system not yet initialized" : "no CUDA-capable device is detected";
  return 0;
}
