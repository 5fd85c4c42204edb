// printf from a kernel, with every kind of argument, in order within a thread.
#include "check.cuh"

__global__ void speak(const char *word, double x) {
  if (threadIdx.x % 2 == 0)
    printf("block %d thread %u says %s %5.2f %c 0x%llx %%\n", blockIdx.x, threadIdx.x, word, x, '!',
           0x123456789abcull + threadIdx.x);
}

__global__ void quiet() { printf("no arguments\n"); }

int main() {
  char *word = nullptr;
  CHECK(cudaMalloc(&word, 8));
  CHECK(cudaMemcpy(word, "hello", 6, cudaMemcpyHostToDevice));
  speak<<<2, 4>>>(word, 3.14159);
  CHECK(cudaDeviceSynchronize());
  std::printf("host between\n");
  quiet<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(word));
  return outcome("device_printf", 0);
}
