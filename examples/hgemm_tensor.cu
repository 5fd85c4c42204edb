// C = A B on tensor cores: half-precision matrices, sums in single precision, in two ways.
//
// A warp multiplies small matrices that its 32 lanes hold together. `wmma` (mma.h) leaves open
// which lane holds what; `mma.sync` tells, and `ldmatrix` brings operands from shared memory in
// just that order. A tensor core adds eight products at a time and cuts the sum off, it does not
// round it; both kernels take k in the same order, so they agree to the last bit.
//
//   hgemm_tensor [--n ROWS] [--out FILE]      FILE receives C, as floats, row by row
#include "example.cuh"

#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int TILE = 64;          // of C, a block
constexpr int STEP = 32;          // of k, held in shared memory
constexpr int WARPS = 4;          // 2 x 2 of them, 32 x 32 of C each
constexpr int A_PITCH = STEP + 8; // eight halves more: rows then lie in different banks
constexpr int B_PITCH = TILE + 8;

// Both operands of one step; every thread copies 16 bytes at a time.
__device__ void load_step(half *a_tile, half *b_tile, const half *a, const half *b, int n, int k) {
  for (int i = threadIdx.x; i < TILE * STEP / 8; i += blockDim.x) {
    const int row = i / (STEP / 8), column = i % (STEP / 8) * 8;
    *reinterpret_cast<uint4 *>(&a_tile[row * A_PITCH + column]) =
        *reinterpret_cast<const uint4 *>(&a[(blockIdx.y * TILE + row) * n + k + column]);
  }
  for (int i = threadIdx.x; i < STEP * TILE / 8; i += blockDim.x) {
    const int row = i / (TILE / 8), column = i % (TILE / 8) * 8;
    *reinterpret_cast<uint4 *>(&b_tile[row * B_PITCH + column]) =
        *reinterpret_cast<const uint4 *>(&b[(k + row) * n + blockIdx.x * TILE + column]);
  }
}

