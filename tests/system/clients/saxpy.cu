// A CUDA C++ program of the usual kind.  Prints one line a fact; the test reads them.
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

__constant__ float scale = 2.0f;
__device__ int visits;

__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * scale * x[i] + y[i];
  if (threadIdx.x == 0) atomicAdd(&visits, 1);
  if (i == 0) printf("device printf %d\n", n);
}

#define CHECK(call)                                                              \
  do {                                                                           \
    cudaError_t error = (call);                                                  \
    if (error != cudaSuccess) {                                                  \
      std::printf("%s: %s\n", #call, cudaGetErrorName(error));                   \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

int main() {
  const int n = 1 << 16;
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  std::printf("device %s %d.%d %d\n", p.name, p.major, p.minor, p.multiProcessorCount);
  std::vector<float> x(n, 1.5f), y(n, 2.0f);
  float *dx, *dy, s = 3.0f;
  CHECK(cudaMalloc(&dx, n * sizeof(float)));
  CHECK(cudaMalloc(&dy, n * sizeof(float)));
  CHECK(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(scale, &s, sizeof s));
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  saxpy<<<n / 256, 256>>>(n, 2.0f, dx, dy);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  CHECK(cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
  int count = 0, wrong = 0, blocks = 0;
  CHECK(cudaMemcpyFromSymbol(&count, visits, sizeof count));
  for (float v : y) wrong += v != 11.0f;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy, 256, 0));
  std::printf("wrong %d visits %d blocks %d timed %d\n", wrong, count, blocks, ms > 0);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, saxpy));
  std::printf("max threads %d\n", attributes.maxThreadsPerBlock);
  saxpy<<<1, 2048>>>(n, 2.0f, dx, dy);
  std::printf("too large %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("cleared %s\n", cudaGetErrorName(cudaGetLastError()));
  saxpy<<<n / 256 + 1, 256>>>(n + 256, 2.0f, dx, dy);
  std::printf("fault %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("sticky %s\n", cudaGetErrorName(cudaFree(dx)));
  CHECK(cudaDeviceReset());
  std::printf("after reset %s\n", cudaGetErrorName(cudaMalloc(&dx, 16)));
  return 0;
}
