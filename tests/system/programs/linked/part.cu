#include <vector>

#include "../check.cuh"
#include "parts.cuh"

__device__ int table[4] = {10, 20, 30, 40};
__constant__ int scale = 2;
__device__ int total;

static __device__ __noinline__ int secret(int x) { return x * 1000; }
static __device__ int hidden = 200;

__device__ __noinline__ int through_table(int index) { return secret(table[index]); }

static __device__ int squared(int x) { return x * x; }
static __device__ int negated(int x) { return -x; }
__device__ operation operations[2] = {squared, negated};

__device__ __noinline__ void out_of_bounds(int *p) {
  *p = 1; // the line that is told of
}

__global__ void second(int *out, int count) {
  extern __shared__ int window[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  window[threadIdx.x] = hidden;
  __syncthreads();
  if (i < count)
    out[i] = window[blockDim.x - 1 - threadIdx.x] + times<3>(i);
}

int run_second_file(int *out, int count) {
  second<<<(count + 31) / 32, 32, 32 * sizeof(int)>>>(out, count);
  std::vector<int> got(static_cast<size_t>(count));
  CHECK(cudaMemcpy(got.data(), out, count * sizeof *out, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < count; ++i)
    wrong += got[static_cast<size_t>(i)] != 200 + 3 * i + 7;
  return wrong;
}
