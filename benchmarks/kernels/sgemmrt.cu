// C = A B for square row-major matrices: a 64x64 tile a CTA, 4x4 elements a thread in registers.
constexpr int kTile = 64, kDepth = 16, kEach = 4, kThreads = 256;

extern "C" __global__ void sgemmrt(int n, const float *a, const float *b, float *c) {
  __shared__ float left[kDepth][kTile], right[kDepth][kTile];
  int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
  int top = blockIdx.y * kTile, side = blockIdx.x * kTile;
  float sum[kEach][kEach] = {};
  for (int k = 0; k < n; k += kDepth) {
#pragma unroll
    for (int i = thread; i < kTile * kDepth; i += kThreads) {
      left[i % kDepth][i / kDepth] = a[(top + i / kDepth) * n + k + i % kDepth];
      right[i / kTile][i % kTile] = b[(k + i / kTile) * n + side + i % kTile];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; d++) {
      float rows[kEach], columns[kEach];
#pragma unroll
      for (int i = 0; i < kEach; i++) {
        rows[i] = left[d][ty * kEach + i];
        columns[i] = right[d][tx + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < kEach; i++)
#pragma unroll
        for (int j = 0; j < kEach; j++) sum[i][j] += rows[i] * columns[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; i++)
#pragma unroll
    for (int j = 0; j < kEach; j++) c[(top + ty * kEach + i) * n + side + tx + 16 * j] = sum[i][j];
}
