// Atomics of every kind programs use, and a maximum of floats built from compare-and-swap.
#include "check.cuh"

__device__ float float_max(float *at, float value) {
  int *const bits = reinterpret_cast<int *>(at);
  int old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= value)
      break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (assumed != old);
  return __int_as_float(old);
}

struct Results {
  float most;
  unsigned wrapped, down, ors, ands, xors;
  int least, exchanged;
  unsigned long long sum64, largest64;
  float sumf;
  double sumd;
  int lock, guarded;
};

__global__ void gather(const float *values, int n, Results *r) {
  __shared__ float block_most;
  __shared__ unsigned long long block_sum;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0)
    block_most = -1e30f, block_sum = 0;
  __syncthreads();
  if (i < n) {
    float_max(&block_most, values[i]);
    atomicAdd(&block_sum, static_cast<unsigned long long>(i));
    atomicInc(&r->wrapped, 99);
    atomicDec(&r->down, 49);
    atomicOr(&r->ors, 1u << (i % 31));
    atomicAnd(&r->ands, ~(1u << (i % 13)));
    atomicXor(&r->xors, static_cast<unsigned>(i));
    atomicMin(&r->least, static_cast<int>(values[i] * 1000));
    atomicMax(&r->largest64, static_cast<unsigned long long>(i) << 33);
    atomicAdd(&r->sumf, 0.25f);
    atomicAdd(&r->sumd, 0.5);
    atomicSub(&r->exchanged, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float_max(&r->most, block_most);
    atomicAdd(&r->sum64, block_sum);
    while (atomicCAS(&r->lock, 0, 1) != 0) // one thread a block takes the lock
      ;
    __threadfence(); // what the last holder wrote is seen
    r->guarded += 1;
    __threadfence();
    atomicExch(&r->lock, 0);
  }
}

int main() {
  const int n = 20000, block = 128, grid = (n + block - 1) / block;
  std::vector<float> values(n);
  unsigned state = 21;
  for (float &v : values)
    v = static_cast<int>(next_random(state) >> 8) / 1000.0f - 5000.0f;
  Results start{};
  start.most = -1e30f, start.down = 7, start.ands = ~0u, start.least = 1 << 30;
  Results expected = start;
  for (int i = 0; i < n; ++i) {
    expected.most = std::fmax(expected.most, values[i]);
    expected.wrapped = expected.wrapped >= 99 ? 0 : expected.wrapped + 1;
    expected.down = expected.down == 0 || expected.down > 49 ? 49 : expected.down - 1;
    expected.ors |= 1u << (i % 31);
    expected.ands &= ~(1u << (i % 13));
    expected.xors ^= i;
    expected.least = std::min(expected.least, static_cast<int>(values[i] * 1000));
    expected.largest64 = std::max(expected.largest64, static_cast<unsigned long long>(i) << 33);
    expected.sumf += 0.25f, expected.sumd += 0.5, expected.exchanged -= 1;
    expected.sum64 += i;
  }
  expected.guarded = grid;
  Buffer<float> in(values);
  Buffer<Results> results(std::vector<Results>{start});
  gather<<<grid, block>>>(in, n, results);
  CHECK(cudaDeviceSynchronize());
  const Results found = results.host()[0];
  long wrong = 0;
  wrong += found.most != expected.most;
  wrong += found.wrapped != expected.wrapped || found.down != expected.down;
  wrong += found.ors != expected.ors || found.ands != expected.ands || found.xors != expected.xors;
  wrong += found.least != expected.least || found.exchanged != expected.exchanged;
  wrong += found.sum64 != expected.sum64 || found.largest64 != expected.largest64;
  wrong += found.sumf != expected.sumf || found.sumd != expected.sumd;
  wrong += found.guarded != expected.guarded || found.lock != 0;
  return outcome("atomics", wrong);
}
