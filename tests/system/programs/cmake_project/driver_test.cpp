// A test that asks the driver, without a runtime.
#include <cstdio>

#include <cuda.h>

int main() {
  char name[64] = "";
  int count = 0;
  if (cuInit(0) || cuDeviceGetCount(&count) || cuDeviceGetName(name, sizeof name, 0)) return 1;
  std::printf("driver: %d of %s\n", count, name);
  return count == 0;
}
