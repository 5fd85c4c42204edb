/* The kernels in OpenCL C for PoCL, statement by statement as in CUDA C++. Its CPU device has no
 * sub-groups: reduce sums in a tree. UNROLL stands where the CUDA kernels say #pragma unroll; it
 * slows PoCL down, so that the benchmark also builds them without. */
#ifdef ROLLED
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

kernel void saxpy(int n, float a, global const float *x, global float *y) {
  int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}

kernel void gather(int n, global const int *index, global const float *x, global float *y) {
  int i = get_global_id(0);
  if (i < n) y[i] = x[index[i]];
}

kernel void alu(int n, int rounds, global uint *out) {
  int i = get_global_id(0);
  if (i >= n) return;
  uint shifted = i * 2654435761u + 1u, linear = i, sum = 0;
  for (int r = 0; r < rounds; r++) {
    shifted ^= shifted << 13;
    shifted ^= shifted >> 17;
    shifted ^= shifted << 5;
    linear = linear * 1664525u + 1013904223u;
    sum += shifted ^ linear;
  }
  out[i] = sum;
}

#define SGEMM(NAME, TILE)                                                                  \
  kernel void NAME(int n, global const float *a, global const float *b, global float *c) { \
    local float left[TILE][TILE], right[TILE][TILE];                                       \
    int x = get_local_id(0), y = get_local_id(1);                                          \
    int column = get_group_id(0) * TILE + x, row = get_group_id(1) * TILE + y;             \
    float sum = 0.0f;                                                                      \
    for (int k = 0; k < n; k += TILE) {                                                    \
      left[y][x] = a[row * n + k + x];                                                     \
      right[y][x] = b[(k + y) * n + column];                                               \
      barrier(CLK_LOCAL_MEM_FENCE);                                                        \
      UNROLL for (int i = 0; i < TILE; i++) sum += left[y][i] * right[i][x];               \
      barrier(CLK_LOCAL_MEM_FENCE);                                                        \
    }                                                                                      \
    c[row * n + column] = sum;                                                             \
  }
SGEMM(sgemm32, 32)
SGEMM(sgemm16, 16)

kernel void sgemmrt(int n, global const float *a, global const float *b, global float *c) {
  local float left[16][64], right[16][64];
  int thread = get_local_id(0), tx = thread % 16, ty = thread / 16;
  int top = get_group_id(1) * 64, side = get_group_id(0) * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    UNROLL for (int i = thread; i < 1024; i += 256) {
      left[i % 16][i / 16] = a[(top + i / 16) * n + k + i % 16];
      right[i / 64][i % 64] = b[(k + i / 64) * n + side + i % 64];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int d = 0; d < 16; d++) {
      float rows[4], columns[4];
      UNROLL for (int i = 0; i < 4; i++) {
        rows[i] = left[d][ty * 4 + i];
        columns[i] = right[d][tx + 16 * i];
      }
      UNROLL for (int i = 0; i < 4; i++)
        UNROLL for (int j = 0; j < 4; j++) sum[i][j] += rows[i] * columns[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  UNROLL for (int i = 0; i < 4; i++)
    UNROLL for (int j = 0; j < 4; j++) c[(top + ty * 4 + i) * n + side + tx + 16 * j] = sum[i][j];
}

kernel void reduce(int n, global const float *x, global float *partial) {
  local float tree[256];
  int thread = get_local_id(0);
  float sum = 0.0f;
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
  tree[thread] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step; step /= 2) {
    if (thread < step) tree[thread] += tree[thread + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (thread == 0) partial[get_group_id(0)] = tree[0];
}

kernel void mandelbrot(int width, int height, int limit, global int *out) {
  int px = get_global_id(0), py = get_global_id(1);
  if (px >= width || py >= height) return;
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

kernel void hist(int n, global const uchar *data, global uint *bins) {
  local uint own[256];
  for (int i = get_local_id(0); i < 256; i += get_local_size(0)) own[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&own[data[i]]);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_local_id(0); i < 256; i += get_local_size(0)) atomic_add(&bins[i], own[i]);
}
