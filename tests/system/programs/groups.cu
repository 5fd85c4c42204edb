// Cooperative groups: tiles of every size, and groups that lanes form where they have parted.
#include <algorithm>

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "check.cuh"

namespace cg = cooperative_groups;

constexpr int kTileResults = 4, kPartedResults = 5;

template <int kSize> __device__ void by_tile(const int *in, int *out, int i, int n) {
  const auto tile = cg::tiled_partition<kSize>(cg::this_thread_block());
  const int value = in[i];
  out[i] = cg::reduce(tile, value, cg::plus<int>());
  out[n + i] = cg::inclusive_scan(tile, value);
  out[2 * n + i] = cg::exclusive_scan(tile, value, cg::bit_xor<int>());
  out[3 * n + i] = tile.shfl_xor(value, kSize / 2) * 100 + tile.meta_group_rank();
}

__global__ void tiles(const int *in, int *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  by_tile<32>(in, out, i, n);
  by_tile<16>(in, out + kTileResults * n, i, n);
  by_tile<4>(in, out + 2 * kTileResults * n, i, n);
}

__global__ void parted(const int *in, int *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int value = in[i];
  if (value % 3 == 0)
    return;
  const auto here = cg::coalesced_threads();
  out[i] = cg::reduce(here, value, cg::plus<int>());
  out[n + i] = here.thread_rank() * 100 + here.size();
  const auto alike = cg::labeled_partition(here, value % 5);
  out[2 * n + i] = cg::reduce(alike, value, cg::plus<int>());
  const auto half = cg::binary_partition(here, value % 2 == 0);
  out[3 * n + i] = cg::reduce(half, value, cg::greater<int>());
  out[4 * n + i] = cg::exclusive_scan(here, value);
}

long wrong_tiles(const std::vector<int> &in, const int *out, int size, int block) {
  const int n = static_cast<int>(in.size());
  long wrong = 0;
  for (int i = 0; i < n; ++i) {
    int sum = 0, prefix = 0, mixed = 0;
    for (int k = i / size * size; k < i / size * size + size; ++k) {
      sum += in[k];
      prefix += k <= i ? in[k] : 0;
      mixed ^= k < i ? in[k] : 0;
    }
    wrong += out[i] != sum || out[n + i] != prefix || out[2 * n + i] != mixed;
    wrong += out[3 * n + i] != in[i ^ (size / 2)] * 100 + i % block / size;
  }
  return wrong;
}

long wrong_parted(const std::vector<int> &in, const std::vector<int> &out) {
  const int n = static_cast<int>(in.size());
  long wrong = 0;
  for (int i = 0; i < n; ++i) {
    int sum = 0, rank = 0, size = 0, alike = 0, most = 0, prefix = 0;
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
      if (in[k] % 3 == 0)
        continue;
      sum += in[k];
      size += 1;
      rank += k < i;
      prefix += k < i ? in[k] : 0;
      alike += in[k] % 5 == in[i] % 5 ? in[k] : 0;
      if (in[k] % 2 == in[i] % 2)
        most = std::max(most, in[k]);
    }
    const int want[kPartedResults] = {sum, rank * 100 + size, alike, most, prefix};
    for (int k = 0; k < kPartedResults; ++k)
      wrong += out[k * n + i] != (in[i] % 3 == 0 ? 0 : want[k]);
  }
  return wrong;
}

int main() {
  long wrong = 0;
  unsigned state = 11;
  for (int block : {64, 96, 1024}) {
    const int grid = 3, n = block * grid;
    std::vector<int> values(n);
    for (int &v : values)
      v = static_cast<int>(next_random(state) >> 22);
    Buffer<int> in(values), by_tiles(3 * kTileResults * n), by_parted(kPartedResults * n);
    CHECK(cudaMemset(by_parted, 0, kPartedResults * n * sizeof(int)));
    tiles<<<grid, block>>>(in, by_tiles, n);
    parted<<<grid, block>>>(in, by_parted, n);
    CHECK(cudaDeviceSynchronize());
    const std::vector<int> tiled = by_tiles.host();
    const int sizes[] = {32, 16, 4};
    for (int k = 0; k < 3; ++k)
      wrong += wrong_tiles(values, tiled.data() + k * kTileResults * n, sizes[k], block);
    wrong += wrong_parted(values, by_parted.host());
  }
  return outcome("groups", wrong);
}
