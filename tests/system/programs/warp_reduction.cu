// Sums, minima and maxima of three types by shuffles, templated on type, operation and block size.
#include "check.cuh"

struct Sum {
  template <typename T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
struct Least {
  template <typename T> __host__ __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
struct Most {
  template <typename T> __host__ __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};

template <typename T, typename Op> __device__ T across_warp(T value, Op op) {
#pragma unroll
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    value = op(value, __shfl_down_sync(0xffffffffu, value, offset));
  return value;
}

template <typename T, typename Op, int kBlock>
__global__ void reduce(const T *__restrict__ in, T *__restrict__ out, int n, T start) {
  __shared__ T partial[kBlock / 32];
  const Op op;
  T value = start;
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock)
    value = op(value, in[i]);
  value = across_warp(value, op);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0)
    partial[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < kBlock / 32 ? partial[lane] : start;
    value = across_warp(value, op);
    if (lane == 0)
      out[blockIdx.x] = value;
  }
}

template <typename T, typename Op, int kBlock> long check(int n, T start) {
  std::vector<T> values(n);
  unsigned state = 7;
  for (T &v : values)
    v = static_cast<T>(static_cast<int>(next_random(state) >> 20) - 2000);
  const int grid = 40;
  Buffer<T> in(values), partial(grid), out(1);
  reduce<T, Op, kBlock><<<grid, kBlock>>>(in, partial, n, start);
  reduce<T, Op, kBlock><<<1, kBlock>>>(partial, out, grid, start);
  CHECK(cudaGetLastError());
  T expected = start;
  for (const T v : values)
    expected = Op()(expected, v);
  return out.host()[0] != expected; // sums of small integers are exact in every type here
}

int main() {
  long wrong = 0;
  for (const int n : {1, 31, 1000, 100003}) {
    wrong += check<int, Sum, 256>(n, 0);
    wrong += check<float, Sum, 64>(n < 5000 ? n : 5000, 0.0f);
    wrong += check<double, Sum, 1024>(n, 0.0);
    wrong += check<long long, Least, 128>(n, 1LL << 60);
    wrong += check<float, Most, 512>(n, -1e30f);
    wrong += check<double, Least, 32>(n, 1e300);
  }
  return outcome("warp_reduction", wrong);
}
