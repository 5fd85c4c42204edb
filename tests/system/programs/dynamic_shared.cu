// Dynamic shared memory beyond 48 KiB, after the attribute that allows it; refused before.
#include "check.cuh"

extern __shared__ unsigned char storage[];

__global__ void reverse(const double *in, double *out, int n) {
  double *const tile = reinterpret_cast<double *>(storage);
  int *const order = reinterpret_cast<int *>(tile + n);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    tile[i] = in[blockIdx.x * n + i];
    order[n - 1 - i] = i;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[blockIdx.x * n + i] = tile[order[i]];
}

int main() {
  const int n = 8000, blocks = 3;
  const size_t bytes = n * (sizeof(double) + sizeof(int)); // 96,000
  std::vector<double> values(n * blocks);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.5 * i;
  Buffer<double> in(values), out(values.size());
  long wrong = 0;
  reverse<<<blocks, 256, bytes>>>(in, out, n);
  wrong += cudaGetLastError() != cudaErrorInvalidValue;
  CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, reverse));
  wrong += attributes.maxDynamicSharedSizeBytes != static_cast<int>(bytes);
  int resident = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, reverse, 256, bytes));
  wrong += resident != 1;
  reverse<<<blocks, 256, bytes>>>(in, out, n);
  CHECK(cudaDeviceSynchronize());
  const std::vector<double> found = out.host();
  for (int b = 0; b < blocks; ++b)
    for (int i = 0; i < n; ++i)
      wrong += found[b * n + i] != values[b * n + n - 1 - i];
  wrong += cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                200 * 1024) != cudaErrorInvalidValue;
  return outcome("dynamic_shared", wrong);
}
