// A deliberate mistake, to show how it is reported: the buffer is allocated in elements where
// cudaMalloc wants bytes, so three quarters of the kernel's stores fall outside it.
//
// On a virtual A100 the message names the kernel, the line, the block, the thread, the address and
// the nearest allocation. As on a real one, the error is 700 and the context is lost: every later
// call fails too.
//
//   out_of_bounds [--n ELEMENTS]
#include "example.cuh"

__global__ void fill(float *values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    values[i] = 1.0f; // here
}

int main(int argc, char **argv) {
  const int n = example::number(argc, argv, "--n", 1 << 22);
  float *values;
  CHECK(cudaMalloc(&values, n)); // the mistake: n * sizeof(float)

  fill<<<(n + 255) / 256, 256>>>(values, n);
  CHECK(cudaGetLastError()); // the launch itself is fine
  const cudaError_t status = cudaDeviceSynchronize();
  std::printf("after the kernel: CUDA error %d (%s): %s\n", static_cast<int>(status),
              cudaGetErrorName(status), cudaGetErrorString(status));
  std::printf("a later call: CUDA error %d\n", static_cast<int>(cudaFree(values)));
  return status == cudaErrorIllegalAddress ? EXIT_FAILURE : EXIT_SUCCESS;
}
