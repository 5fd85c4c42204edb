// Cooperative groups: tiles of a warp, coalesced threads, a grid that waits for all its blocks.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void tiles(const int *in, int *sums, int *odd, int n) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = block.group_index().x * block.size() + block.thread_rank();
  const int value = i < n ? in[i] : 0;
  const int sum = cg::reduce(tile, value, cg::plus<int>());
  const int first = tile.shfl(value, 0); // by all of the tile, although one uses it
  if (tile.thread_rank() == 0)
    sums[i / 8] = sum + first * 0;
  if (value & 1) {
    const cg::coalesced_group together = cg::coalesced_threads();
    if (together.thread_rank() == 0)
      atomicAdd(odd, static_cast<int>(together.size()));
  }
}

__global__ void relax(float *a, float *b, int n, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const int i = static_cast<int>(grid.thread_rank());
  for (int round = 0; round < rounds; ++round) {
    if (i > 0 && i < n - 1)
      b[i] = 0.5f * (a[i - 1] + a[i + 1]);
    else if (i < n)
      b[i] = a[i];
    grid.sync();
    float *const t = a;
    a = b;
    b = t;
  }
}

int main() {
  long wrong = 0;
  const int n = 4096;
  std::vector<int> values(n);
  unsigned state = 2;
  int odd = 0;
  for (int &v : values)
    v = next_random(state) >> 20, odd += v & 1;
  Buffer<int> in(values), sums(n / 8), count(std::vector<int>{0});
  tiles<<<n / 128, 128>>>(in, sums, count, n);
  const std::vector<int> found = sums.host();
  for (int t = 0; t < n / 8; ++t) {
    int sum = 0;
    for (int k = 0; k < 8; ++k)
      sum += values[8 * t + k];
    wrong += found[t] != sum;
  }
  wrong += count.host()[0] != odd;

  int supported = 0, rounds = 25, length = 3000;
  CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
  wrong += !supported;
  std::vector<float> line(length), next(length);
  for (int i = 0; i < length; ++i)
    line[i] = static_cast<float>(i % 17);
  Buffer<float> a(line), b(length);
  float *pa = a, *pb = b;
  void *arguments[] = {&pa, &pb, &length, &rounds};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(relax), dim3((length + 255) / 256),
                                    dim3(256), arguments, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    next = line;
    for (int i = 1; i < length - 1; ++i)
      next[i] = 0.5f * (line[i - 1] + line[i + 1]);
    line = next;
  }
  const std::vector<float> relaxed = b.host();
  for (int i = 0; i < length; ++i)
    wrong += relaxed[i] != line[i];
  const cudaError_t large = cudaLaunchCooperativeKernel(
      reinterpret_cast<void *>(relax), dim3(100000), dim3(256), arguments, 0, nullptr);
  wrong += large != cudaErrorCooperativeLaunchTooLarge;
  cudaGetLastError();
  return outcome("cooperative", wrong);
}