__global__ void hgemm_wmma(int n, const half *__restrict__ a, const half *__restrict__ b,
                           float *__restrict__ c) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) half a_tile[TILE * A_PITCH];
  __shared__ __align__(32) half b_tile[STEP * B_PITCH];
  const int warp = threadIdx.x / 32, down = warp / 2 * 32, right = warp % 2 * 32;

  fragment<accumulator, 16, 16, 16, float> sums[2][2];
  for (auto &row : sums)
    for (auto &sum : row)
      fill_fragment(sum, 0.0f);

  for (int k = 0; k < n; k += STEP) {
    load_step(a_tile, b_tile, a, b, n, k);
    __syncthreads();
    for (int inner = 0; inner < STEP; inner += 16) {
      fragment<matrix_a, 16, 16, 16, half, row_major> left[2];
      fragment<matrix_b, 16, 16, 16, half, row_major> above[2];
      for (int i = 0; i < 2; ++i) {
        load_matrix_sync(left[i], &a_tile[(down + 16 * i) * A_PITCH + inner], A_PITCH);
        load_matrix_sync(above[i], &b_tile[inner * B_PITCH + right + 16 * i], B_PITCH);
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          mma_sync(sums[i][j], left[i], above[j], sums[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const int row = blockIdx.y * TILE + down + 16 * i;
      const int column = blockIdx.x * TILE + right + 16 * j;
      store_matrix_sync(&c[row * n + column], sums[i][j], n, mem_row_major);
    }
}

__device__ uint32_t shared_address(const void *place) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

__global__ void hgemm_mma(int n, const half *__restrict__ a, const half *__restrict__ b,
                          float *__restrict__ c) {
  __shared__ __align__(32) half a_tile[TILE * A_PITCH];
  __shared__ __align__(32) half b_tile[STEP * B_PITCH];
  const int warp = threadIdx.x / 32, down = warp / 2 * 32, right = warp % 2 * 32;
  const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;

  float sums[2][4][4] = {}; // 2 x 4 tiles of 16 x 8, four elements of each in this lane

  for (int k = 0; k < n; k += STEP) {
    load_step(a_tile, b_tile, a, b, n, k);
    __syncthreads();
    for (int inner = 0; inner < STEP; inner += 16) {
      uint32_t left[2][4], above[4][2];
      // Lane l gives the address of a row of 16 bytes: of A's four 8 x 8 corners, of B's two halves.
      for (int i = 0; i < 2; ++i) {
        const int row = down + 16 * i + lane % 16, column = inner + lane / 16 * 8;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(left[i][0]), "=r"(left[i][1]), "=r"(left[i][2]), "=r"(left[i][3])
                     : "r"(shared_address(&a_tile[row * A_PITCH + column])));
      }
      for (int j = 0; j < 4; ++j) {
        const int row = inner + lane % 16, column = right + 8 * j;
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(above[j][0]), "=r"(above[j][1])
                     : "r"(shared_address(&b_tile[row * B_PITCH + column])));
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) {
          float *sum = sums[i][j];
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                       "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                       : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                       : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]),
                         "r"(above[j][0]), "r"(above[j][1]));
        }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int half_tile = 0; half_tile < 2; ++half_tile) {
        const int row = blockIdx.y * TILE + down + 16 * i + 8 * half_tile + group;
        const int column = blockIdx.x * TILE + right + 8 * j + 2 * member;
        *reinterpret_cast<float2 *>(&c[row * n + column]) =
            make_float2(sums[i][j][2 * half_tile], sums[i][j][2 * half_tile + 1]);
      }
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 256);
  const int padded = (n + TILE - 1) / TILE * TILE; // zeros beyond the edge add nothing
  const size_t count = static_cast<size_t>(padded) * padded;

  example::Random random(6);
  std::vector<half> a(count), b(count);
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      a[row * padded + column] = __float2half(random.uniform());
      b[row * padded + column] = __float2half(random.uniform());
    }

  half *a_device, *b_device;
  float *c_device;
  CHECK(cudaMalloc(&a_device, count * sizeof(half)));
  CHECK(cudaMalloc(&b_device, count * sizeof(half)));
  CHECK(cudaMalloc(&c_device, count * sizeof(float)));
  CHECK(cudaMemcpy(a_device, a.data(), count * sizeof(half), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b_device, b.data(), count * sizeof(half), cudaMemcpyHostToDevice));

  const dim3 grid(padded / TILE, padded / TILE);
  std::vector<float> c(count), again(count);
  hgemm_wmma<<<grid, WARPS * 32>>>(padded, a_device, b_device, c_device);
  CHECK_LAUNCH();
  CHECK(cudaMemcpy(c.data(), c_device, count * sizeof(float), cudaMemcpyDeviceToHost));
  hgemm_mma<<<grid, WARPS * 32>>>(padded, a_device, b_device, c_device);
  CHECK_LAUNCH();
  CHECK(cudaMemcpy(again.data(), c_device, count * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a_device));
  CHECK(cudaFree(b_device));
  CHECK(cudaFree(c_device));

  const bool equal = std::memcmp(c.data(), again.data(), count * sizeof(float)) == 0;
  std::printf("wmma and mma.sync: %s\n", equal ? "equal to the bit" : "DIFFERENT");

  double error = equal ? 0 : INFINITY;
  std::vector<double> sums(n);
  std::vector<float> result(static_cast<size_t>(n) * n);
  for (int row = 0; row < n; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int k = 0; k < n; ++k)
      for (int column = 0; column < n; ++column)
        sums[column] += static_cast<double>(__half2float(a[row * padded + k])) *
                        __half2float(b[k * padded + column]);
    for (int column = 0; column < n; ++column) {
      result[row * n + column] = c[row * padded + column];
      error = std::max(error, std::fabs(result[row * n + column] - sums[column]));
    }
  }
  example::write_out(argc, argv, result);
  return example::verdict("hgemm_tensor", error, 2e-7 * n);
}
