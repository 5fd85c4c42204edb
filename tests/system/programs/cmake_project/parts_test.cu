// A program of two files whose device code is linked.
#include <cstdio>

extern __device__ int square(int x);

__global__ void squares(int *out) { out[threadIdx.x] = square(threadIdx.x); }

int main() {
  int *out = nullptr, host[64] = {};
  cudaMalloc(&out, sizeof host);
  squares<<<1, 64>>>(out);
  const cudaError_t status = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += host[i] != i * i;
  std::printf("parts: %d wrong: %s\n", wrong, cudaGetErrorString(status));
  return wrong || status;
}
