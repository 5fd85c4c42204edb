// C++ in kernels: virtual functions, function pointers, recursion, lambdas, local arrays, structs by
// value, device globals, half precision, bit tricks.
#include <cuda_fp16.h>

#include "check.cuh"

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Box : Shape {
  float w, h;
  __device__ Box(float w, float h) : w(w), h(h) {}
  __device__ float area() const override { return w * h; }
};
struct Disc : Shape {
  float r;
  __device__ explicit Disc(float r) : r(r) {}
  __device__ float area() const override { return 3.0f * r * r; }
};

__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
using Step = int (*)(int);
__device__ Step steps[2] = {twice, thrice};
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Parameters {
  char tag;
  double offset;
  int table[5];
  short2 pair;
};

__global__ void features(Parameters p, double *out) {
  const int t = threadIdx.x;
  const Box box(2, t);
  const Disc disc(t);
  const Shape *const shape = t % 2 ? static_cast<const Shape *>(&box) : &disc;
  int histogram[16] = {};
  for (int k = 0; k <= t; ++k)
    histogram[(k * 7) % 16] += k;
  const auto weigh = [&](int at) { return histogram[at % 16] + p.table[at % 5]; };
  const __half2 h = __hmul2(__floats2half2_rn(t, 0.5f), __float2half2_rn(2.0f));
  unsigned bits = __brev(t) ^ __byte_perm(0x01020304, t, 0x3170) ^ __funnelshift_l(t, ~t, 5);
  bits += __popc(t) + __clz(t) + __ffs(t);
  out[t] = shape->area() + steps[t % 2](t) + fibonacci(t % 12) + weigh(t) + p.offset + p.pair.y +
           __low2float(h) + __high2float(h) + p.tag + bits % 1000 + __syncthreads_count(t % 3 == 0);
}

unsigned reversed(unsigned x) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i)
    out |= (x >> i & 1) << (31 - i);
  return out;
}

int main() {
  const int n = 96;
  const Parameters p{'a', 0.125, {1, 2, 3, 4, 5}, {7, -9}};
  Buffer<double> out(n);
  features<<<1, n>>>(p, out);
  CHECK(cudaDeviceSynchronize());
  const std::vector<double> found = out.host();
  long wrong = 0;
  for (int t = 0; t < n; ++t) {
    int histogram[16] = {}, a = 0, b = 1;
    for (int k = 0; k <= t; ++k)
      histogram[(k * 7) % 16] += k;
    for (int k = 0; k < t % 12; ++k) {
      const int next = a + b;
      a = b, b = next;
    }
    const unsigned low = 0x01020304, high = t;
    const unsigned char bytes[8] = {4, 3, 2, 1, static_cast<unsigned char>(high), 0, 0, 0};
    const unsigned permuted =
        bytes[0] | bytes[7] << 8 | bytes[1] << 16 | static_cast<unsigned>(bytes[3]) << 24;
    unsigned bits = reversed(t) ^ permuted ^ (~high << 5 | high >> 27);
    bits += __builtin_popcount(t) + (t ? __builtin_clz(t) : 32) + __builtin_ffs(t);
    (void)low;
    const double expected = (t % 2 ? 2.0 * t : 3.0 * t * t) + (t % 2 ? 3 * t : 2 * t) + a +
                            histogram[t % 16] + p.table[t % 5] + 0.125 - 9 + 2 * t + 1 + 'a' +
                            bits % 1000 + 32;
    if (!close(found[t], expected, 1e-9)) {
      std::printf("thread %d: %f instead of %f\n", t, found[t], expected);
      ++wrong;
    }
  }
  return outcome("language", wrong);
}
