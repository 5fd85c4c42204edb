// A test in C++ alone, which calls the runtime and the library.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime_api.h>

#include "scale.h"

int main(int, char **words) {
  const int count = std::atoi(words[1]);
  float *values = nullptr;
  if (count <= 0 || cudaMalloc(reinterpret_cast<void **>(&values), count * sizeof(float)))
    return 1;
  std::vector<float> host(count, 3.0f);
  cudaMemcpy(values, host.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  scale(values, 2.0f, count);
  cudaMemcpy(host.data(), values, count * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (float value : host) wrong += value != 6.0f;
  std::printf("scale: %d wrong of %d\n", wrong, count);
  return wrong || cudaGetLastError();
}
