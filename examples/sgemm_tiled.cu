// C = A B for square matrices of any size, by tiles in shared memory.
//
// Each block makes one tile of C. It walks along a row of tiles of A and a column of tiles of B;
// its threads load both tiles once and then read every element of them TILE times, so global
// memory is read TILE times less than without tiles.
//
//   sgemm_tiled [--n ROWS] [--out FILE]      FILE receives C, as floats, row by row
#include "example.cuh"

#include <algorithm>
#include <cmath>

constexpr int TILE = 32;

__global__ void sgemm_tiled(int n, const float *__restrict__ a, const float *__restrict__ b,
                            float *__restrict__ c) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];

  const int row = blockIdx.y * TILE + threadIdx.y;
  const int column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;

  for (int start = 0; start < n; start += TILE) {
    const int a_column = start + threadIdx.x;
    const int b_row = start + threadIdx.y;
    // Zeros beyond the edge add nothing, and all threads must reach both barriers.
    a_tile[threadIdx.y][threadIdx.x] = row < n && a_column < n ? a[row * n + a_column] : 0;
    b_tile[threadIdx.y][threadIdx.x] = b_row < n && column < n ? b[b_row * n + column] : 0;
    __syncthreads(); // the tiles are whole
    for (int k = 0; k < TILE; ++k)
      sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads(); // nobody reads them any more
  }
  if (row < n && column < n)
    c[row * n + column] = sum;
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 256);
  const size_t count = static_cast<size_t>(n) * n;
  const size_t bytes = count * sizeof(float);

  example::Random random(2);
  std::vector<float> a(count), b(count), c(count);
  for (size_t i = 0; i < count; ++i) {
    a[i] = random.uniform();
    b[i] = random.uniform();
  }

  float *a_device, *b_device, *c_device;
  CHECK(cudaMalloc(&a_device, bytes));
  CHECK(cudaMalloc(&b_device, bytes));
  CHECK(cudaMalloc(&c_device, bytes));
  CHECK(cudaMemcpy(a_device, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b_device, b.data(), bytes, cudaMemcpyHostToDevice));

  const dim3 block(TILE, TILE);
  const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  sgemm_tiled<<<grid, block>>>(n, a_device, b_device, c_device);
  CHECK_LAUNCH();

  CHECK(cudaMemcpy(c.data(), c_device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a_device));
  CHECK(cudaFree(b_device));
  CHECK(cudaFree(c_device));

  // Sums are rounded in another order here, so they agree to a few units in the last place.
  double error = 0;
  std::vector<double> sums(n);
  for (int row = 0; row < n; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int k = 0; k < n; ++k)
      for (int column = 0; column < n; ++column)
        sums[column] += static_cast<double>(a[row * n + k]) * b[k * n + column];
    for (int column = 0; column < n; ++column)
      error = std::max(error, std::fabs(c[row * n + column] - sums[column]));
  }
  example::write_out(argc, argv, c);
  return example::verdict("sgemm_tiled", error, 1e-7 * n);
}
