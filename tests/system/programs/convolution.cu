// A separable filter from constant memory, rows then columns, with a halo in shared memory.
#include "check.cuh"

constexpr int kRadius = 4;
constexpr int kTileX = 32, kTileY = 8;
__constant__ float filter[2 * kRadius + 1];
__device__ int touched;

template <bool kRows>
__global__ void convolve(const float *in, float *out, int width, int height) {
  __shared__ float tile[kTileY + 2 * kRadius][kTileX + 2 * kRadius + 1];
  const int x0 = blockIdx.x * kTileX - kRadius, y0 = blockIdx.y * kTileY - kRadius;
  for (int y = threadIdx.y; y < kTileY + 2 * kRadius; y += kTileY)
    for (int x = threadIdx.x; x < kTileX + 2 * kRadius; x += kTileX) {
      const int gx = x0 + x, gy = y0 + y;
      const bool inside = gx >= 0 && gx < width && gy >= 0 && gy < height;
      tile[y][x] = inside ? __ldg(&in[gy * width + gx]) : 0.0f;
    }
  __syncthreads();
  const int x = blockIdx.x * kTileX + threadIdx.x, y = blockIdx.y * kTileY + threadIdx.y;
  if (x >= width || y >= height)
    return;
  float sum = 0;
#pragma unroll
  for (int k = -kRadius; k <= kRadius; ++k)
    sum += filter[k + kRadius] * (kRows ? tile[threadIdx.y + kRadius][threadIdx.x + kRadius + k]
                                        : tile[threadIdx.y + kRadius + k][threadIdx.x + kRadius]);
  out[y * width + x] = sum;
  atomicAdd(&touched, 1);
}

int main() {
  const int width = 201, height = 77;
  std::vector<float> image(width * height);
  unsigned state = 5;
  for (float &v : image)
    v = (next_random(state) >> 16) / 65536.0f;
  float taps[2 * kRadius + 1];
  for (int k = -kRadius; k <= kRadius; ++k)
    taps[k + kRadius] = std::exp(-0.2f * k * k);
  CHECK(cudaMemcpyToSymbol(filter, taps, sizeof taps));
  Buffer<float> in(image), rows(image.size()), out(image.size());
  const dim3 block(kTileX, kTileY);
  const dim3 grid((width + kTileX - 1) / kTileX, (height + kTileY - 1) / kTileY);
  convolve<true><<<grid, block>>>(in, rows, width, height);
  convolve<false><<<grid, block>>>(rows, out, width, height);
  CHECK(cudaDeviceSynchronize());
  int count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, touched, sizeof count));
  long wrong = count != 2 * width * height;
  const std::vector<float> found = out.host();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double sum = 0;
      for (int j = -kRadius; j <= kRadius; ++j)
        for (int i = -kRadius; i <= kRadius; ++i)
          if (x + i >= 0 && x + i < width && y + j >= 0 && y + j < height)
            sum += double(taps[j + kRadius]) * taps[i + kRadius] * image[(y + j) * width + x + i];
      wrong += !close(found[y * width + x], sum, 1e-5);
    }
  return outcome("convolution", wrong);
}
