// A program of two files, linked on the device: functions, variables, pointers and templates.
#include <cstdio>
#include <cstring>
#include <vector>

#include "../check.cuh"
#include "parts.cuh"

// Of the same name in the other file, and another one.
static __device__ __noinline__ int secret(int x) { return x + 1; }
static __device__ int hidden = 100;

__global__ void first(int *out, int count) {
  extern __shared__ int window[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  window[threadIdx.x] = i;
  __syncthreads();
  if (i < count)
    out[i] = through_table(i & 3) + secret(window[threadIdx.x]) + hidden + times<3>(i) +
             operations[i & 1](i) + shared_by_all;
  atomicAdd(&total, 1);
}

__global__ void wrong(int *p) { out_of_bounds(p); }

int main(int argc, char **argv) {
  int *out = nullptr;
  if (argc > 1 && !strcmp(argv[1], "fault")) {
    wrong<<<1, 1>>>(out);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
  }
  constexpr int kCount = 200;
  CHECK(cudaMalloc(&out, kCount * sizeof *out));
  const int seven = 7, numbers[4] = {3, 1, 4, 1};
  CHECK(cudaMemcpyToSymbol(scale, &seven, sizeof seven));
  CHECK(cudaMemcpyToSymbol(table, numbers, sizeof numbers));
  first<<<4, 64, 64 * sizeof(int)>>>(out, kCount);
  std::vector<int> got(kCount);
  CHECK(cudaMemcpy(got.data(), out, kCount * sizeof *out, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const int operated = i & 1 ? -i : i * i;
    wrong += got[i] != numbers[i & 3] * 1000 + (i + 1) + 100 + (3 * i + 7) + operated + 5;
  }
  int threads = 0;
  CHECK(cudaMemcpyFromSymbol(&threads, total, sizeof threads));
  wrong += threads != 256;
  wrong += run_second_file(out, kCount);
  return outcome("linked", wrong);
}
