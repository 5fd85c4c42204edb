// The library: a kernel behind a function of C++.
#include "scale.h"

__global__ void scale_kernel(float *values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

void scale(float *values, float factor, int count) {
  scale_kernel<<<(count + 127) / 128, 128>>>(values, factor, count);
}
