// Sparse matrix times vector in CSR form, a thread a row and a warp a row, rows of uneven length.
#include "check.cuh"

__global__ void thread_a_row(const int *starts, const int *columns, const double *values,
                             const double *x, double *y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  double sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k)
    sum += values[k] * x[columns[k]];
  y[row] = sum;
}

__global__ void warp_a_row(const int *starts, const int *columns, const double *values,
                           const double *x, double *y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  double sum = 0;
  for (int k = starts[row] + lane; k < starts[row + 1]; k += 32)
    sum += values[k] * x[columns[k]];
  for (int offset = 16; offset; offset >>= 1)
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0)
    y[row] = sum;
}

int main() {
  const int rows = 3001, width = 5000;
  std::vector<int> starts(1, 0), columns;
  std::vector<double> values, x(width), expected;
  unsigned state = 9;
  for (double &v : x)
    v = (next_random(state) >> 8) / 1e7;
  for (int row = 0; row < rows; ++row) {
    const int length = (next_random(state) >> 16) % (row % 100 == 0 ? 500 : 12);
    double sum = 0;
    for (int k = 0; k < length; ++k) {
      columns.push_back((next_random(state) >> 8) % width);
      values.push_back((next_random(state) >> 8) / 1e7 - 0.5);
      sum += values.back() * x[columns.back()];
    }
    starts.push_back(static_cast<int>(columns.size()));
    expected.push_back(sum);
  }
  Buffer<int> s(starts), c(columns);
  Buffer<double> v(values), in(x), out(rows);
  long wrong = 0;
  for (int kind = 0; kind < 2; ++kind) {
    if (kind == 0)
      thread_a_row<<<(rows + 127) / 128, 128>>>(s, c, v, in, out, rows);
    else
      warp_a_row<<<(rows + 3) / 4, 128>>>(s, c, v, in, out, rows);
    const std::vector<double> found = out.host();
    for (int row = 0; row < rows; ++row)
      wrong += !close(found[row], expected[row], 1e-12);
  }
  return outcome("spmv_csr", wrong);
}
