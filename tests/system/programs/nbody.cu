// N bodies under gravity: float4 loads, tiles in shared memory, a reciprocal square root each pair.
#include "check.cuh"

constexpr int kTile = 128;
constexpr float kSoftening = 0.01f;

__device__ float3 pull(float4 body, float4 other, float3 sum) {
  const float3 r = make_float3(other.x - body.x, other.y - body.y, other.z - body.z);
  const float squared = r.x * r.x + r.y * r.y + r.z * r.z + kSoftening;
  const float inverse = rsqrtf(squared);
  const float scale = other.w * inverse * inverse * inverse;
  return make_float3(sum.x + scale * r.x, sum.y + scale * r.y, sum.z + scale * r.z);
}

__global__ void __launch_bounds__(kTile) accelerate(const float4 *bodies, float4 *out, int n) {
  __shared__ float4 tile[kTile];
  const int i = blockIdx.x * kTile + threadIdx.x;
  const float4 body = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float3 sum = make_float3(0, 0, 0);
  for (int start = 0; start < n; start += kTile) {
    const int j = start + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k)
      sum = pull(body, tile[k], sum);
    __syncthreads();
  }
  if (i < n)
    out[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

int main() {
  const int n = 1000;
  std::vector<float4> bodies(n);
  unsigned state = 11;
  auto uniform = [&] { return (next_random(state) >> 8) * (1.0f / (1 << 24)); };
  for (float4 &b : bodies)
    b = make_float4(uniform(), uniform(), uniform(), uniform());
  Buffer<float4> in(bodies), out(n);
  accelerate<<<(n + kTile - 1) / kTile, kTile>>>(in, out, n);
  CHECK(cudaDeviceSynchronize());
  const std::vector<float4> found = out.host();
  long wrong = 0;
  for (int i = 0; i < n; ++i) {
    double x = 0, y = 0, z = 0;
    for (int j = 0; j < n; ++j) {
      const double dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y,
                   dz = bodies[j].z - bodies[i].z;
      const double scale =
          bodies[j].w / std::pow(dx * dx + dy * dy + dz * dz + double(kSoftening), 1.5);
      x += scale * dx, y += scale * dy, z += scale * dz;
    }
    wrong += !close(found[i].x, x, 1e-3) || !close(found[i].y, y, 1e-3) ||
             !close(found[i].z, z, 1e-3);
  }
  return outcome("nbody", wrong);
}
