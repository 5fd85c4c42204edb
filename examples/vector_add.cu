// c = a + b: one thread an element, the smallest whole CUDA program.
//
//   vector_add [--n ELEMENTS] [--out FILE]      FILE receives c, as floats
#include "example.cuh"

#include <algorithm>
#include <cmath>

__global__ void vector_add(const float *a, const float *b, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) // the last block may reach past the end
    c[i] = a[i] + b[i];
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 1 << 20);
  const size_t bytes = n * sizeof(float);

  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = 0.5f * i;
    b[i] = 100.0f - 0.25f * i;
  }

  float *a_device, *b_device, *c_device;
  CHECK(cudaMalloc(&a_device, bytes));
  CHECK(cudaMalloc(&b_device, bytes));
  CHECK(cudaMalloc(&c_device, bytes));
  CHECK(cudaMemcpy(a_device, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b_device, b.data(), bytes, cudaMemcpyHostToDevice));

  const int block = 256;
  const int grid = (n + block - 1) / block;
  vector_add<<<grid, block>>>(a_device, b_device, c_device, n);
  CHECK_LAUNCH();

  CHECK(cudaMemcpy(c.data(), c_device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a_device));
  CHECK(cudaFree(b_device));
  CHECK(cudaFree(c_device));

  float error = 0;
  for (int i = 0; i < n; ++i)
    error = std::max(error, std::fabs(c[i] - (a[i] + b[i])));
  example::write_out(argc, argv, c);
  return example::verdict("vector_add", error, 0);
}
