// Bitonic sort: keys with values, inside shared memory while strides are short, global beyond.
#include <algorithm>

#include "check.cuh"

constexpr int kTile = 1024;

__device__ void order(unsigned &a, unsigned &va, unsigned &b, unsigned &vb, bool ascending) {
  if ((a > b) == ascending) {
    const unsigned t = a, tv = va;
    a = b, va = vb;
    b = t, vb = tv;
  }
}

__global__ void sort_tiles(unsigned *keys, unsigned *values) {
  __shared__ unsigned key[kTile], value[kTile];
  const int base = blockIdx.x * kTile;
  for (int i = threadIdx.x; i < kTile; i += blockDim.x)
    key[i] = keys[base + i], value[i] = values[base + i];
#pragma unroll 1
  for (int size = 2; size <= kTile; size <<= 1)
#pragma unroll 1
    for (int stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      const int at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      const bool ascending = ((base + at) & size) == 0;
      order(key[at], value[at], key[at + stride], value[at + stride], ascending);
    }
  __syncthreads();
  for (int i = threadIdx.x; i < kTile; i += blockDim.x)
    keys[base + i] = key[i], values[base + i] = value[i];
}

__global__ void merge_far(unsigned *keys, unsigned *values, int size, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int at = 2 * i - (i & (stride - 1));
  order(keys[at], values[at], keys[at + stride], values[at + stride], (at & size) == 0);
}

int main() {
  const int n = 16 * kTile;
  std::vector<unsigned> keys(n), values(n);
  unsigned state = 3;
  for (int i = 0; i < n; ++i)
    keys[i] = next_random(state) >> 12, values[i] = i;
  Buffer<unsigned> k(keys), v(values);
  sort_tiles<<<n / kTile, kTile / 2>>>(k, v);
  for (int size = 2 * kTile; size <= n; size <<= 1)
    for (int stride = size / 2; stride > 0; stride >>= 1)
      merge_far<<<n / 2 / 256, 256>>>(k, v, size, stride);
  CHECK(cudaDeviceSynchronize());
  const std::vector<unsigned> sorted = k.host(), moved = v.host();
  std::vector<unsigned> expected = keys;
  std::sort(expected.begin(), expected.end());
  long wrong = 0;
  for (int i = 0; i < n; ++i)
    wrong += sorted[i] != expected[i] || keys[moved[i]] != sorted[i];
  return outcome("bitonic_sort", wrong);
}
