// Kernels of benchmarks.micro, each of which leans on one part of the chip.
// Compiled to PTX once; sizes come as arguments, so that compilers cannot foresee results.

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <typename T>
__device__ void multiply_add(T *out, T a, T b, int rounds) {
  T x[8];
  for (int k = 0; k < 8; k++) x[k] = a + T(k);
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int u = 0; u < 16; u++) {
#pragma unroll
      for (int k = 0; k < 8; k++) x[k] = x[k] * a + b;
    }
  }
  T sum = x[0];
  for (int k = 1; k < 8; k++) sum = sum + x[k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void fma_f32(float *out, float a, float b, int rounds) {
  multiply_add(out, a, b, rounds);
}

extern "C" __global__ void fma_f64(double *out, double a, double b, int rounds) {
  multiply_add(out, a, b, rounds);
}

template <typename In, typename Acc, int M, int N, int K>
__device__ void matrix(Acc *out, int rounds) {
  wmma::fragment<wmma::matrix_a, M, N, K, In, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, M, N, K, In, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> c[4];
  wmma::fill_fragment(a, 1);
  wmma::fill_fragment(b, 1);
  for (auto &tile : c) wmma::fill_fragment(tile, Acc(0));
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int u = 0; u < 8; u++)
#pragma unroll
      for (auto &tile : c) wmma::mma_sync(tile, a, b, tile);
  }
  Acc *mine = out + (blockIdx.x * blockDim.x + threadIdx.x) / 32 * M * N;
  for (auto &tile : c) wmma::store_matrix_sync(mine, tile, N, wmma::mem_row_major);
}

extern "C" __global__ void wmma_f16(float *out, int rounds) { matrix<half, float, 16, 16, 16>(out, rounds); }
extern "C" __global__ void wmma_s8(int *out, int rounds) { matrix<signed char, int, 16, 16, 16>(out, rounds); }
extern "C" __global__ void wmma_f64(double *out, int rounds) { matrix<double, double, 8, 8, 4>(out, rounds); }

extern "C" __global__ void wmma_tf32(float *out, int rounds) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c[4];
  wmma::fill_fragment(a, 1.f);
  wmma::fill_fragment(b, 1.f);
  for (auto &tile : c) wmma::fill_fragment(tile, 0.f);
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int u = 0; u < 8; u++)
#pragma unroll
      for (auto &tile : c) wmma::mma_sync(tile, a, b, tile);
  }
  float *mine = out + (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 256;
  for (auto &tile : c) wmma::store_matrix_sync(mine, tile, 16, wmma::mem_row_major);
}

// ------------------------------------------------------------------ streams

extern "C" __global__ void stream_init(double *a, double s) {
  a[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

extern "C" __global__ void stream_read(const double *a, double *sum) {
  double x = a[blockIdx.x * blockDim.x + threadIdx.x];
  if (x == 1.5) *sum = x;
}

extern "C" __global__ void stream_scale(double *a, const double *b, double s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = b[i] * s;
}

extern "C" __global__ void stream_triad(double *a, const double *b, const double *c, double s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = b[i] + c[i] * s;
}

extern "C" __global__ void saxpy(float *y, const float *x, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];
}

// ------------------------------------------------------------------ caches

// Every CTA reads the same `count` vectors past L1, `rounds` times.
extern "C" __global__ void read_l2(const float4 *data, int count, int rounds, float *sum) {
  float total = 0;
  for (int r = 0; r < rounds; r++) {
#pragma unroll 8
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      float4 v = __ldcg(data + i);
      total += v.x + v.y + v.z + v.w;
    }
  }
  if (total == 1.5f) *sum = total;
}

// A block of 512 reads the same 32 KB, which L1 holds, over and over.
extern "C" __global__ void read_l1(const float4 *data, int rounds, float *sum) {
  float4 v[4];
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int k = 0; k < 4; k++)  // nothing is done with it, so nothing but L1 is busy
      asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v[k].x), "=f"(v[k].y), "=f"(v[k].z), "=f"(v[k].w)
                   : "l"(data + threadIdx.x + k * 512));
  }
  if (v[0].x + v[1].x + v[2].x + v[3].x == 1.5f) *sum = v[0].x;
}

// One thread lays pointers, `stride` bytes apart and in a ring, and follows them.
extern "C" __global__ void chase(char *data, int places, long long stride, int steps, void **end) {
  for (int i = 0; i < places; i++)
    *reinterpret_cast<void **>(data + i * stride) = data + (i + 1) % places * stride;
  void *at = data;
#pragma unroll 16
  for (int i = 0; i < steps; i++) at = *static_cast<void **>(at);
  *end = at;
}

// One thread goes from place to place of a constant table: all places hold 0, which it cannot know.
#ifndef PLACES
#define PLACES 1024
#endif
__constant__ unsigned short table[PLACES];

extern "C" __global__ void chase_constant(int steps, int *end) {
  int at = threadIdx.x;
#pragma unroll 16
  for (int i = 0; i < steps; i++) at = table[at];
  *end = at;
}

// ------------------------------------------------------------------ the smallest

extern "C" __global__ void small(double *a, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) a[i] = a[i] * 1.1;
}
