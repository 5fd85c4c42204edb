// Exclusive prefix sums of any length: warps by shuffles, blocks in shared memory, blocks of blocks.
#include "check.cuh"

constexpr int kBlock = 256;
constexpr int kEach = 4;
constexpr int kTile = kBlock * kEach;

__device__ unsigned inclusive_in_warp(unsigned value) {
  const int lane = threadIdx.x & 31;
  for (int step = 1; step < 32; step <<= 1) {
    const unsigned other = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step)
      value += other;
  }
  return value;
}

__global__ void scan_tiles(const unsigned *in, unsigned *out, unsigned *sums, int n) {
  __shared__ unsigned warps[kBlock / 32];
  const int first = blockIdx.x * kTile + threadIdx.x * kEach;
  unsigned items[kEach], total = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    items[k] = first + k < n ? in[first + k] : 0;
    total += items[k];
  }
  const unsigned inclusive = inclusive_in_warp(total);
  if ((threadIdx.x & 31) == 31)
    warps[threadIdx.x >> 5] = inclusive;
  __syncthreads();
  if (threadIdx.x < 32) {
    const unsigned mine = threadIdx.x < kBlock / 32 ? warps[threadIdx.x] : 0;
    const unsigned sum = inclusive_in_warp(mine);
    if (threadIdx.x < kBlock / 32)
      warps[threadIdx.x] = sum - mine;
  }
  __syncthreads();
  unsigned running = warps[threadIdx.x >> 5] + inclusive - total;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (first + k < n)
      out[first + k] = running;
    running += items[k];
  }
  if (sums && threadIdx.x == kBlock - 1)
    sums[blockIdx.x] = running;
}

__global__ void add_offsets(unsigned *out, const unsigned *offsets, int n) {
  for (int i = threadIdx.x; i < kTile; i += kBlock)
    if (blockIdx.x * kTile + i < n)
      out[blockIdx.x * kTile + i] += offsets[blockIdx.x];
}

void scan(unsigned *in, unsigned *out, int n) {
  const int tiles = (n + kTile - 1) / kTile;
  Buffer<unsigned> sums(tiles), offsets(tiles);
  scan_tiles<<<tiles, kBlock>>>(in, out, sums, n);
  if (tiles > 1) {
    scan(sums, offsets, tiles);
    add_offsets<<<tiles, kBlock>>>(out, offsets, n);
  }
  CHECK(cudaGetLastError());
}

int main() {
  long wrong = 0;
  for (const int n : {1, 33, kTile, kTile + 1, 1500000}) {
    std::vector<unsigned> values(n);
    unsigned state = n;
    for (unsigned &v : values)
      v = next_random(state) >> 8;
    Buffer<unsigned> in(values), out(n);
    scan(in, out, n);
    const std::vector<unsigned> found = out.host();
    unsigned running = 0;
    for (int i = 0; i < n; ++i) {
      wrong += found[i] != running;
      running += values[i];
    }
  }
  return outcome("prefix_scan", wrong);
}
