// The sum of an array in three steps: within warps by shuffles, within blocks through shared
// memory, and over the grid by a second launch of the same kernel. No atomics, so the result is the
// same on every run.
//
//   reduction [--n ELEMENTS] [--out FILE]      FILE receives the blocks' sums and the total
#include "example.cuh"

#include <algorithm>
#include <cmath>

constexpr int BLOCK = 256;
constexpr int WARP = 32;

// The sum over a warp, in its first lane.
__device__ float warp_sum(float value) {
  for (int offset = WARP / 2; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

// The sum over a block, in its first thread.
__device__ float block_sum(float value) {
  __shared__ float sums[BLOCK / WARP];
  const int lane = threadIdx.x % WARP;
  const int warp = threadIdx.x / WARP;
  value = warp_sum(value);
  if (lane == 0)
    sums[warp] = value;
  __syncthreads();
  value = threadIdx.x < BLOCK / WARP ? sums[lane] : 0;
  return warp == 0 ? warp_sum(value) : value;
}

__global__ void reduce(const float *__restrict__ in, float *__restrict__ out, int n) {
  float sum = 0;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
    sum += in[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0)
    out[blockIdx.x] = sum;
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 1 << 20);
  const int grid = std::min((n + BLOCK - 1) / BLOCK, 2 * 108);

  example::Random random(3);
  std::vector<float> in(n);
  for (float &value : in)
    value = random.uniform();

  float *in_device, *sums_device;
  CHECK(cudaMalloc(&in_device, n * sizeof(float)));
  CHECK(cudaMalloc(&sums_device, (grid + 1) * sizeof(float)));
  CHECK(cudaMemcpy(in_device, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  reduce<<<grid, BLOCK>>>(in_device, sums_device, n);
  CHECK(cudaGetLastError());
  reduce<<<1, BLOCK>>>(sums_device, sums_device + grid, grid); // runs after it: same stream
  CHECK_LAUNCH();

  std::vector<float> sums(grid + 1);
  CHECK(cudaMemcpy(sums.data(), sums_device, sums.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in_device));
  CHECK(cudaFree(sums_device));

  double expected = 0, magnitude = 0;
  for (const float value : in) {
    expected += value;
    magnitude += std::fabs(value);
  }
  example::write_out(argc, argv, sums);
  std::printf("sum of %d numbers: %.6f, on the host %.6f\n", n, sums[grid], expected);
  return example::verdict("reduction", std::fabs(sums[grid] - expected), 1e-6 * magnitude);
}
