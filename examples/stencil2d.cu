// Heat spreading over a plate: each step replaces a point by the mean of its four neighbours. A
// block loads its tile and the halo around it into shared memory, so that a point is read from
// global memory about once instead of four times. Two buffers take turns.
//
//   stencil2d [--n ROWS] [--steps STEPS] [--out FILE]      FILE receives the plate, as floats
#include "example.cuh"

#include <algorithm>
#include <cmath>
#include <utility>

constexpr int TILE_X = 32;
constexpr int TILE_Y = 8;

__global__ void spread(int n, const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float tile[TILE_Y + 2][TILE_X + 2];
  const int left = blockIdx.x * TILE_X - 1;
  const int top = blockIdx.y * TILE_Y - 1;

  // 340 points for 256 threads: some load two.
  for (int i = threadIdx.y * TILE_X + threadIdx.x; i < (TILE_Y + 2) * (TILE_X + 2);
       i += TILE_X * TILE_Y) {
    const int row = i / (TILE_X + 2), column = i % (TILE_X + 2);
    const int y = top + row, x = left + column;
    tile[row][column] = y >= 0 && y < n && x >= 0 && x < n ? in[y * n + x] : 0;
  }
  __syncthreads();

  const int x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
  if (x >= n || y >= n)
    return;
  const int row = threadIdx.y + 1, column = threadIdx.x + 1;
  const bool on_edge = x == 0 || y == 0 || x == n - 1 || y == n - 1;
  const float mean = 0.25f * ((tile[row - 1][column] + tile[row + 1][column]) +
                              (tile[row][column - 1] + tile[row][column + 1]));
  out[y * n + x] = on_edge ? tile[row][column] : mean; // the rim keeps its temperature
}

// One step on the host, in the same order of additions.
void spread_on_host(int n, const std::vector<float> &in, std::vector<float> *out) {
  *out = in;
  for (int y = 1; y < n - 1; ++y)
    for (int x = 1; x < n - 1; ++x)
      (*out)[y * n + x] = 0.25f * ((in[(y - 1) * n + x] + in[(y + 1) * n + x]) +
                                   (in[y * n + x - 1] + in[y * n + x + 1]));
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 300);
  const int steps = example::number(argc, argv, "--steps", 20);
  const size_t bytes = static_cast<size_t>(n) * n * sizeof(float);

  std::vector<float> plate(static_cast<size_t>(n) * n, 0.0f);
  for (int x = 0; x < n; ++x)
    plate[x] = 100.0f; // one hot side

  float *now, *next;
  CHECK(cudaMalloc(&now, bytes));
  CHECK(cudaMalloc(&next, bytes));
  CHECK(cudaMemcpy(now, plate.data(), bytes, cudaMemcpyHostToDevice));

  const dim3 block(TILE_X, TILE_Y);
  const dim3 grid((n + TILE_X - 1) / TILE_X, (n + TILE_Y - 1) / TILE_Y);
  for (int step = 0; step < steps; ++step) {
    spread<<<grid, block>>>(n, now, next);
    CHECK(cudaGetLastError());
    std::swap(now, next);
  }
  CHECK(cudaDeviceSynchronize());

  std::vector<float> result(plate.size()), other(plate.size());
  CHECK(cudaMemcpy(result.data(), now, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(now));
  CHECK(cudaFree(next));

  for (int step = 0; step < steps; ++step) {
    spread_on_host(n, plate, &other);
    std::swap(plate, other);
  }
  float error = 0;
  for (size_t i = 0; i < plate.size(); ++i)
    error = std::max(error, std::fabs(result[i] - plate[i]));
  example::write_out(argc, argv, result);
  return example::verdict("stencil2d", error, 0);
}
