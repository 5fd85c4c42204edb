/* The ten kernels as a C programmer writes them first. Compiled with gcc -O3 -march=native. */
#include <stdint.h>

void saxpy(int n, float a, const float *x, float *y) {
  for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

void gather(int n, const int *index, const float *x, float *y) {
  for (int i = 0; i < n; i++) y[i] = x[index[i]];
}

void alu(int n, int rounds, uint32_t *out) {
  for (int i = 0; i < n; i++) {
    uint32_t shifted = (uint32_t)i * 2654435761u + 1u, linear = (uint32_t)i, sum = 0;
    for (int r = 0; r < rounds; r++) {
      shifted ^= shifted << 13;
      shifted ^= shifted >> 17;
      shifted ^= shifted << 5;
      linear = linear * 1664525u + 1013904223u;
      sum += shifted ^ linear;
    }
    out[i] = sum;
  }
}

/* The loop order that runs along rows. */
void sgemm(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) c[i * n + j] = 0.0f;
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
  }
}

void reduce(int n, const float *x, float *sum) {
  float total = 0.0f;
  for (int i = 0; i < n; i++) total += x[i];
  *sum = total;
}

void mandelbrot(int width, int height, int limit, int *out) {
  for (int py = 0; py < height; py++) {
    for (int px = 0; px < width; px++) {
      float cx = -2.0f + 3.0f * px / width, cy = -1.5f + 3.0f * py / height;
      float x = 0.0f, y = 0.0f;
      int turn = 0;
      while (turn < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        turn++;
      }
      out[py * width + px] = turn;
    }
  }
}

void hist(int n, const uint8_t *data, uint32_t *bins) {
  for (int i = 0; i < n; i++) bins[data[i]]++;
}

/* Half matrices, B by columns: dot products would be scalar, so rows are widened first. */
void mma(int n, const _Float16 *a, const _Float16 *b, float *c, float *left, float *right) {
  for (int i = 0; i < n * n; i++) left[i] = (float)a[i];
  for (int j = 0; j < n; j++)
    for (int k = 0; k < n; k++) right[k * n + j] = (float)b[j * n + k];
  sgemm(n, left, right, c);
}
