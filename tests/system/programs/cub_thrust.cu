// The libraries that come with the compiler: cub in a block and over a device, thrust.
#include <numeric>

#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>

#include "check.cuh"

template <int kBlock> __global__ void block_sums(const int *in, int *sums, int *prefixes) {
  using Reduce = cub::BlockReduce<int, kBlock>;
  using Scan = cub::BlockScan<int, kBlock>;
  __shared__ typename Reduce::TempStorage reduce_storage;
  __shared__ typename Scan::TempStorage scan_storage;
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int value = in[i];
  const int sum = Reduce(reduce_storage).Sum(value);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
  int prefix;
  Scan(scan_storage).ExclusiveSum(value, prefix);
  prefixes[i] = prefix;
}

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

int main() {
  long wrong = 0;
  const int n = 5000, block = 128, grid = 20;
  std::vector<int> values(n);
  unsigned state = 4;
  for (int &v : values)
    v = static_cast<int>(next_random(state) >> 18) - 8000;

  Buffer<int> in(values), sums(grid), prefixes(grid * block);
  block_sums<block><<<grid, block>>>(in, sums, prefixes);
  CHECK(cudaDeviceSynchronize());
  const std::vector<int> found = sums.host(), scanned = prefixes.host();
  for (int b = 0; b < grid; ++b) {
    int sum = 0;
    for (int i = b * block; i < (b + 1) * block; ++i) {
      wrong += scanned[i] != sum;
      sum += values[i];
    }
    wrong += found[b] != sum;
  }

  thrust::device_vector<int> on_device(values.begin(), values.end());
  wrong += thrust::reduce(on_device.begin(), on_device.end()) !=
           std::accumulate(values.begin(), values.end(), 0);
  thrust::transform(on_device.begin(), on_device.end(), on_device.begin(), Square());
  std::vector<int> squares(n);
  thrust::copy(on_device.begin(), on_device.end(), squares.begin());
  for (int i = 0; i < n; ++i)
    wrong += squares[i] != values[i] * values[i];
  return outcome("cub_thrust", wrong);
}
