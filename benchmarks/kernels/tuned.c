/* The ten kernels as a C programmer writes them when speed matters: vectors of eight lanes,
 * accumulators in registers. Compiled with gcc -O3 -march=native. */
#include <stdint.h>
#include <string.h>

typedef float f8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t u8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t i8 __attribute__((vector_size(32), aligned(4), may_alias));

static const u8 kLanes = {0, 1, 2, 3, 4, 5, 6, 7};

void saxpy(int n, float a, const float *restrict x, float *restrict y) {
  for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

void gather(int n, const int *restrict index, const float *restrict x, float *restrict y) {
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    float p = x[index[i]], q = x[index[i + 1]], r = x[index[i + 2]], s = x[index[i + 3]];
    y[i] = p;
    y[i + 1] = q;
    y[i + 2] = r;
    y[i + 3] = s;
  }
  for (; i < n; i++) y[i] = x[index[i]];
}

/* 32 elements at a time; n is a multiple of 32. */
void alu(int n, int rounds, uint32_t *out) {
  for (int i = 0; i < n; i += 32) {
    u8 shifted[4], linear[4], sum[4];
    for (int v = 0; v < 4; v++) {
      linear[v] = kLanes + (uint32_t)(i + 8 * v);
      shifted[v] = linear[v] * 2654435761u + 1u;
      sum[v] = (u8){};
    }
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; v++) {
        shifted[v] ^= shifted[v] << 13;
        shifted[v] ^= shifted[v] >> 17;
        shifted[v] ^= shifted[v] << 5;
        linear[v] = linear[v] * 1664525u + 1013904223u;
        sum[v] += shifted[v] ^ linear[v];
      }
    }
    for (int v = 0; v < 4; v++) *(u8 *)(out + i + 8 * v) = sum[v];
  }
}

/* A block of 4x16 accumulators; n is a multiple of 16. */
void sgemm(int n, const float *a, const float *b, float *c) {
  for (int j = 0; j < n; j += 16) {
    for (int i = 0; i < n; i += 4) {
      f8 s00 = {}, s01 = {}, s10 = {}, s11 = {}, s20 = {}, s21 = {}, s30 = {}, s31 = {};
      const float *row = a + i * n;
      for (int k = 0; k < n; k++) {
        f8 b0 = *(const f8 *)(b + k * n + j), b1 = *(const f8 *)(b + k * n + j + 8);
        s00 += row[k] * b0;
        s01 += row[k] * b1;
        s10 += row[n + k] * b0;
        s11 += row[n + k] * b1;
        s20 += row[2 * n + k] * b0;
        s21 += row[2 * n + k] * b1;
        s30 += row[3 * n + k] * b0;
        s31 += row[3 * n + k] * b1;
      }
      f8 *out = (f8 *)(c + i * n + j);
      int step = n / 8;
      out[0] = s00, out[1] = s01;
      out[step] = s10, out[step + 1] = s11;
      out[2 * step] = s20, out[2 * step + 1] = s21;
      out[3 * step] = s30, out[3 * step + 1] = s31;
    }
  }
}

/* 64 running sums; n is a multiple of 64. */
void reduce(int n, const float *x, float *sum) {
  f8 total[8] = {};
  for (int i = 0; i < n; i += 64)
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++) total[v] += *(const f8 *)(x + i + 8 * v);
  for (int v = 1; v < 8; v++) total[0] += total[v];
  float result = 0.0f;
  for (int lane = 0; lane < 8; lane++) result += total[0][lane];
  *sum = result;
}

/* 16 points of a row at a time; the width is a multiple of 16. */
void mandelbrot(int width, int height, int limit, int *out) {
  f8 lanes = __builtin_convertvector(kLanes, f8);
  for (int py = 0; py < height; py++) {
    for (int px = 0; px < width; px += 16) {
      f8 cx[2], x[2] = {}, y[2] = {};
      i8 turns[2] = {};
      float cy = -1.5f + 3.0f * py / height;
      for (int v = 0; v < 2; v++) cx[v] = -2.0f + 3.0f * (lanes + (float)(px + 8 * v)) / (float)width;
      for (int turn = 0; turn < limit; turn++) {
        i8 any = {};
#pragma GCC unroll 2
        for (int v = 0; v < 2; v++) {
          i8 inside = x[v] * x[v] + y[v] * y[v] <= 4.0f;
          f8 next = x[v] * x[v] - y[v] * y[v] + cx[v];
          y[v] = 2.0f * x[v] * y[v] + cy;
          x[v] = next;
          turns[v] -= inside;
          any |= inside;
        }
        if (!__builtin_ia32_movmskps256((f8)any)) break;
      }
      memcpy(out + py * width + px, turns, sizeof turns);
    }
  }
}

/* Four tables, so that equal neighbours do not wait for each other. */
void hist(int n, const uint8_t *data, uint32_t *bins) {
  uint32_t own[4][256] = {};
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    memcpy(&word, data + i, 8);
    for (int v = 0; v < 8; v++) own[v % 4][word >> 8 * v & 255]++;
  }
  for (; i < n; i++) own[0][data[i]]++;
  for (int bin = 0; bin < 256; bin++)
    bins[bin] += own[0][bin] + own[1][bin] + own[2][bin] + own[3][bin];
}

void mma(int n, const _Float16 *a, const _Float16 *b, float *c, float *left, float *right) {
  for (int i = 0; i < n * n; i++) left[i] = (float)a[i];
  for (int j = 0; j < n; j += 8)
    for (int k = 0; k < n; k++)
      for (int v = 0; v < 8; v++) right[k * n + j + v] = (float)b[(j + v) * n + k];
  sgemm(n, left, right, c);
}
