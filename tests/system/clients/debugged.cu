// A kernel with something to look at: a structure, an array in shared memory, a device function.
#include <cstdio>

struct Point {
  float scale;
  int index;
};

__device__ __noinline__ float axpy(float a, float x, float y) {
  float result = a * x + y;
  return result;
}

__global__ void saxpy(int n, float a, const float *x, float *y) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Point point;
  point.scale = a;
  point.index = i;
  if (i < n) {
    tile[threadIdx.x] = x[i];
    y[i] = axpy(point.scale, tile[threadIdx.x], y[i]);
  }
}

__global__ void stray(float *x) { x[threadIdx.x + (1 << 28)] = 1; }

int main(int argc, char **) {
  const int n = 100;
  float *x, *y;
  cudaMallocManaged(&x, n * sizeof *x);
  cudaMallocManaged(&y, n * sizeof *y);
  for (int i = 0; i < n; ++i) {
    x[i] = i;
    y[i] = 1;
  }
  saxpy<<<2, 64>>>(n, 2.0f, x, y);
  cudaDeviceSynchronize();
  std::printf("y[3]=%g y[99]=%g\n", y[3], y[99]);
  if (argc > 1)
    stray<<<1, 32>>>(x);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;
}
