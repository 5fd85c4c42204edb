// How often each byte value occurs. Every block counts in shared memory first, where atomics are
// cheap and contended only by its own threads, then adds its counts to the global ones.
//
//   histogram [--n BYTES] [--out FILE]      FILE receives 256 counts, as 32-bit integers
#include "example.cuh"

#include <algorithm>

constexpr int BINS = 256;

__global__ void histogram(const unsigned char *__restrict__ data, int n, unsigned *counts) {
  __shared__ unsigned block_counts[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
    block_counts[bin] = 0;
  __syncthreads();

  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    atomicAdd(&block_counts[data[i]], 1u);
  __syncthreads();

  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
    if (block_counts[bin] != 0)
      atomicAdd(&counts[bin], block_counts[bin]);
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 1 << 20);

  example::Random random(4);
  std::vector<unsigned char> data(n);
  for (unsigned char &value : data) // the sum of two dice with 128 faces: middle values are common
    value = static_cast<unsigned char>((random.bits() >> 25) + (random.bits() >> 25));

  unsigned char *data_device;
  unsigned *counts_device;
  CHECK(cudaMalloc(&data_device, n));
  CHECK(cudaMalloc(&counts_device, BINS * sizeof(unsigned)));
  CHECK(cudaMemcpy(data_device, data.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(counts_device, 0, BINS * sizeof(unsigned)));

  const int block = 256;
  const int grid = std::min((n + block - 1) / block, 4 * 108);
  histogram<<<grid, block>>>(data_device, n, counts_device);
  CHECK_LAUNCH();

  std::vector<unsigned> counts(BINS), expected(BINS);
  CHECK(cudaMemcpy(counts.data(), counts_device, BINS * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data_device));
  CHECK(cudaFree(counts_device));

  for (const unsigned char value : data)
    ++expected[value];
  double error = 0;
  for (int bin = 0; bin < BINS; ++bin)
    error = std::max(error, std::abs(static_cast<double>(counts[bin]) - expected[bin]));
  example::write_out(argc, argv, counts);
  return example::verdict("histogram", error, 0);
}
