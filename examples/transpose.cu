// Transposing a matrix, twice: through a shared tile whose columns each lie in one bank, so that 32
// threads of a warp wait for each other, and through one padded by a column, where they do not.
//
//   transpose [--n ROWS] [--out FILE]      FILE receives the transposed matrix, as floats
#include "example.cuh"

#include <algorithm>
#include <cmath>

constexpr int TILE = 32;
constexpr int ROWS = 8; // rows of threads; each thread moves TILE / ROWS elements

// Shared memory has 32 banks of 4 bytes. A tile row of 32 floats puts a column into a single bank;
// one of 33 spreads it over all.
template <int PADDING>
__global__ void transpose(int n, const float *__restrict__ in, float *__restrict__ out) {
  __shared__ float tile[TILE][TILE + PADDING];

  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  for (int row = 0; row < TILE; row += ROWS)
    if (x < n && y + row < n)
      tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * n + x];
  __syncthreads();

  // The block writes the mirrored tile; neighbouring threads still write neighbouring addresses.
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int row = 0; row < TILE; row += ROWS)
    if (x < n && y + row < n)
      out[(y + row) * n + x] = tile[threadIdx.x][threadIdx.y + row];
}

using Kernel = void (*)(int, const float *, float *);

// Transpose with one of the kernels; the value is the largest difference from the host's.
double run(Kernel kernel, int n, const std::vector<float> &in, std::vector<float> *out) {
  const size_t bytes = in.size() * sizeof(float);
  float *in_device, *out_device;
  CHECK(cudaMalloc(&in_device, bytes));
  CHECK(cudaMalloc(&out_device, bytes));
  CHECK(cudaMemcpy(in_device, in.data(), bytes, cudaMemcpyHostToDevice));

  const dim3 block(TILE, ROWS);
  const dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  kernel<<<grid, block>>>(n, in_device, out_device);
  CHECK_LAUNCH();

  CHECK(cudaMemcpy(out->data(), out_device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in_device));
  CHECK(cudaFree(out_device));

  double error = 0;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column)
      error = std::max(error, static_cast<double>(std::fabs((*out)[column * n + row] -
                                                            in[row * n + column])));
  return error;
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 1000);
  std::vector<float> in(static_cast<size_t>(n) * n), out(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(i);

  const double conflicting = run(transpose<0>, n, in, &out);
  std::fill(out.begin(), out.end(), 0.0f);
  const double padded = run(transpose<1>, n, in, &out);
  example::write_out(argc, argv, out);
  return example::verdict("transpose", std::max(conflicting, padded), 0);
}
