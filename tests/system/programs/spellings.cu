// Spellings that small CUDA tools trip over: an atomic on the pointer itself, the active lanes of
// each arm, a tensor-core tile, inline assembly and a cooperative group, in one kernel each.
#include <cooperative_groups.h>
#include <mma.h>

#include "check.cuh"

__global__ void counted(int *o) {
  atomicAdd(o, 1);
  atomicAdd(&o[1], 2);
}

__global__ void arms(unsigned *active) {
  if (threadIdx.x % 2 == 0)
    active[threadIdx.x] = __activemask();
  else
    active[threadIdx.x] = __activemask();
}

__global__ void tile(const __half *a, const __half *b, float *c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  load_matrix_sync(left, a, 16);
  load_matrix_sync(right, b, 16);
  fill_fragment(sum, 0.0f);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(c, sum, 16, mem_row_major);
}

__global__ void assembled(unsigned *out) {
  unsigned lane, swapped;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("prmt.b32 %0, %1, %1, 0x0123;" : "=r"(swapped) : "r"(lane));
  out[threadIdx.x] = swapped;
}

__global__ void grouped(int *out) {
  namespace cg = cooperative_groups;
  auto four = cg::tiled_partition<4>(cg::this_thread_block());
  int sum = threadIdx.x;
  for (int offset = 2; offset; offset /= 2) sum += four.shfl_down(sum, offset);
  if (four.thread_rank() == 0) out[four.meta_group_rank()] = sum;
}

int main() {
  long wrong = 0;
  Buffer<int> counts(std::vector<int>{0, 0});
  counted<<<3, 70>>>(counts);
  wrong += counts.host() != std::vector<int>{210, 420};

  Buffer<unsigned> active(32);
  arms<<<1, 32>>>(active);
  const std::vector<unsigned> seen = active.host();
  for (int i = 0; i < 32; i++) wrong += seen[i] != (i % 2 ? 0xaaaaaaaau : 0x55555555u);

  std::vector<__half> ones(256, __float2half(1.0f)), halves(256, __float2half(0.5f));
  Buffer<__half> a(ones), b(halves);
  Buffer<float> c(256);
  tile<<<1, 32>>>(a, b, c);
  for (float element : c.host()) wrong += element != 8.0f;

  Buffer<unsigned> swapped(32);
  assembled<<<1, 32>>>(swapped);
  const std::vector<unsigned> turned = swapped.host();
  for (unsigned i = 0; i < 32; i++) wrong += turned[i] != i << 24;

  Buffer<int> sums(8);
  grouped<<<1, 32>>>(sums);
  const std::vector<int> by_four = sums.host();
  for (int i = 0; i < 8; i++) wrong += by_four[i] != 16 * i + 6;

  CHECK(cudaDeviceSynchronize());
  return outcome("spellings", wrong);
}
