// y = alpha x + y with a grid-stride loop: a grid of any size covers any number of elements.
//
//   saxpy [--n ELEMENTS] [--out FILE]      FILE receives y, as floats
#include "example.cuh"

#include <algorithm>
#include <cmath>

__global__ void saxpy(int n, float alpha, const float *__restrict__ x, float *__restrict__ y) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    y[i] = fmaf(alpha, x[i], y[i]);
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 1 << 20);
  const size_t bytes = n * sizeof(float);
  const float alpha = 2.5f;

  example::Random random(1);
  std::vector<float> x(n), y(n), result(n);
  for (int i = 0; i < n; ++i) {
    x[i] = random.uniform();
    y[i] = random.uniform();
  }

  float *x_device, *y_device;
  CHECK(cudaMalloc(&x_device, bytes));
  CHECK(cudaMalloc(&y_device, bytes));
  CHECK(cudaMemcpy(x_device, x.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(y_device, y.data(), bytes, cudaMemcpyHostToDevice));

  // Enough blocks to fill every SM, whatever n is.
  int sm_count = 0;
  CHECK(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, 0));
  saxpy<<<8 * sm_count, 256>>>(n, alpha, x_device, y_device);
  CHECK_LAUNCH();

  CHECK(cudaMemcpy(result.data(), y_device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(x_device));
  CHECK(cudaFree(y_device));

  float error = 0;
  for (int i = 0; i < n; ++i)
    error = std::max(error, std::fabs(result[i] - std::fmaf(alpha, x[i], y[i])));
  example::write_out(argc, argv, result);
  return example::verdict("saxpy", error, 0);
}
